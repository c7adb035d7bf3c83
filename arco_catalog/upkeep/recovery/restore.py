"""Restores HEAD and pointers that were lost, where what they held is known or an operator says it.

Nothing is overwritten that was not read, and kept aside, before. HEAD is restored as the very copy of the commit that
it is, so that a swap which was on its way may still apply; then the pointers of all that it names.
"""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from arco_catalog.iceberg.errors import BadRequest, CatalogError, CommitFailed, InternalError
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.planning.names import dotted
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import gather
from arco_catalog.protocol.decisions import transaction_committed
from arco_catalog.protocol.lookup import entries_in
from arco_catalog.state.entries import has_pointer
from arco_catalog.state.fields import optional_text, text, texts
from arco_catalog.state.pointer import Pointer
from arco_catalog.state.registry import RegistryState
from arco_catalog.state.tombstone import PURGED
from arco_catalog.upkeep.recovery.heads import HeadSearch, find_head
from arco_catalog.upkeep.recovery.pointers import (
    Lost,
    PointerSearch,
    abort_transactions_on,
    find_pointers,
    rebuilt,
)
from arco_catalog.upkeep.recovery.reading import AT_ONCE, read
from storage_backends import Applied, Found

T = TypeVar("T")

LIVE, MISSING, UNREADABLE = "live", "missing", "unreadable"


@dataclass(frozen=True, slots=True)
class Choices:
    """What the operator says: the commit that HEAD was, and the metadata files that entities' pointers named. With
    `replace` also in place of a HEAD or pointer that can be read."""

    head: str | None = None
    pointers: Mapping[str, str] = field(default_factory=dict)
    replace: bool = False


async def restore(session: Session, choices: Choices, *, dry: bool) -> JsonObject:
    """Restores what is lost, as far as it is known or was chosen; with `dry` says what it would do. Returns a report,
    whose `ok` says whether nothing was left undecided. Raises `BadRequest` for a choice that can't be taken,
    `CommitFailed` if somebody wrote at the same time, and `StoreError`."""
    registry, head = await _restore_head(session, choices, dry=dry)
    pointers = [] if registry is None else await _restore_pointers(session, registry, choices, dry=dry)
    ok = registry is not None and all(each["chosen"] is not None and each["error"] is None for each in pointers)
    return {"dry_run": dry, "ok": ok, "head": head, "pointers": [*pointers]}


# HEAD


async def _restore_head(session: Session, choices: Choices, *, dry: bool) -> tuple[RegistryState | None, JsonObject]:
    """The registry as it is, or will be; None where that is to be chosen."""
    key = session.state.paths.manifest
    there = await read(session.state, key)
    state, head = _condition(there, lambda found: RegistryState.parse(found.body, found.version, key))
    if state == LIVE and choices.head is not None and not choices.replace:
        raise BadRequest(f"{key} can be read: it is replaced with --replace only")
    if head is not None and (choices.head is None or choices.head == head.id):
        return head.with_segments(session.state.loaded_segment), {"found": state, "chosen": head.id, "restored": False}
    search = await find_head(session)
    chosen = choices.head or (search.certain.commit if search.certain is not None else None)
    report = _told(state, search, chosen)
    if chosen is None:
        return None, report
    commit = session.state.paths.registry_commit(chosen)
    body = await read(session.state, commit)
    if body is None:
        raise BadRequest(f"{commit} does not exist")
    registry = RegistryState.parse(body.body, None, commit).with_segments(session.state.loaded_segment)
    if not dry:
        report["kept"] = await _replace(session, key, body.body, there)
        report["restored"] = True
    return registry, report


def _told(state: str, search: HeadSearch, chosen: str | None) -> JsonObject:
    return {
        "found": state,
        "candidates": [each.to_json() for each in search.candidates],
        "unreadable": [*search.unreadable],
        "chosen": chosen,
        "restored": False,
        "kept": None,
    }


# Pointers


async def _restore_pointers(
    session: Session, registry: RegistryState, choices: Choices, *, dry: bool
) -> Sequence[JsonObject]:
    lost: dict[str, tuple[Lost, str, Found | None]] = {}
    async for batch in _in_batches(session, registry):
        for each, (state, found) in zip(batch, await gather(*(_pointer(session, each) for each in batch)), strict=True):
            if state == LIVE and each.entity in choices.pointers and not choices.replace:
                raise BadRequest(f"{session.state.paths.pointer(each.entity)} can be read: --replace replaces it")
            if state != LIVE or each.entity in choices.pointers:
                lost[each.entity] = each, state, found
    unknown = sorted(set(choices.pointers) - set(lost))
    if unknown:
        raise BadRequest(f"No table or view has the entity id {unknown[0]}")
    aborted = [] if dry or not lost else await abort_transactions_on(session, lost)
    named = [each for each, _, _ in lost.values() if await _counts(session, each)]
    searches = await find_pointers(session, registry, named)
    reports: list[JsonObject] = []
    for search in searches:
        _, state, found = lost[search.lost.entity]
        report = await _restore_pointer(session, search, state, found, choices.pointers, dry=dry)
        reports.append({**report, "aborted_transactions": [*aborted]})
    return reports


async def _counts(session: Session, lost: Lost) -> bool:
    """Whether the name means anything: an intent of a transaction that did not commit does not."""
    transaction = optional_text(lost.entry, "transaction")
    return transaction is None or await transaction_committed(session.state, transaction)


async def _restore_pointer(
    session: Session,
    search: PointerSearch,
    state: str,
    there: Found | None,
    chosen_by_operator: Mapping[str, str],
    *,
    dry: bool,
) -> JsonObject:
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
        pointer = await rebuilt(session, search, chosen)
    except CatalogError as error:
        return {**report, "error": error.message}
    if dry:
        return report
    kept = await _replace(session, session.state.paths.pointer(entity), pointer.body, there)
    return {**report, "restored": True, "kept": kept}


async def _in_batches(session: Session, registry: RegistryState) -> AsyncGenerator[Sequence[Lost], None]:
    """Everything that should have a pointer, a bounded number at a time."""
    batch: list[Lost] = []
    for prefix in ("relation\n", "tombstone\n"):
        async for key, entry in entries_in(session.state, registry.index, prefix):
            if entry.get("state") == PURGED or not has_pointer(entry):
                continue  # a purge that is under way needs the pointer
            batch.append(_relation(key, entry, dropped=prefix == "tombstone\n"))
            if len(batch) == AT_ONCE:
                yield batch
                batch = []
    yield batch


def _relation(key: str, entry: JsonObject, *, dropped: bool) -> Lost:
    _, levels, name = key.split("\n")[:3]
    namespace = texts(entry, "namespace") if dropped else tuple(levels.split("\t"))
    by = optional_text(entry, "operation") if dropped else None
    return Lost(text(entry, "entity"), dotted(namespace, name), entry, by)


async def _pointer(session: Session, lost: Lost) -> tuple[str, Found | None]:
    key = session.state.paths.pointer(lost.entity)
    found = await read(session.state, key)

    def parse(body: Found) -> Pointer:
        pointer = Pointer.parse(body.body, body.version, key)
        if pointer.entity != lost.entity or not pointer.metadata.location:
            raise InternalError(f"{key} is the pointer of {pointer.entity}")
        return pointer

    return _condition(found, parse)[0], found


# Both


def _condition(found: Found | None, parse: Callable[[Found], T]) -> tuple[str, T | None]:
    """How an object was found, and what it says."""
    if found is None:
        return MISSING, None
    try:
        return LIVE, parse(found)
    except InternalError:
        return UNREADABLE, None


async def _replace(session: Session, key: str, body: bytes, there: Found | None) -> str | None:
    """Writes an object if it is still as it was found; what it held is kept aside first. Returns where, None if there
    was nothing. Raises `CommitFailed` if somebody else wrote it."""
    state = session.state
    kept = None
    if there is not None:
        kept = state.paths.kept_aside(session.runtime.ulid(), key)
        await state.create(kept, there.body)
    outcome = await state.swap(key, body, None if there is None else there.version)
    if not isinstance(outcome, Applied):
        now = await read(session.state, key)
        if now is None or now.body != body:
            raise CommitFailed(f"{key} was written by somebody else meanwhile: stop all writers, and look again")
    return kept
