"""The handler of notifications."""

from arco_catalog.http.request_context import RequestContext
from arco_catalog.http.responses import Response, answer_response
from arco_catalog.iceberg.shapes import LONG, NAME, OBJECT, STRING, Fields, one_of
from arco_catalog.operations.notifications import notify
from arco_catalog.planning.notifications import Event, Notification


async def send(context: RequestContext) -> Response:
    """Has a table follow another catalog's. Metadata that the body brings along is not believed: the file is read."""
    event = Event(context.fields.required("notification-type", one_of(*Event)))
    payload = Fields(context.fields.required("payload", OBJECT), "request.payload")
    payload.required("table-name", STRING)
    payload.optional("metadata", OBJECT)
    said = Notification(
        event,
        payload.required("timestamp", LONG),
        payload.required("table-uuid", STRING),
        payload.required("metadata-location", NAME),
    )
    name = context.table if event in (Event.DROP, Event.VALIDATE) else context.check_new(context.table, "table")
    return answer_response(await notify(context.session(), context.namespace, name, said))
