"""Makes the authenticators of a deployment, which environment variables name (docs/configuration.md).

Libraries that verify tokens are imported only if a variable needs them: a function behind a gateway starts without.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from arco_catalog.authentication.authentication import Authentication
from arco_catalog.authentication.authenticator import Authenticator
from arco_catalog.authentication.gateway import GatewayAuthenticator
from arco_catalog.config.variable import Variable
from arco_catalog.config.variables import (
    AUTH,
    GATEWAY_APIS,
    GATEWAY_PRINCIPAL_CLAIM,
    GATEWAY_ROLES_CLAIM,
    OIDC_ALGORITHMS,
    OIDC_AUDIENCES,
    OIDC_ISSUERS,
    OIDC_LOOPBACK_HTTP,
    OIDC_PRINCIPAL_CLAIM,
    OIDC_ROLES_CLAIM,
    TOKEN_AUDIENCE,
    TOKEN_KEY,
    TOKEN_KEY_FILE,
    TOKEN_KEY_SECRET,
    TOKEN_LIFETIME,
)
from arco_catalog.state.runtime import Runtime
from storage_backends.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from arco_catalog.authentication.keys import KeySource
    from arco_catalog.authentication.oidc import OidcAuthenticator
    from arco_catalog.authentication.tokens import OwnTokens

NONE, INTERNAL, OIDC, GATEWAY = "none", "internal", "oidc", "gateway"
KINDS = (NONE, INTERNAL, OIDC, GATEWAY)

_REALM = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
_API = re.compile(r"[a-z0-9]+")


@dataclass(frozen=True, slots=True)
class AuthenticationSetup:
    """The authenticators of a deployment. `open` is whether every caller is accepted; `tokens` signs for the token
    endpoint, None where there is no such endpoint."""

    authentication: Authentication
    open: bool
    tokens: "OwnTokens | None" = None
    oidc: "OidcAuthenticator | None" = None

    async def close(self) -> None:
        """Ends the authenticators' background tasks, which fetch the keys of issuers; does nothing if there are no
        issuers."""
        if self.oidc is not None:
            await self.oidc.close()


def load_authentication(environment: Mapping[str, str], realm: str, runtime: Runtime) -> AuthenticationSetup | None:
    """Makes the authenticators that variables name; None if `ARCO_AUTH` is not set. If it is `none`, the setup is open,
    and has no authenticators. `realm` is the realm of issuers and APIs without one of their own. Reads the file of keys
    that sign the catalog's own tokens, and sends nothing. Raises `ValueError`, which names a variable, for an invalid
    configuration or a missing library."""
    kinds = AUTH.read(environment)
    for kind in kinds:
        if kind not in KINDS:
            raise ValueError(f"{AUTH.name}: expected {', '.join(KINDS)}, got {kind!r}")
    if not kinds:
        return None
    if NONE in kinds:
        if set(kinds) != {NONE}:
            raise ValueError(f"{AUTH.name}: 'none' accepts every caller, so it can't be combined with others")
        return AuthenticationSetup(Authentication(()), open=True)
    if {INTERNAL, OIDC} & set(kinds) and find_spec("jwt") is None:
        raise ValueError(f"{AUTH.name}: PyJWT is not installed: install the extra 'auth' of arco-catalog")
    if OIDC in kinds and find_spec("cryptography") is None:
        raise ValueError(
            f"{AUTH.name}: cryptography is not installed: install the extra 'auth' of arco-catalog, or for Lambda "
            "`make package ARGS=--oidc`"
        )
    authenticators: list[Authenticator] = []
    tokens = oidc = None
    if GATEWAY in kinds:
        authenticators.append(_gateway(environment, realm))
    if INTERNAL in kinds:
        from arco_catalog.authentication.tokens import InternalAuthenticator, OwnTokens

        audience, lifetime_s = TOKEN_AUDIENCE.read(environment), TOKEN_LIFETIME.read(environment)
        tokens = OwnTokens(key_source(environment, runtime), runtime, audience, lifetime_s)
        authenticators.append(InternalAuthenticator(tokens, runtime.now_ms))
    if OIDC in kinds:
        oidc = _oidc(environment, realm, runtime)
        authenticators.append(oidc)
    return AuthenticationSetup(Authentication(authenticators), open=False, tokens=tokens, oidc=oidc)


def trusted_issuers(environment: Mapping[str, str]) -> Collection[str]:
    """Returns the issuers whose tokens are accepted if callers authenticate by them. Raises `ValueError` if none is
    named, or one twice."""
    return _by_realm(OIDC_ISSUERS, environment, "").keys()


def key_source(environment: Mapping[str, str], runtime: Runtime) -> "KeySource":
    """Returns the source of the keys that sign tokens: a variable's text or a file, which are read now, or a secret of
    the cloud, which is only read when a key is needed. Raises `ValueError` unless exactly one of the three variables is
    set, and for invalid keys, a file that can't be read, or a text that is not a reference to a secret."""
    from arco_catalog.authentication import keys
    from storage_backends.secret_stores import is_reference

    variables = [
        variable for variable in (TOKEN_KEY, TOKEN_KEY_FILE, TOKEN_KEY_SECRET) if environment.get(variable.name)
    ]
    if len(variables) != 1:
        names = f"{TOKEN_KEY.name}, {TOKEN_KEY_FILE.name} and {TOKEN_KEY_SECRET.name}"
        raise ValueError(f"'{AUTH.name}=internal' needs a key to sign tokens: set exactly one of {names}")
    text = variables[0].read(environment)
    if variables[0] is not TOKEN_KEY_SECRET:
        in_file = variables[0] is TOKEN_KEY_FILE
        try:
            known = keys.read_file(text) if in_file else keys.parse_keys(text)
        except ValueError as error:
            raise ValueError(f"{variables[0].name}: {error}") from error
        return keys.KeySource(keys.from_file(text) if in_file else keys.from_text(text), runtime.now_ms, known)
    if not is_reference(text):
        raise ValueError(
            f"{TOKEN_KEY_SECRET.name} is not a reference to a secret: expected an ARN of AWS Secrets Manager or "
            "Parameter Store, projects/ID/secrets/NAME (Google Cloud), or https://VAULT.vault.azure.net/secrets/NAME"
        )
    return keys.KeySource(keys.from_secret_store(text, environment, runtime.now_ms), runtime.now_ms)


def _gateway(environment: Mapping[str, str], realm: str) -> GatewayAuthenticator:
    """Returns the authenticator that trusts the API gateways of ARCO_GATEWAY_APIS. `realm` is that of the gateways for
    which the variable names none. Raises `ValueError` for an invalid or empty variable."""
    apis = _by_realm(GATEWAY_APIS, environment, realm)
    for api in apis:
        if not _API.fullmatch(api):
            raise ValueError(
                f"{GATEWAY_APIS.name}: {api!r} is not the id of an API or a function URL: expected lower-case letters "
                "and digits, such as a1b2c3d4e5"
            )
    return GatewayAuthenticator(
        apis, GATEWAY_PRINCIPAL_CLAIM.read(environment), environment.get(GATEWAY_ROLES_CLAIM.name) or None
    )


def _oidc(environment: Mapping[str, str], realm: str, runtime: Runtime) -> "OidcAuthenticator":
    """Returns the authenticator for the tokens of the issuers in ARCO_OIDC_ISSUERS. Raises `ValueError` for an invalid
    variable."""
    from arco_catalog.authentication.jwks import ALGORITHMS, IssuerKeys, over_https
    from arco_catalog.authentication.oidc import Issuer, OidcAuthenticator
    from storage_backends import StoreDenied
    from storage_backends.wire.fetch import checked_url

    plain = OIDC_LOOPBACK_HTTP.read(environment)
    algorithms = OIDC_ALGORITHMS.read(environment)
    for name in algorithms:
        if name not in ALGORITHMS:
            raise ValueError(f"{OIDC_ALGORITHMS.name}: expected some of {', '.join(ALGORITHMS)}, got {name!r}")
    audiences = _required(OIDC_AUDIENCES, environment)
    issuers: list[tuple[Issuer, IssuerKeys]] = []
    for url, of in _by_realm(OIDC_ISSUERS, environment, realm).items():
        try:
            parts = checked_url(url, plain_loopback=plain)
        except StoreDenied as error:
            raise ValueError(f"{OIDC_ISSUERS.name}: {error}") from error
        if parts.query:
            raise ValueError(f"{OIDC_ISSUERS.name}: {url!r} must have no query")
        issuer = Issuer(
            url,
            of,
            audiences,
            algorithms,
            OIDC_PRINCIPAL_CLAIM.read(environment),
            environment.get(OIDC_ROLES_CLAIM.name) or None,
        )
        get = over_https(runtime.now_ms, plain_loopback=plain)
        issuers.append((issuer, IssuerKeys(url, get, runtime.now_ms, plain_loopback=plain)))
    return OidcAuthenticator(issuers, runtime.now_ms)


def _by_realm(variable: Variable[tuple[str, ...]], environment: Mapping[str, str], realm: str) -> Mapping[str, str]:
    """Returns the realm of each item of a variable, by the item's value: an item `NAME=VALUE` gives VALUE the realm
    NAME if that can be a realm's name, and any other item is itself a value of `realm`. Raises `ValueError` if the
    variable has no items, or has a value twice."""
    found: dict[str, str] = {}
    for item in _required(variable, environment):
        name, equals, rest = item.partition("=")
        of, value = (name, rest) if equals and _REALM.fullmatch(name) else (realm, item)
        if value in found:
            raise ValueError(f"{variable.name}: {value!r} is listed twice: list it once, for one realm")
        found[value] = of
    return found


def _required(variable: Variable[tuple[str, ...]], environment: Mapping[str, str]) -> Sequence[str]:
    """Returns the texts that a variable lists. Raises `ValueError` if it lists none."""
    values = variable.read(environment)
    if not values:
        raise ValueError(f"{variable.name} is not set, and one of the kinds in {AUTH.name} needs it")
    return values
