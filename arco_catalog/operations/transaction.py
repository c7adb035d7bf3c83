"""Transactions over several tables: atomic, without a coordinator on which others depend (docs/design/transaction.md).

One object decides. It is created pending beside the metadata files; then every pointer gets an intent that names it
(and every new name too, in one registry commit); then it is moved to `committed`, which is the commit; then the intents
are settled, by this process or by any other that reads one.
"""

from collections import Counter
from collections.abc import Sequence

from arco_catalog.iceberg import table
from arco_catalog.iceberg.errors import BadRequest, CatalogError, CommitStateUnknown, InternalError
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.commit import commit_table
from arco_catalog.planning.answers import Answer, Document
from arco_catalog.planning.attempt import Attempt
from arco_catalog.planning.creators import TableFromCommit
from arco_catalog.planning.kinds import TABLES
from arco_catalog.planning.name_intents import pending_transactions
from arco_catalog.planning.names import Identifier, dotted
from arco_catalog.planning.relation_change import ChangedRelation, MissingLocations, RelationCommit, UnchangedRelation
from arco_catalog.planning.transaction import TransactionPlan, draft_all
from arco_catalog.protocol.catalog import Session, Settings
from arco_catalog.protocol.concurrency import gather
from arco_catalog.protocol.decisions import settle_names
from arco_catalog.protocol.driver import run
from arco_catalog.protocol.internal_commits import try_to_settle
from arco_catalog.protocol.lapsed import CROWDED, settle_lapsed
from arco_catalog.protocol.lookup import carry_out, load
from arco_catalog.protocol.mutation import Freshness, Mutation, NoOp, Prerequisite, ReadSet
from arco_catalog.protocol.planned_commit import TransactionCommit
from arco_catalog.protocol.pointer_turns import PointerTurns
from arco_catalog.protocol.relation_committer import RelationCommitter
from arco_catalog.protocol.relation_read_set import RelationReadSet, read_relation_under
from arco_catalog.protocol.reservations import reserve_locations
from arco_catalog.state.entries import PendingTransaction, RelationEntry, find_kind
from arco_catalog.state.index import Namespace, relation_key
from arco_catalog.state.marker import WriteSet
from arco_catalog.state.needs import Needs
from arco_catalog.state.pointer import Pointer
from arco_catalog.state.registry import RegistryState
from storage_backends import StoreError, Version
from storage_backends.lazy_dataclass import dataclass

TableChange = tuple[Namespace, str, JsonObject]
"""The part of a request for one table: its namespace, its name, and its CommitTableRequest."""


def check_size(settings: Settings, tables: int) -> None:
    """Raises `BadRequest` for more tables than one transaction may name."""
    limit = settings.max_transaction_tables
    if tables > limit:
        raise BadRequest(f"A transaction may name at most {limit} tables, not {tables}")


async def commit_transaction(session: Session, changes: Sequence[TableChange]) -> Answer:
    """Applies the changes of all tables, or none, and returns an empty answer, at once if there are no changes. The
    change of a single table is committed as by `commit_table`. Removes the intents that failed attempts of this request
    left, at best effort, also after an error. Raises `BadRequest` for a table that is named twice and for too many
    tables, and the errors of `commit_table`."""
    check_size(session.settings, len(changes))
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
    """The read sets of all existing tables that a transaction commits to, under one HEAD; one of a table may be under a
    later HEAD, read to resolve an intent on the name. Tables that it creates have none."""

    head: RegistryState
    head_fresh: bool
    tables: Sequence[RelationReadSet]

    @property
    def is_fresh(self) -> bool:
        """Whether HEAD was read from the store for this request, and the pointers of the existing tables, too. Their
        metadata files, which never change, may be from the cache."""
        return self.head_fresh and all(read_set.is_fresh for read_set in self.tables)

    def covers(self, write_set: WriteSet) -> bool:
        """Returns False, always: the evidence of a transaction is the decision, which no table has."""
        return False  # a transaction's evidence is its decision, which is no part of the tables

    async def has_committed(self, attempt: str, write_set: WriteSet) -> bool:
        """Raises `InternalError`, always: only the transaction object shows whether a transaction committed."""
        raise InternalError(
            "The program searched the read set of a transaction for the commit, which only the transaction object has"
        )


class Transaction(Mutation[TransactionReadSet]):
    """One request that changes or creates tables, at most `Settings.max_transaction_tables`: all of them, or none."""

    def __init__(self, session: Session, changes: Sequence[tuple[Identifier, table.Commit]]) -> None:
        self.session = session
        self.state = session.state
        self.commits: list[RelationCommitter] = []
        self.creations: list[TableFromCommit] = []
        for (namespace, name), commit in changes:
            if commit.creates:
                self.creations.append(TableFromCommit(session.context, namespace, name, commit))
            else:
                self.commits.append(RelationCommitter(session, RelationCommit(TABLES, namespace, name, commit)))
        self._turns: dict[str, PointerTurns] = {}
        """By entity, of the tables at which the request has met other writers."""
        self._planned: set[Version | None] = set()
        """The versions of the tables' pointers in the last plan."""
        self._leftover: list[Pointer] = []
        """Pointers with intents that aborted attempts of this request left."""
        self._has_settled_lapsed = False

    # Reading.

    async def read(self, freshness: Freshness, rank: str) -> TransactionReadSet:
        """Reads the existing tables of the transaction concurrently, under one HEAD, which is the cached one, if there
        is one and `freshness` is not `FRESH`; a table may be read under a later one to resolve an intent on the name.
        Does not read tables to create, nor metadata files. A transaction with an intent on one of them may be waited
        for or aborted, by `rank`."""
        head = self.state.cached_head() if freshness is not Freshness.FRESH else None
        head_fresh = head is None
        head = head or await self.state.head()
        await self._named(head)

        async def look(committer: RelationCommitter) -> RelationReadSet:
            lookup = committer.lookup(rank)
            return await read_relation_under(self.session, lookup, head, freshness, head_fresh=head_fresh)

        read_sets = await gather(*(look(committer) for committer in self.commits)) if self.commits else []
        return TransactionReadSet(head, head_fresh, read_sets)

    def needs_base(self, read_set: TransactionReadSet) -> bool:
        """Whether the metadata file of a table must be read. Cached ones are put into the read sets of all tables."""
        missing = [part for each, part in zip(self.commits, read_set.tables, strict=True) if each.needs_base(part)]
        return bool(missing)

    async def load_base(self, read_set: TransactionReadSet) -> None:
        """Reads the missing metadata files of all tables concurrently. An error for the client is put into the table's
        read set, and `plan` raises it. Raises `StoreError`."""
        await gather(*(each.load_base(part) for each, part in zip(self.commits, read_set.tables, strict=True)))

    async def write_set(self, read_set: TransactionReadSet, attempt: Attempt) -> WriteSet:
        """Returns a write set that has the attempt's id as the transaction, and no table."""
        return WriteSet(transaction=attempt.id)

    # Planning.

    async def plan(self, read_set: TransactionReadSet, attempt: Attempt) -> TransactionCommit | NoOp | Prerequisite:
        """Plans the changes of all tables, and drafts the new ones. Returns the commit, even if no table changes, or a
        `Prerequisite`, in this order: if there are new tables, to settle old intents, once and if there are many, or
        another transaction that has one of the new names; or to reserve locations. Raises `Refusal` and
        `StoreError`."""
        reservation: Prerequisite | None = None
        changes: list[ChangedRelation | UnchangedRelation] = []
        for committer, part in zip(self.commits, read_set.tables, strict=True):
            change = await committer.plan(part, attempt)
            if isinstance(change, MissingLocations):
                reservation = self._reservation(committer.wanted, change)  # only once all else holds
            else:
                changes.append(change)
        self._planned = {part.pointer.version for part in read_set.tables if part.pointer is not None}
        index = read_set.head.index
        if self.creations and not self._has_settled_lapsed and len(pending_transactions(index)) >= CROWDED:
            self._has_settled_lapsed = True
            return Prerequisite(self._settle_lapsed)
        drafting = draft_all(self.creations, index, attempt, self.session.check_deadline)
        try:
            drafts = await carry_out(self.state, index, drafting, self.session.request.body_bytes)
        except PendingTransaction as met:
            transaction = met.transaction
            return Prerequisite(lambda: settle_names(self.session, transaction, attempt.rank))
        if reservation is not None:
            return reservation
        plan = TransactionPlan(attempt, changes, drafts)
        return TransactionCommit(
            write_set=WriteSet(transaction=plan.id),
            first=plan.first,
            after=plan.after,
            answer=Document(204),
            head=read_set.head,
            plan=plan,
            leftover=self._leftover,
        )

    def _reservation(self, wanted: RelationCommit, missing: MissingLocations) -> Prerequisite:
        """Returns the step that must precede the transaction: a registry commit that gives the missing locations to a
        table."""
        return Prerequisite(lambda: reserve_locations(self.session, wanted.namespace, wanted.name, missing))

    async def validate(self, read_set: TransactionReadSet, rank: str) -> TransactionReadSet | None:
        """Reads HEAD of the registry, after the pointers' versions were read (docs/design/commit.md#rule-4). Returns
        None if HEAD is the same, or if the transaction creates no tables, every table's name still means the same
        entity, which holds all locations that the commit names, and no file is added to a place outside of these where
        another table is being purged; else a fresh read set to plan on."""
        head = await self.state.head()
        if head.version == read_set.head.version:
            return None
        now = await self._named(head)
        same = True
        for committer, entry, part in zip(self.commits, now, read_set.tables, strict=True):
            kept = part.entry is not None and entry is not None and entry.entity == part.entry.entity
            same = same and kept and entry is not None and not await committer.is_refused(head.index, entry)
        if same and not self.creations:
            return None
        fresher = await self.read(Freshness.FRESH, rank)
        if self.needs_base(fresher):
            await self.load_base(fresher)
        return fresher

    async def take_turn(self, read_set: TransactionReadSet, losses: int, rank: str) -> TransactionReadSet | None:
        """Takes turns at the tables that other writers have changed since the last plan, or gives way to those of
        others there, one after the other in the order of the tables' ids, so that transactions do not wait for each
        other (docs/design/commit.md#turns). Returns the fresh read set to plan on, also if it only gave way; None if
        that is `read_set`, because it did neither. It does neither at any table if one is seen not to meet the
        requirements of its commit any more."""
        parts = [*zip(self.commits, read_set.tables, strict=True)]
        if any(part.pointer is not None and each.is_conflict(part.pointer, part.base) for each, part in parts):
            return None
        known = self._planned | {placed.version for placed in self._leftover}
        moved = {
            p.entity: (each, part) for each, part in parts if (p := part.pointer) is not None and p.version not in known
        }
        has_taken = False
        for entity, (committer, part) in sorted(moved.items(), key=lambda item: item[0]):
            turns = self._turns.get(entity) or PointerTurns(self.session, committer.lookup(rank), committer.is_conflict)
            self._turns[entity] = turns
            has_taken |= await turns.take(part, losses) is not None
        if not has_taken:
            return None
        fresher = await self.read(Freshness.MOVED, rank)
        if self.needs_base(fresher):
            await self.load_base(fresher)
        return fresher

    async def _named(self, head: RegistryState) -> list[RelationEntry | None]:
        """Returns the entries that a HEAD has for the names of the tables that the transaction commits to, None for a
        name that no table has."""
        names = [(each.wanted.namespace, each.wanted.name) for each in self.commits]
        await load(self.state, head.index, Needs(keys=[relation_key(*name) for name in names]))
        return [find_kind(head.index, *name, "table") for name in names]

    async def answer_on_evidence(self, attempt: str, write_set: WriteSet) -> Answer:
        """Returns 204 without a body. If the transaction creates tables, it first settles the intents on names at best
        effort, in the background if the process allows that."""
        if self.creations:  # the process that committed may have died before it settled the names
            await self.session.run_in_background(try_to_settle(self.session, {attempt: True}))
        return Document(204)

    # Cleaning up.

    async def _settle_lapsed(self) -> None:
        """Settles intents on names in the registry of at most `CROWDED` transactions, the ones that are decided or have
        outlived their lease."""
        await settle_lapsed(self.session, CROWDED)

    async def remove_own_intents(self) -> None:
        """Removes the intents that aborted attempts of this request left on tables, where the cached pointer is still
        the one with the intent; in the background if the process allows that. A failed removal is logged."""
        left = [placed for placed in self._leftover if self.state.cached_pointer(placed.entity) == placed]
        if left:
            await self.session.run_in_background(gather(*(self._remove_own_intent(placed) for placed in left)))

    async def _remove_own_intent(self, placed: Pointer) -> None:
        """Replaces an intent that an aborted attempt left on a pointer by the old state. A failure is only logged."""
        try:
            await self.state.move_pointer(placed.settled(self.session.runtime.ulid(), committed=False), placed.version)
        except (StoreError, CommitStateUnknown) as error:  # the next process that reads it settles it too
            self.session.note_failed_write("the end of an intent", error)
