"""The 23 updates that a commit can make to a table, as values (REST spec, `TableUpdate`)."""

from collections.abc import Callable, Iterable
from typing import TypeAlias

from arco_catalog.iceberg.encryption import ENCRYPTED_KEY, EncryptedKey
from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.json import JsonValue
from arco_catalog.iceberg.partition import PARTITION_SPEC, PartitionSpec
from arco_catalog.iceberg.primitives import UUID
from arco_catalog.iceberg.properties import (
    check_settings,
    refuse_empty_paths,
    refuse_reserved,
    refuse_reserved_of_table,
    refuse_too_many,
    strip_trailing_slash,
)
from arco_catalog.iceberg.schema import SCHEMA, Schema
from arco_catalog.iceberg.shapes import (
    INT,
    LONG,
    NAME,
    STRING,
    STRINGS,
    Fields,
    ShapeError,
    check,
    list_of,
    quoted,
)
from arco_catalog.iceberg.snapshots import (
    PARTITION_STATISTICS_FILE,
    SNAPSHOT,
    SNAPSHOT_REF,
    STATISTICS_FILE,
    Snapshot,
    SnapshotRef,
    StatisticsFile,
)
from arco_catalog.iceberg.sort import SORT_ORDER, SortOrder
from storage_backends.lazy_dataclass import dataclass

LAST_ADDED = -1
"""Stands for the schema, spec, order or view version that the same commit added last."""


def resolved_id(what: str, wanted: int, last_added: int | None) -> int:
    """Returns the id that an update names: `last_added` for `LAST_ADDED`, otherwise `wanted`. Raises `BadRequest` for
    `LAST_ADDED` if the commit has added none; `what` is the kind of object in the message."""
    if wanted != LAST_ADDED:
        return wanted
    if last_added is None:
        raise BadRequest(
            f"Cannot set last added {what}: no {what} has been added by this commit before the update that names it by "
            f"the id {LAST_ADDED}"
        )
    return last_added


@dataclass(frozen=True, slots=True)
class AssignUuid:
    """The update of a commit that assigns a uuid to a table which has none, or confirms that of a table or view."""

    uuid: str


@dataclass(frozen=True, slots=True)
class UpgradeFormatVersion:
    """The update of a commit that raises the format version of a table, or confirms that of a table or view."""

    format_version: int


@dataclass(frozen=True, slots=True)
class AddSchema:
    """The update of a commit that adds a schema to a table or view."""

    schema: Schema


@dataclass(frozen=True, slots=True)
class SetCurrentSchema:
    """The update of a commit that makes a schema of a table the current one."""

    schema_id: int


@dataclass(frozen=True, slots=True)
class AddSpec:
    """The update of a commit that adds a partition spec to a table."""

    spec: PartitionSpec


@dataclass(frozen=True, slots=True)
class SetDefaultSpec:
    """The update of a commit that makes a partition spec of a table the default for new files."""

    spec_id: int


@dataclass(frozen=True, slots=True)
class AddSortOrder:
    """The update of a commit that adds a sort order to a table."""

    order: SortOrder


@dataclass(frozen=True, slots=True)
class SetDefaultSortOrder:
    """The update of a commit that makes a sort order of a table the default for new files."""

    order_id: int


@dataclass(frozen=True, slots=True)
class AddSnapshot:
    """The update of a commit that adds a snapshot, on which no branch or tag is yet, to a table."""

    snapshot: Snapshot


@dataclass(frozen=True, slots=True)
class SetSnapshotRef:
    """The update of a commit that creates a branch or tag of a table, or changes the snapshot or the retention of
    one."""

    name: str
    ref: SnapshotRef


@dataclass(frozen=True, slots=True)
class RemoveSnapshots:
    """The update of a commit that removes snapshots of a table, their statistics, and the branches and tags that refer
    to them."""

    snapshot_ids: list[int]


@dataclass(frozen=True, slots=True)
class RemoveSnapshotRef:
    """The update of a commit that removes a branch or tag of a table."""

    name: str


@dataclass(frozen=True, slots=True)
class SetLocation:
    """The update of a commit that changes the base location of a table or view."""

    location: str


@dataclass(frozen=True, slots=True)
class SetProperties:
    """The update of a commit that sets properties of a table or view."""

    properties: dict[str, str]


@dataclass(frozen=True, slots=True)
class RemoveProperties:
    """The update of a commit that removes properties of a table or view."""

    names: list[str]


@dataclass(frozen=True, slots=True)
class SetStatistics:
    """The update of a commit that makes a file the only file of column statistics of its snapshot."""

    file: StatisticsFile


@dataclass(frozen=True, slots=True)
class RemoveStatistics:
    """The update of a commit that removes the column statistics of a snapshot."""

    snapshot_id: int


@dataclass(frozen=True, slots=True)
class SetPartitionStatistics:
    """The update of a commit that makes a file the only file of partition statistics of its snapshot."""

    file: StatisticsFile


@dataclass(frozen=True, slots=True)
class RemovePartitionStatistics:
    """The update of a commit that removes the partition statistics of a snapshot."""

    snapshot_id: int


@dataclass(frozen=True, slots=True)
class RemoveSpecs:
    """The update of a commit that removes partition specs of a table."""

    spec_ids: list[int]


@dataclass(frozen=True, slots=True)
class RemoveSchemas:
    """The update of a commit that removes schemas of a table."""

    schema_ids: list[int]


@dataclass(frozen=True, slots=True)
class AddEncryptionKey:
    """The update of a commit that adds an encryption key to a table."""

    key: EncryptedKey


@dataclass(frozen=True, slots=True)
class RemoveEncryptionKey:
    """The update of a commit that removes an encryption key of a table."""

    key_id: str


TableUpdate: TypeAlias = (
    AssignUuid
    | UpgradeFormatVersion
    | AddSchema
    | SetCurrentSchema
    | AddSpec
    | SetDefaultSpec
    | AddSortOrder
    | SetDefaultSortOrder
    | AddSnapshot
    | SetSnapshotRef
    | RemoveSnapshots
    | RemoveSnapshotRef
    | SetLocation
    | SetProperties
    | RemoveProperties
    | SetStatistics
    | RemoveStatistics
    | SetPartitionStatistics
    | RemovePartitionStatistics
    | RemoveSpecs
    | RemoveSchemas
    | AddEncryptionKey
    | RemoveEncryptionKey
)


def UUID_TEXT(value: JsonValue) -> str:  # noqa: N802 - a shape
    """Returns the value if it is a UUID in its usual form of 36 characters. Raises `ShapeError`."""
    text = STRING(value)
    if UUID.fullmatch(text) is None:
        raise ShapeError(f"{quoted(text)} is not a uuid")
    return text


def LOCATION(value: JsonValue) -> str:  # noqa: N802 - a shape
    """Returns a location, without slashes at its end, so an empty one for `/`. Raises `ShapeError` for a value that is
    no string, or empty."""
    return strip_trailing_slash(NAME(value))


def _set_snapshot_ref(fields: Fields) -> SetSnapshotRef:
    """Reads `set-snapshot-ref`: the name, and as the branch or tag all other fields, unknown ones included. Fails for a
    malformed one."""
    name = fields.required("ref-name", NAME)
    ref: JsonValue = {key: value for key, value in fields.values.items() if key not in ("action", "ref-name")}
    return SetSnapshotRef(name, check(SNAPSHOT_REF, ref, fields.at))


def set_properties(fields: Fields, refuse: Callable[[Iterable[str]], None] = refuse_reserved) -> SetProperties:
    """Reads `set-properties`, whose field older clients call `updated`. `refuse` raises `BadRequest` for reserved
    properties. Raises `BadRequest` also for too many, and for an empty path."""
    name = "updated" if "updates" not in fields.values and "updated" in fields.values else "updates"
    refuse_too_many(fields.values.get(name))
    properties = fields.required(name, STRINGS)
    refuse(properties)
    refuse_empty_paths(properties)
    return SetProperties(properties)


def remove_properties(fields: Fields, refuse: Callable[[Iterable[str]], None] = refuse_reserved) -> RemoveProperties:
    """Reads `remove-properties`, whose field older clients call `removed`. `refuse` raises `BadRequest` for reserved
    properties. Raises `BadRequest` also for too many."""
    name = "removed" if "removals" not in fields.values and "removed" in fields.values else "removals"
    refuse_too_many(fields.values.get(name))
    names = fields.required(name, list_of(STRING))
    refuse(names)
    return RemoveProperties(names)


def _set_table_properties(fields: Fields) -> SetProperties:
    """Reads `set-properties` for a table. Fails as `set_properties` does, except for `arco.commit.appends`, of which it
    checks the value."""
    update = set_properties(fields, refuse_reserved_of_table)
    check_settings(update.properties)
    return update


TABLE_UPDATES: dict[str, Callable[[Fields], TableUpdate]] = {
    "assign-uuid": lambda fields: AssignUuid(fields.required("uuid", UUID_TEXT)),
    "upgrade-format-version": lambda fields: UpgradeFormatVersion(fields.required("format-version", INT)),
    "add-schema": lambda fields: AddSchema(fields.required("schema", SCHEMA)),
    "set-current-schema": lambda fields: SetCurrentSchema(fields.required("schema-id", INT)),
    "add-spec": lambda fields: AddSpec(fields.required("spec", PARTITION_SPEC)),
    "set-default-spec": lambda fields: SetDefaultSpec(fields.required("spec-id", INT)),
    "add-sort-order": lambda fields: AddSortOrder(fields.required("sort-order", SORT_ORDER)),
    "set-default-sort-order": lambda fields: SetDefaultSortOrder(fields.required("sort-order-id", INT)),
    "add-snapshot": lambda fields: AddSnapshot(fields.required("snapshot", SNAPSHOT)),
    "set-snapshot-ref": _set_snapshot_ref,
    "remove-snapshots": lambda fields: RemoveSnapshots(fields.required("snapshot-ids", list_of(LONG))),
    "remove-snapshot-ref": lambda fields: RemoveSnapshotRef(fields.required("ref-name", STRING)),
    "set-location": lambda fields: SetLocation(fields.required("location", LOCATION)),
    "set-properties": _set_table_properties,
    "remove-properties": lambda fields: remove_properties(fields, refuse_reserved_of_table),
    "set-statistics": lambda fields: SetStatistics(fields.required("statistics", STATISTICS_FILE)),
    "remove-statistics": lambda fields: RemoveStatistics(fields.required("snapshot-id", LONG)),
    "set-partition-statistics": lambda fields: SetPartitionStatistics(
        fields.required("partition-statistics", PARTITION_STATISTICS_FILE)
    ),
    "remove-partition-statistics": lambda fields: RemovePartitionStatistics(fields.required("snapshot-id", LONG)),
    "remove-partition-specs": lambda fields: RemoveSpecs(fields.required("spec-ids", list_of(INT))),
    "remove-schemas": lambda fields: RemoveSchemas(fields.required("schema-ids", list_of(INT))),
    "add-encryption-key": lambda fields: AddEncryptionKey(fields.required("encryption-key", ENCRYPTED_KEY)),
    "remove-encryption-key": lambda fields: RemoveEncryptionKey(fields.required("key-id", STRING)),
}
"""The parser of each action in a request."""
