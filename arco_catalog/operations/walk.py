"""The walk of one entity: every metadata file that became current gets its committed receipt, whatever died.

From the pointer back along the pending receipts (each names its base's location and time), which no trimmed log can
cut, and along metadata logs where one is missing; never over buckets. A committed receipt is a pure function of the
pending one, so whoever writes it writes the same bytes at the same path: the walk may be killed anywhere, run twice at
once, and beside live writers (design.md 6.8).
"""

from dataclasses import dataclass, field

from arco_catalog.iceberg.errors import Broken, Refusal
from arco_catalog.iceberg.json import JsonObject, JsonValue, MalformedJson, loads
from arco_catalog.operations.catalog import Session
from arco_catalog.operations.decisions import decide, read_decision
from arco_catalog.operations.kinds import TABLES, VIEWS
from arco_catalog.operations.names import dotted
from arco_catalog.state import receipt
from arco_catalog.state.fields import integer, mapping, optional_text, text, texts
from arco_catalog.state.paths import commit_key
from arco_catalog.state.pointer import MetadataFile, Pointer
from arco_catalog.state.walk_log import Walked
from storage_backends import ABSENT, Applied, Found, Unknown

MAX_FILES = 1_000_000
"""How far back one walk goes at most: a bound on loops, far beyond any table."""


@dataclass(slots=True)
class Tally:
    """What a walk found and did. `missing` names the receipts that were not there, and what told of each.

    Each pointer is `nameless`, `unchanged` or `walked`. `stopped` says that the run ended before it had seen them all.
    """

    pointers: int = 0
    nameless: int = 0
    unchanged: int = 0
    walked: int = 0
    files: int = 0
    written: int = 0
    incomplete: int = 0
    stopped: bool = False
    unreadable: list[str] = field(default_factory=list)
    missing: list[JsonObject] = field(default_factory=list)

    def add(self, other: "Tally") -> None:
        """Adds another's counts."""
        self.pointers += other.pointers
        self.nameless += other.nameless
        self.unchanged += other.unchanged
        self.walked += other.walked
        self.files += other.files
        self.written += other.written
        self.incomplete += other.incomplete
        self.stopped |= other.stopped
        self.unreadable += other.unreadable
        self.missing += other.missing

    def to_json(self) -> JsonObject:
        """For people and machines."""
        unreadable: list[JsonValue] = [*self.unreadable]
        missing: list[JsonValue] = [*self.missing]
        return {
            "pointers": self.pointers,
            "nameless": self.nameless,
            "unchanged": self.unchanged,
            "walked": self.walked,
            "files": self.files,
            "written": self.written,
            "incomplete": self.incomplete,
            "stopped": self.stopped,
            "unreadable": unreadable,
            "missing": missing,
        }


@dataclass(frozen=True, slots=True)
class Walk:
    """What came of one entity: counts, and what to remember if the walk was complete."""

    tally: Tally
    walked: Walked | None


async def walk(session: Session, entity: str, known: Walked | None, *, dry: bool = False) -> Walk:
    """Walks one entity back to where its last complete walk began, to its creation, or to the file that it was
    registered with. With `dry` nothing is written.

    A walk that met an undecided intent, or a record or file that can't be read, is not complete.
    """
    tally = Tally(walked=1)
    walked: Walked | None = None
    try:
        pointer = await session.state.pointer(entity)
        if pointer is None:
            return Walk(tally, None)  # collected since it was listed
        pointer, decided = await _resolved(session, pointer, dry=dry)
        await _walk_back(session, entity, pointer, None if known is None else known.file, tally, dry=dry)
        if decided and pointer.version is not None:
            walked = Walked(pointer.version, pointer.metadata.location)
    except (Refusal, Broken, MalformedJson) as error:
        tally.unreadable.append(f"{entity}: {error}")
    if walked is None:
        tally.incomplete += 1
    return Walk(tally, None if dry else walked)


async def _resolved(session: Session, pointer: Pointer, *, dry: bool) -> tuple[Pointer, bool]:
    """The pointer as its intent leaves it, and whether that is decided. A transaction that is gone was: if it committed
    the pointer has moved since, and is listed at another version next time. One whose lease has passed is aborted, or
    an idle table would never be walked to the end."""
    if pointer.intent is None:
        return pointer, True
    decision = await read_decision(session.state, pointer.intent)
    if decision is None:
        return pointer.resolved(committed=False), True
    if decision.expired and not dry and await decide(session.state, session.runtime, decision, "aborted"):
        return pointer.resolved(committed=False), True
    return pointer.resolved(decision.status == "committed"), decision.status != "pending"


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
    raise Broken(f"more than {MAX_FILES} metadata files")


async def _attest(
    session: Session, entity: str, pointer: Pointer, file: MetadataFile, tally: Tally, *, dry: bool
) -> MetadataFile | None:
    """Sees to it that one file has its committed receipt. Returns the file before it."""
    key = commit_key(entity, file.location)
    pending, where = await _read(session, receipt.PENDING, key, file)
    if pending is None:
        done, _ = await _read(session, receipt.COMMITTED, key, file)
        if done is not None:  # the pending one was collected after an earlier walk
            return receipt.base_of(done)
        pending = await _restored(session, entity, pointer, file)
        where = file.location
    if await _write(session, key, file, pending, dry=dry):
        tally.written += not dry
        tally.missing.append(_named(pending) | {"told_by": where})
    return receipt.base_of(pending)


async def _read(session: Session, stage: receipt.Stage, key: str, file: MetadataFile) -> tuple[JsonObject | None, str]:
    path = session.state.paths.receipt(stage, key, file.ms)
    found = await session.state.store.get(path)
    return (receipt.parse(found.body, path), path) if isinstance(found, Found) else (None, path)


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


def _named(said: JsonObject) -> JsonObject:
    """What a report says of a receipt."""
    known = ("entity", "metadata_location", "metadata_ms", "commit_key", "principal")
    name = optional_text(said, "name")
    return {
        "table": None if name is None else dotted(texts(said, "namespace"), name),
        **{each: said.get(each) for each in known},
    }


async def _restored(session: Session, entity: str, pointer: Pointer, file: MetadataFile) -> JsonObject:
    """A receipt from what metadata alone can tell: who and why is lost, and it says so. Raises `Refusal` and `Broken`
    where even that can't be told."""
    kind = text(pointer.document, "type")
    semantics = TABLES if kind == "table" else VIEWS
    document = semantics.check_registered(loads(await session.files.read(file.location)))
    said: JsonObject = {
        "attempt": None,
        "entity_type": kind,
        receipt.uuid_field(kind): semantics.uuid(document),
        "snapshot_id": semantics.facts(document).get("current_snapshot_id"),
        "principal": None,
        "source": {"kind": "Restored"},
    }
    return receipt.pending(entity=entity, metadata=file, base=_logged_base(pointer, file, document), said=said)


def _logged_base(pointer: Pointer, file: MetadataFile, document: JsonObject) -> MetadataFile | None:
    """The file before, as the pointer or the metadata log has it. Views have no log."""
    if file == pointer.metadata and pointer.base is not None:
        return pointer.base
    log = document.get("metadata-log")
    last = log[-1] if isinstance(log, list) and log else None
    if isinstance(last, dict):
        return MetadataFile(text(last, "metadata-file"), integer(last, "timestamp-ms"))
    if not file.location.rpartition("/")[2].startswith("00000-"):
        raise Broken(f"nothing tells which file came before {file.location}")
    return None
