"""Large answers, compressed for clients that say they can read that."""

import asyncio
import gzip
import re
from dataclasses import replace

from arco_catalog.http.responses import Response

WORTHWHILE_BYTES = 64 << 10

_NEVER = re.compile(r"q=0(\.0*)?")


async def compressed(response: Response, accept_encoding: str | None) -> Response:
    """The response, its body gzipped if that is worthwhile and wanted."""
    if len(response.body) <= WORTHWHILE_BYTES:
        return response
    headers = {**response.headers, "Vary": "Accept-Encoding"}
    if not accepts_gzip(accept_encoding):
        return replace(response, headers=headers)
    # Other bytes than the tag was made for: it must say that it vouches for the meaning alone.
    if "ETag" in headers:
        headers["ETag"] = f"W/{headers['ETag']}"
    headers["Content-Encoding"] = "gzip"
    body = await asyncio.to_thread(gzip.compress, response.body, 1, mtime=0)
    return Response(response.status, body, headers)


def accepts_gzip(accept_encoding: str | None) -> bool:
    """Whether an `Accept-Encoding` header names gzip, or anything, with a weight above zero."""
    weights: dict[str, bool] = {}
    for item in (accept_encoding or "").lower().split(","):
        coding, _, parameters = item.partition(";")
        weights[coding.strip()] = _NEVER.fullmatch(parameters.strip()) is None
    return weights.get("gzip", weights.get("*", False))
