"""Restores a lost HEAD and lost pointers, from records that prove their content or by the choice of an operator.

An object is overwritten only after it was read and copied to another key. HEAD is restored first, with the bytes of
HEAD as of the commit, so that a swap under way can still apply; then the pointers of all entities in it.
"""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from arco_catalog.iceberg.errors import BadRequest, CatalogError, CommitFailed, CommitStateUnknown, InternalError
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.planning.names import dotted
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import gather
from arco_catalog.protocol.decisions import transaction_committed
from arco_catalog.protocol.lookup import entries_in
from arco_catalog.protocol.past_heads import past_head_body
from arco_catalog.state.entries import has_pointer
from arco_catalog.state.fields import optional_text, text
from arco_catalog.state.index import name_in
from arco_catalog.state.pointer import Pointer
from arco_catalog.state.registry import RegistryState
from arco_catalog.state.tombstone import PURGED
from arco_catalog.upkeep.recovery.heads import HeadSearch, find_head
from arco_catalog.upkeep.recovery.pointers import (
    LostPointer,
    PointerSearch,
    abort_transactions_on,
    find_pointers,
    rebuild_pointer,
)
from arco_catalog.upkeep.recovery.reading import AT_ONCE
from storage_backends import Applied, Found

T = TypeVar("T")

LIVE, MISSING, UNREADABLE = "live", "missing", "unreadable"


@dataclass(frozen=True, slots=True)
class Choices:
    """The choices of the operator of a restore: the commit that becomes HEAD, and for each entity the metadata file for
    its pointer. With `replace` they also apply to a HEAD or a pointer that can be read."""

    head: str | None = None
    pointers: Mapping[str, str] = field(default_factory=dict)
    replace: bool = False


async def restore(session: Session, choices: Choices, *, dry: bool) -> JsonObject:
    """Restores lost objects as far as their content is known or chosen; with `dry` writes nothing. Returns a report,
    whose `ok` is whether everything was restored, or in a dry run would be. Raises `BadRequest` for a choice that is
    not possible, `CommitFailed` if another process changed an object, `InternalError` for a receipt that can't be read,
    and `StoreError`."""
    registry, head = await _restore_head(session, choices, dry=dry)
    pointers = [] if registry is None else await _restore_pointers(session, registry, choices, dry=dry)
    ok = registry is not None and all(each["chosen"] is not None and each["error"] is None for each in pointers)
    return {"dry_run": dry, "ok": ok, "head": head, "pointers": [*pointers]}


# HEAD


async def _restore_head(session: Session, choices: Choices, *, dry: bool) -> tuple[RegistryState | None, JsonObject]:
    """Restores HEAD if it is missing or can't be read, or if the operator replaces it. Returns the registry as it is
    afterwards, or would be in a dry run, and the report; None for the registry if the operator must choose a commit, or
    the one that was HEAD has a gap before it. Raises `BadRequest` if the commit that the operator has chosen does not
    exist, is damaged or has a gap before it, if HEAD can be read and may not be replaced, or as `_require_entities`;
    and `CommitFailed` if another writer changed HEAD."""
    key = session.state.paths.manifest
    stored = await session.state.read(key)
    state, head = _parse_if_readable(stored, lambda found: RegistryState.parse(found.body, found.version, key))
    if state == LIVE and choices.head is not None and not choices.replace:
        raise BadRequest(f"{key} can be read, and is not replaced without --replace")
    if head is not None and (choices.head is None or choices.head == head.id):
        registry = head.with_segments(session.state.loaded_segment)
        await _require_entities(session, registry, choices)
        return registry, {"found": state, "chosen": head.id, "restored": False}
    search = await find_head(session)
    chosen = choices.head or (search.certain.commit if search.certain is not None else None)
    report = _head_report(session, state, search, chosen)
    if chosen is None:
        return None, report
    commit = session.state.paths.registry_commit(chosen)
    try:
        body = await past_head_body(session.state, chosen)
    except (CommitStateUnknown, InternalError) as error:
        lost = f"the registry commit {commit}, or an earlier one that it needs, does not exist or is damaged"
        if choices.head is not None:
            raise BadRequest(f"{lost}: choose another with --head ({error.message})") from error
        return None, {**report, "error": f"{lost} ({error.message})"}
    registry = RegistryState.parse(body, None, commit).with_segments(session.state.loaded_segment)
    await _require_entities(session, registry, choices)
    if not dry:
        report["kept"] = await _replace(session, key, body, stored)
        report["restored"] = True
    return registry, report


def _head_report(session: Session, state: str, search: HeadSearch, chosen: str | None) -> JsonObject:
    """Returns the report about HEAD before it is restored: the condition `state`, the result of the search, and the id
    of the commit that is `chosen`, None if there is none."""
    lost = sorted({each.missing for each in search.candidates if each.missing is not None})
    return {
        "found": state,
        "candidates": [each.to_json() for each in search.candidates],
        "alternatives": [each.to_json() for each in search.alternatives],
        "lost": [session.state.paths.registry_commit(commit) for commit in lost],
        "unreadable": [*search.corrupt],
        "chosen": chosen,
        "restored": False,
        "kept": None,
        "error": None,
    }


# Pointers


async def _require_entities(session: Session, registry: RegistryState, choices: Choices) -> None:
    """Raises `BadRequest` if a pointer of the choices is that of no entity which must have one in this registry."""
    unknown = set(choices.pointers)
    if unknown:
        async for batch in _in_batches(session, registry):
            unknown.difference_update(each.entity for each in batch)
    if unknown:
        raise BadRequest(
            f"No table or view has the entity id {min(unknown)}, live or dropped, or it must have no pointer, as a "
            "purged table, a table of another format, or one that follows another catalog's. Nothing was restored: "
            "check --pointer"
        )


async def _restore_pointers(
    session: Session, registry: RegistryState, choices: Choices, *, dry: bool
) -> Sequence[JsonObject]:
    """Examines all pointers, restores the lost ones and those of the choices, as far as receipts show or a choice names
    the metadata file, and returns a report for each of these, restored or not; those named by the intent of a
    transaction that did not commit are left out. First aborts the pending transactions on these entities. With `dry`,
    stores nothing. Raises `BadRequest` for the choice of a readable pointer without --replace."""
    lost: dict[str, tuple[LostPointer, str, Found | None]] = {}
    async for batch in _in_batches(session, registry):
        for each, (state, found) in zip(batch, await gather(*(_pointer(session, each) for each in batch)), strict=True):
            if state == LIVE and each.entity in choices.pointers and not choices.replace:
                key = session.state.paths.pointer(each.entity)
                raise BadRequest(f"{key} can be read, and is not replaced without --replace")
            if state != LIVE or each.entity in choices.pointers:
                lost[each.entity] = each, state, found
    aborted = [] if dry or not lost else await abort_transactions_on(session, lost)
    named = [each for each, _, _ in lost.values() if await _is_committed(session, each)]
    searches = await find_pointers(session, registry, named)
    reports: list[JsonObject] = []
    for search in searches:
        _, state, found = lost[search.lost.entity]
        report = await _restore_pointer(session, search, state, found, choices.pointers, dry=dry)
        reports.append({**report, "aborted_transactions": [*aborted]})
    return reports


async def _is_committed(session: Session, lost: LostPointer) -> bool:
    """Whether the registry entry of a lost pointer's entity is committed, and not the intent of a transaction that did
    not commit."""
    transaction = optional_text(lost.entry, "transaction")
    return transaction is None or await transaction_committed(session.state, transaction)


async def _restore_pointer(
    session: Session,
    search: PointerSearch,
    state: str,
    stored: Found | None,
    chosen_by_operator: Mapping[str, str],
    *,
    dry: bool,
) -> JsonObject:
    """Restores one pointer to the metadata file that the operator has named, or else to the one that is proven to be
    the last; leaves it if there is neither, if that file can't be read or is of another table, and with `dry`. `state`
    is the pointer's condition, `stored` the object as it was read. Returns the fields of the report, with the error for
    such a file. Raises `CommitFailed` if another process changed the pointer."""
    entity = search.lost.entity
    certain = search.certain
    chosen = chosen_by_operator.get(entity) or (certain.file.location if certain is not None else None)
    report: JsonObject = {
        "entity": entity,
        "name": search.lost.name,
        "found": state,
        "candidates": [each.to_json() for each in search.candidates],
        "chosen": chosen,
        "restored": False,
        "kept": None,
        "error": None,
    }
    if chosen is None:
        return report
    try:
        pointer = await rebuild_pointer(session, search, chosen)
    except CatalogError as error:
        return {**report, "error": error.message}
    if dry:
        return report
    kept = await _replace(session, session.state.paths.pointer(entity), pointer.body, stored)
    return {**report, "restored": True, "kept": kept}


async def _in_batches(session: Session, registry: RegistryState) -> AsyncGenerator[Sequence[LostPointer], None]:
    """Yields all entities of the registry that must have a pointer, in bounded batches, whether the pointer is lost or
    not."""
    batch: list[LostPointer] = []
    for prefix in ("relation\n", "tombstone\n"):
        async for key, entry in entries_in(session.state, registry.index, prefix):
            if entry.get("state") == PURGED or not has_pointer(entry):
                continue  # a purged table has no pointer; one that is being purged needs it
            batch.append(_relation(key, entry, dropped=prefix == "tombstone\n"))
            if len(batch) == AT_ONCE:
                yield batch
                batch = []
    yield batch


def _relation(key: str, entry: JsonObject, *, dropped: bool) -> LostPointer:
    """Returns the `LostPointer` of an entry of a name or, if `dropped`, of a tombstone, whether or not the pointer is
    lost, which is found out later."""
    by = optional_text(entry, "operation") if dropped else None
    return LostPointer(text(entry, "entity"), dotted(*name_in(key)), entry, by)


async def _pointer(session: Session, lost: LostPointer) -> tuple[str, Found | None]:
    """Reads the pointer of an entity. Returns its condition (LIVE, MISSING or UNREADABLE, also if it is of another
    entity or names no file), and the stored object, which is None if it is MISSING."""
    key = session.state.paths.pointer(lost.entity)
    found = await session.state.read(key)

    def parse(body: Found) -> Pointer:
        pointer = Pointer.parse(body.body, body.version, key)
        if pointer.entity != lost.entity or not pointer.metadata.location:
            raise InternalError(
                f"{key} counts as lost, and is to be restored: it is the pointer of entity {pointer.entity}, expected "
                f"{lost.entity}, or names no metadata file"
            )
        return pointer

    return _parse_if_readable(found, parse)[0], found


# Both


def _parse_if_readable(found: Found | None, parse: Callable[[Found], T]) -> tuple[str, T | None]:
    """Returns the condition of an object (LIVE, MISSING or UNREADABLE), and the result of `parse` if it is LIVE;
    `found` is the object, None if it is missing."""
    if found is None:
        return MISSING, None
    try:
        return LIVE, parse(found)
    except InternalError:
        return UNREADABLE, None


async def _replace(session: Session, key: str, body: bytes, found: Found | None) -> str | None:
    """Overwrites an object if it is still as it was `found`, after copying the old one to another key; creates it if
    nothing was found. Returns the key of the copy; None if there was no object. Raises `CommitFailed` if another
    process stored something else, or deleted it."""
    state = session.state
    kept = None
    if found is not None:
        kept = state.paths.kept_aside(session.runtime.ulid(), key)
        await state.create(kept, found.body)
    outcome = await state.swap(key, body, None if found is None else found.version)
    if not isinstance(outcome, Applied):
        now = await session.state.read(key)
        if now is None or now.body != body:
            raise CommitFailed(
                f"{key} was not restored, since another process wrote or deleted it meanwhile: stop all writers, "
                "and run the restore once more"
            )
    return kept
