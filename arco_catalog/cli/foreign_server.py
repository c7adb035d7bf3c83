"""Sends requests to the server of another catalog, over connections that are kept. What such a server sends is bounded:
in the size of a response, and in the number of requests and bytes of a command."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

from arco_catalog.cli.errors import CliError
from arco_catalog.cli.management import MAX_ANSWER_BYTES
from arco_catalog.cli.small_files import MAX_TOKEN_BYTES, read_text
from arco_catalog.state.runtime import SystemRuntime
from storage_backends import StoreError
from storage_backends.wire.fetch import checked_url
from storage_backends.wire.http1 import AnswerLost, AnswerTooLarge, NeverSent, Response, request_head
from storage_backends.wire.pool import Pool, Timeouts, tls_context

CONNECTIONS = 8
TIMEOUTS = Timeouts(5.0, 60.0, 120.0)
MAX_REQUESTS = 4_000_000
"""The number of requests that a command sends at most."""
MAX_BYTES = 64 << 30
"""The number of bytes that a command reads at most in all answers together."""
PAUSES_S = (0.5, 2.0)
"""The pauses before a GET that failed is sent again."""

TokenSource = Callable[[], Awaitable[str | None]]
"""Returns the token to send with the next request, None for no token."""


class ForeignServer:
    """A server of another catalog, at the base `url` of its paths."""

    def __init__(self, url: str, token: TokenSource, pool: Pool, runtime: SystemRuntime) -> None:
        parts = checked_url(url, plain_loopback=True)
        self._host, self._base = parts.netloc, parts.path.rstrip("/")
        self._token, self._pool, self._runtime = token, pool, runtime
        self.requests = 0
        """The number of requests that were sent."""
        self._bytes = 0

    async def exchange(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> tuple[int, bytes]:
        """Sends a request, and returns the status and the body of the answer; it follows no redirects. Sends a GET
        again, up to two times and after a pause, if no complete response arrived or the status is 429 or 5xx, but not
        if it was too large; the last one counts. Raises `CliError` if no complete one arrived, and beyond the limits of
        requests and bytes."""
        pauses = iter(PAUSES_S if method == "GET" else ())
        while True:
            pause = next(pauses, None)
            try:
                answer = await self._send_once(method, target, headers, body)
            except (NeverSent, AnswerLost) as error:
                # An answer that is too large will be so the next time.
                if pause is None or isinstance(error, AnswerTooLarge):
                    sent = method != "GET" and not isinstance(error, NeverSent)
                    unknown = ": it is unknown whether the change was made" if sent else ""
                    raise CliError(f"no complete answer of {self._host} arrived: {error}{unknown}") from error
            else:
                if pause is None or (answer.status != 429 and answer.status < 500):
                    return answer.status, answer.body
            await self._runtime.sleep(pause)

    async def _send_once(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Response:
        """Sends one request with the token, and returns the response. Raises `CliError` beyond the limits of requests
        and bytes, and the errors of the pool's `send`."""
        self.requests += 1
        if self.requests > MAX_REQUESTS or self._bytes > MAX_BYTES:
            raise CliError(
                f"{self._host} needs more than {MAX_REQUESTS:,} requests, or its answers have more than {MAX_BYTES:,} "
                "bytes: import some of its catalogs by --catalog, or export one namespace by --only"
            )
        token = await self._token()
        credentials = {} if token is None else {"authorization": f"Bearer {token}"}
        sent = {"host": self._host, "accept": "application/json", "user-agent": "arco-catalog", **credentials}
        head = request_head(method, self._base + target, {**sent, **headers}, len(body))
        answer = await self._pool.send(method, head, body)
        self._bytes += len(answer.body)
        return answer


@asynccontextmanager
async def open_foreign_server(
    url: str, token_file: str | None, environment: Mapping[str, str]
) -> AsyncIterator[ForeignServer]:
    """Yields the server at a URL, with the token in the file, or else that of `arco login`, which is renewed, or none.
    Raises `CliError` for a URL that is neither https nor on this machine, and, before it yields, for a token that can't
    be read or renewed."""
    from arco_catalog.cli.login import saved_token

    try:
        parts = checked_url(url, plain_loopback=True)
    except StoreError as error:
        raise CliError(str(error)) from error
    given = None if token_file is None else await asyncio.to_thread(read_text, token_file, "the token", MAX_TOKEN_BYTES)

    async def token() -> str | None:
        return await saved_token(url, environment) if given is None else given

    await token()  # so that a login that can't be renewed ends the command before it begins
    runtime = SystemRuntime()
    secure = parts.scheme == "https"
    context = await asyncio.to_thread(tls_context, None) if secure else None
    port = parts.port or (443 if secure else 80)
    pool = Pool(parts.hostname or "", port, context, CONNECTIONS, TIMEOUTS, runtime.now_ms, MAX_ANSWER_BYTES)
    try:
        yield ForeignServer(url, token, pool, runtime)
    finally:
        await pool.close()
