"""The reconciler's walk: every metadata file that became current gets its committed receipt, whatever died.

From each pointer back along the pending receipts (each names its base's location and time), which no trimmed log can
cut, and along metadata logs where one is missing; never over buckets. A committed receipt is a pure function of the
pending one, so whoever writes it writes the same bytes at the same path: the walk may be killed anywhere, run twice at
once, and beside live writers (design.md 6.8).

One implementation, two drivers: asyncio (`arco reconcile`, the scheduled function) and PySpark (`reconciler/`).
"""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field

from arco_catalog.iceberg import table
from arco_catalog.iceberg.errors import Broken, NotFound, Refusal
from arco_catalog.iceberg.json import JsonObject, JsonValue, MalformedJson, loads
from arco_catalog.operations.beside import beside
from arco_catalog.operations.catalog import Session
from arco_catalog.operations.decisions import read_decision
from arco_catalog.state import receipt
from arco_catalog.state.fields import integer, mapping, optional_text, parse_record, text
from arco_catalog.state.paths import commit_key
from arco_catalog.state.pointer import MetadataFile, Pointer
from arco_catalog.state.walk_log import Walked, WalkLog
from storage_backends import ABSENT, Applied, Cursor, Found, StoreError, StoreUnavailable, Unknown

MAX_FILES = 1_000_000
"""How far back one walk goes at most: a bound on loops, far beyond any table."""


@dataclass(frozen=True, slots=True)
class ListedPointer:
    """A pointer as the LIST shows it."""

    entity: str
    version: str


@dataclass(slots=True)
class Tally:
    """What a walk found and did. `missing` names the receipts that were not there, and why each was to be."""

    pointers: int = 0
    unchanged: int = 0
    walked: int = 0
    files: int = 0
    written: int = 0
    incomplete: int = 0
    unreadable: list[str] = field(default_factory=list)
    missing: list[JsonObject] = field(default_factory=list)

    def add(self, other: "Tally") -> None:
        """Adds another's counts."""
        self.pointers += other.pointers
        self.unchanged += other.unchanged
        self.walked += other.walked
        self.files += other.files
        self.written += other.written
        self.incomplete += other.incomplete
        self.unreadable += other.unreadable
        self.missing += other.missing

    def to_json(self) -> JsonObject:
        """For people and machines."""
        unreadable: list[JsonValue] = [*self.unreadable]
        missing: list[JsonValue] = [*self.missing]
        return {
            "pointers": self.pointers,
            "unchanged": self.unchanged,
            "walked": self.walked,
            "files": self.files,
            "written": self.written,
            "incomplete": self.incomplete,
            "unreadable": unreadable,
            "missing": missing,
        }


async def list_pointers(session: Session) -> AsyncIterator[Sequence[ListedPointer]]:
    """All pointers, a LIST call at a time."""
    prefix = session.state.paths.pointers
    after: Cursor | None = None
    while True:
        page = await session.state.store.list(prefix, after)
        yield [
            ListedPointer(entry.key.removeprefix(prefix).removesuffix(".json"), entry.version)
            for entry in page.entries
            if entry.key.endswith(".json")
        ]
        after = page.after
        if after is None:
            return


def changed_since(log: WalkLog, listed: Sequence[ListedPointer]) -> list[ListedPointer]:
    """Those whose pointer has moved since their last complete walk: all others cost no GET."""
    return [
        pointer
        for pointer in listed
        if (walked := log.walked.get(pointer.entity)) is None or walked.version != pointer.version
    ]


@dataclass(frozen=True, slots=True)
class Walk:
    """What came of one entity: counts, and what to remember if the walk was complete."""

    tally: Tally
    walked: Walked | None


async def walk(session: Session, entity: str, known: Walked | None, *, dry: bool = False) -> Walk:
    """Walks one entity back to where its last complete walk began, to its creation, or to the file that it was
    registered with. With `dry` nothing is written.

    A walk that met an undecided intent, or a file that can't be read, is not complete.
    """
    tally = Tally(walked=1)
    pointer = await session.state.pointer(entity)
    if pointer is None:
        return Walk(tally, None)  # collected since it was listed
    version = pointer.version
    complete = True
    if pointer.intent is not None:
        decision = await read_decision(session.state, pointer.intent)
        complete = decision is not None and decision.status != "pending"
        pointer = pointer.resolved(decision is not None and decision.status == "committed")
    try:
        await _walk_back(session, entity, pointer, None if known is None else known.file, tally, dry=dry)
    except (Refusal, Broken, MalformedJson) as error:
        tally.unreadable.append(f"{entity}: {error}")
        complete = False
    if not complete:
        tally.incomplete += 1
    if dry or not complete or version is None:
        return Walk(tally, None)
    return Walk(tally, Walked(version, pointer.metadata.location))


async def _walk_back(
    session: Session, entity: str, pointer: Pointer, until: str | None, tally: Tally, *, dry: bool
) -> None:
    origin = optional_text(mapping(pointer.document, "origin"), "registered")
    file: MetadataFile | None = pointer.metadata
    for _ in range(MAX_FILES):
        if file is None or file.location in (until, origin):
            return
        tally.files += 1
        file = await _attest(session, entity, pointer, file, tally, dry=dry)


async def _attest(
    session: Session, entity: str, pointer: Pointer, file: MetadataFile, tally: Tally, *, dry: bool
) -> MetadataFile | None:
    """Sees to it that one file has its committed receipt. Returns the file before it."""
    key = commit_key(entity, file.location)
    pending, where = await _read(session, receipt.PENDING, key, file)
    if pending is None:
        committed, _ = await _read(session, receipt.COMMITTED, key, file)
        if committed is not None:  # the pending one was collected after an earlier walk
            return _base(committed)
        pending = await _restored(session, entity, pointer, file)
        where = "its metadata log: the pending receipt is gone"
    if await _write(session, key, file, pending, dry=dry):
        tally.written += not dry
        tally.missing.append(
            {"entity": entity, "metadata_location": file.location, "commit_key": key, "told_by": where}
        )
    return _base(pending)


async def _read(session: Session, stage: str, key: str, file: MetadataFile) -> tuple[JsonObject | None, str]:
    path = session.state.paths.receipt(stage, key, file.ms)
    found = await session.state.store.get(path)
    return (parse_record(found.body, path), path) if isinstance(found, Found) else (None, path)


async def _write(session: Session, key: str, file: MetadataFile, pending: JsonObject, *, dry: bool) -> bool:
    """Writes the committed receipt where it is missing. Returns whether it was."""
    path = session.state.paths.receipt(receipt.COMMITTED, key, file.ms)
    if dry:
        return not isinstance(await session.state.store.get(path), Found)
    while True:
        outcome = await session.state.store.put(path, receipt.encode(receipt.committed(pending)), ABSENT)
        if not isinstance(outcome, Unknown):
            return isinstance(outcome, Applied)
        await session.state.pause()


def _base(said: JsonObject) -> MetadataFile | None:
    base = mapping(said, "base")
    return MetadataFile(text(base, "metadata_location"), integer(base, "metadata_ms")) if base else None


async def _restored(session: Session, entity: str, pointer: Pointer, file: MetadataFile) -> JsonObject:
    """A receipt from what metadata alone can tell: who and why is lost, and it says so. Raises `Refusal`."""
    document = loads(await session.files.read(file.location))
    if not isinstance(document, dict):
        raise NotFound(f"{file.location} is not a JSON object")
    said: JsonObject = {
        "attempt": None,
        "entity_type": text(pointer.document, "type"),
        "uuid": table.table_uuid(document),
        "snapshot_id": table.current_snapshot_id(document),
        "principal": None,
        "source": {"kind": "Restored"},
    }
    return receipt.pending(entity=entity, metadata=file, base=_logged_base(pointer, file, document), said=said)


def _logged_base(pointer: Pointer, file: MetadataFile, document: JsonObject) -> MetadataFile | None:
    if file == pointer.metadata and pointer.base is not None:
        return pointer.base
    log = document.get("metadata-log")
    last = log[-1] if isinstance(log, list) and log else None
    if not isinstance(last, dict):
        return None
    return MetadataFile(text(last, "metadata-file"), integer(last, "timestamp-ms"))


async def reconcile(
    session: Session,
    *,
    dry: bool = False,
    concurrency: int = 16,
    progress: Callable[[Tally], None] = lambda tally: None,
) -> Tally:
    """Walks every pointer that moved since its last complete walk. What was walked is remembered a page at a time, so a
    run that ends early is taken up by the next. Raises `StoreUnavailable` when the session's deadline passes."""
    log = await WalkLog.read(session.state)
    total = Tally()
    async for page in list_pointers(session):
        changed = changed_since(log, page)
        total.add(Tally(pointers=len(page), unchanged=len(page) - len(changed)))
        for start in range(0, len(changed), concurrency):
            batch = changed[start : start + concurrency]
            for pointer, done in zip(batch, await _walk_batch(session, log, batch, dry=dry), strict=True):
                total.add(done.tally)
                if done.walked is not None:
                    log.note(pointer.entity, done.walked)
            progress(total)
        if not dry:
            await log.write(session.state)
    return total


async def _walk_batch(session: Session, log: WalkLog, batch: Sequence[ListedPointer], *, dry: bool) -> list[Walk]:
    async def one(pointer: ListedPointer) -> Walk:
        try:
            return await walk(session, pointer.entity, log.walked.get(pointer.entity), dry=dry)
        except StoreUnavailable:
            raise
        except StoreError as error:
            return Walk(Tally(walked=1, incomplete=1, unreadable=[f"{pointer.entity}: {error}"]), None)

    return await beside(*(one(pointer) for pointer in batch))
