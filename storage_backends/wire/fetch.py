"""Sends one request over a connection of its own, to services that are rarely called and answer with little: for key
sets, secrets, messages, tokens."""

import asyncio
import ssl
from collections.abc import Callable, Mapping
from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit

from storage_backends.base import InvalidContent, StoreDenied, StoreError, StoreUnavailable
from storage_backends.wire.dial import Permits
from storage_backends.wire.endpoint import target_of
from storage_backends.wire.exchange import Ambiguous
from storage_backends.wire.http1 import AnswerLost, NeverSent, Response, request_head
from storage_backends.wire.pool import Pool, Timeouts, tls_context

TIMEOUTS = Timeouts(connect_s=3.0, idle_s=3.0, exchange_s=5.0)


async def fetch(
    url: str,
    headers: Mapping[str, str],
    now_ms: Callable[[], int],
    max_bytes: int,
    *,
    method: str = "GET",
    body: bytes = b"",
    plain_loopback: bool = False,
    tls: ssl.SSLContext | None = None,
    timeouts: Timeouts = TIMEOUTS,
    permits: Permits | None = None,
) -> Response:
    """Sends a request once and returns the answer, whatever its status. It follows no redirects, uses no proxy, and
    never waits longer than `timeouts` allow. `plain_loopback` allows `http` to this machine; `tls` replaces the context
    that trusts the system's authorities; `permits` restricts the addresses to which connections are made.

    Raises `StoreDenied` for a URL that is not allowed, `StoreUnavailable` if nothing was sent, `Ambiguous` without a
    complete answer of at most `max_bytes`, and `StoreError` for a header that is not printable ASCII.
    """
    parts = checked_url(url, plain_loopback=plain_loopback)
    secure = parts.scheme == "https"
    context = None if not secure else tls or await asyncio.to_thread(tls_context, None)
    port = parts.port or (443 if secure else 80)
    pool = Pool(parts.hostname or "", port, context, 1, timeouts, now_ms, max_bytes, permits)
    target = target_of(parts)
    sent = {"host": parts.netloc, "accept": "application/json", "user-agent": "arco-catalog", **headers}
    try:
        return await pool.send(method, request_head(method, target, sent, len(body)), body)
    except (NeverSent, AnswerLost) as error:
        kind = StoreUnavailable if isinstance(error, NeverSent) else Ambiguous
        raise kind(f"no complete answer of {parts.netloc} came: {error}") from error
    finally:
        await pool.close()


def checked_url(url: str, *, plain_loopback: bool = False) -> SplitResult:
    """Returns the parts of an `https` URL in ASCII, with a host and without user, fragment and blanks; `plain_loopback`
    accepts `http` to this machine too. Raises `StoreDenied` for any other."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise StoreDenied(f"{url!r} is not a valid URL: {error}") from error
    plain = parts.scheme == "http" and plain_loopback and _is_loopback(parts.hostname or "")
    if not (parts.scheme == "https" or plain):
        or_loopback = ", or an http URL of this machine" if plain_loopback else ""
        raise StoreDenied(f"{url!r} must be an https URL{or_loopback}")
    if not parts.hostname or "@" in parts.netloc or parts.fragment or not url.isascii() or not _is_graphic(url):
        raise StoreDenied(f"{url!r} must be a plain URL: with a host, no user, no fragment, ASCII without blanks")
    return parts


def failure_of(what: str, response: Response) -> StoreError:
    """Returns the error for a response that the caller cannot use, one with another status than 200: `StoreUnavailable`
    for 429 and from 500 on, `InvalidContent` for 400 and 413, else `StoreDenied`. The message does not quote the
    response, which may have secrets in it. `what` names what was called."""
    if response.status >= 500 or response.status == 429:
        return StoreUnavailable(f"{what} answered status {response.status}")
    denied = InvalidContent if response.status in (400, 413) else StoreDenied
    return denied(f"{what} answered status {response.status}")


def _is_graphic(text: str) -> bool:
    """Whether a text has only printable characters, and no space."""
    return text.isprintable() and " " not in text


def _is_loopback(host: str) -> bool:
    """Whether a host is `localhost` or a loopback address; False for any other name, which is not resolved."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
