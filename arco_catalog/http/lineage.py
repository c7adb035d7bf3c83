"""The HTTP handler that receives lineage events of OpenLineage's standard integrations, for example for Spark, Flink,
Airflow and dbt (docs/design/lineage.md)."""

from arco_catalog.http.request_context import RequestContext
from arco_catalog.http.responses import Response
from arco_catalog.operations.lineage import receive_event

CREATED = Response(201)


async def receive(context: RequestContext) -> Response:
    """Stores the OpenLineage event in the body. Returns 201, and raises the errors of `receive_event`."""
    await receive_event(context.sessions.open(), context.body or {}, context.caller.shown)
    return CREATED
