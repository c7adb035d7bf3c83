"""Requests tokens of a token endpoint: with client credentials, a refresh token, a device code or an authorization
code.

Answers are bounded in bytes and time, redirects are not followed, and no message quotes a token or a secret. Sources:
RFC 6749; RFC 7636 (PKCE); RFC 8628 (device codes); RFC 9207 (the issuer in the answer); OpenID Connect Discovery 1.0.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from arco_catalog.cli.errors import CliError
from arco_catalog.cli.pkce import proof_key
from arco_catalog.iceberg.json import JsonObject, JsonValue, MalformedJson, loads
from arco_catalog.state.characters import escaped
from arco_catalog.state.fields import optional_text
from arco_catalog.state.runtime import SystemRuntime
from storage_backends import StoreError, StoreUnavailable
from storage_backends.wire.fetch import checked_url, fetch
from storage_backends.wire.http1 import Response
from storage_backends.wire.pool import Timeouts

MAX_ANSWER_BYTES = 64 << 10
MAX_TOKEN = 16 << 10
"""Maximum number of characters of a token."""
MAX_LIFETIME_S = 365 * 24 * 3600
MAX_DIGITS = 15
"""How many digits of a number are read: more than any limit has."""
TIMEOUTS = Timeouts(5.0, 30.0, 30.0)
DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
MAX_DEVICE_S = 1_800
"""How long a user may take to confirm a device code, whatever the issuer allows."""
MAX_INTERVAL_S = 60


class TokenFailure(CliError):
    """An error answer of a token endpoint, with the error code `reason` of RFC 6749, section 5.2; the status if it
    has none, as the answers of other endpoints."""

    def __init__(self, reason: str, message: str, *, has_code: bool) -> None:
        super().__init__(message)
        self.reason, self.has_code = reason, has_code


class LostAnswer(CliError):
    """No complete answer came, or one with a status from 500 on. A repetition may have another."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """The answer of a token endpoint: the access token, the time when it expires in milliseconds since 1970, the
    refresh token and the ID token; empty if the response has no such token."""

    access_token: str
    expires_ms: int
    refresh_token: str = ""
    id_token: str = ""


@dataclass(frozen=True, slots=True)
class Issuer:
    """The endpoints of an issuer, each empty if it has none."""

    name: str
    token_endpoint: str
    device_endpoint: str
    authorization_endpoint: str


async def discover(issuer: str) -> Issuer:
    """Returns the endpoints of an issuer, by its discovery document. Raises `CliError` if that can't be had, is that of
    another issuer, has no token endpoint, or names an endpoint by a URL that is not a plain one (no user, no fragment,
    only ASCII) with https or on this machine."""
    where = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
    document = _object(await _exchange(where))
    if document.get("issuer") != issuer:
        raise CliError(
            f"the document at {where} is of another issuer than {issuer}, or no discovery document: check --issuer"
        )
    names = ("token_endpoint", "device_authorization_endpoint", "authorization_endpoint")
    endpoints = [optional_text(document, name) or "" for name in names]
    for endpoint in filter(None, endpoints):
        try:
            checked_url(endpoint, plain_loopback=True)
        except StoreError as error:
            raise CliError(f"the discovery document of {issuer} has a URL that is not allowed: {error}") from error
    if not endpoints[0]:
        raise CliError(f"the discovery document of {issuer} has no token endpoint: check --issuer")
    return Issuer(issuer, *endpoints)


async def request_tokens(endpoint: str, form: Mapping[str, str]) -> Tokens:
    """Requests tokens of an endpoint, and returns them; an access token whose lifetime the answer does not name counts
    as valid for 300 seconds, and none for more than a year. Raises `TokenFailure` for an error answer, `LostAnswer`
    without a response or for a status from 500 on, and `CliError` for one that has no bearer token, an invalid
    lifetime or an invalid refresh token, and as `_exchange` does."""
    response = await _exchange(endpoint, form)
    if response.status >= 500:
        raise LostAnswer(f"{endpoint} answered status {response.status}")
    answer = _object(response)
    if response.status != 200:
        status = f"status {response.status}"
        code = optional_text(answer, "error")
        message = f"{endpoint} answered: {error_reason(answer, status)}"
        raise TokenFailure(code or status, message, has_code=bool(code))
    token, seconds = optional_text(answer, "access_token"), _whole(answer.get("expires_in", 300))
    if str(answer.get("token_type", "")).lower() != "bearer" or not _is_token(token):
        raise CliError(f"the answer of {endpoint} has no bearer token of at most {MAX_TOKEN:,} printable characters")
    if seconds is None:
        raise CliError(f"the answer of {endpoint} has an expires_in that is no whole number of seconds")
    refresh = optional_text(answer, "refresh_token") or ""
    if refresh and not _is_token(refresh):
        raise CliError(
            f"the refresh token of {endpoint} has more than {MAX_TOKEN:,} characters, or others than printable ASCII"
        )
    expires_ms = SystemRuntime().now_ms() + 1_000 * max(0, min(seconds, MAX_LIFETIME_S))
    return Tokens(token or "", expires_ms, refresh, optional_text(answer, "id_token") or "")


async def device_tokens(
    issuer: Issuer,
    client_id: str,
    scope: str,
    show: Callable[[str], None],
    sleep: Callable[[float], Awaitable[None]],
    entropy: Callable[[int], bytes],
) -> Tokens:
    """Returns the tokens that the user confirms in any browser: `show` prints where, and the code. Polls as the issuer
    wishes, for the lifetime of the code, but no longer than `MAX_DEVICE_S`, and on after a lost response. Sends a
    challenge, which Keycloak demands of clients that must use PKCE, and which others ignore. Raises `CliError` if the
    issuer has no device codes or gives none, if the user declines or takes too long, and as `request_tokens` does for
    any other response."""
    if not issuer.device_endpoint:
        raise CliError(f"the issuer {issuer.name} has no device codes: use --browser, if the issuer allows it")
    verifier, challenge = proof_key(entropy)
    answer = _object(await _exchange(issuer.device_endpoint, {"client_id": client_id, "scope": scope, **challenge}))
    code, user_code = optional_text(answer, "device_code"), optional_text(answer, "user_code")
    where = optional_text(answer, "verification_uri_complete") or optional_text(answer, "verification_uri")
    if not code or not user_code or not where:
        reason = error_reason(answer, "the answer is not complete")
        raise CliError(f"the issuer {issuer.name} gave no device code, user code or address to confirm it at: {reason}")
    show(escaped(f"Open {where[:2_000]} in a browser and confirm the code {user_code[:100]}"))
    form = {"grant_type": DEVICE_GRANT, "device_code": code, "client_id": client_id, "code_verifier": verifier}
    lifetime, interval = _seconds(answer, "expires_in", MAX_DEVICE_S), _seconds(answer, "interval", MAX_INTERVAL_S, 5)
    try:
        async with asyncio.timeout(lifetime):  # polls take time too
            return await _poll(issuer.token_endpoint, form, lifetime, interval, show, sleep)
    except TimeoutError as error:
        raise CliError("the code was not confirmed in time: log in again") from error


async def _poll(
    endpoint: str,
    form: Mapping[str, str],
    lifetime: int,
    interval: int,
    show: Callable[[str], None],
    sleep: Callable[[float], Awaitable[None]],
) -> Tokens:
    """Requests the tokens of a device code every `interval` seconds until the user has confirmed it, and returns them;
    more rarely if the issuer wishes, and half as often, down to once in `MAX_INTERVAL_S`, after every lost response,
    which `show` reports (RFC 8628, section 3.5). Raises `TimeoutError` after `lifetime` seconds of sleep, and
    `CliError` for any other response."""
    left = lifetime
    while left > 0:
        await sleep(interval)
        left -= interval
        try:
            return await request_tokens(endpoint, form)
        except TokenFailure as failure:
            if failure.reason not in ("authorization_pending", "slow_down"):
                raise
            interval += 5 if failure.reason == "slow_down" else 0
        except LostAnswer as lost:
            show(f"{lost}; trying again")
            interval = min(2 * interval, MAX_INTERVAL_S)
    raise TimeoutError


def _seconds(answer: JsonObject, field: str, limit: int, default: int | None = None) -> int:
    """Returns the number of seconds in a field of a response, at least 1 and at most `limit`. Without a whole number it
    is the default, or else `limit`."""
    value = _whole(answer.get(field))
    return max(1, min(default or limit if value is None else value, limit))


def _whole(value: JsonValue) -> int | None:
    """Returns a whole number, which some issuers send as a string of digits, of which the first `MAX_DIGITS` count;
    None for any other value."""
    if isinstance(value, str) and value.isascii() and value.isdigit():
        return int(value[:MAX_DIGITS])
    return value if isinstance(value, int) and not isinstance(value, bool) else None


async def _exchange(url: str, form: Mapping[str, str] | None = None) -> Response:
    """Gets a document, or posts a form. Raises `LostAnswer` without a complete answer, and `CliError` for a redirect,
    and for a URL that is neither https nor on this machine."""
    headers = {} if form is None else {"content-type": "application/x-www-form-urlencoded"}
    method, body = ("GET", b"") if form is None else ("POST", urlencode(form).encode())
    now_ms = SystemRuntime().now_ms
    try:
        response = await fetch(
            url, headers, now_ms, MAX_ANSWER_BYTES, method=method, body=body, plain_loopback=True, timeouts=TIMEOUTS
        )
    except StoreUnavailable as error:
        raise LostAnswer(str(error)) from error
    except StoreError as error:
        raise CliError(str(error)) from error
    if 300 <= response.status < 400:
        raise CliError(
            f"{url} redirects (status {response.status}), which is not followed: give the address that it names, or "
            "let the issuer's discovery document name that"
        )
    return response


def _object(response: Response) -> JsonObject:
    """Returns the object in a response body; empty for any other body."""
    try:
        document = loads(response.body)
    except MalformedJson:
        return {}
    return document if isinstance(document, dict) else {}


def error_reason(answer: JsonObject, otherwise: str) -> str:
    """Formats the error code of an error answer, or `otherwise` if it has none, and then the description, as one line:
    the first 300 characters, with control characters escaped."""
    reason, described = optional_text(answer, "error") or otherwise, optional_text(answer, "error_description") or ""
    return escaped(f"{reason} {described}".strip()[:300])


def _is_token(text: str | None) -> bool:
    """Whether a text is from 1 to `MAX_TOKEN` printable ASCII characters, as a token must be. False for None."""
    return bool(text) and len(text or "") <= MAX_TOKEN and (text or "").isascii() and (text or "").isprintable()
