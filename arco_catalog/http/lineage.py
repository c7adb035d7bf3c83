"""HTTP handlers that receive lineage events of OpenLineage's standard integrations, for example for Spark, Flink,
Airflow and dbt, and that return the graph of lineage around a table (docs/design/lineage.md)."""

from arco_catalog.http.request_context import RequestContext
from arco_catalog.http.responses import Response, json_response
from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.operations.lineage import receive_event

CREATED = Response(201)
DIRECTIONS = ("both", "upstream", "downstream")
MAX_DISTANCE = 5


async def receive(context: RequestContext) -> Response:
    """Stores the OpenLineage event in the body. Returns 201, and raises the errors of `receive_event`."""
    await receive_event(context.sessions.open(), context.body or {}, context.caller.shown)
    return CREATED


async def of_table(context: RequestContext) -> Response:
    """Returns the graph of lineage around a table: other tables and datasets that runs read to write it, or wrote after
    they had read it, up to `depth` edges away (1 if it is missing, at most 5), in one `direction` or by default both;
    with `explain`, also the first runs that have no edge, and why, null to a caller who may not read the properties of
    all tables. Tables that the caller may not read have no name there. Raises `NoSuchTable`, and `BadRequest` for an
    invalid parameter."""
    # Imported here: a cold start with another request saves the time.
    from arco_catalog.operations.lineage_graph import read_lineage

    direction, distance = context.query.choice("direction", DIRECTIONS, "both"), context.query.positive("depth") or 1
    if distance > MAX_DISTANCE:
        raise BadRequest(f"Query parameter 'depth' must be 1 to {MAX_DISTANCE}, not {distance}")
    graph = await read_lineage(
        context.sessions.open(),
        context.namespace,
        context.table,
        upstream=direction != "downstream",
        downstream=direction != "upstream",
        distance=distance,
        explains=context.query.flag("explain"),
    )
    return json_response(graph)
