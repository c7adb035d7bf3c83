"""The HTTP handler that returns the events of a catalog's feed. It follows a proposal for Iceberg's REST specification
(docs/decisions/0111-events-follow-a-proposal.md)."""

from arco_catalog.http.request_context import RequestContext
from arco_catalog.http.responses import Response, json_response
from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.shapes import INT, STRING
from arco_catalog.operations.events import MAX_EVENTS, events_page
from arco_catalog.planning.event_filter import read_filter

MAX_TOKEN = 1_024
"""The maximum length of a continuation token, in characters."""


async def query(context: RequestContext) -> Response:
    """Returns the next events after the body's token that the body selects and the caller may see, in their order, and
    the token after them. There are at most as many as the body's page size, and as `MAX_EVENTS`. Without a token they
    are the first of the feed. A page may be short or empty though more events follow. Raises `NoSuchFeed`, and
    `BadRequest` for an invalid body, and for a token that is invalid, of another catalog or expired."""
    fields = context.fields
    token, size = fields.optional("continuation-token", STRING), fields.optional("page-size", INT)
    if token is not None and len(token) > MAX_TOKEN:
        raise BadRequest(
            f"Invalid request.continuation-token: no token of the event feed has more than {MAX_TOKEN:,} characters"
        )
    if size is not None and size < 1:
        raise BadRequest(f"Invalid request.page-size: expected a number of at least 1, found {size}")
    page = await events_page(context.sessions.open(), read_filter(fields), token, min(size or MAX_EVENTS, MAX_EVENTS))
    return json_response({"continuation-token": page.token, "events": [*page.events]})
