"""Transactions over several tables: atomic, without a coordinator (docs/design/transaction.md).

One object decides. It is created pending beside the metadata files; then every pointer gets an intent that names it
(and every new name too, in one registry commit); then it is moved to `committed`, which is the commit; then the intents
are settled, by us or by whoever meets them.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from arco_catalog.iceberg import table
from arco_catalog.iceberg.errors import BadRequest, CatalogError, CommitStateUnknown, InternalError
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.commit import commit_table
from arco_catalog.operations.create import TableFromCommit
from arco_catalog.operations.kinds import TABLES
from arco_catalog.operations.names import Identifier, dotted
from arco_catalog.operations.relation_change import ChangedRelation, RelationChange
from arco_catalog.operations.relation_read_set import RelationLookup, RelationReadSet, read_relation_under, relation
from arco_catalog.operations.transaction_coordinator import TransactionCoordinator, TransactionPlan
from arco_catalog.protocol.answers import Answer, Document
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import gather
from arco_catalog.protocol.decisions import settle_names
from arco_catalog.protocol.driver import run
from arco_catalog.protocol.lapsed import CROWDED, settle_lapsed
from arco_catalog.protocol.lookup import look_up
from arco_catalog.protocol.mutation import Attempt, Freshness, Mutation, NoOp, PlannedCommit, Prerequisite, ReadSet
from arco_catalog.protocol.name_intents import pending_transactions, try_to_settle
from arco_catalog.state.entries import PendingTransaction, RelationEntry
from arco_catalog.state.index import Growing, Namespace, relation_key
from arco_catalog.state.marker import WriteSet
from arco_catalog.state.pointer import Pointer
from arco_catalog.state.registry import RegistryState
from storage_backends import StoreError

TableChange = tuple[Namespace, str, JsonObject]
"""One table's part of a request: its name, and its CommitTableRequest."""


def check_size(session: Session, tables: int) -> None:
    """Raises `BadRequest` for more tables than a transaction may name."""
    limit = session.settings.max_transaction_tables
    if tables > limit:
        raise BadRequest(f"A transaction may name at most {limit} tables, not {tables}")


async def commit_transaction(session: Session, changes: Sequence[TableChange]) -> Answer:
    """Applies all changes, or none. Raises `BadRequest` for a table named twice, or too many of them."""
    check_size(session, len(changes))
    names = Counter((namespace, name) for namespace, name, _ in changes)
    twice = sorted(dotted(*name) for name, times in names.items() if times > 1)
    if twice:
        raise BadRequest(f"A transaction may name a table only once: {', '.join(twice)}")
    if not changes:
        return Document(204)
    if len(changes) == 1:
        await commit_table(session, *changes[0])
        return Document(204)
    commits = [await session.parsed(table.parse_commit, body) for _, _, body in changes]
    named = [(namespace, name) for namespace, name, _ in changes]
    transaction = Transaction(session, list(zip(named, commits, strict=True)))
    try:
        answer = await run(session, transaction)
    except CatalogError:
        await transaction.remove_own_intents()
        raise
    await transaction.remove_own_intents()
    return answer


@dataclass
class TransactionReadSet(ReadSet):
    """The read sets of all tables of a transaction, under one HEAD."""

    head: RegistryState
    head_fresh: bool
    tables: Sequence[RelationReadSet]

    @property
    def is_fresh(self) -> bool:
        return self.head_fresh and all(read_set.is_fresh for read_set in self.tables)

    def covers(self, write_set: WriteSet) -> bool:
        return False  # a transaction's evidence is its decision, which is no part of the tables

    async def has_committed(self, attempt: str, write_set: WriteSet) -> bool:
        raise InternalError("evidence was asked of a transaction's view, which has none")


class Transaction(Mutation[TransactionReadSet]):
    """One request over several tables."""

    def __init__(self, session: Session, changes: Sequence[tuple[Identifier, table.Commit]]) -> None:
        self.session = session
        self.state = session.state
        self.commits: list[RelationChange] = []
        self.creations: list[TableFromCommit] = []
        for (namespace, name), commit in changes:
            if commit.creates:
                self.creations.append(TableFromCommit(session, namespace, name, commit))
            else:
                self.commits.append(RelationChange(session, TABLES, namespace, name, commit))
        self._entities: dict[tuple[str, int], str] = {}
        self._leftover: list[Pointer] = []
        """Intents of our aborted attempts on tables."""
        self._looked_for_lapsed = False

    # Reading.

    async def read(self, freshness: Freshness) -> TransactionReadSet:
        head = self.state.cached_head() if freshness is not Freshness.FRESH else None
        head_fresh = head is None
        head = head or await self.state.head()
        await look_up(self.state, lambda: self._named(head))

        async def look(change: RelationChange) -> RelationReadSet:
            lookup = RelationLookup(change.namespace, change.name, "table", writing=True, rank=self.rank)
            return await read_relation_under(self.session, lookup, head, freshness, head_fresh=head_fresh)

        read_sets = await gather(*(look(change) for change in self.commits)) if self.commits else []
        return TransactionReadSet(head, head_fresh, read_sets)

    def needs_base(self, read_set: TransactionReadSet) -> bool:
        missing = [part for change, part in zip(self.commits, read_set.tables, strict=True) if change.needs_base(part)]
        return bool(missing)

    async def load_base(self, read_set: TransactionReadSet) -> None:
        await gather(*(change.load_base(part) for change, part in zip(self.commits, read_set.tables, strict=True)))

    async def work(self, read_set: TransactionReadSet) -> None:
        for change, part in zip(self.commits, read_set.tables, strict=True):
            await change.work(part)
        for creator in self.creations:
            await creator.work()

    def write_set(self, read_set: TransactionReadSet, attempt: Attempt) -> WriteSet:
        return WriteSet(transaction=attempt.id)

    # Planning.

    def plan(
        self, read_set: TransactionReadSet, attempt: Attempt
    ) -> PlannedCommit[TransactionReadSet] | NoOp | Prerequisite:
        plan = TransactionPlan(attempt)
        reservation: Prerequisite | None = None
        for change, part in zip(self.commits, read_set.tables, strict=True):
            computed = change.compute(part, attempt)
            if isinstance(computed, Prerequisite):
                reservation = computed  # only once all else holds: what is refused reserves nothing
            elif isinstance(computed, ChangedRelation):
                plan.moves.append((computed.pointer, computed.successor))
                plan.first += [computed.new.write(self.session), computed.receipts.pending]
                plan.after += [computed.receipts.committed, *computed.cleaning]
            else:
                # Only its requirements count; an intent to what is there makes sure that they hold when all else does.
                plan.moves.append((computed.pointer, computed.pointer))
        index = Growing(read_set.head.index)
        if self.creations and not self._looked_for_lapsed and len(pending_transactions(index)) >= CROWDED:
            self._looked_for_lapsed = True
            return Prerequisite(self._settle_lapsed)
        try:
            for place, creator in enumerate(self.creations):
                draft = creator.draft(index, self._as_member(attempt, place))
                index.add(creator.edits(draft))  # the next one is held against this one too
                plan.drafts.append((creator, draft))
                plan.first += creator.first_writes(draft)
                plan.after.append(draft.receipts.committed)
        except PendingTransaction as met:
            transaction = met.transaction
            return Prerequisite(lambda: settle_names(self.session, transaction, self.rank))
        if reservation is not None:
            return reservation
        return TransactionCoordinator(self.session, read_set.head, plan, self._leftover).planned_commit(
            lambda: self.still_named(read_set)
        )

    def _as_member(self, attempt: Attempt, place: int) -> Attempt:
        """Each new table has an entity of its own; `place` is the table's among the new ones."""
        member = (attempt.id, place)
        if member not in self._entities:
            self._entities[member] = self.session.runtime.ulid()
        return Attempt(attempt.id, self._entities[member], attempt.rank)

    async def still_named(self, read_set: TransactionReadSet) -> TransactionReadSet | None:
        """Validates the names, those to be made included, by a manifest read that begins after the pointers' versions
        were read (docs/design/commit.md#rule-4)."""
        head = await self.state.head()
        if head.version == read_set.head.version:
            return None
        now = await look_up(self.state, lambda: self._named(head))
        same = all(
            part.entry is not None
            and entry is not None
            and entry.entity == part.entry.entity
            and not change.lacks(entry)
            for change, entry, part in zip(self.commits, now, read_set.tables, strict=True)
        )
        if same and not self.creations:
            return None
        fresher = await self.read(Freshness.FRESH)
        if self.needs_base(fresher):
            await self.load_base(fresher)
        return fresher

    def _named(self, head: RegistryState) -> list[RelationEntry | None]:
        """What the names of the tables that it changes mean under a HEAD."""
        head.index.need(*(relation_key(change.namespace, change.name) for change in self.commits))
        return [relation(head, change.namespace, change.name, "table") for change in self.commits]

    async def answer_on_evidence(self, attempt: str, write_set: WriteSet) -> Answer:
        if self.creations:  # the process that committed may have died before it settled the names
            await self.session.run_in_background(try_to_settle(self.session, {attempt: True}))
        return Document(204)

    # Cleaning up.

    async def _settle_lapsed(self) -> None:
        await settle_lapsed(self.session, CROWDED)

    async def remove_own_intents(self) -> None:
        """Removes the intents of our aborted attempts from the tables, where no other commit replaced them yet."""
        left = [placed for placed in self._leftover if self.state.cached_pointer(placed.entity) == placed]
        if left:
            await self.session.run_in_background(gather(*(self._remove_own_intent(placed) for placed in left)))

    async def _remove_own_intent(self, placed: Pointer) -> None:
        try:
            await self.state.move_pointer(placed.settled(self.session.runtime.ulid(), committed=False), placed.version)
        except (StoreError, CommitStateUnknown) as error:  # the next process that reads it settles it too
            self.session.drop_write("the end of an intent", error)
