"""The endpoint to which OpenLineage's integrations send: those of Spark, Flink, Airflow and dbt, as they are
(docs/design/lineage.md)."""

from arco_catalog.http.request_context import RequestContext
from arco_catalog.http.responses import Response
from arco_catalog.operations.lineage import receive_event

CREATED = Response(201)


async def receive(context: RequestContext) -> Response:
    """Keeps one event."""
    await receive_event(context.sessions.open(), context.body or {}, context.caller.shown)
    return CREATED
