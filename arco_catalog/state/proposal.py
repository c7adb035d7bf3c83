"""A proposal: a change of the registry that its own process left for the process which moves HEAD next
(docs/design/registry.md#proposals)."""

from collections.abc import Sequence
from typing import Self

from arco_catalog.iceberg.json import JsonObject, dumps
from arco_catalog.state.fields import integer, mapping, parse_record, texts
from arco_catalog.state.index import Edits
from arco_catalog.state.needs import Steps
from arco_catalog.state.reads import Reads
from arco_catalog.state.registry import Operation, RegistryState
from storage_backends.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Proposal:
    """A planned change of the registry: its operation, with the id of its attempt, the `changes` of the index, and what
    the plan relies on.

    `base` is the sequence number of a HEAD up to which the attempt has seen that it is neither committed nor cancelled.
    `written_ms` is a time of the store's clock before any object was written for the change. `tombstones` are the keys
    of the tombstones that the change adds: these get their order from the commit that takes the change in.
    """

    operation: Operation
    changes: Edits
    reads: Reads
    base: int
    written_ms: int
    tombstones: Sequence[str] = ()

    @classmethod
    def of(
        cls, head: RegistryState, operation: Operation, changes: Edits, reads: Reads, *, base: int, written_ms: int
    ) -> Self:
        """Returns the proposal of a change that was planned on `head`, with the keys of the tombstones that the change
        adds: those of its own operation at the sequence number of `head`. `base` and `written_ms` are those of the
        proposal."""
        ordered = tuple(
            key
            for key, entry in changes.items()
            if entry is not None
            and key.startswith("tombstone\n")
            and (entry.get("operation"), entry.get("sequence")) == (operation.id, head.sequence)
        )
        return cls(operation, changes, reads, base, written_ms, ordered)

    @property
    def attempt(self) -> str:
        """The id of the attempt that proposes the change, which is that of its operation."""
        return self.operation.id

    @property
    def size(self) -> int:
        """Roughly the bytes that the proposed change adds to HEAD."""
        return len(dumps([dict(self.changes), self.operation.to_json()]))

    def still_holds(self, head: RegistryState) -> Steps[bool]:
        """Returns whether all that the plan of the proposal has read is the same on another HEAD. If so, the plan would
        be the same there, with its changes and answer; if not, it may be. The index of `head` may have further changes
        that are planned for the same commit."""
        return self.reads == (yield from self.reads.on(head))

    def changes_on(self, head: RegistryState) -> Edits:
        """Returns the index changes in a commit on this HEAD: those of the proposal, with the sequence number and
        `place` of `head` in the tombstones that it adds, by which drops are ordered."""
        ordered: dict[str, JsonObject | None] = dict(self.changes)
        for key in self.tombstones:
            ordered[key] = {**(self.changes[key] or {}), "sequence": head.sequence, "place": head.place}
        return ordered

    @property
    def body(self) -> bytes:
        """The bytes by which the proposal is stored."""
        document: JsonObject = {
            "version": 1,
            "operation": self.operation.to_json(),
            "changes": dict(self.changes),
            "reads": self.reads.to_json(),
            "base": self.base,
            "written_ms": self.written_ms,
            "tombstones": [*self.tombstones],
        }
        return dumps(document, sort_keys=True)

    @classmethod
    def parse(cls, body: bytes, where: str) -> Self:
        """Reads a stored proposal; a change of the index that is no JSON object removes its key. Raises
        `InternalError`."""
        document = parse_record(body, where)
        changes = mapping(document, "changes")
        return cls(
            operation=Operation.parse(mapping(document, "operation")),
            changes={key: entry if isinstance(entry, dict) else None for key, entry in changes.items()},
            reads=Reads.parse(mapping(document, "reads")),
            base=integer(document, "base"),
            written_ms=integer(document, "written_ms"),
            tombstones=texts(document, "tombstones"),
        )
