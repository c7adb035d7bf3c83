"""The request to plan a scan of a table: its shape, and what it means for the table's present metadata (REST
specification, `PlanTableScanRequest`)."""

from collections.abc import Mapping, Sequence
from typing import TypedDict

from arco_catalog.iceberg.errors import BadRequest, IllegalArgument
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.iceberg.metadata import TableMetadata
from arco_catalog.iceberg.schema import columns_of
from arco_catalog.iceberg.shapes import ANY, BOOLEAN, LONG, STRING, check, list_of, record
from arco_catalog.iceberg.snapshots import Snapshot
from storage_backends.lazy_dataclass import dataclass

MAX_FIELDS = 10_000
"""Maximum names of columns in `select` and in `stats-fields`."""

PlanRequest = TypedDict(
    "PlanRequest",
    {
        "snapshot-id": int,
        "start-snapshot-id": int,
        "end-snapshot-id": int,
        "select": list[str],
        "filter": JsonValue,
        "min-rows-requested": int,
        "case-sensitive": bool,
        "use-snapshot-schema": bool,
        "stats-fields": list[str],
    },
    total=False,
)
"""The body of a request to plan a scan."""

_REQUEST = record(
    PlanRequest,
    required={},
    optional={
        "snapshot-id": LONG,
        "start-snapshot-id": LONG,
        "end-snapshot-id": LONG,
        "select": list_of(STRING),
        "filter": ANY,
        "min-rows-requested": LONG,
        "case-sensitive": BOOLEAN,
        "use-snapshot-schema": BOOLEAN,
        "stats-fields": list_of(STRING),
    },
)


@dataclass(frozen=True, slots=True)
class Scan:
    """A scan of one state of a table: of the rows of `snapshot_id`, None for a table without snapshots; or, with
    `after`, of the rows that the appends after that snapshot up to `snapshot_id` added. The filter is bound to the
    schema `schema_id`. Answers have the statistics of the columns `stats_columns`. `min_rows` is how many rows the
    client needs at least, None for all."""

    snapshot_id: int | None
    schema_id: int
    after: int | None = None
    filter: JsonValue = True
    case_sensitive: bool = True
    stats_columns: tuple[int, ...] = ()
    min_rows: int | None = None


def parse_plan_request(body: JsonObject) -> PlanRequest:
    """Reads the body of a request to plan a scan. Raises `BadRequest` for a malformed one, also for a filter that is
    null, for a point in time together with an increment, for an increment without its start or its end, for a negative
    number of rows, and for more than `MAX_FIELDS` names in `select` or in `stats-fields`. The filter is not read."""
    request = check(_REQUEST, body, "request")
    if "filter" in body and body["filter"] is None:
        raise BadRequest("Invalid request.filter: expected an expression, found null")
    start, end = "start-snapshot-id" in request, "end-snapshot-id" in request
    if start != end:
        raise BadRequest("Invalid request: an incremental scan needs start-snapshot-id and end-snapshot-id")
    if start and "snapshot-id" in request:
        raise BadRequest(
            "Invalid request: snapshot-id can't be sent together with start-snapshot-id and end-snapshot-id"
        )
    if request.get("min-rows-requested", 0) < 0:
        raise BadRequest("Invalid request.min-rows-requested: it must not be negative")
    if max(len(request.get("select", [])), len(request.get("stats-fields", []))) > MAX_FIELDS:
        raise BadRequest(f"Invalid request: select and stats-fields may have at most {MAX_FIELDS:,} columns each")
    return request


def scan_of(request: PlanRequest, metadata: TableMetadata) -> Scan:
    """Returns the scan that a request means for a table in its present state: of the current snapshot and schema,
    unless the request names a snapshot, or requires the schema of the snapshot. Raises `IllegalArgument` for a snapshot
    that the table does not have (the start of an increment may be missing), and for an increment whose end does not
    descend from the start or has an expired snapshot after it, and `BadRequest` for a column of `stats-fields` that the
    schema does not have. The filter is not read."""
    snapshots = {snapshot["snapshot-id"]: snapshot for snapshot in metadata["snapshots"]}
    snapshot_id = request.get("snapshot-id", request.get("end-snapshot-id", metadata["current-snapshot-id"]))
    if snapshot_id is not None and snapshot_id not in snapshots:
        raise IllegalArgument(f"Cannot find snapshot with ID {snapshot_id}")
    after = request.get("start-snapshot-id")
    if snapshot_id is not None and after is not None:
        appends_after(after, snapshots, snapshot_id)
    schema_id = metadata["current-schema-id"]
    if snapshot_id is not None and request.get("use-snapshot-schema", False):
        schema_id = snapshots[snapshot_id].get("schema-id", schema_id)
    case_sensitive = request.get("case-sensitive", True)
    return Scan(
        snapshot_id=snapshot_id,
        schema_id=schema_id,
        after=after,
        filter=request.get("filter", True),
        case_sensitive=case_sensitive,
        stats_columns=_column_ids(request.get("stats-fields", []), metadata, schema_id, case_sensitive),
        min_rows=request.get("min-rows-requested"),
    )


def appends_after(after: int, snapshots: Mapping[int, Snapshot], last: int) -> Sequence[Snapshot]:
    """Returns the snapshots after `after` up to `last` that are appends, oldest first. The snapshot `after` itself may
    have expired. Raises `IllegalArgument` if `last` does not descend from it, or if a snapshot between them has
    expired."""
    between: list[Snapshot] = []
    passed: set[int] = set()
    each: int | None = last
    while each is not None and each in snapshots and each not in passed:
        passed.add(each)
        snapshot = snapshots[each]
        if snapshot.get("summary", {}).get("operation") == "append":
            between.append(snapshot)
        each = snapshot.get("parent-snapshot-id")
        if each == after:
            return between[::-1]
    raise IllegalArgument(
        f"Starting snapshot (exclusive) {after} is not a parent ancestor of end snapshot {last}, or a snapshot between "
        "them has expired"
    )


def _column_ids(names: Sequence[str], metadata: TableMetadata, schema_id: int, case_sensitive: bool) -> tuple[int, ...]:
    """Returns the ids of the columns with these names in the schema, compared as `_spelt` has them, sorted. Fails for
    an unknown name; of a schema that does not exist all are."""
    if not names:
        return ()
    schema = next((each for each in metadata["schemas"] if each.get("schema-id", 0) == schema_id), None)
    ids = {_spelt(column.name, case_sensitive): column.id for column in (columns_of(schema) if schema else ())}
    for name in names:
        if _spelt(name, case_sensitive) not in ids:
            raise BadRequest(
                "Invalid request.stats-fields: the current schema, or with use-snapshot-schema that of the snapshot, "
                f"has no column {name[:200]!r}"
            )
    return tuple(sorted({ids[_spelt(name, case_sensitive)] for name in names}))


def _spelt(name: str, case_sensitive: bool) -> str:
    """Returns a name as it is compared: in lower case unless `case_sensitive`."""
    return name if case_sensitive else name.lower()
