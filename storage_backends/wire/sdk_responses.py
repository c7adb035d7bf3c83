"""Reads the responses that a vendor's SDK has received, as strictly as our own connections read theirs."""

from typing import TYPE_CHECKING

from storage_backends.wire.exchange import Ambiguous, OversizedAnswer
from storage_backends.wire.http1 import Response, may_end_with_its_connection

if TYPE_CHECKING:  # imported by the SDKs that use it
    from aiohttp import ClientResponse


async def read_body(response: "ClientResponse", max_bytes: int) -> bytes:
    """Returns the body of a response, and releases its connection, also after an error. Raises `OversizedAnswer` as
    soon as more than `max_bytes` were read."""
    parts: list[bytes] = []
    size = 0
    try:
        async for part in response.content.iter_any():
            parts.append(part)
            size += len(part)
            if size > max_bytes:
                raise OversizedAnswer(f"the body of the store's answer is longer than {max_bytes:,} bytes")
    finally:
        if not response.content.at_eof():
            response.close()
        response.release()
    return b"".join(parts)


def check_end(method: str, response: Response) -> None:
    """Raises `Ambiguous` for a response that announces no length, so that its end may be missing, unless the method
    (HEAD, PUT, DELETE) or the status (204, from 300 on) needs no body: an SDK does not see when a connection ends."""
    framed = {"content-length", "transfer-encoding"} & response.headers.keys()
    bodiless = method == "HEAD" or response.status in (204, 304)
    if not framed and not bodiless and not may_end_with_its_connection(method, response.status):
        raise Ambiguous(
            "the end of the server's answer may be missing: it has no Content-Length and no Transfer-Encoding"
        )
