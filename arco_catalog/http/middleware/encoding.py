"""Compresses large responses for clients that accept it, and rejects responses larger than the host can carry."""

import asyncio
from dataclasses import replace

from arco_catalog.http.compression import WORTHWHILE_BYTES, accepts_gzip, answer_limit, compressed, compressed_from
from arco_catalog.http.options import HttpOptions
from arco_catalog.http.requests import Handle, Request
from arco_catalog.http.responses import Response
from arco_catalog.http.route import Effect, Route
from arco_catalog.iceberg.errors import AnswerTooLarge, CommitStateUnknown, InternalError
from arco_catalog.planning.answer_limit import AnswerLimit, pack


class Encoding:
    """The layer that compresses large responses for clients that accept it, and enforces the host's limit of their
    size."""

    def __init__(self, inner: Handle, options: HttpOptions) -> None:
        self._inner = inner
        self._options = options

    async def handle(self, request: Request) -> Response:
        """Passes the request on, and returns its response as it is sent.

        If the host cannot carry the response, a read raises `AnswerTooLarge`. A change was already made, so it must not
        be reported as failed: a commit raises `CommitStateUnknown`, any other change `InternalError`. The latter two
        only happen to a retry that accepts no gzip where the first request did: a change checks the size of its
        response before it is made.
        """
        response = await self._inner(request)
        size = len(response.body)
        if size <= WORTHWHILE_BYTES or response.is_compressed:
            return response
        limit = answer_limit(self._options, request.headers)
        is_carried = limit is None or limit.carries(response.body, text=True)
        if is_carried and size <= compressed_from(self._options):
            return response
        response = replace(response, headers={**response.headers, "Vary": "Accept-Encoding"})
        packable = accepts_gzip(request.headers)
        if packable:
            packed = await asyncio.to_thread(pack, response.body)
            if limit is None or limit.carries(packed, text=False):
                return compressed(response, packed)
        if limit is not None and not is_carried:
            raise _too_large(size, limit, request.route, packable)
        return response


def _too_large(
    size: int, limit: AnswerLimit, route: Route | None, packable: bool
) -> AnswerTooLarge | CommitStateUnknown | InternalError:
    """Returns the error for a response of `size` bytes that the host can't carry, with ways to get a smaller one: to
    accept gzip unless the client does (`packable`), and the ways that the route has. After a change the error reports
    that the change was made. `route` is None if the path has none."""
    what = f"The response is {size:,} bytes, more than this catalog's host can carry ({limit.payload_bytes:,})"
    if route is None or route.effect is Effect.READS:
        ways = [*([] if packable else ["accept gzip"]), *_smaller("" if route is None else route.template)]
        return AnswerTooLarge(": ".join([what, *filter(None, [", or ".join(ways)])]))
    made = f"{what}. The change was made: load what it changed with Accept-Encoding: gzip to see the result"
    return CommitStateUnknown(made, "result-lost") if route.commits else InternalError(made)


def _smaller(template: str) -> list[str]:
    """Returns ways in which a client gets a smaller answer from the route with this path template, as parts of an error
    message; empty if there is none."""
    if template.endswith("/tables/{table}"):
        return ["load the table with snapshots=refs", "expire its snapshots"]
    if template.endswith(("/namespaces", "/tables", "/views")):
        return ["list in pages (pageToken, pageSize)"]
    return []
