"""Reads the commits of a table or view that have not entered the event feed: from its pointer back along the receipts
to the last file that has (docs/design/events.md#rule-3)."""

from collections import deque
from collections.abc import Sequence
from contextlib import aclosing

from arco_catalog.iceberg.errors import CatalogError, InternalError
from arco_catalog.iceberg.json import JsonObject, MalformedJson
from arco_catalog.planning.feed import Chain, commit_record, entity_record, gap_record
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.decisions import read_decision, resolve_for_read
from arco_catalog.state import receipt
from arco_catalog.state.feed import FeedRecord
from arco_catalog.state.feed_cursors import FeedCursor
from arco_catalog.state.paths import commit_key
from arco_catalog.state.pointer import MetadataFile, Pointer, list_logged_files
from arco_catalog.state.transaction import committed
from arco_catalog.upkeep.feed.past_segments import records_back
from arco_catalog.upkeep.reconcile import is_named
from storage_backends.lazy_dataclass import dataclass

MAX_RECORDS = 500
"""The number of commits of one entity that enter in one step at most."""
MAX_TRAIL = 100_000
"""The number of files of one entity that a walk keeps, the oldest that have not entered: some 25 MB."""


@dataclass(frozen=True, slots=True)
class NewCommits:
    """The records of an entity that enter next, the files of its chain after these, oldest first, and the version of
    the pointer at which all of its chain has entered with them; empty if it has not, or will not without the decision
    of a transaction."""

    chain: Chain
    rest: Sequence[MetadataFile] = ()
    version: str = ""


async def new_commits(session: Session, entity: str, cursor: FeedCursor, tail: int) -> NewCommits | None:
    """Returns the commits of an entity after its cursor, the oldest ones if there are many; None if it has no pointer,
    or if the transaction that may create it has not committed (yet). `tail` is the number of the first record of the
    last segment. Raises `StoreError`, and `InternalError` for a corrupt pointer, decision or segment."""
    pointer = await session.state.pointer(entity)
    if pointer is None:
        return None
    if cursor.transaction is not None:
        is_created = await _is_created(session, entity, cursor.transaction)
        if not is_created:
            return None if is_created is None else NewCommits(Chain(entity, []), version=pointer.version or "")
    is_final = pointer.intent is None or not await _is_pending(session, pointer.intent)
    version = (pointer.version or "") if is_final else ""
    pointer = await resolve_for_read(session.state, pointer)
    walk = _Walk(session, pointer)
    files = await walk.back_to(None if cursor.file is None else cursor.file.location)
    first: list[FeedRecord] = []
    if not walk.has_arrived or (cursor.is_restored and files):
        first, files = await _continued(session, entity, files, tail, is_gap=not walk.has_arrived)
    return await next_commits(session, entity, files, version, first, walk.found)


async def next_commits(
    session: Session,
    entity: str,
    files: Sequence[MetadataFile],
    version: str = "",
    first: Sequence[FeedRecord] = (),
    found: dict[str, JsonObject] | None = None,
) -> NewCommits:
    """Returns the records of `first`, and those of the next files of an entity's chain, which are given oldest first.
    `found` has receipts that were read before, by the files. Raises `StoreError`."""
    known, records = found or {}, [*first]
    for file in files[:MAX_RECORDS]:
        session.check_deadline()
        body = known.get(file.location) or await read_receipt(session, entity, file)
        records.append(commit_record(entity, file, body))
    rest = files[MAX_RECORDS:]
    return NewCommits(Chain(entity, records, bool(rest)), rest, "" if rest else version)


async def read_receipt(session: Session, entity: str, file: MetadataFile) -> JsonObject | None:
    """Returns the committed receipt for a metadata file of an entity, if need be made of the pending one, with the
    current names of fields; None if there is none that can be read. Raises `StoreError`."""
    paths, key = session.state.paths, commit_key(entity, file.location)
    for stage in (receipt.COMMITTED, receipt.PENDING, receipt.COMMITTED):  # a collection deletes pending ones last
        path = paths.receipt(stage, key, file.ms)
        found = await session.state.read(path)
        if found is not None:
            try:
                parsed = receipt.parse(found.body, path)
                made = receipt.committed(parsed) if stage == receipt.PENDING else parsed
                return receipt.with_current_names(made, receipt.COMMITTED)
            except InternalError:
                continue
    return None


async def _continued(
    session: Session, entity: str, files: Sequence[MetadataFile], tail: int, *, is_gap: bool
) -> tuple[list[FeedRecord], Sequence[MetadataFile]]:
    """Returns the first records and the following files of an entity that was restored: its chain, `files`, begins
    again after the newest file in it that has entered at any time. If none has, it goes on, after a gap if `is_gap`."""
    places = {file.location: number for number, file in enumerate(files, 1)}
    entered = 0
    async with aclosing(records_back(session, tail)) as records:
        async for record in records:
            if record.entity == entity and record.file is not None:
                entered = max(entered, places.get(record.file.location, 0))
                if entered == len(files):
                    break
    if not entered:
        return [gap_record(entity, files[0].ms if files else 0)] if is_gap else [], files
    return [entity_record("restored", entity, files[entered - 1])], files[entered:]


async def _is_created(session: Session, entity: str, transaction: str) -> bool | None:
    """Whether a transaction has created its table; None while it is undecided. The decision of one that did may be
    deleted, when the registry has had the table's name for days."""
    decision = await read_decision(session.state, transaction)
    return await is_named(session, entity) if decision is None else committed(decision)


async def _is_pending(session: Session, transaction: str) -> bool:
    """Whether a transaction is not decided yet."""
    decision = await read_decision(session.state, transaction)
    return decision is not None and decision.status == "pending"


class _Walk:
    """Goes from the pointer of an entity back along its receipts, and where one is missing, along the logs of metadata
    files. `has_arrived` is whether it ended where it should, `found` the receipts of the files that it passed last."""

    def __init__(self, session: Session, pointer: Pointer) -> None:
        self._session = session
        self._pointer = pointer
        self._newer = pointer.metadata
        self.has_arrived = False
        self.found: dict[str, JsonObject] = {}

    async def back_to(self, until: str | None) -> Sequence[MetadataFile]:
        """Returns the files after the one at `until`, oldest first; for None all, back to the entity's creation, or to
        the file with which it was registered. Of more than `MAX_TRAIL` files it returns the oldest."""
        trail: deque[MetadataFile] = deque(maxlen=MAX_TRAIL)
        file: MetadataFile | None = self._pointer.metadata
        while file is not None and file.location != until:
            if file.location == self._pointer.registered_from:
                self.has_arrived = until is None
                break
            self._session.check_deadline()
            trail.append(file)
            file = await self._before(file, until)
        else:
            self.has_arrived |= file is not None
        return [*reversed(trail)]

    async def _before(self, file: MetadataFile, until: str | None) -> MetadataFile | None:
        """Returns the file that a commit replaced; None at the end of the chain."""
        body = await read_receipt(self._session, self._pointer.entity, file)
        if body is None:
            return await self._logged_before(file, until)
        self._newer = file
        self.found[file.location] = body
        if len(self.found) > MAX_RECORDS:
            del self.found[next(iter(self.found))]
        base = receipt.base_of(body)
        self.has_arrived = base is None and until is None
        return base

    async def _logged_before(self, file: MetadataFile, until: str | None) -> MetadataFile | None:
        """Returns the file before one without a receipt, by the pointer or by the metadata log of a later file."""
        if file == self._pointer.metadata and self._pointer.base is not None:
            return self._pointer.base
        for later in dict.fromkeys((file, self._newer, self._pointer.metadata)):
            try:
                logged = await self._session.files.extract(later.location, list_logged_files, current=True)
            except (CatalogError, MalformedJson):
                continue
            places = [each.location for each in logged]
            if later == file and logged:
                return logged[-1]
            if file.location in places[1:]:
                return logged[places.index(file.location) - 1]
        self.has_arrived = until is None and file.location.rpartition("/")[2].startswith("00000-")
        return None
