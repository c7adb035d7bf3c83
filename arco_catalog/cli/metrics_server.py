"""The port of metrics: answers scrapes of Prometheus, apart from the catalog's port, so that clients of the catalog do
not reach it."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from arco_catalog.cli.listening import listen, uri_of
from arco_catalog.http.browsers import check_page
from arco_catalog.iceberg.errors import Forbidden
from arco_catalog.telemetry.collectors import Page

PATH = "/metrics"
MAX_HEAD_BYTES = 8 << 10
"""The limit of a request's head. No body is read."""
SECONDS = 10.0
"""How long a scrape may take, from the connection to the end of the answer."""
AT_ONCE = 8
"""Maximum number of connections; further ones are closed at once."""
BACKLOG = 16
NOT_ALLOWED = b"Scrape by an IP address or as localhost where the port is on loopback, and from no web page"

_LOG = logging.getLogger(__name__)


@asynccontextmanager
async def answering_scrapes(host: str, port: int, page: Page) -> AsyncIterator[str]:
    """Answers scrapes at an address with the page for as long as the context lasts. Yields the URI. Raises
    `AddressError` if the address can't be listened at."""
    with listen(host, port) as listener:
        scrapes = _Scrapes(page)
        async with await asyncio.start_server(scrapes.answer, sock=listener, limit=MAX_HEAD_BYTES, backlog=BACKLOG):
            yield uri_of(listener) + PATH


class _Scrapes:
    """Answers one request on each connection, and closes connections above `AT_ONCE` without an answer. The page comes
    from a thread, for one request at a time."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._making = asyncio.Lock()
        self._connections = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Reads a request's head, writes the answer, and closes the connection: without an answer if the head is too
        long or ends early, if both take longer than `SECONDS`, or if there are `AT_ONCE` other connections."""
        self._connections += 1
        try:
            if self._connections <= AT_ONCE:
                async with asyncio.timeout(SECONDS):
                    head = await reader.readuntil(b"\r\n\r\n")
                    address: str = writer.get_extra_info("sockname")[0]
                    writer.write(await self._answer_to(head.decode("latin-1"), address))
                    writer.close()
                    await writer.wait_closed()
            writer.close()
        except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
            writer.transport.abort()
        finally:
            self._connections -= 1

    async def _answer_to(self, head: str, address: str) -> bytes:
        """Returns the response to the head of a request: the page of metrics, for HEAD without a body; 403 to a web
        page of another origin and, at an `address` on loopback, for a host name other than an IP address or localhost;
        404 for another path, 405 for another method, and 500, which is logged, if the page can't be made."""
        request, *lines = head.removesuffix("\r\n\r\n").split("\r\n")
        method, _, target = request.rpartition(" ")[0].partition(" ")
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        try:
            check_page(headers, address, ())
        except Forbidden:
            return _response("403 Forbidden", NOT_ALLOWED)
        if target.partition("?")[0] != PATH:
            return _response("404 Not Found", b"Metrics are at /metrics")
        if method not in ("GET", "HEAD"):
            return _response("405 Method Not Allowed", b"Only GET and HEAD are allowed", "Allow: GET, HEAD")
        try:
            async with self._making:
                body, content_type = await asyncio.to_thread(self._page, headers.get("accept", ""))
        except Exception:
            _LOG.exception("the page of metrics for a scrape could not be made")
            return _response("500 Internal Server Error", b"There is no page: the log has the reason")
        return _response("200 OK", body, content_type=content_type, with_body=method == "GET")


def _response(
    status: str, body: bytes, *headers: str, content_type: str = "text/plain; charset=utf-8", with_body: bool = True
) -> bytes:
    """Returns the bytes of an HTTP response that ends the connection. Without `with_body`, for HEAD, it has the length
    of the body, and not the body itself."""
    lines = (
        f"HTTP/1.1 {status}",
        f"Content-Type: {content_type}",
        f"Content-Length: {len(body)}",
        "X-Content-Type-Options: nosniff",
        "Connection: close",
        *headers,
    )
    return "\r\n".join((*lines, "", "")).encode("latin-1") + (body if with_body else b"")
