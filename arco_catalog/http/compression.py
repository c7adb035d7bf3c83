"""Compression, for clients that say they can read it."""

import re
from collections.abc import Mapping

from arco_catalog.http.options import HttpOptions
from arco_catalog.http.responses import Response
from arco_catalog.planning.answer_limit import AnswerLimit

WORTHWHILE_BYTES = 64 << 10

_NEVER = re.compile(r"q=0(\.0*)?")


def compressed(response: Response, packed: bytes) -> Response:
    """The response with its body packed as gzip."""
    headers = {**response.headers, "Content-Encoding": "gzip"}
    # Other bytes than the tag was made for: it must say that it vouches for the meaning alone.
    if "ETag" in headers:
        headers["ETag"] = f"W/{headers['ETag']}"
    return Response(response.status, packed, headers)


def accepts_gzip(headers: Mapping[str, str]) -> bool:
    """Whether `Accept-Encoding` names gzip, or anything, with a weight above zero."""
    weights: dict[str, bool] = {}
    for item in headers.get("accept-encoding", "").lower().split(","):
        coding, _, parameters = item.partition(";")
        weights[coding.strip()] = _NEVER.fullmatch(parameters.strip()) is None
    return weights.get("gzip", weights.get("*", False))


def gzip_accepted(options: HttpOptions, headers: Mapping[str, str]) -> bool:
    """Whether this client's answer may be compressed."""
    return options.gzip and accepts_gzip(headers)


def answer_limit(options: HttpOptions, headers: Mapping[str, str]) -> AnswerLimit | None:
    """What the host can carry back to this client; None for everything."""
    if options.payload_bytes is None:
        return None
    return AnswerLimit(options.payload_bytes, gzip_accepted(options, headers))
