"""The first metadata of a new table, made from a client's request (REST spec, `CreateTableRequest`)."""

from dataclasses import field
from datetime import UTC, datetime
from typing import cast

from arco_catalog.iceberg import properties as props
from arco_catalog.iceberg import structure
from arco_catalog.iceberg.checkpoint import Checkpoint, no_deadline
from arco_catalog.iceberg.draft import TableDraft
from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.iceberg.partition import PARTITION_SPEC, PartitionSpec, check_spec, numbered, unpartitioned
from arco_catalog.iceberg.schema import SCHEMA, Columns, Schema, check_schema, columns_by_id, type_name, with_fresh_ids
from arco_catalog.iceberg.shapes import BOOLEAN, NAME, OBJECT, STRINGS, Fields, check
from arco_catalog.iceberg.sort import SORT_ORDER, SortOrder, check_order, unsorted
from arco_catalog.iceberg.updates import LAST_ADDED, LOCATION
from storage_backends.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class CreateTable:
    """A client's request for a new table. Its ids of columns are the client's, and have a meaning only within the
    request. `location` is None if the catalog chooses it. With `stage` the request creates nothing: the client gets the
    metadata, and a later commit creates the table."""

    schema: Schema
    name: str = ""
    partition_spec: PartitionSpec = field(default_factory=unpartitioned)
    write_order: SortOrder = field(default_factory=unsorted)
    properties: dict[str, str] = field(default_factory=dict)
    location: str | None = None
    stage: bool = False


def parse_create_table(body: JsonValue) -> CreateTable:
    """Reads a `CreateTableRequest`; what it leaves out is unpartitioned, unsorted and not staged. Raises `BadRequest`
    for a request that does not match the specification, for too many or reserved properties, for a value of
    `arco.commit.appends` that the catalog does not know, and for a property that sets an empty path.
    `new_table_metadata` checks the rest."""
    request = Fields(check(OBJECT, body, "request"))
    props.refuse_too_many(request.values.get("properties"))
    properties = request.optional("properties", STRINGS) or {}
    props.refuse_reserved_of_table(properties)
    props.check_settings(properties)
    props.refuse_empty_paths(properties)
    return CreateTable(
        name=request.required("name", NAME),
        schema=request.required("schema", SCHEMA),
        partition_spec=request.optional("partition-spec", PARTITION_SPEC) or unpartitioned(),
        write_order=request.optional("write-order", SORT_ORDER) or unsorted(),
        properties=properties,
        location=request.optional("location", LOCATION),
        stage=request.optional("stage-create", BOOLEAN) or False,
    )


def new_table_metadata(
    request: CreateTable, *, location: str, table_uuid: str, now_ms: int, checkpoint: Checkpoint = no_deadline
) -> JsonObject:
    """Returns the first metadata of a table at `location`, with column ids that the table assigns. Raises `BadRequest`
    for an invalid schema, spec, order or property, or an unsupported format version, and what `checkpoint` raises.

    All columns are numbered as in `with_fresh_ids`; spec and order refer to the new ids. The properties of a staged
    table have the time of its creation, too.
    """
    version = _format_version(request.properties)
    columns = columns_by_id(request.schema)
    checkpoint()
    check_schema(request.schema, columns, version)
    checkpoint()
    check_spec(request.partition_spec, columns)
    check_order(request.write_order, columns)
    checkpoint()
    props.check_new_table(request.properties, version, _names(columns))

    schema, fresh_ids = with_fresh_ids(request.schema)
    checkpoint()
    draft = TableDraft(None, format_version=version, now_ms=now_ms)
    structure.assign_uuid(draft, table_uuid)
    structure.add_schema(draft, schema)
    checkpoint()
    structure.add_spec(draft, _resourced_spec(request.partition_spec, fresh_ids))
    structure.add_sort_order(draft, _resourced_order(request.write_order, fresh_ids))
    structure.set_default_sort_order(draft, LAST_ADDED)
    structure.set_properties(draft, _kept_properties(request, now_ms))
    draft.metadata["location"] = props.strip_trailing_slash(location)
    return cast(JsonObject, draft.finish(None))


def _format_version(properties: props.Properties) -> int:
    """Returns the format version in the properties of a new table, or the default one. Fails for one that is not
    supported."""
    version = props.integer(properties, props.FORMAT_VERSION, props.DEFAULT_FORMAT_VERSION)
    if not 1 <= version <= props.SUPPORTED_FORMAT_VERSION:
        raise BadRequest(f"Unsupported format version: v{version} (supported: v1 to v{props.SUPPORTED_FORMAT_VERSION})")
    return version


def _names(columns: Columns) -> frozenset[str]:
    """Returns the full names of columns, and the short ones of the reference implementation: without the `element` of a
    list, and without the `value` of a map, in front of another name, if it is a struct."""
    names = {column.name for column in columns.values()}
    prefixes: dict[int | None, str] = {None: ""}
    for column in columns.values():  # parents come first
        parent = column.parent
        before = prefixes[None if parent is None else parent.id]
        own = column.name if parent is None else column.name.removeprefix(f"{parent.name}.")
        names.add(before + own)
        is_member = parent is not None and type_name(parent.type) in ("list", "map") and own != "key"
        prefixes[column.id] = before if is_member and type_name(column.type) == "struct" else f"{before}{own}."
    return frozenset(names)


def _resourced_spec(spec: PartitionSpec, fresh_ids: dict[int, int]) -> PartitionSpec:
    """Returns a spec that refers to the columns by their fresh ids, with its fields numbered from 1000."""
    fields = [{**one, "source-id": fresh_ids.get(one["source-id"], one["source-id"])} for one in spec["fields"]]
    return numbered(cast(PartitionSpec, {**spec, "fields": fields}))


def _resourced_order(order: SortOrder, fresh_ids: dict[int, int]) -> SortOrder:
    """Returns a sort order that refers to the columns by their fresh ids."""
    fields = [{**one, "source-id": fresh_ids.get(one["source-id"], one["source-id"])} for one in order["fields"]]
    return cast(SortOrder, {**order, "fields": fields})


def _kept_properties(request: CreateTable, now_ms: int) -> dict[str, str]:
    """Returns the properties of a new table: the requested ones, without the names that the format reserves; zstd as
    the Parquet codec and, for a staged table, the time of creation, unless the request sets these."""
    kept = {name: value for name, value in request.properties.items() if name not in props.RESERVED_AT_CREATE}
    staged = {}
    if request.stage:
        created = datetime.fromtimestamp(now_ms / 1000, UTC)
        staged = {props.CREATED_AT: created.isoformat(timespec="milliseconds").replace("+00:00", "Z")}
    return {props.PARQUET_COMPRESSION: "zstd", **staged, **kept}
