"""`arco doctor --auth`: tests whether a server with the variables of this command would accept a token, and displays
what of the token is not accepted and what to do about it."""

from collections.abc import Sequence
from shlex import quote

from arco_catalog.authentication.authenticator import AuthenticationResult, RequestCredentials
from arco_catalog.authentication.claims import UnverifiedToken, read_unverified
from arco_catalog.authentication.setup import AuthenticationSetup, load_authentication
from arco_catalog.authentication.tokens import ISSUER
from arco_catalog.cli.checks import Check, Status
from arco_catalog.cli.command import CatalogOptions
from arco_catalog.cli.doctor import show
from arco_catalog.cli.finders import find_realm
from arco_catalog.cli.session import carry_out, open_session
from arco_catalog.cli.small_files import MAX_TOKEN_BYTES, read_text
from arco_catalog.config.variables import (
    AUTH,
    OIDC_AUDIENCES,
    OIDC_ISSUERS,
    OIDC_PRINCIPAL_CLAIM,
    OIDC_ROLES_CLAIM,
    TOKEN_KEY,
    TOKEN_KEY_FILE,
    TOKEN_KEY_SECRET,
)
from arco_catalog.iceberg.errors import NotAuthorized, Unavailable
from arco_catalog.planning.judgement import standing_of
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.lookup import carry_out as look_up
from arco_catalog.state.characters import escaped
from arco_catalog.state.paths import DEFAULT_REALM
from arco_catalog.state.runtime import SystemRuntime

CLAIMS = ("iss", "aud", "sub", "exp", "scope")
"""The claims that are printed: none of them lets anybody in."""
MAX_SHOWN = 200


def run(options: CatalogOptions, token_file: str, *, as_json: bool) -> int:
    """Tests the token in a file, and prints the results. Returns 1 if a check failed, else 0; a token that activates no
    role of the principal fails, too, though a server would accept it. Raises `CliError` if the file can't be read, and
    as `open_session` and `find_realm` do."""
    token = read_text(token_file, "the token", MAX_TOKEN_BYTES)

    async def work() -> Sequence[Check]:
        async with open_session(options, "doctor", find_realm) as (_, session):
            return await _examine(options, session, token)

    return show(carry_out(work), as_json=as_json)


async def _examine(options: CatalogOptions, session: Session, token: str) -> Sequence[Check]:
    """Returns the checks of the settings and, if these name a way to verify tokens, of the token."""
    try:
        setup = load_authentication(options.environment, options.realm or DEFAULT_REALM, SystemRuntime())
    except ValueError as error:
        return [Check("settings", Status.FAILED, str(error), "set the variables that the server has")]
    if setup is None or setup.open:
        advice = f"set {AUTH.name} and the variables beside it as the server has them"
        return [Check("settings", Status.FAILED, f"{AUTH.name} names no way to verify a token", advice)]
    results = [Check("settings", Status.OK, f"{AUTH.name}={options.environment[AUTH.name]}")]
    try:
        return [*results, *await _of_token(options, session, setup, token)]
    finally:
        await setup.close()


async def _of_token(
    options: CatalogOptions, session: Session, setup: AuthenticationSetup, token: str
) -> Sequence[Check]:
    """Returns the checks of a token, up to the first that fails: its form, its signature and claims, the principal and
    the roles."""
    unverified = read_unverified(token)
    if unverified is None:
        return [Check("token", Status.FAILED, "it is no signed JWT in compact form", "request an access token, as JWT")]
    results = [Check("token", Status.OK, _claims(unverified))]
    try:
        found = await setup.authentication.authenticate(RequestCredentials({"authorization": f"Bearer {token}"}))
    except (NotAuthorized, Unavailable) as error:
        return [*results, Check("verification", Status.FAILED, error.message, _settings(options, unverified))]
    results.append(Check("verification", Status.OK, f"it is of {found.identity.principal}"))
    return [*results, *await _of_principal(session, found)]


async def _of_principal(session: Session, found: AuthenticationResult) -> Sequence[Check]:
    """Returns the checks of the principal of a token, and of the roles that the token activates. If there is no such
    principal, the token is not valid any more (as after a new secret), or the principal must rotate its secret, only
    the failed check of the principal."""
    head = await session.head()
    standing = await look_up(session.state, head.index, standing_of(head.index, found.identity))
    if standing is None:
        lacks = "this id and secret" if found.identity.issued else "this subject"
        return [Check("principal", Status.FAILED, f"no principal of the realm has {lacks}", _advice(found))]
    if standing.must_rotate:
        return [Check("principal", Status.FAILED, f"{standing.name} must rotate its secret first", "rotate it")]
    results = [Check("principal", Status.OK, standing.name)]
    named = found.identity.activated
    roles = "all roles" if named is None else f"the roles {', '.join(sorted(named)) or 'none'}"
    if standing.roles:
        return [*results, Check("roles", Status.OK, f"the token activates {roles}: {len(standing.roles)} of its own")]
    advice = f"assign one by `arco roles assign ROLE --to {quote(standing.name)}`, or check {OIDC_ROLES_CLAIM.name}"
    return [*results, Check("roles", Status.FAILED, f"it has none of what the token activates: {roles}", advice)]


def _advice(found: AuthenticationResult) -> str:
    """Returns what to do about a token without a principal: log in again if the catalog issued the token, otherwise a
    command that gives a principal its subject. The command is quoted for a shell: the subject is text that a stranger
    may have chosen."""
    if not found.identity.issued:
        return "log in again: the principal was dropped, or its secret replaced"
    return f"arco principals update NAME --property {quote(f'arco.subject={found.identity.principal}')}"


def _claims(token: UnverifiedToken) -> str:
    """Formats the algorithm and key id of a token, and the claims in `CLAIMS` that it has, every one cut to `MAX_SHOWN`
    characters."""
    shown = {**{name: token.header.get(name) for name in ("alg", "kid")}, **token.claims}
    parts = (f"{name}={shown[name]}" for name in ("alg", "kid", *CLAIMS) if shown.get(name) is not None)
    return escaped(" ".join(part[:MAX_SHOWN] for part in parts))


def _settings(options: CatalogOptions, token: UnverifiedToken) -> str:
    """Returns advice about a token that was not accepted: the variables with which the claims must agree, with their
    values; for a token of the catalog's own, to log in again, or the names of the variables with the keys."""
    if token.issuer == ISSUER:
        keys = (TOKEN_KEY, TOKEN_KEY_FILE, TOKEN_KEY_SECRET)
        return (
            f"log in again, or set {', '.join(key.name for key in keys[:-1])} or {keys[-1].name} as the server has it"
        )
    variables = (OIDC_ISSUERS, OIDC_AUDIENCES, OIDC_PRINCIPAL_CLAIM)
    values = (f"{each.name}={options.environment.get(each.name, '')}" for each in variables)
    return escaped(f"compare with {' '.join(values)}")
