"""How an answer goes out: compressed where that is wanted and worthwhile, and never more than the host can carry."""

import asyncio
from dataclasses import replace

from arco_catalog.http.compression import WORTHWHILE_BYTES, compressed
from arco_catalog.http.request_context import Effect, RequestContext
from arco_catalog.http.responses import Response
from arco_catalog.iceberg.errors import AnswerTooLarge, CommitStateUnknown, InternalError
from arco_catalog.planning.answer_limit import AnswerLimit, pack


async def encoded(response: Response, context: RequestContext) -> Response:
    """The response to a request as it is sent.

    Raises `AnswerTooLarge` for a read whose answer the host cannot carry. Of a change it must not be said that it
    failed: that one raises `CommitStateUnknown` on a commit, else `InternalError`. It takes a client that accepts less
    on its retry than it did at first, because changes are checked before they are made.
    """
    limit = context.answer_limit
    if len(response.body) <= WORTHWHILE_BYTES:
        return response
    if context.options.gzip:
        response = replace(response, headers={**response.headers, "Vary": "Accept-Encoding"})
    if context.gzip_accepted:
        packed = await asyncio.to_thread(pack, response.body)
        if limit is None or limit.carries(packed, text=False):
            return compressed(response, packed)
    if limit is not None and not limit.carries(response.body, text=True):
        raise _too_large(len(response.body), limit, context)
    return response


def _too_large(
    size: int, limit: AnswerLimit, context: RequestContext
) -> AnswerTooLarge | CommitStateUnknown | InternalError:
    what = f"The answer is {size:,} bytes, more than this catalog's host can carry ({limit.payload_bytes:,})"
    match context.route.effect:
        case Effect.READS:
            ways = [*([] if context.gzip_accepted else ["accept gzip"]), *_smaller(context.route.template)]
            return AnswerTooLarge(": ".join([what, *filter(None, [", or ".join(ways)])]))
        case Effect.COMMITS:
            return CommitStateUnknown(f"{what}. The change was made: load the table again with Accept-Encoding: gzip")
        case Effect.MUTATES:
            return InternalError(f"{what}. The change was made: load the table again with Accept-Encoding: gzip")


def _smaller(template: str) -> list[str]:
    """How to ask for less of what a route answers with."""
    if template.endswith("/tables/{table}"):
        return ["load the table with snapshots=refs", "expire its snapshots"]
    if template.endswith(("/namespaces", "/tables", "/views")):
        return ["list in pages (pageToken, pageSize)"]
    return []
