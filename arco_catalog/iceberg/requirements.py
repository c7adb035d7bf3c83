"""The 8 requirements that a commit can make on a table's state, as values (REST spec, `TableRequirement`).

The messages are exactly those of the reference implementation, because clients and their tests read them.
"""

from collections.abc import Callable
from typing import Literal, TypeAlias

from arco_catalog.iceberg.errors import CommitFailed
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.iceberg.metadata import TableMetadata
from arco_catalog.iceberg.primitives import same_uuid
from arco_catalog.iceberg.shapes import INT, LONG, STRING, Fields
from storage_backends.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class AssertCreate:
    """The requirement of a commit that the table does not exist."""

    def check(self, table: TableMetadata) -> None:
        """Raises `CommitFailed`, because `table` exists."""
        raise requirement_failed("table already exists")


@dataclass(frozen=True, slots=True)
class AssertTableUuid:
    """The requirement of a commit that the table has this uuid, in any case of letters."""

    uuid: str

    def check(self, table: TableMetadata) -> None:
        """Raises `CommitFailed` if the table's uuid is not the required one."""
        if not same_uuid(self.uuid, table["table-uuid"]):
            raise requirement_failed(f"UUID does not match: expected {table['table-uuid'] or 'null'} != {self.uuid}")


@dataclass(frozen=True, slots=True)
class AssertRefSnapshotId:
    """The requirement of a commit that a branch or tag names this snapshot, or with None that it does not exist."""

    ref: str
    snapshot_id: int | None

    def holds(self, refs: JsonObject) -> bool:
        """Whether a table with these branches and tags fulfils the requirement."""
        found = refs.get(self.ref)
        return (found["snapshot-id"] if isinstance(found, dict) else None) == self.snapshot_id

    def check(self, table: TableMetadata) -> None:
        """Raises `CommitFailed` if the table's branch or tag names another snapshot than the required one, is missing,
        or exists although the requirement is that it does not."""
        found = table["refs"].get(self.ref)
        if found is None:
            if self.snapshot_id is not None:
                raise requirement_failed(f"branch or tag {self.ref} is missing, expected {self.snapshot_id}")
        elif self.snapshot_id is None:
            raise requirement_failed(f"{found['type']} {self.ref} was created concurrently")
        elif found["snapshot-id"] != self.snapshot_id:
            raise requirement_failed(
                f"{found['type']} {self.ref} has changed: expected id {self.snapshot_id} != {found['snapshot-id']}"
            )


IdField: TypeAlias = Literal[
    "last-column-id", "current-schema-id", "last-partition-id", "default-spec-id", "default-sort-order-id"
]


@dataclass(frozen=True, slots=True)
class AssertId:
    """The requirement of a commit that the id in a field of the table's metadata has the expected value. `what` names
    the field in the message."""

    field: IdField
    what: str
    expected: int

    def check(self, table: TableMetadata) -> None:
        """Raises `CommitFailed` if the id in the table's field that the requirement names is not the expected one."""
        if table[self.field] != self.expected:
            raise requirement_failed(f"{self.what} changed: expected id {self.expected} != {table[self.field]}")


TableRequirement: TypeAlias = AssertCreate | AssertTableUuid | AssertRefSnapshotId | AssertId


def requirement_failed(reason: str) -> CommitFailed:
    """Returns the error for a requirement that does not hold."""
    return CommitFailed(f"Requirement failed: {reason}")


def _assert_id(name: str, field: IdField, what: str) -> Callable[[Fields], AssertId]:
    """Returns the reader of a requirement that one id of the table has a value: the value is in the field `name` of the
    request, and the id in `field` of the table's metadata. `what` names the id in messages."""
    return lambda fields: AssertId(field, what, fields.required(name, INT))


TABLE_REQUIREMENTS: dict[str, Callable[[Fields], TableRequirement]] = {
    "assert-create": lambda _: AssertCreate(),
    "assert-table-uuid": lambda fields: AssertTableUuid(fields.required("uuid", STRING)),
    "assert-ref-snapshot-id": lambda fields: AssertRefSnapshotId(
        fields.required("ref", STRING), fields.optional("snapshot-id", LONG)
    ),
    "assert-last-assigned-field-id": _assert_id("last-assigned-field-id", "last-column-id", "last assigned field id"),
    "assert-current-schema-id": _assert_id("current-schema-id", "current-schema-id", "current schema"),
    "assert-last-assigned-partition-id": _assert_id(
        "last-assigned-partition-id", "last-partition-id", "last assigned partition id"
    ),
    "assert-default-spec-id": _assert_id("default-spec-id", "default-spec-id", "default partition spec"),
    "assert-default-sort-order-id": _assert_id("default-sort-order-id", "default-sort-order-id", "default sort order"),
}
"""The parser of each type of requirement in a request."""
