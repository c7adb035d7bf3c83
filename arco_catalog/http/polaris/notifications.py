"""The HTTP handler of notifications, by which another catalog reports changes of its tables."""

from arco_catalog.http.request_context import RequestContext
from arco_catalog.http.responses import Response, answer_response
from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.shapes import LONG, NAME, OBJECT, STRING, Fields, one_of, quoted
from arco_catalog.operations.notifications import notify
from arco_catalog.planning.notifications import Event, Notification


async def send(context: RequestContext) -> Response:
    """Applies a notification about a table that another catalog owns. The `metadata` in the body is ignored: the
    catalog reads the metadata file itself, but not to drop a table. A notification of type VALIDATE changes nothing,
    and the file is not read. Raises `BadRequest` for an invalid body, also one that names another table than the path,
    and the errors of `notify`."""
    event = Event(context.fields.required("notification-type", one_of(*Event)))
    payload = Fields(context.fields.required("payload", OBJECT), "request.payload")
    named = payload.required("table-name", STRING)
    if named != context.table:
        raise BadRequest(
            f"Invalid request.payload.table-name: it is {quoted(named)}, but the path names {quoted(context.table)}"
        )
    payload.optional("metadata", OBJECT)
    notification = Notification(
        event,
        payload.required("timestamp", LONG),
        payload.required("table-uuid", STRING),
        payload.required("metadata-location", NAME),
    )
    name = context.table if event is Event.DROP else context.check_new(context.table, "table")
    return answer_response(await notify(context.sessions.open(), context.namespace, name, notification))
