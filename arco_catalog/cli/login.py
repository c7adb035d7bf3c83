"""`arco login`: gets a token for a server and saves it. Commands with --url send that token, and renew it."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from arco_catalog.cli.errors import CliError
from arco_catalog.cli.loopback import browser_tokens
from arco_catalog.cli.oauth import TokenFailure, Tokens, device_tokens, discover, request_tokens
from arco_catalog.cli.saved_logins import SavedLogin, forget_login, locked, login_path, read_login, write_login
from arco_catalog.cli.session import carry_out
from arco_catalog.cli.small_files import read_text
from arco_catalog.state.characters import escaped
from arco_catalog.state.runtime import SystemRuntime
from storage_backends.wire.fetch import checked_url

TOKENS = "/v1/oauth/tokens"
POLARIS_TOKENS = "/api/catalog/v1/oauth/tokens"
RENEWAL_MS = 60_000
"""A token is renewed this time before it expires, so that it does not expire during a command."""
MAX_SECRET_BYTES = 4 << 10


@dataclass(frozen=True, slots=True)
class LoginRequest:
    """The arguments of `arco login` for the server `url`: for a client with the secret in `secret_file`, at the
    `issuer` if there is one, else at the server; without a secret for a person at the `issuer`, by a `browser` on this
    machine or by a device code."""

    url: str
    client_id: str
    scope: str
    issuer: str | None
    secret_file: str
    browser: bool


def run(request: LoginRequest, environment: Mapping[str, str]) -> int:
    """Logs in, saves the login in place of a saved one, and shows the path of the file. Returns 0. Raises
    `CliError`."""
    path = login_path(request.url, environment)
    secret_file = str(Path(request.secret_file).absolute()) if request.secret_file else ""

    async def work() -> None:
        checked_url(request.url, plain_loopback=True)
        endpoint, tokens = await _tokens(request)
        blank = SavedLogin(request.url, endpoint, request.client_id, request.scope, "", 0, "", secret_file)
        login = _with_tokens(blank, tokens)
        async with locked(path):  # a renewal under way would not notice that it is replaced
            write_login(path, login)

    carry_out(work)
    print(escaped(f"Logged in to {request.url}. Commands with --url use the token in {path}, which is renewed there."))
    return 0


def run_forget(url: str, environment: Mapping[str, str]) -> int:
    """Deletes the saved login at a server, and prints whether there was one. Returns 0. Raises `CliError`."""
    was = forget_login(login_path(url, environment))
    print(escaped(f"Forgot the login at {url}." if was else f"There is no login at {url}."))
    return 0


async def _tokens(request: LoginRequest) -> tuple[str, Tokens]:
    """Logs in by the way that the request selects (client secret, browser or device code), and returns the token
    endpoint and the tokens. Raises `CliError`."""
    issuer = None if request.issuer is None else await discover(request.issuer)
    client, scope, runtime = request.client_id, request.scope, SystemRuntime()
    if issuer is None:
        return await _tokens_of_server(request.url, _client_form(client, scope, request.secret_file))
    if request.secret_file:
        endpoint = issuer.token_endpoint
        return endpoint, await request_tokens(endpoint, _client_form(client, scope, request.secret_file))
    if request.browser:
        return issuer.token_endpoint, await browser_tokens(issuer, client, scope, _show, runtime.entropy)
    tokens = await device_tokens(issuer, client, scope, _show, runtime.sleep, runtime.entropy)
    return issuer.token_endpoint, tokens


async def _tokens_of_server(url: str, form: Mapping[str, str]) -> tuple[str, Tokens]:
    """Requests tokens of a catalog's server at the path of Iceberg's API, and if that answers an error with a status
    below 500 and without an OAuth error code, at Polaris's path. Returns the endpoint that gave the tokens, and the
    tokens. Raises `CliError`."""
    try:
        return url + TOKENS, await request_tokens(url + TOKENS, form)
    except TokenFailure as failure:
        if failure.has_code:
            raise
    return url + POLARIS_TOKENS, await request_tokens(url + POLARIS_TOKENS, form)


def _show(text: str) -> None:
    """Writes a line on standard error."""
    print(text, file=sys.stderr, flush=True)


def _client_form(client_id: str, scope: str, secret_file: str) -> Mapping[str, str]:
    """Returns the form that requests a token with client credentials. Raises `CliError` if the secret can't be read."""
    secret = read_text(secret_file, "the secret", MAX_SECRET_BYTES)
    form = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": secret}
    return {**form, "scope": scope} if scope else form


def _with_tokens(login: SavedLogin, tokens: Tokens) -> SavedLogin:
    """Returns a login with new tokens; the refresh token stays if there is no new one."""
    refresh = tokens.refresh_token or login.refresh_token
    return replace(login, access_token=tokens.access_token, expires_ms=tokens.expires_ms, refresh_token=refresh)


async def saved_token(url: str, environment: Mapping[str, str], valid_ms: int = RENEWAL_MS) -> str | None:
    """Returns the token of the saved login at a server, None if there is none. A token that expires within `valid_ms`
    is renewed first, by one command at a time, and saved unless the login was replaced or forgotten meanwhile. Raises
    `CliError` if it can't be renewed and expires within `RENEWAL_MS`, if the file has the login at another server, and
    as `read_login` and `locked` do."""
    path, server = login_path(url, environment), url.rstrip("/")
    login = _login_at(server, path)
    if login is not None and _expires_within(login, valid_ms):
        async with locked(path):
            login = _login_at(server, path)  # which another command may have renewed
            if login is not None and _expires_within(login, valid_ms):
                login = await _renewed(login, path)
    return None if login is None else login.access_token


def _login_at(server: str, path: Path) -> SavedLogin | None:
    """Returns the login in a file; None without one. Raises `CliError` if it is of another server."""
    login = read_login(path)
    if login is not None and login.url != server:
        raise CliError(f"the login in {path} was not used: it is of another server; remove it, and log in again")
    return login


def _expires_within(login: SavedLogin, valid_ms: int) -> bool:
    """Whether the access token of a login expires in at most `valid_ms`."""
    return login.expires_ms - SystemRuntime().now_ms() <= valid_ms


async def _renewed(login: SavedLogin, path: Path) -> SavedLogin:
    """Renews a login, saves it and returns it. If the user has replaced it meanwhile, the new one is kept and returned;
    if the user has forgotten it, the renewed one is returned, but not saved. Returns the login as it is if it can't be
    renewed and does not expire within `RENEWAL_MS`; else raises `CliError`."""
    try:
        renewed = _with_tokens(login, await request_tokens(login.token_endpoint, _renewal(login)))
    except CliError as error:
        other = _login_at(login.url, path)
        if other is not None and other != login:
            return other
        if not _expires_within(login, RENEWAL_MS):
            return login
        raise CliError(
            f"the login at {login.url} has expired, or does within a minute, and was not renewed: {error}; try again "
            "if no answer arrived, or one with a status from 500 on, else log in again"
        ) from error
    other = _login_at(login.url, path)
    if other == login:
        write_login(path, renewed)
    return renewed if other is None or other == login else other


def _renewal(login: SavedLogin) -> Mapping[str, str]:
    """Returns the form that requests the next token of a login. Raises `CliError` if it has nothing to renew it by."""
    if login.refresh_token:
        return {"grant_type": "refresh_token", "refresh_token": login.refresh_token, "client_id": login.client_id}
    if login.secret_file:
        return _client_form(login.client_id, login.scope, login.secret_file)
    raise CliError("the login has neither a refresh token nor a file with the client's secret")
