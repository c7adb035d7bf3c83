"""Writes the committed receipt of a metadata file that became current, if it is missing.

The receipt is a pure function of the pending receipt; if the pending one is gone too, of the metadata file, without the
author (docs/design/reconciliation.md#rule-2).
"""

from arco_catalog.iceberg.errors import InternalError
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.reconcile_stats import ReconcileStats
from arco_catalog.planning.collection import is_behind
from arco_catalog.planning.kinds import TABLES, VIEWS
from arco_catalog.planning.names import dotted
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import gather
from arco_catalog.state import receipt
from arco_catalog.state.fields import optional_text, text, texts
from arco_catalog.state.floors import read_floor
from arco_catalog.state.late_receipts import mark_late
from arco_catalog.state.paths import commit_key, day_of
from arco_catalog.state.pointer import MetadataFile, Pointer, list_logged_files
from storage_backends import ABSENT, Applied, PreconditionFailed, StoreUnavailable, Unknown

MAX_TRIES = 10
"""Attempts to write one receipt while the outcome is unknown. Other entities of the run wait meanwhile."""


async def ensure_receipt(
    session: Session,
    pointer: Pointer,
    file: MetadataFile,
    stats: ReconcileStats,
    *,
    dry: bool,
    past_floor: bool = False,
) -> MetadataFile | None:
    """Writes the committed receipt of a metadata file of an entity, if it is missing, after it has marked the receipt's
    day as late unless that is today; with `dry` writes nothing. Counts the receipt in `stats` if it was missing, and
    reports one that is not equal to the pending receipt. Returns the metadata file before it; None if it is the first
    one, or if there is no receipt of it and receipts of that time may have been collected (state/floors.py). In the
    latter case, with `past_floor`, the file before is read from the metadata instead, and no receipt is written. Raises
    `StoreError`, and `Refusal`, `InternalError` or `MalformedJson` if the file before can't be determined."""
    entity = pointer.entity
    key = commit_key(entity, file.location)
    path = session.state.paths.receipt(receipt.COMMITTED, key, file.ms)
    announced_path = session.state.paths.receipt(receipt.PENDING, key, file.ms)
    stored, announced = await gather(_read(session, path), _read(session, announced_path))
    if announced is None and stored is not None:
        return receipt.base_of(receipt.parse(stored, path))  # the pending one was collected after an earlier walk
    if announced is None and not (dry and past_floor) and is_behind(file.ms, await read_floor(session.state, entity)):
        if not past_floor:
            return None
        dry = True
    pending = await _restored(session, pointer, file) if announced is None else receipt.parse(announced, announced_path)
    expected = receipt.encode(receipt.committed(pending))
    if stored is None and not dry:
        if day_of(file.ms) != day_of(session.now_ms()):
            await mark_late(session.state, day_of(file.ms), session.runtime.ulid())
        stored = await _write(session, path, expected)
        stats.written += stored is None
    if stored is None:
        stats.lacks(_named(pending) | {"told_by": file.location if announced is None else announced_path})
    elif stored != expected:
        stats.fails(f"{entity}: {path} differs from the pending receipt")
    return receipt.base_of(pending)


async def _read(session: Session, path: str) -> bytes | None:
    """Returns the bytes of the object at a path in the catalog's state; None if there is none."""
    found = await session.state.read(path)
    return None if found is None else found.body


async def _write(session: Session, path: str, body: bytes) -> bytes | None:
    """Creates a receipt at a path unless one exists there. Returns None if this call wrote it, else the bytes that were
    there, perhaps of a previous attempt with an unknown outcome. Raises `StoreUnavailable` if the outcome is unknown
    after `MAX_TRIES` attempts."""
    for _ in range(MAX_TRIES):
        match await session.state.store.put(path, body, ABSENT):
            case Applied():
                return None
            case PreconditionFailed():
                stored = await _read(session, path)
                if stored is not None:
                    return stored
            case Unknown():
                pass
        await session.state.pause()
    raise StoreUnavailable(
        f"after {MAX_TRIES} attempts it is unknown whether the receipt {path} was written: the next run of the "
        "reconciler, or the next attempt at the purge that needs it, writes it if it is missing"
    )


def _named(fields: JsonObject) -> JsonObject:
    """Returns the fields of a receipt that a report shows: identifying fields, and as `table` the namespace and name
    joined by dots. A field that the receipt lacks is None."""
    known = ("entity", "metadata_location", "metadata_ms", "commit_key", "principal")
    name = optional_text(fields, "name")
    return {
        "table": None if name is None else dotted(texts(fields, "namespace"), name),
        **{each: fields.get(each) for each in known},
    }


async def _restored(session: Session, pointer: Pointer, file: MetadataFile) -> JsonObject:
    """Makes a pending receipt in place of a lost one, from the metadata file itself, and does not write it. The source
    is `Restored`, and the principal None, since the author is not known."""
    kind = text(pointer.document, "type")
    semantics = TABLES if kind == "table" else VIEWS

    def restore(parsed: JsonObject) -> JsonObject:
        document = semantics.check_registered(parsed)
        fields: JsonObject = {
            "attempt": None,
            "entity_type": kind,
            receipt.uuid_field(kind): semantics.uuid(document),
            "snapshot_id": semantics.summary(document).get("current_snapshot_id"),
            "principal": None,
            "source": {"kind": "Restored"},
        }
        base = _logged_base(pointer, file, document)
        return receipt.pending(entity=pointer.entity, metadata=file, base=base, details=fields)

    return await session.files.extract(file.location, restore, current=True)


def _logged_base(pointer: Pointer, file: MetadataFile, document: JsonObject) -> MetadataFile | None:
    """Returns the metadata file before `file`: the base in the pointer if `file` is current and the pointer has a base,
    else the last one in the log of the metadata `document`. None if the log is empty and the name of `file` has the
    number 0, so it is the first. Raises `InternalError` if the file before is unknown; views have no log."""
    if file == pointer.metadata and pointer.base is not None:
        return pointer.base
    logged = list_logged_files(document)
    if logged:
        return logged[-1]
    if not file.location.rpartition("/")[2].startswith("00000-"):
        raise InternalError(
            f"The metadata file before {file.location} is unknown: neither the pointer of {pointer.entity} nor the "
            "metadata log in that file names it"
        )
    return None
