"""Reads what a name in the catalog meant at an instant: the registry's commits resolve the name, and the receipts give
the metadata file that was current (docs/recovery.md#what-was-where).

A registry commit is dated by the clock of the machine that made it, a metadata file by its own time. Both are taken
before the compare-and-swap that makes the change, so an answer is exact except for changes in progress at that instant.
"""

from collections.abc import AsyncIterator

from arco_catalog.iceberg.errors import CommitStateUnknown, InternalError, NoSuchNamespace, NoSuchTable, NotFound
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.receipt_cursor import ReceiptCursor
from arco_catalog.planning.names import called, dotted
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.decisions import read_decision, resolve_for_read
from arco_catalog.protocol.lookup import entries_in, load
from arco_catalog.protocol.past_heads import next_list, past_head
from arco_catalog.state import receipt
from arco_catalog.state.access import SegmentGone
from arco_catalog.state.commit_record import CommitRecord
from arco_catalog.state.entries import RelationEntry, described_kind, find_relation, newest_tombstone, purge_requested
from arco_catalog.state.fields import optional_text, text
from arco_catalog.state.followed import FollowedTable
from arco_catalog.state.index import (
    Namespace,
    namespace_key,
    namespaces_in,
    relation_key,
    relations_in,
    tombstones_of,
)
from arco_catalog.state.needs import Needs, Scan
from arco_catalog.state.pointer import MetadataFile
from arco_catalog.state.registry import RegistryState
from arco_catalog.state.registry_floor import read_registry_floor
from arco_catalog.state.runtime import ulid_of
from arco_catalog.state.tombstone import Tombstone
from storage_backends.lazy_dataclass import dataclass

_LAST_ENTROPY = bytes([255] * 10)


class HistoryCollected(NotFound):
    """The registry commits, index segments, receipts or pointer by which the state at an instant is found were deleted,
    because they are old or no name leads to the table or view any more; or a receipt was not written yet."""


async def registry_at(session: Session, at_ms: int) -> RegistryState:
    """Returns the registry as of the newest commit at or before the instant `at_ms`, in milliseconds since 1970. Raises
    `HistoryCollected` if the history no longer reaches back to it, `InternalError` if a commit that this needs is lost
    or corrupt, and `NotFound` if there was no commit yet.

    The ids of commits are ULIDs of their times, so later commits are skipped without a read.
    """
    newest = ulid_of(max(0, at_ms), _LAST_ENTROPY)
    head = await session.state.head()
    listing, end = CommitRecord(head.document), head.sequence
    while end:
        for commit in listing.listed_from(end):
            if commit <= newest and await _time_of(session, listing, commit, end) <= at_ms:
                return head if commit == head.id else await _past_head(session, commit, end)
            end -= 1
        if listing.before is None:
            break
        after = await next_list(session.state, listing, end)
        if after is None:
            raise await _missing(session, listing.before, end)
        listing = after
    raise NotFound("The catalog had no commit yet at the time of --at: give a later time")


async def _time_of(session: Session, listing: CommitRecord, commit: str, sequence: int) -> int:
    """Returns the time of a commit with this sequence number. Raises `HistoryCollected`, or `InternalError` if its
    object is lost or corrupt."""
    try:
        return (listing if commit == listing.id else await session.state.registry_commit(commit)).at_ms
    except (CommitStateUnknown, InternalError) as error:
        raise await _missing(session, commit, sequence) from error


async def _past_head(session: Session, commit: str, sequence: int) -> RegistryState:
    """Reads a past commit as HEAD. Raises `HistoryCollected` if it, or a commit before it that it needs, was collected,
    and `InternalError` if one of them is lost or corrupt."""
    try:
        return await past_head(session.state, commit, session.hold)
    except (CommitStateUnknown, InternalError) as error:
        raise await _missing(session, commit, sequence) from error


async def _missing(session: Session, commit: str, sequence: int) -> HistoryCollected | InternalError:
    """Returns the error for a commit that can't be read, or for one before it that it needs: it was collected if it is
    below the floor of the history, else lost."""
    key = session.state.paths.registry_commit(commit)
    if sequence < await read_registry_floor(session.state):
        return HistoryCollected(
            "The registry's history of the time of --at no longer exists, as old commits are deleted: give "
            f"a later time ({key}, or one before it, is missing)"
        )
    return InternalError(
        f"The catalog's record {key}, or one before it that it needs, is lost or corrupt: `arco fsck` reports which; "
        "give --at another time"
    )


@dataclass(frozen=True, slots=True)
class Listing:
    """Lists the tables, views, other relations and namespaces in a namespace, as the registry had them at the instant
    `at_ms`. `registry` is the result of `registry_at` for that instant."""

    session: Session
    registry: RegistryState
    at_ms: int

    async def level(self, namespace: Namespace) -> AsyncIterator[tuple[str, str]]:
        """Yields kind and name of all tables, views and other relations that were in a namespace at the instant of this
        listing, then of all namespaces that were directly in it, which have the kind `namespace`; an empty `namespace`
        is the catalog. Names that a transaction had not committed by then are left out. Raises `NoSuchNamespace` if the
        namespace did not exist then, and `HistoryCollected`."""
        index = self.registry.index
        try:
            await load(self.session.state, index, Needs(keys=[namespace_key(namespace)] if namespace else []))
            if namespace and index.get(namespace_key(namespace)) is None:
                raise NoSuchNamespace(
                    f"Namespace did not exist at the time of --at: {dotted(namespace[:-1], namespace[-1])}"
                )
            for prefix in (relations_in(namespace), namespaces_in(namespace)):
                async for key, entry in entries_in(self.session.state, index, prefix):
                    if await _is_committed(self.session, entry, self.at_ms):
                        kind = text(entry, "type") if prefix == relations_in(namespace) else "namespace"
                        yield kind, key.rpartition("\n")[2]
        except SegmentGone as gone:
            raise _collected(gone) from gone


async def relation_at(session: Session, namespace: Namespace, name: str, at_ms: int) -> JsonObject:
    """Describes the table or view that had the name at the instant, or else the last one that had been dropped under it
    by then, with the metadata file that was current at the instant. Raises `NoSuchTable`, also for a generic table or a
    semantic model, `HistoryCollected`, and the errors of `registry_at`."""
    registry = await registry_at(session, at_ms)
    index = registry.index
    dropped = tombstones_of(namespace, name)
    try:
        await load(session.state, index, Needs(keys=[relation_key(namespace, name)], scans=[Scan(dropped)]))
    except SegmentGone as gone:
        raise _collected(gone) from gone
    found = find_relation(index, namespace, name)
    entry = found.json if found is not None and await _is_committed(session, found.json, at_ms) else None
    tombstone = newest_tombstone(tombstone for _, tombstone in index.scan(dropped)) if entry is None else None
    meant = entry or tombstone
    if meant is None:
        raise NoSuchTable(f"Table or view did not exist at the time of --at: {dotted(namespace, name)}")
    if described_kind(meant) is not None:
        raise NoSuchTable(
            f"Table did not exist at the time of --at: {dotted(namespace, name)} was a "
            f"{called(text(meant, 'type'))}, and the catalog stores no earlier states of those"
        )
    entity, followed = text(meant, "entity"), FollowedTable.of(meant)
    if followed is not None:
        file, record = followed.metadata, None
    else:
        file, record = await _file_at(session, entity, at_ms)
    base = None if record is None else receipt.base_of(record)
    return {
        "name": dotted(namespace, name),
        "type": meant.get("type"),
        "state": "live" if tombstone is None else Tombstone(tombstone).state,
        "entity": entity,
        "uuid": meant.get("uuid"),
        "locations": meant.get("locations"),
        "governance": {**RelationEntry(meant).governance},
        "purge_requested": purge_requested(meant),
        "metadata_location": file.location,
        "metadata_ms": file.ms,
        "base": None if base is None else {"metadata_location": base.location, "metadata_ms": base.ms},
        "snapshot_id": None if record is None else record.get("snapshot_id"),
        "principal": None if record is None else record.get("principal"),
        "source": None if record is None else record.get("source"),
        "registry": {"commit": registry.id, "sequence": registry.sequence, "at_ms": registry.at_ms},
    }


async def _is_committed(session: Session, entry: JsonObject, at_ms: int) -> bool:
    """Whether an entry of the registry, of a table, view or namespace, was in effect at the instant: it is no intent,
    or its transaction had committed by then. An intent whose transaction object was collected had not: intents are
    settled soon after the decision."""
    transaction = optional_text(entry, "transaction")
    if transaction is None:
        return True
    decision = await read_decision(session.state, transaction)
    if decision is None or decision.status != "committed":
        return False
    return text(decision.document, "id") <= ulid_of(max(0, at_ms), _LAST_ENTROPY)


async def _file_at(session: Session, entity: str, at_ms: int) -> tuple[MetadataFile, JsonObject | None]:
    """Returns the entity's metadata file at the instant, and that file's receipt, None if there is none, as for a file
    with which the entity was registered. The registry had the entity by then, so if all files are later than the
    instant, the first is the one. Raises `HistoryCollected` if the pointer was deleted, or if a receipt on the way back
    to the instant is missing: deleted, or not written yet."""
    pointer = await session.state.pointer(entity)
    if pointer is None:
        raise HistoryCollected(
            f"The table or view with the entity id {entity} has no pointer any more: it was dropped, and a cleanup "
            "deleted that after a purge, or when the drop could no longer be undone; or, if it was not dropped, the "
            "pointer is lost, and `arco restore` searches for it"
        )
    newest = (await resolve_for_read(session.state, pointer)).metadata
    cursor = ReceiptCursor(session, entity, newest, origin=pointer.registered_from)
    while (commit := await cursor.step()) is not None:
        is_first = commit.foreign or (commit.receipt is not None and cursor.position is None)
        if commit.file.ms <= at_ms or is_first:
            return commit.file, commit.receipt
        newest = commit.file
    raise HistoryCollected(
        f"The state of the table or view with the entity id {entity} at the time of --at is unknown: the "
        f"receipt of {newest.location} was deleted by a cleanup, or was not written yet (run `arco reconcile`)"
    )


def _collected(gone: SegmentGone) -> HistoryCollected:
    """Returns the error for a time at which the registry's index had a segment that was deleted."""
    return HistoryCollected(
        "The registry's history of the time of --at no longer exists, as old segments of its index are "
        f"deleted: give a later time ({gone.message})"
    )
