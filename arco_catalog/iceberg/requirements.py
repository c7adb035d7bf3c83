"""The 8 conditions that a commit can make on a table's state, as values (REST spec, `TableRequirement`).

Messages are the reference's, letter for letter: clients and their tests look at them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from arco_catalog.iceberg.errors import CommitFailed
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.iceberg.metadata import TableMetadata
from arco_catalog.iceberg.primitives import same_uuid
from arco_catalog.iceberg.shapes import INT, LONG, STRING, Fields


@dataclass(frozen=True, slots=True)
class AssertCreate:
    """The table does not exist."""

    def check(self, table: TableMetadata) -> None:
        """Raises `CommitFailed`: here is a table."""
        raise requirement_failed("table already exists")


@dataclass(frozen=True, slots=True)
class AssertTableUuid:
    """The table has this uuid, in any case of letters."""

    uuid: str

    def check(self, table: TableMetadata) -> None:
        """Raises `CommitFailed` for another table."""
        if not same_uuid(self.uuid, table["table-uuid"]):
            raise requirement_failed(f"UUID does not match: expected {table['table-uuid'] or 'null'} != {self.uuid}")


@dataclass(frozen=True, slots=True)
class AssertRefSnapshotId:
    """The ref names this snapshot; None: there is no such ref."""

    ref: str
    snapshot_id: int | None

    def holds(self, refs: JsonObject) -> bool:
        """Whether a table with these branches and tags meets it."""
        found = refs.get(self.ref)
        return (found["snapshot-id"] if isinstance(found, dict) else None) == self.snapshot_id

    def check(self, table: TableMetadata) -> None:
        """Raises `CommitFailed` if the ref was made, moved or removed."""
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
    """One of the table's ids is this one. `what` names it in the message."""

    field: IdField
    what: str
    expected: int

    def check(self, table: TableMetadata) -> None:
        """Raises `CommitFailed` if the id is another one."""
        if table[self.field] != self.expected:
            raise requirement_failed(f"{self.what} changed: expected id {self.expected} != {table[self.field]}")


TableRequirement: TypeAlias = AssertCreate | AssertTableUuid | AssertRefSnapshotId | AssertId


def requirement_failed(reason: str) -> CommitFailed:
    """The error of every requirement that does not hold."""
    return CommitFailed(f"Requirement failed: {reason}")


def _assert_id(name: str, field: IdField, what: str) -> Callable[[Fields], AssertId]:
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
"""How each type of requirement is read from a request."""
