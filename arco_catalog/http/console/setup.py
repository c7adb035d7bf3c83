"""How people sign in to the console of a deployment, by its settings."""

from collections.abc import Collection, Mapping, Sequence
from functools import partial

from arco_catalog.authentication.setup import OIDC, trusted_issuers
from arco_catalog.config.variables import AUTH, OIDC_ISSUERS, OIDC_LOOPBACK_HTTP
from arco_catalog.http.console.clients import SignIn, parse_client, parse_endpoint_origin


def load_sign_in(
    clients: Sequence[str], origins: Sequence[str], auth: Collection[str], environment: Mapping[str, str]
) -> SignIn:
    """Returns the issuers at which people sign in to the console, by the texts of clients and of further origins. The
    deployment authenticates callers by `auth`, and accepts tokens of the issuers that variables name. Raises
    `ValueError` for an invalid client or origin, for two clients of one issuer, for a client of an issuer whose tokens
    are not accepted, and for an invalid list of accepted issuers. Without clients and origins it reads no variable."""
    if not clients and not origins:
        return SignIn()
    plain = OIDC_LOOPBACK_HTTP.read(environment)
    parsed = tuple(map(partial(parse_client, plain_loopback=plain), clients))
    others = tuple(map(partial(parse_endpoint_origin, plain_loopback=plain), origins))
    issuers = [client.issuer for client in parsed]
    trusted = trusted_issuers(environment) if OIDC in auth else ()
    for issuer in issuers:
        if issuer not in trusted:
            raise ValueError(
                f"tokens of {issuer} are not accepted: {AUTH.name} must name {OIDC}, and {OIDC_ISSUERS.name} the issuer"
            )
        if issuers.count(issuer) > 1:
            raise ValueError(f"several clients of the issuer {issuer} are listed for the console: list one")
    return SignIn(parsed, others)
