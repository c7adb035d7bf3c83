"""The plan of one attempt at a transaction: changes of existing tables, and new tables (docs/design/transaction.md)."""

from collections.abc import Sequence
from typing import TypeAlias

from arco_catalog.iceberg.checkpoint import Checkpoint
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.planning.attempt import Attempt
from arco_catalog.planning.creation import Creator, RelationDraft
from arco_catalog.planning.relation_change import ChangedRelation, UnchangedRelation
from arco_catalog.planning.writes import PlannedWrite
from arco_catalog.state.entries import find_kind
from arco_catalog.state.index import Edits, Growing, Index, relation_key
from arco_catalog.state.needs import Needs, Steps
from arco_catalog.state.pointer import Pointer
from storage_backends.lazy_dataclass import dataclass

Drafts: TypeAlias = Sequence[tuple[Creator, RelationDraft]]
"""The new tables of a transaction, in the order of the request."""


def draft_all(creators: Sequence[Creator], index: Index, attempt: Attempt, checkpoint: Checkpoint) -> Steps[Drafts]:
    """Returns the drafts of all new tables, each checked against those before it. Raises the errors of
    `Creator.draft`."""
    drafts: list[tuple[Creator, RelationDraft]] = []
    growing = Growing(index)
    for place, creator in enumerate(creators):
        draft = yield from creator.draft(growing, attempt.member(place), checkpoint)
        growing.add(creator.edits(growing, draft))
        drafts.append((creator, draft))
    return drafts


@dataclass(frozen=True, slots=True)
class TransactionPlan:
    """The plan of one attempt at a transaction: changes of existing tables, and drafts of new ones. The transaction's
    id is that of the attempt."""

    attempt: Attempt
    changes: Sequence[ChangedRelation | UnchangedRelation]
    drafts: Drafts

    @property
    def id(self) -> str:
        """The transaction's id, which is that of the attempt."""
        return self.attempt.id

    @property
    def moves(self) -> Sequence[tuple[Pointer, Pointer]]:
        """The pointers that get an intent, each with its successor. A table that does not change also gets one, to its
        present state, so that its requirements hold at the time of the decision."""
        return [
            (change.pointer, change.successor if isinstance(change, ChangedRelation) else change.pointer)
            for change in self.changes
        ]

    @property
    def first(self) -> Sequence[PlannedWrite]:
        """The writes of metadata files, pending receipts and first pointers, to make before the decision of a
        transaction."""
        changed = [change for change in self.changes if isinstance(change, ChangedRelation)]
        first: list[PlannedWrite] = []
        for change in changed:
            first += [change.new.write(), change.receipts.pending]
        for _, draft in self.drafts:
            first += draft.first_writes
        return first

    @property
    def after(self) -> Sequence[PlannedWrite]:
        """The writes of committed receipts, and the removals of old metadata files, to make after the decision of a
        transaction, at best effort."""
        changed = [change for change in self.changes if isinstance(change, ChangedRelation)]
        after: list[PlannedWrite] = []
        for change in changed:
            after += [change.receipts.committed, *change.removals]
        return after + [draft.receipts.committed for _, draft in self.drafts]

    @property
    def members(self) -> list[JsonObject]:
        """The tables of the transaction, also those that it leaves as they are, as the stored object lists them: entity
        id, version of the pointer (None for a new table) and metadata location."""
        changed: list[JsonObject] = [
            {"entity": pointer.entity, "version": pointer.version, "metadata_location": successor.metadata.location}
            for pointer, successor in self.moves
        ]
        made: list[JsonObject] = [
            {"entity": draft.entity, "version": None, "metadata_location": draft.new.file.location}
            for _, draft in self.drafts
        ]
        return changed + made

    @property
    def detail(self) -> JsonObject:
        """The id of the transaction and the tables that it creates, as details for the registry's history."""
        tables: list[JsonValue] = [
            {"namespace": [*creator.namespace], "name": creator.name, "entity": draft.entity}
            for creator, draft in self.drafts
        ]
        return {"transaction": self.id, "tables": tables}

    def new_names(self, index: Index) -> Steps[Edits]:
        """Returns the index changes with the intents on all new names, each checked against those before it, and with
        the marks on locations that the new tables share. Raises `Refusal`, and `PendingTransaction`."""
        edits: dict[str, JsonObject | None] = {}
        growing = Growing(index)
        for creator, draft in self.drafts:
            yield from creator.check(growing, draft)
            edits |= yield from creator.shared_marks(growing, draft.locations, draft.entity)
            edits |= creator.edits(growing, draft, self.id)
            growing.add(creator.edits(growing, draft))
        return edits

    def names_to_place(self, index: Index) -> Steps[Edits | None]:
        """Returns the index changes with the intents on all new names; None if there are none, or the index has them
        already, which happens if a swap of this attempt succeeded although its answer was a refusal."""
        names = [(creator.namespace, creator.name) for creator, _ in self.drafts]
        yield Needs(keys=[relation_key(*name) for name in names])
        there = (find_kind(index, *name, "table") for name in names)
        if all(entry is not None and entry.transaction == self.id for entry in there):
            return None
        return (yield from self.new_names(index))
