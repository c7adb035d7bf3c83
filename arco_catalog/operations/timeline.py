"""The timeline of a table or view: its versions, latest first, with who made each, when, through what, and what it
changed (docs/receipts.md#timeline). A page makes at most 25 calls to the store."""

from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.operations.listing import Paging
from arco_catalog.operations.page_tokens import issue, of_another_listing, redeem
from arco_catalog.operations.receipt_cursor import PastCommit
from arco_catalog.operations.relation_history import (
    END_OF_TIME_MS,
    MAX_RECEIPT_READS,
    RelationHistory,
    find_version,
    read_history,
)
from arco_catalog.operations.version_entries import version_entry
from arco_catalog.planning.governance import QUALITY
from arco_catalog.protocol.catalog import Session
from arco_catalog.state.index import Namespace
from arco_catalog.state.pointer import MetadataFile


async def read_timeline(
    session: Session, namespace: Namespace, name: str, kind: str, paging: Paging, at_ms: int | None = None
) -> JsonObject:
    """Returns a page of the timeline of a table or view, as `kind` selects, at most `MAX_RECEIPT_READS` versions. With
    `at_ms` it starts with the version that was current then; a page may be empty before the search reaches it. Raises
    the errors of `load_table` and `load_view`, and `BadRequest` for a page token of another table or view."""
    history = await read_history(session, namespace, name, kind)
    size = min(paging.size or MAX_RECEIPT_READS, MAX_RECEIPT_READS)
    start = await _redeemed(session, paging.token, history.entity) if paging.token else _first(history, at_ms)
    cursor = history.cursor(start, ahead=size)
    versions: list[JsonValue] = []
    last = None
    while len(versions) < size and cursor.may_read and (commit := await cursor.step()) is not None:
        last = commit
        if at_ms is None or commit.file.ms <= at_ms:
            versions.append(_entry(history, commit))
    return {
        "type": kind,
        "entity": history.entity,
        "quality": history.state.entry.governance.get(QUALITY),
        "versions": versions,
        "next-page-token": await _token(session, history.entity, cursor.position),
        "end": None if last is None or cursor.position is not None else _end(history, last),
    }


async def read_version(session: Session, namespace: Namespace, name: str, kind: str, version: str) -> JsonObject:
    """Returns the timeline's entry of one version, by its number or id, with its receipt. Raises the errors of
    `load_table` and `load_view`, and of `find_version`."""
    history = await read_history(session, namespace, name, kind)
    commit = await find_version(history, version)
    return {"entry": _entry(history, commit), "receipt": commit.receipt}


def _first(history: RelationHistory, at_ms: int | None) -> MetadataFile:
    """Returns the file with which a timeline starts: the current one, or with `at_ms` the latest one, of it and the
    log, that is not later than that, or else the oldest one."""
    return next((file for file in history.files if at_ms is None or file.ms <= at_ms), history.files[-1])


def _entry(history: RelationHistory, commit: PastCommit) -> JsonObject:
    """Returns the JSON of a version in the timeline."""
    is_current = commit.file == history.current
    return version_entry(history.entity, commit, history.snapshots, current=is_current)


def _end(history: RelationHistory, oldest: PastCommit) -> JsonObject:
    """Returns why a timeline has no version before the `oldest` one."""
    if oldest.receipt is not None:
        return {"reason": "created", "message": f"{history.kind.capitalize()} was created by this version"}
    if history.follows:
        return {"reason": "follows", "message": "Table follows another catalog's, which has its earlier versions"}
    if oldest.foreign:
        message = f"{history.kind.capitalize()} was registered from this file, which another catalog wrote"
        return {"reason": "registered", "message": message}
    message = (
        "The receipt of this version is missing, so the version before it is unknown: the receipt was deleted because "
        "of its age, or was not written yet (run `arco reconcile`)"
    )
    return {"reason": "unknown", "message": message}


async def _redeemed(session: Session, token: str, entity: str) -> MetadataFile:
    """Returns the position in a page token. Raises `BadRequest` for a token of another entity, or of no timeline."""
    match await redeem(session, token):
        case [str(of), str(location), int(ms)] if of == entity and 0 <= ms < END_OF_TIME_MS:
            return MetadataFile(location, ms)
    raise of_another_listing()


async def _token(session: Session, entity: str, position: MetadataFile | None) -> str | None:
    """Returns the page token by which the next page of an entity's timeline starts at `position`; None at the end."""
    return None if position is None else await issue(session, [entity, position.location, position.ms])
