"""The handler of notifications."""

from arco_catalog.http.request_context import RequestContext
from arco_catalog.http.responses import Response, answer_response
from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.shapes import LONG, NAME, OBJECT, STRING, Fields, one_of, quoted
from arco_catalog.operations.notifications import notify
from arco_catalog.planning.notifications import Event, Notification


async def send(context: RequestContext) -> Response:
    """Has a table follow another catalog's. Metadata that the body brings along is not believed: the file is read."""
    event = Event(context.fields.required("notification-type", one_of(*Event)))
    payload = Fields(context.fields.required("payload", OBJECT), "request.payload")
    named = payload.required("table-name", STRING)
    if named != context.table:
        raise BadRequest(
            f"Invalid request.payload.table-name: it is {quoted(named)}, and the path names {quoted(context.table)}"
        )
    payload.optional("metadata", OBJECT)
    said = Notification(
        event,
        payload.required("timestamp", LONG),
        payload.required("table-uuid", STRING),
        payload.required("metadata-location", NAME),
    )
    name = context.table if event is Event.DROP else context.check_new(context.table, "table")
    return answer_response(await notify(context.sessions.open(), context.namespace, name, said))
