"""The first metadata of a new view, made from a client's request (REST spec, `CreateViewRequest`)."""

from dataclasses import field
from typing import cast

from arco_catalog.iceberg.checkpoint import Checkpoint, no_deadline
from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.iceberg.properties import refuse_empty_paths, refuse_reserved, refuse_too_many, strip_trailing_slash
from arco_catalog.iceberg.schema import SCHEMA, Schema, check_schema, columns_by_id
from arco_catalog.iceberg.shapes import NAME, OBJECT, STRINGS, Fields, check
from arco_catalog.iceberg.updates import LOCATION
from arco_catalog.iceberg.view_metadata import (
    FORMAT_VERSION,
    VIEW_VERSION,
    ViewMetadata,
    ViewVersion,
    check_dialects,
    history_size,
    is_sql,
)
from storage_backends.lazy_dataclass import dataclass

FIRST_VERSION_ID = 1


@dataclass(frozen=True, slots=True)
class CreateView:
    """A client's request for a new view: the schema, the first version with its SQL, the properties, and the location,
    None if the catalog chooses it."""

    schema: Schema
    version: ViewVersion
    name: str = ""
    properties: dict[str, str] = field(default_factory=dict)
    location: str | None = None


def parse_create_view(body: JsonValue) -> CreateView:
    """Reads a `CreateViewRequest`. Raises `BadRequest` for a request that does not match the specification, for too
    many or reserved properties, and for an empty path in them. `new_view_metadata` checks the rest."""
    request = Fields(check(OBJECT, body, "request"))
    refuse_too_many(request.values.get("properties"))
    properties = request.optional("properties", STRINGS) or {}
    refuse_reserved(properties)
    refuse_empty_paths(properties)
    return CreateView(
        name=request.required("name", NAME),
        schema=request.required("schema", SCHEMA),
        version=request.required("view-version", VIEW_VERSION),
        properties=properties,
        location=request.optional("location", LOCATION),
    )


def new_view_metadata(
    request: CreateView, *, location: str, view_uuid: str, now_ms: int, checkpoint: Checkpoint = no_deadline
) -> JsonObject:
    """Returns the first metadata of a view at `location`: version 1 with schema 0, at the time `now_ms` in milliseconds
    since 1970. Raises `BadRequest` for an invalid schema, for a version without a query, with a representation that is
    not SQL, or with two queries of one dialect, and for an invalid size of the history; raises what `checkpoint`
    raises.

    Column ids stay the client's, because no data files refer to them.
    """
    check_schema(request.schema, columns_by_id(request.schema), 3)
    checkpoint()
    representations = request.version["representations"]
    if not representations:
        raise BadRequest("Cannot create view without specifying a query: view-version.representations is empty")
    unsupported = sorted({each["type"] for each in representations if not is_sql(each)})
    if unsupported:
        raise BadRequest(f"Found unsupported view representations: {unsupported} (supported in a new view: sql)")
    check_dialects(request.version)
    history_size(request.properties)
    version: ViewVersion = {
        **request.version,
        "version-id": FIRST_VERSION_ID,
        "timestamp-ms": now_ms,
        "schema-id": 0,
    }
    metadata: ViewMetadata = {
        "view-uuid": view_uuid,
        "format-version": FORMAT_VERSION,
        "location": strip_trailing_slash(location),
        "properties": request.properties,
        "schemas": [cast(Schema, {**request.schema, "schema-id": 0})],
        "current-version-id": FIRST_VERSION_ID,
        "versions": [version],
        "version-log": [{"timestamp-ms": now_ms, "version-id": FIRST_VERSION_ID}],
    }
    return cast(JsonObject, metadata)
