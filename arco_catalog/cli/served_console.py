"""How people sign in to the console that `arco serve` serves, by the server's options."""

from collections.abc import Sequence
from functools import partial

from arco_catalog.authentication.setup import OIDC, trusted_issuers
from arco_catalog.cli.errors import CliError
from arco_catalog.cli.serve_options import ServeOptions
from arco_catalog.config.variables import AUTH, OIDC_ISSUERS, OIDC_LOOPBACK_HTTP
from arco_catalog.http.console.clients import SignIn, parse_client, parse_endpoint_origin


def sign_in_of(options: ServeOptions) -> SignIn:
    """Returns the issuers at which people sign in to the console, none unless the options name some. Raises `CliError`
    for an invalid client or origin, for two clients of one issuer, and for a client of an issuer whose tokens the
    server does not accept."""
    if not options.console_clients and not options.console_origins:
        return SignIn()
    try:
        plain = OIDC_LOOPBACK_HTTP.read(options.environment)
        clients = tuple(map(partial(parse_client, plain_loopback=plain), options.console_clients))
        origins = tuple(map(partial(parse_endpoint_origin, plain_loopback=plain), options.console_origins))
        _check_issuers([client.issuer for client in clients], options)
    except ValueError as error:
        raise CliError(f"--console-client, --console-origin: {error}") from error
    return SignIn(clients, origins)


def _check_issuers(issuers: Sequence[str], options: ServeOptions) -> None:
    """Raises `ValueError` for an issuer that has several clients, or whose tokens are not accepted."""
    trusted = trusted_issuers(options.environment) if OIDC in options.auth else ()
    for issuer in issuers:
        if issuer not in trusted:
            raise ValueError(
                f"tokens of {issuer} are not accepted: {AUTH.name} must name {OIDC}, and {OIDC_ISSUERS.name} the issuer"
            )
    if len(set(issuers)) < len(issuers):
        raise ValueError("an issuer is listed twice: list it once")
