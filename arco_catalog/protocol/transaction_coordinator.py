"""Coordinates one attempt at a transaction over tables: the transaction's object, intents and decision
(docs/design/transaction.md)."""

from arco_catalog.iceberg.errors import CommitStateUnknown, InternalError, Refusal
from arco_catalog.planning.name_intents import settling
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.commit_execution import CommitExecution, Revalidate
from arco_catalog.protocol.concurrency import gather
from arco_catalog.protocol.decisions import abort_if_undecided
from arco_catalog.protocol.internal_commits import change_registry, internal_commit, try_to_settle
from arco_catalog.protocol.lookup import carry_out
from arco_catalog.protocol.mutation import AttemptAborted
from arco_catalog.protocol.planned_commit import TransactionCommit, Write
from arco_catalog.protocol.prepared_commit import PreparedCommit
from arco_catalog.state.entries import PendingTransaction
from arco_catalog.state.index import Edits
from arco_catalog.state.needs import Steps
from arco_catalog.state.pointer import Pointer
from arco_catalog.state.registry import RegistryState
from arco_catalog.state.transaction import Decision, encode
from storage_backends import ABSENT, Applied, PreconditionFailed, StoreError, Version


class TransactionCoordinator(CommitExecution):
    """Takes one attempt at a transaction from pending to decided: creates the transaction's object, places the intents,
    decides, and settles the intents."""

    def __init__(self, session: Session, commit: TransactionCommit) -> None:
        super().__init__(session, commit)
        self.state = session.state
        self.plan = commit.plan
        self.head = commit.head
        self.pending: Decision | None = None
        self.placed: list[Pointer] = []
        self.leftover = commit.leftover
        self.names_commit: PreparedCommit | None = None
        self.settling_commit: PreparedCommit | None = None

    def first_writes(self) -> list[Write]:
        """Returns the writes before the decision, and makes none of them: the ones of the plan, the registry commit
        with intents on new names, if the transaction has any, and the transaction's object."""
        plan = self.plan
        naming = [Write(f"the names of {plan.id}", self.prepare_names)] if plan.drafts else []
        return [*super().first_writes(), *naming, Write(self.state.paths.transaction(plan.id), self.begin)]

    async def make_ready(self) -> None:
        """Places all intents of the transaction, on pointers and on new names. If that is impossible, this attempt is
        given up: raises an error by which the loop makes a new one if an intent can't be placed, and `StoreError` or
        `CommitStateUnknown` if the store fails."""
        await self.place_intents()

    def after_writes(self) -> list[Write]:
        """Returns the writes after the decision, and makes none of them: the ones of the plan, and the one that settles
        the intents."""
        return [*super().after_writes(), Write("intents", self.settle_intents)]

    async def prepare_names(self) -> None:
        """Writes the objects of the registry commit that is to place the transaction's intents on new names, but does
        not make it HEAD yet."""
        edits = await carry_out(self.state, self.head.index, self.plan.new_names(self.head.index))
        prepared = await internal_commit(self.session, "lay-names", self.plan.detail, self.head, edits)
        await prepared.put_and_read_bell()
        self.names_commit = prepared

    async def begin(self) -> None:
        """Creates the transaction's object, and keeps it in `pending`. Raises `AttemptAborted` unless it is ours for
        certain: a takeover may have created it aborted, and a late copy of ours must never be decided."""
        pending = Decision.pending(
            transaction=self.plan.id,
            rank=self.plan.attempt.rank,
            move=self.session.runtime.ulid(),
            members=self.plan.members,
        )
        key = self.state.paths.transaction(self.plan.id)
        outcome = await self.state.store.put(key, encode(pending.document), ABSENT)
        if not isinstance(outcome, Applied):
            raise AttemptAborted
        self.pending = Decision(pending.document, outcome.version, 0)

    async def place_intents(self) -> None:
        """Places all intents concurrently. If one can't be placed because something else has changed, aborts this
        attempt for certain, so that no request waits for it and the names are free again, and raises `AttemptAborted`.
        If the store fails or an outcome is unknown, aborts it at best effort, and raises that error."""
        steps = [self.place_on_pointer(*move) for move in self.plan.moves]
        if self.names_commit is not None:
            steps.append(self.place_on_names(self.names_commit))
        try:
            all_placed = all(await gather(*steps))
        except (StoreError, CommitStateUnknown):
            await self.give_up()
            raise
        if not all_placed:
            await abort_if_undecided(self.state, self.session.runtime, self.plan.id)
            await self.clear()
            raise AttemptAborted

    async def give_up(self) -> None:
        """Aborts this transaction unless it is decided, and, if it has not committed, removes the intents on new names,
        so that no request has to wait for the end of the lease. `StoreError` and `CommitStateUnknown` are only counted
        and logged, other errors are raised."""
        try:
            if not await abort_if_undecided(self.state, self.session.runtime, self.plan.id):
                await self.clear()
        except (StoreError, CommitStateUnknown) as error:
            self.session.note_failed_write(f"the abort of transaction {self.plan.id}", error)

    async def clear(self) -> None:
        """Cleans up after an abort of this transaction: at best effort removes our intents on new names from the
        registry, where no other request may ever read them. Intents on pointers stay, and are added to `leftover`."""
        self.leftover += self.placed
        if self.names_commit is not None:
            await try_to_settle(self.session, {self.plan.id: False})

    async def place_on_pointer(self, pointer: Pointer, successor: Pointer) -> bool:
        """Places an intent on one pointer, at the version that the plan relies on, and adds it to `placed`. Returns
        whether it is there: also if an earlier sending of the write had placed it, and False if the pointer has moved
        otherwise."""
        placed = pointer.with_intent(self.session.runtime.ulid(), self.plan.id, successor)
        outcome = await self.state.move_pointer(placed, pointer.version)
        if isinstance(outcome, Applied):
            self.placed.append(Pointer(placed.document, outcome.version))
            return True
        now = await self.state.pointer(pointer.entity)
        if now is None or now.intent != self.plan.id:
            return False
        self.placed.append(now)  # the refusal was our own echo
        return True

    async def place_on_names(self, prepared: PreparedCommit) -> bool:
        """Places intents on all new names, by one registry commit: the prepared one, or another if HEAD has moved.
        Returns True once they are there, and False if that is refused, as when a name is no longer free or has another
        transaction's intent."""
        if await prepared.try_swap():
            return True
        try:
            await change_registry(
                self.session,
                "lay-names",
                self.plan.detail,
                lambda head: self.plan.names_to_place(head.index),
                has_lost=True,
            )
        except (Refusal, PendingTransaction):
            return False
        return True

    async def swap(self, revalidate: Revalidate) -> Applied | PreconditionFailed:
        """Commits this transaction by its decision, and concurrently prepares the registry commit that settles the
        intents. Returns `Applied`, also for a refused write if our own had applied before, and never
        `PreconditionFailed`; if this one applied, replaced metadata files leave the cache. Raises `AttemptAborted` if
        another process aborted the transaction, `CommitStateUnknown` if the outcome is unknown, and `StoreError`: if
        nothing was sent, after it has given up, or if its write had no effect and the decision, which may be to commit,
        can't be read."""
        if self.pending is None:
            raise InternalError(f"transaction {self.plan.id} was to be committed before the object of it was written")
        body = encode(self.pending.decided("committed", self.session.runtime.ulid()))
        outcomes: list[Applied | PreconditionFailed] = []

        async def swap(version: Version | None) -> None:
            outcomes.append(await self.state.swap(self.state.paths.transaction(self.plan.id), body, version))

        try:
            await gather(swap(self.pending.version), self.prepare_settling_commit())
        except StoreError:  # nothing was sent
            await self.give_up()
            raise
        outcome = outcomes[0]
        if isinstance(outcome, PreconditionFailed):
            if await abort_if_undecided(self.state, self.session.runtime, self.plan.id):
                return Applied(Version(""), outcome.now_ms)
            await self.clear()
            raise AttemptAborted
        for pointer, successor in self.plan.moves:
            if successor.metadata.location != pointer.metadata.location:
                self.session.files.forget(pointer.metadata.location)
        return outcome

    async def prepare_settling_commit(self) -> None:
        """Writes the registry commit that is to settle our intents on new names, while the decision is under way, and
        keeps it in `settling_commit`; it does not make it HEAD. Does nothing if there are no new names, no HEAD is
        cached, or the cached one has none of the intents. A failure of the store, or a corrupt record, is logged and
        counted, and not raised."""
        head = self.state.cached_head()
        if self.names_commit is None or head is None:
            return
        try:
            edits = await carry_out(self.state, head.index, self.intents_to_settle(head))
            if edits:
                prepared = await internal_commit(self.session, "settle-names", self.plan.detail, head, edits)
                await prepared.put_and_read_bell()
                self.settling_commit = prepared
        except (StoreError, InternalError) as error:  # nothing that fails here may cut the decision off
            self.session.note_failed_write(
                f"the registry commit that settles the intents on names of transaction {self.plan.id}", error
            )

    async def settle_intents(self) -> None:
        """Settles all intents of the committed transaction, on pointers and on new names. Raises `StoreError`, or
        `CommitStateUnknown`, if that fails. A later request that changes the table or name settles an intent
        that is left; one that only reads resolves it, and writes nothing."""

        async def settle_pointer(placed: Pointer) -> None:
            await self.state.move_pointer(placed.settled(self.session.runtime.ulid(), committed=True), placed.version)

        async def settle_new_names() -> None:
            prepared = self.settling_commit
            if prepared is not None and await prepared.try_swap():
                return
            await change_registry(
                self.session, "settle-names", self.plan.detail, self.intents_to_settle, has_lost=prepared is not None
            )

        steps = [settle_pointer(placed) for placed in self.placed]
        if self.names_commit is not None:
            steps.append(settle_new_names())
        await gather(*steps)

    def intents_to_settle(self, head: RegistryState) -> Steps[Edits | None]:
        """Returns the index changes that turn those of our intents on names that this HEAD still has into entries;
        empty if it has none. Only for a committed transaction."""
        return settling(head.index, {self.plan.id: True})
