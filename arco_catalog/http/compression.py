"""Decides which responses are compressed, for clients that accept it, and makes compressed responses."""

import re
from collections.abc import Mapping

from arco_catalog.http.options import HttpOptions
from arco_catalog.http.responses import Response
from arco_catalog.planning.answer_limit import AnswerLimit

WORTHWHILE_BYTES = 64 << 10
"""Only larger responses are compared with the host's limit. On a server with the option `gzip` they are compressed, if
the client accepts it."""
ALWAYS_BYTES = 1 << 20
"""Larger responses are compressed on every server, if the client accepts it."""

_NEVER = re.compile(r"q=0(\.0*)?")


def compressed(response: Response, packed: bytes) -> Response:
    """Returns the response with `packed`, its body in gzip, in place of the body, with the header Content-Encoding, and
    with a weak ETag if it has one."""
    headers = {**response.headers, "Content-Encoding": "gzip"}
    # The tag was made for the uncompressed bytes, so for these it must be weak.
    if "ETag" in headers:
        headers["ETag"] = f"W/{headers['ETag']}"
    return Response(response.status, packed, headers)


def accepts_gzip(headers: Mapping[str, str]) -> bool:
    """Whether `Accept-Encoding` lists gzip with a weight above zero, or does not list gzip but `*` with such a
    weight."""
    weights: dict[str, bool] = {}
    for item in headers.get("accept-encoding", "").lower().split(","):
        coding, _, parameters = item.partition(";")
        weights[coding.strip()] = _NEVER.fullmatch(parameters.strip()) is None
    return weights.get("gzip", weights.get("*", False))


def is_compressed(options: HttpOptions, headers: Mapping[str, str], size: int) -> bool:
    """Whether a response of `size` bytes is compressed although the host could carry it as it is: the client accepts
    gzip, and the size is above what `compressed_from` returns."""
    return size > compressed_from(options) and accepts_gzip(headers)


def compressed_from(options: HttpOptions) -> int:
    """Returns the size in bytes above which responses are compressed for clients that accept it."""
    return WORTHWHILE_BYTES if options.gzip else ALWAYS_BYTES


def answer_limit(options: HttpOptions, headers: Mapping[str, str]) -> AnswerLimit | None:
    """Returns the limit of the size of a response to this client, with gzip if the client accepts it; None if the host
    sets no limit."""
    if options.payload_bytes is None:
        return None
    return AnswerLimit(options.payload_bytes, accepts_gzip(headers))
