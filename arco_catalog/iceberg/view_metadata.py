"""A view's metadata document: the versions of its SQL, each in one or several dialects (view spec, "View Metadata")."""

from collections.abc import Hashable
from typing import NotRequired, TypedDict, cast

from arco_catalog.iceberg.checkpoint import Checkpoint, no_deadline
from arco_catalog.iceberg.errors import BadRequest, IllegalArgument
from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps
from arco_catalog.iceberg.numbered import unique_ids
from arco_catalog.iceberg.properties import Properties, integer
from arco_catalog.iceberg.schema import SCHEMA, NameBudget, Schema, columns_by_id
from arco_catalog.iceberg.shapes import INT, LONG, NAME, OBJECT, STRING, STRINGS, check, list_of, record

FORMAT_VERSION = 1
HISTORY_SIZE = "version.history.num-entries"
DEFAULT_HISTORY_SIZE = 10

_Version = TypedDict(
    "_Version",
    {
        "version-id": int,
        "timestamp-ms": int,
        "schema-id": int,
        "summary": dict[str, str],
        "default-namespace": list[str],
    },
)
_DefaultCatalog = TypedDict("_DefaultCatalog", {"default-catalog": str}, total=False)


class Representation(TypedDict):
    """One definition of a view in a version of it; those of type `sql` have a text and a dialect."""

    type: str
    sql: NotRequired[str]
    dialect: NotRequired[str]


class ViewVersion(_Version, _DefaultCatalog):
    """A version of a view, the definition at one time: an id, a schema, and representations in one or
    several SQL dialects."""

    representations: list[Representation]


VersionLogEntry = TypedDict("VersionLogEntry", {"version-id": int, "timestamp-ms": int})
ViewMetadata = TypedDict(
    "ViewMetadata",
    {
        "view-uuid": str,
        "format-version": int,
        "location": str,
        "schemas": list[Schema],
        "current-version-id": int,
        "versions": list[ViewVersion],
        "version-log": list[VersionLogEntry],
        "properties": dict[str, str],
    },
)

_any_representation = record(Representation, required={"type": STRING})
_sql_representation = record(Representation, required={"type": STRING, "sql": STRING, "dialect": STRING})


def REPRESENTATION(value: JsonValue) -> Representation:  # noqa: N802 - a shape
    """Returns the value if it is SQL in some dialect, or a representation of an unknown type. Raises `ShapeError`."""
    found = _any_representation(value)
    return _sql_representation(value) if is_sql(found) else found


VIEW_VERSION = record(
    ViewVersion,
    required={
        "version-id": INT,
        "timestamp-ms": LONG,
        "schema-id": INT,
        "summary": STRINGS,
        "representations": list_of(REPRESENTATION),
        "default-namespace": list_of(STRING),
    },
    optional={"default-catalog": STRING},
)
_VIEW_METADATA = record(
    JsonObject,
    required={
        "view-uuid": NAME,
        "format-version": INT,
        "location": NAME,
        "schemas": list_of(SCHEMA),
        "current-version-id": INT,
        "versions": list_of(VIEW_VERSION),
        "version-log": list_of(record(VersionLogEntry, required={"version-id": INT, "timestamp-ms": LONG})),
    },
    optional={"properties": STRINGS},
)


def complete_view(metadata: JsonObject) -> ViewMetadata:
    """Returns the view's metadata, with empty properties if the document has none. It shares its values with
    `metadata`."""
    return cast(ViewMetadata, {**metadata, "properties": metadata.get("properties") or {}})


def check_registered_view(metadata: JsonValue, checkpoint: Checkpoint = no_deadline) -> JsonObject:
    """Returns `metadata` itself if it is that of a view on which this catalog can commit: complete, in format version
    1, with unique ids, and with the current version and the schema of that. Raises `BadRequest` otherwise, and what
    `checkpoint` raises. Does not check the size of the history, which a commit can correct."""
    document = check(OBJECT, metadata, "metadata")
    view = complete_view(check(_VIEW_METADATA, document, "metadata"))
    checkpoint()
    if view["format-version"] != FORMAT_VERSION:
        raise BadRequest(
            f"Unsupported format version: {view['format-version']} (supported for views: {FORMAT_VERSION})"
        )
    schemas = unique_ids("schema-id", (schema.get("schema-id", 0) for schema in view["schemas"]))
    versions = unique_ids("version-id", (version["version-id"] for version in view["versions"]))
    current = view["current-version-id"]
    if current not in versions:
        raise BadRequest(f"Cannot find current version {current} in view versions: {sorted(versions)}")
    schema_id = current_version(view)["schema-id"]
    if schema_id not in schemas:
        raise BadRequest(f"Cannot find current schema with id {schema_id} in schemas: {sorted(schemas)}")
    names = NameBudget()
    for schema in view["schemas"]:
        columns_by_id(schema, names)
        checkpoint()
    return document


def current_version(view: ViewMetadata) -> ViewVersion:
    """Returns the current version of the view. Raises `StopIteration` if the list of versions does not have it."""
    return next(version for version in view["versions"] if version["version-id"] == view["current-version-id"])


def history_size(properties: Properties) -> int:
    """Returns how many versions a view with these properties keeps. Raises `BadRequest` if the property for it is not a
    positive integer of 32 bits."""
    size = integer(properties, HISTORY_SIZE, DEFAULT_HISTORY_SIZE)
    if size <= 0:
        raise BadRequest(f"{HISTORY_SIZE} must be positive but was {size}: set it to a positive number, or remove it")
    return size


def is_sql(representation: Representation) -> bool:
    """Whether a representation is of type `sql`, in any case of letters."""
    return representation["type"].lower() == "sql"


def dialects(version: ViewVersion) -> list[str]:
    """Returns the dialects of a version's SQL, in lower case, in the order of its representations."""
    return [each["dialect"].lower() for each in version["representations"] if is_sql(each)]


def check_dialects(version: ViewVersion) -> None:
    """Raises `IllegalArgument` if a version has two queries for one dialect. Clients expect that type of error here."""
    seen: set[str] = set()
    for dialect in dialects(version):
        if dialect in seen:
            raise IllegalArgument(f"Invalid view version: Cannot add multiple queries for dialect {dialect}")
        seen.add(dialect)


def version_meaning(version: ViewVersion) -> Hashable:
    """Returns a key that is equal for versions that differ only in id and time."""
    ignored = ("version-id", "timestamp-ms")
    meaning = {name: value for name, value in version.items() if name not in ignored}
    return dumps(cast(JsonObject, meaning), sort_keys=True)
