"""Commits changes of one table or view by one compare-and-swap of its pointer (docs/design/commit.md)."""

from contextlib import suppress

from arco_catalog.iceberg import table, view
from arco_catalog.iceberg.errors import InternalError, Refusal, Unavailable
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.planning.answers import Answer, TableState
from arco_catalog.planning.attempt import Attempt
from arco_catalog.planning.kinds import TABLES, VIEWS
from arco_catalog.planning.relation_change import CurrentRelation, MissingLocations, RelationCommit, UnchangedRelation
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import gather
from arco_catalog.protocol.current_file import current_file
from arco_catalog.protocol.driver import run
from arco_catalog.protocol.mutation import Freshness, Mutation, NoOp, Prerequisite
from arco_catalog.protocol.planned_commit import PointerCommit
from arco_catalog.protocol.pointer_turns import PointerTurns
from arco_catalog.protocol.relation_committer import RelationCommitter
from arco_catalog.protocol.relation_read_set import RelationReadSet, cached_relation, read_relation, relation
from arco_catalog.protocol.reservations import reserve_locations
from arco_catalog.state.access import POINTER_AGE_MS
from arco_catalog.state.index import Namespace
from arco_catalog.state.marker import WriteSet
from storage_backends import StoreError


async def commit_table(session: Session, namespace: Namespace, name: str, request: JsonObject) -> Answer:
    """Applies a CommitTableRequest to a table, and returns the table's new state, or the present one if the request
    changes nothing. A request with `assert-create` creates the table. Raises `NoSuchTable`, `CommitFailed` if a
    requirement fails or the commit is based on too old a state, an error for a malformed request and an update that is
    not allowed, and for a creation the errors of `create_from_commit`."""
    commit = await session.parsed(table.parse_commit, request)
    if commit.creates:
        from arco_catalog.operations.create import create_from_commit  # a cold start with a usual commit saves the time

        return await create_from_commit(session, namespace, name, commit)
    return await _commit(session, RelationCommit(TABLES, namespace, name, commit))


async def commit_view(session: Session, namespace: Namespace, name: str, request: JsonObject) -> Answer:
    """Applies a CommitViewRequest to a view, and returns the view's new state, or the present one if the request
    changes nothing. Raises `NoSuchView`, `CommitFailed` if a requirement fails, `BadRequest` for a malformed
    request, and an error for an update that is not allowed, or that sets a location which the caller may not use."""
    commit = await session.parsed(view.parse_view_commit, request)
    return await _commit(session, RelationCommit(VIEWS, namespace, name, commit))


async def _commit(session: Session, commit: RelationCommit) -> Answer:
    """Makes a commit to a table or view, after the writers of that table in this process that came first, unless they
    take too long. A commit that would fail by the cached pointer does not wait for them. One that may be rebased when
    it gets the lock releases that, reads the files of the append, and waits for the lock once more."""
    mutation = CommitRelation(session, commit)
    async with session.lock_table(commit.namespace, commit.name, lambda: not mutation.is_outdated()):
        if not mutation.may_be_rebased():
            return await run(session, mutation)
    await mutation.prepare_rebase()
    async with session.lock_table(commit.namespace, commit.name, lambda: True):
        return await run(session, mutation)


class CommitRelation(Mutation[RelationReadSet]):
    """The commit of one request's changes to one table or view, by one compare-and-swap of its pointer."""

    def __init__(self, session: Session, wanted: RelationCommit) -> None:
        self.session = session
        self.committer = RelationCommitter(session, wanted, rebases=True)
        self.lookup = self.committer.lookup()
        self._turns: PointerTurns | None = None

    def is_outdated(self) -> bool:
        """Whether the pointer that this process has cached is seen to fail a requirement of the commit on a branch or
        tag, of which only the first `REFS_COMPARED` are compared; False if none is cached, or it has an intent. No
        answer may rest on that: the caches may be older than the request."""
        state = self.session.state
        head = state.cached_head()
        entry = None if head is None else cached_relation(head, self.lookup)
        pointer = None if entry is None else state.cached_pointer(entry.entity)
        return pointer is not None and self.committer.wanted.is_outdated(pointer)

    def may_be_rebased(self) -> bool:
        """Whether the commit is an append that requests a rebase, and that, by the cached pointer and metadata, needs
        one, may get it, and has no conflict (docs/design/appends.md). False if they are not cached."""
        committer, current = self.committer, self._cached() if self.committer.wanted.requests_rebase else None
        if current is None or not committer.may_be_rebased(current.pointer, current.body):
            return False
        return not committer.is_conflict(current.pointer, current.body)

    async def prepare_rebase(self) -> None:
        """Reads the files of an append that may be rebased, if this process has the table cached, and if the caller is
        allowed to commit by the cached rights: others commit during that. No answer rests on it. Refusals and errors of
        the store are ignored here: the commit itself meets them again."""
        session, head, current = self.session, self.session.state.cached_head(), self._cached()
        if head is None or current is None:
            return
        with suppress(Refusal, Unavailable, StoreError):
            if session.is_restricted:
                await session.access.read(Freshness.CACHED)
                await session.access.judge(session.state, head)
            await self.committer.prepare_rebase(current)

    def _cached(self) -> CurrentRelation | None:
        """Returns the table or view as this process has it cached; None unless the registry's entry, the pointer and
        the metadata file are all cached."""
        state = self.session.state
        head = state.cached_head()
        entry = None if head is None else cached_relation(head, self.lookup)
        pointer = None if entry is None else state.cached_pointer(entry.entity)
        body = None if pointer is None else self.session.files.cached(pointer.metadata.location)
        return None if entry is None or pointer is None or body is None else CurrentRelation(entry, pointer, body)

    async def read(self, freshness: Freshness, rank: str) -> RelationReadSet:
        """Reads HEAD, the name's entry and the pointer as `read_relation` does, from the caches as far as `freshness`
        allows. Does not read the metadata file, and ignores `rank`."""
        return await read_relation(self.session, self.lookup, freshness)

    def needs_base(self, read_set: RelationReadSet) -> bool:
        """Whether the metadata file must still be read. One that is cached is put into the read set, and need not.
        False if there is no pointer, or the read met an error."""
        return self.committer.needs_base(read_set)

    async def load_base(self, read_set: RelationReadSet) -> None:
        """Reads the metadata file into the read set, unless it has one. An error for the client is put there, and
        `plan` raises it; if the file is missing since the pointer has moved, the pointer counts as not fresh. Raises
        `StoreError`."""
        await self.committer.load_base(read_set)

    async def write_set(self, read_set: RelationReadSet, attempt: Attempt) -> WriteSet:
        """Returns the write set of the commit, whatever the attempt: the entity with the pointer's sequence number;
        empty if the read set has no pointer: the name has no table or view, or an intent was not decided in time."""
        return _write_set(read_set)

    async def plan(self, read_set: RelationReadSet, attempt: Attempt) -> PointerCommit | NoOp | Prerequisite:
        """Plans the move of the pointer. Returns `NoOp`, with the present state, if the request changes nothing, and a
        `Prerequisite` if the registry must first have locations that the commit names, or paths outside of the table
        from which it borrows files. Raises `Refusal`, which may be that of the read set, and `StoreError`."""
        session, change = self.session, await self.committer.plan(read_set, attempt)
        if isinstance(change, MissingLocations):
            wanted, missing = self.committer.wanted, change
            return Prerequisite(lambda: reserve_locations(session, wanted.namespace, wanted.name, missing))
        pointer = change.pointer
        if isinstance(change, UnchangedRelation):
            return NoOp(TableState(pointer.entity, pointer.metadata.location, change.body, created=False))
        return PointerCommit(
            write_set=_write_set(read_set),
            first=change.first_writes,
            after=[change.receipts.committed, *change.removals],
            answer=TableState(pointer.entity, change.new.file.location, change.new.body, created=False),
            pointer=pointer,
            successor=change.successor,
        )

    async def validate(self, read_set: RelationReadSet, rank: str) -> RelationReadSet | None:
        """Checks that the name still means the planned table or view, and concurrently that the pointer still has the
        version of the plan, unless that version was read within a second: a compare-and-swap must not name a version
        that was replaced and forgotten meanwhile (docs/design/commit.md#rule-6). Returns None if the plan is still
        valid, else a fresh read set to plan on."""
        fresher, moved = await gather(self.validate_name(read_set), self.has_moved(read_set))
        return await self.read_again() if moved else fresher

    async def has_moved(self, read_set: RelationReadSet) -> bool:
        """Whether the pointer has another version by now, or no longer exists; false for a read set without a pointer.
        Uses the cached pointer if it is at most a second old, else reads it again."""
        state, pointer = self.session.state, read_set.pointer
        if pointer is None:
            return False
        now = state.cached_pointer(pointer.entity, POINTER_AGE_MS) or await state.pointer(pointer.entity)
        return now is None or now.version != pointer.version

    async def validate_name(self, read_set: RelationReadSet) -> RelationReadSet | None:
        """Reads HEAD of the registry, after the pointer's version was read (docs/design/commit.md#rule-4). Returns None
        if HEAD is the one of the plan, or if the name still means the entity, for which the registry has all locations
        and borrowed paths that the commit names, and no file that the commit adds elsewhere is being purged. Else
        returns a fresh read set to plan on, which has no entry if no table or view of the kind has the name."""
        head = await self.session.state.head()
        if head.version == read_set.head.version:
            return None
        entry = await relation(self.session.state, head, self.lookup)
        if entry is None:
            return RelationReadSet(head, None, None, head_fresh=True, pointer_fresh=False)
        same = read_set.entry is not None and entry.entity == read_set.entry.entity
        if same and not await self.committer.is_refused(head.index, entry):
            return None
        return await self.read_again()

    async def read_again(self) -> RelationReadSet:
        """Reads HEAD and the pointer of the table or view from the store again, and returns a fresh read set with the
        base of the commit loaded."""
        fresher = await read_relation(self.session, self.lookup, Freshness.FRESH)
        if self.needs_base(fresher):
            await self.load_base(fresher)
        return fresher

    async def take_turn(self, read_set: RelationReadSet, losses: int, rank: str) -> RelationReadSet | None:
        """Gives way to the turn of another writer, and takes one after `LOSSES` lost compare-and-swaps
        (docs/design/commit.md#turns). Returns the fresh read set to plan on, None if that is `read_set`."""
        if self._turns is None:
            self._turns = PointerTurns(self.session, self.lookup, self.committer.is_conflict)
        fresher = await self._turns.take(read_set, losses)
        if fresher is not None and self.needs_base(fresher):
            await self.load_base(fresher)
        return fresher

    async def answer_on_evidence(self, attempt: str, write_set: WriteSet) -> Answer:
        """Returns the answer to a commit that another read has proved to be applied: the current state of the table or
        view in `write_set`, which is that of this attempt's commit, or of a later one on top of it. Raises
        `InternalError` if the pointer no longer exists, and `NotFound` if the metadata file does not."""
        for entity in write_set.pointers:
            current = await current_file(self.session, entity)
            if current is not None:
                return TableState(entity, current[0].location, current[1], created=False)
        raise InternalError(
            f"The commit was applied (attempt {attempt}), but the pointer of the table or view no longer exists: it "
            "was purged since, or is lost"
        )


def _write_set(read_set: RelationReadSet) -> WriteSet:
    """Returns the write set of a commit: the entity of the pointer that it moves, and the sequence number which that
    pointer has before. It is empty if the read set has no entry or no pointer: the name has no table or view, or an
    intent on the pointer was not decided in time."""
    if read_set.entry is None or read_set.pointer is None:
        return WriteSet()
    return WriteSet(pointers={read_set.entry.entity: read_set.pointer.sequence})
