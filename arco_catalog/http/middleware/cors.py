"""Lets web pages of the operator's origins use the catalog (CORS, https://fetch.spec.whatwg.org/#http-cors-protocol)."""

import re
from collections.abc import Mapping
from dataclasses import replace

from arco_catalog.http.requests import Handle, Request
from arco_catalog.http.responses import Response

METHODS = "GET, HEAD, POST, PUT, DELETE"
READABLE = "ETag, Retry-After, WWW-Authenticate, X-Request-Id"
"""The response headers that a page may read in addition to the CORS-safelisted ones."""
PREFLIGHT_SECONDS = 600
"""How long a browser may cache the response to a preflight."""

_HEADER_NAMES = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+([ \t]*,[ \t]*[A-Za-z0-9!#$%&'*+.^_`|~-]+)*")


class Cors:
    """The layer that responds to preflights from allowed origins, and adds the headers by which browsers let pages of
    these origins read responses. It does not allow credentials (cookies): a page sends its token in a header."""

    def __init__(self, inner: Handle, origins: tuple[str, ...]) -> None:
        self._inner = inner
        self._origins = origins

    async def handle(self, request: Request) -> Response:
        """Returns 204 for a preflight from an allowed origin, and for every other request the response of the layer
        inside. All get `Vary: Origin` and, for an allowed origin, the CORS headers."""
        origin = request.headers.get("origin")
        allowed = origin is not None and origin in self._origins
        if allowed and request.method == "OPTIONS" and "access-control-request-method" in request.headers:
            response = Response(204, headers=_preflight(request.headers))
        else:
            response = await self._inner(request)
        headers = {**response.headers, "Vary": ", ".join(filter(None, [response.headers.get("Vary"), "Origin"]))}
        if allowed and origin is not None:
            headers |= {"Access-Control-Allow-Origin": origin, "Access-Control-Expose-Headers": READABLE}
        return replace(response, headers=headers)


def _preflight(headers: Mapping[str, str]) -> Mapping[str, str]:
    """Returns the headers of the response to a browser's preflight: the methods, how long it may be cached, and the
    request headers that the browser wants to send, all of which are allowed if their names are well-formed."""
    requested = headers.get("access-control-request-headers", "").strip()
    answer = {"Access-Control-Allow-Methods": METHODS, "Access-Control-Max-Age": str(PREFLIGHT_SECONDS)}
    if _HEADER_NAMES.fullmatch(requested):
        answer["Access-Control-Allow-Headers"] = requested
    return answer
