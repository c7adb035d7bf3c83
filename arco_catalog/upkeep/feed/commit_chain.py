"""Reads the commits of a table or view that have not entered the event feed: from its pointer back along the receipts
to the last file that has (docs/design/events.md#rule-3)."""

from collections import OrderedDict
from collections.abc import Collection, Sequence
from functools import partial

from arco_catalog.iceberg.errors import CatalogError, InternalError
from arco_catalog.iceberg.json import JsonObject, MalformedJson
from arco_catalog.planning.feed import Chain, commit_record, entity_record, gap_record
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.decisions import decide, read_decision, resolve_for_read
from arco_catalog.state import receipt
from arco_catalog.state.feed import FeedRecord
from arco_catalog.state.feed_cursors import FeedCursor
from arco_catalog.state.paths import commit_key
from arco_catalog.state.pointer import MetadataFile, Pointer, list_logged_files
from arco_catalog.state.transaction import Decision, committed
from arco_catalog.state.worker_threads import off_loop
from arco_catalog.upkeep.feed.past_segments import EnteredFiles
from arco_catalog.upkeep.reconcile import is_named
from storage_backends.lazy_dataclass import dataclass

MAX_RECORDS = 500
"""The number of commits of one entity that enter in one step at most."""
MAX_TRAIL = 20_000
"""The number of files of one entity that a walk keeps, the oldest that have not entered: some 5 MB."""
TURN = 100
"""The number of files, and of segments, by which a search goes back before it may end or pause."""
WALK_ALONE = 500
"""The number of files after which a search reads segments, too, since a restore may have been made."""


@dataclass(frozen=True, slots=True)
class NewCommits:
    """The records of an entity that enter next, the files of its chain after these, oldest first, and the version of
    the pointer at which all of its chain has entered with them; empty if it has not, or will not without the decision
    of a transaction. `search` is the search for them if it has not ended, and then there are no records."""

    chain: Chain
    rest: Sequence[MetadataFile] = ()
    version: str = ""
    search: "Search | None" = None


async def new_commits(
    session: Session, entity: str, cursor: FeedCursor, tail: int, pause_ms: int = 0
) -> NewCommits | None:
    """Returns the commits of an entity after its cursor, the oldest ones if there are many; without records if the
    search pauses, or the transaction that was to create the entity has not. None if it has no pointer, or that
    transaction is pending. `tail` is the number of the first record of the last segment. A long search pauses when
    `pause_ms` are left until the session's deadline. Raises `StoreError`, and `InternalError` for a corrupt pointer,
    decision or segment."""
    pointer = await session.state.pointer(entity)
    if pointer is None:
        return None
    if cursor.transaction is not None:
        is_created = await _is_created(session, entity, cursor.transaction)
        if not is_created:
            return None if is_created is None else NewCommits(Chain(entity, []), version=pointer.version or "")
    is_final = pointer.intent is None or not await _is_pending(session, pointer.intent)
    version = (pointer.version or "") if is_final else ""
    search = Search(await resolve_for_read(session.state, pointer), cursor, tail, version)
    return await search.commits(session, pause_ms)


async def next_commits(
    session: Session,
    entity: str,
    files: Sequence[MetadataFile],
    version: str = "",
    first: Sequence[FeedRecord] = (),
    found: dict[str, JsonObject] | None = None,
) -> NewCommits:
    """Returns the records of `first`, and those of the next `MAX_RECORDS` files of an entity's chain, which are given
    oldest first; the others are the rest. `found` has receipts that were read before, by the files; others are read,
    and a file without one gets a record all the same. `version` is the pointer's version for the result, which has it
    only if there is no rest. Raises `StoreError`."""
    known, records = found or {}, [*first]
    for file in files[:MAX_RECORDS]:
        session.check_deadline()
        body = known.get(file.location) or await _read_receipt(session, entity, file)
        records.append(commit_record(entity, file, body))
    rest = files[MAX_RECORDS:]
    return NewCommits(Chain(entity, records, bool(rest)), rest, "" if rest else version)


async def _read_receipt(session: Session, entity: str, file: MetadataFile) -> JsonObject | None:
    """Returns the committed receipt for a metadata file of an entity, or one that is made of the pending receipt, with
    the current names of fields; nothing is written. None if neither exists or can be read. Raises `StoreError`."""
    paths, key = session.state.paths, commit_key(entity, file.location)
    for stage in (receipt.COMMITTED, receipt.PENDING, receipt.COMMITTED):  # a collection deletes pending ones last
        path = paths.receipt(stage, key, file.ms)
        found = await session.state.read(path)
        if found is not None:
            try:
                return await off_loop(len(found.body), partial(_committed_receipt, found.body, path, stage))
            except InternalError:
                continue
    return None


def _committed_receipt(body: bytes, path: str, stage: receipt.Stage) -> JsonObject:
    """Returns the committed receipt for a stored one of either stage. Raises `InternalError`."""
    parsed = receipt.parse(body, path)
    found = receipt.committed(parsed) if stage == receipt.PENDING else parsed
    return receipt.with_current_names(found, receipt.COMMITTED)


async def decision_after_lease(session: Session, transaction: str) -> Decision | None:
    """Reads the decision of a transaction as `read_decision` does; None if there is none. Before that, aborts a pending
    transaction without a valid lease, since the coordinator may have crashed; the result is the decision as it is
    then."""
    decision = await read_decision(session.state, transaction)
    if decision is not None and decision.expired:
        await decide(session.state, session.runtime, decision, "aborted")
        return await read_decision(session.state, transaction)
    return decision


def _continued(
    entity: str, files: Sequence[MetadataFile], entered: Collection[str], *, is_gap: bool
) -> tuple[list[FeedRecord], Sequence[MetadataFile]]:
    """Returns the first records of an entity that was restored, or of which no chain leads back to the cursor, and the
    files that follow them. The chain `files`, oldest first, begins again after the newest file in it that has `entered`
    at any time, with a record of that. If none has, all of the chain follows, after a record of a gap if `is_gap`."""
    place = max((number for number, file in enumerate(files, 1) if file.location in entered), default=0)
    if not place:
        return [gap_record(entity, files[0].ms if files else 0)] if is_gap else [], files
    return [entity_record("restored", entity, files[place - 1])], files[place:]


async def _is_created(session: Session, entity: str, transaction: str) -> bool | None:
    """Whether a transaction has created its table; None while it is undecided. Aborts it if it has no valid lease. The
    decision of one that did may be deleted, when the registry has had the table's name for days: without a decision, it
    counts as created if the registry names it."""
    decision = await decision_after_lease(session, transaction)
    return await is_named(session, entity) if decision is None else committed(decision)


async def _is_pending(session: Session, transaction: str) -> bool:
    """Whether a transaction is not decided yet. Aborts one without a valid lease first."""
    decision = await decision_after_lease(session, transaction)
    return decision is not None and decision.status == "pending"


class Search:
    """The search for the commits of an entity after its cursor. It walks back from the pointer to the cursor's file;
    where that is long, or was restored, it also reads segments backwards, in turn with the walk. If a file of the
    walk has entered by a commit, the search ends there, since later files of a chain enter later
    (docs/design/events.md#rule-3). A search that has paused may go on while nothing else of the entity enters."""

    def __init__(self, pointer: Pointer, cursor: FeedCursor, tail: int, version: str) -> None:
        self._entity = pointer.entity
        self._version = version
        self._until = None if cursor.file is None else cursor.file.location
        self._is_restored = cursor.is_restored
        self._walk = _Walk(pointer, self._until)
        self._entered = EnteredFiles(pointer.entity, tail)

    async def commits(self, session: Session, pause_ms: int) -> NewCommits:
        """Goes on with the search, by one turn at least. Returns the commits that enter next, or a result without
        records that has this search, if it pauses since less than `pause_ms` are left until the session's deadline.
        Raises as `new_commits` does."""
        while True:
            await self._walk.go(session, TURN)
            if not self._has_ended and (self._is_restored or self._walk.needs_segments):
                await self._entered.go(session, TURN)
            if self._has_ended:
                break
            if session.deadline.left_ms() <= pause_ms:
                return NewCommits(Chain(self._entity, []), search=self)
        walk, first = self._walk, list[FeedRecord]()
        files: Sequence[MetadataFile] = [*reversed(walk.trail.values())]
        if not walk.has_arrived or (self._is_restored and files):
            entered = self._entered.by_commits | self._entered.otherwise
            first, files = _continued(self._entity, files, entered, is_gap=not walk.has_arrived)
        return await next_commits(session, self._entity, files, self._version, first, walk.found)

    @property
    def kept(self) -> int:
        """The number of files of the walk that the search keeps, without the locations that it has from segments."""
        return len(self._walk.trail)

    @property
    def _has_ended(self) -> bool:
        """Whether the search has found the file of the chain after which the commits have not entered, or there is
        nothing more to read."""
        walk, entered = self._walk, self._entered
        if not entered.by_commits.isdisjoint(walk.trail):
            return True
        if not walk.is_over:
            return False
        if walk.has_arrived and not (self._is_restored and walk.trail):
            return True
        return entered.is_over or (walk.has_arrived and self._until in entered.by_commits)


class _Walk:
    """Goes from the pointer of an entity back along its receipts, and where one is missing, along the logs of metadata
    files: to the file at `until`, for None to the entity's creation, or to the file with which it was registered.

    `trail` has the files that it passed on the way, the newest first; of more than `MAX_TRAIL` the oldest. `is_over` is
    whether it has ended, `has_arrived` whether it ended where it should, `found` the receipts of the files that it
    passed last."""

    def __init__(self, pointer: Pointer, until: str | None) -> None:
        self._pointer = pointer
        self._until = until
        self._newer = pointer.metadata
        self._next: MetadataFile | None = pointer.metadata
        self.trail: OrderedDict[str, MetadataFile] = OrderedDict()
        self.is_over = False
        self.has_arrived = False
        self.found: dict[str, JsonObject] = {}

    @property
    def needs_segments(self) -> bool:
        """Whether the segments of the feed may give the end of the search sooner: the walk is over, or already long on
        the way to a file."""
        return self.is_over or (self._until is not None and len(self.trail) >= WALK_ALONE)

    async def go(self, session: Session, files: int) -> None:
        """Goes back along the chain by so many files, or to the end, and adds them to `trail`; at the end sets
        `is_over`, and `has_arrived` if that is where the walk was to lead. Of more than `MAX_TRAIL` files it keeps the
        oldest. Raises `StoreError`."""
        for _ in range(files):
            file = self._next
            if file is None or file.location in (self._until, self._pointer.registered_from):
                self.has_arrived |= file is not None and (self._until is None or file.location == self._until)
                self.is_over = True
                return
            session.check_deadline()
            self._next = await self._before(session, file)
            self.trail[file.location] = file
            if len(self.trail) > MAX_TRAIL:
                self.trail.popitem(last=False)

    async def _before(self, session: Session, file: MetadataFile) -> MetadataFile | None:
        """Returns the file that the commit of `file` replaced, by its receipt, which is kept in `found`, or without a
        receipt by `_logged_before`; None at the end of the chain. Sets `has_arrived` if that is the creation, and the
        walk was to lead there."""
        body = await _read_receipt(session, self._pointer.entity, file)
        if body is None:
            return await self._logged_before(session, file)
        self._newer = file
        self.found[file.location] = body
        if len(self.found) > MAX_RECORDS:
            del self.found[next(iter(self.found))]
        base = receipt.base_of(body)
        self.has_arrived = base is None and self._until is None
        return base

    async def _logged_before(self, session: Session, file: MetadataFile) -> MetadataFile | None:
        """Returns the file before one without a receipt: for the current file by the pointer's base, else by its
        metadata log, or that of a later file. None if they have none; then the walk has arrived if it was to lead to
        the creation, and the file's name is that of a first one."""
        if file == self._pointer.metadata and self._pointer.base is not None:
            return self._pointer.base
        for later in dict.fromkeys((file, self._newer, self._pointer.metadata)):
            try:
                logged = await session.files.extract(later.location, list_logged_files, current=True)
            except (CatalogError, MalformedJson):
                continue
            places = [each.location for each in logged]
            if later == file and logged:
                return logged[-1]
            if file.location in places[1:]:
                return logged[places.index(file.location) - 1]
        self.has_arrived = self._until is None and file.location.rpartition("/")[2].startswith("00000-")
        return None
