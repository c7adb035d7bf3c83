"""Reads the records that decide about one table, view or other entity, for an operator who examines why a request is
stuck: its entry or newest tombstone, its pointer, its intent, and the markers of requests in progress.

It writes nothing.
"""

from collections.abc import Sequence

from arco_catalog.iceberg.errors import NoSuchTable
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.planning.names import dotted
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import gather
from arco_catalog.protocol.decisions import read_decision, resolve_for_read
from arco_catalog.protocol.lookup import load
from arco_catalog.state.entries import RelationEntry, find_relation, has_pointer, newest_tombstone, purge_requested
from arco_catalog.state.fields import mapping, objects, optional_text, text
from arco_catalog.state.followed import FollowedTable
from arco_catalog.state.index import Index, Namespace, relation_key, tombstones_of
from arco_catalog.state.marker import Slot
from arco_catalog.state.needs import Needs, Scan
from arco_catalog.state.pointer import Pointer, missing_pointer
from arco_catalog.state.tombstone import Tombstone
from storage_backends import Cursor, Listed

MOVES = 10
"""Number of latest moves in the result."""
MAX_PAGES = 10
MAX_MARKERS = 2_000
"""Limits of the search for open markers: pages of the listing, and markers that are read, the newest first."""
AT_ONCE = 32


async def inspect_relation(session: Session, namespace: Namespace, name: str) -> JsonObject:
    """Returns the records of the relation with this name, or of the last one that was dropped under it: its entry, its
    pointer as a reader sees it, its intent, and the markers of requests in progress on it; for a relation without a
    pointer the entry and the description. Raises `NoSuchTable`, and `InternalError` if the pointer of a table or view
    is missing."""
    index = (await session.state.head()).index
    tombstones = Scan(tombstones_of(namespace, name))
    await load(session.state, index, Needs(keys=[relation_key(namespace, name)], scans=[tombstones]))
    entry, state = _entry(index, namespace, name)
    if not has_pointer(entry):
        return await _without_pointer(session, RelationEntry(entry), state, dotted(namespace, name))
    entity = text(entry, "entity")
    pointer = await session.state.pointer(entity)
    if pointer is None:
        raise missing_pointer(session.state.paths.pointer(entity))
    read = await resolve_for_read(session.state, pointer)
    markers, all_seen = await _open_markers(session, entity)
    base = read.base
    listed: list[JsonValue] = [*markers]
    return {
        "name": dotted(namespace, name),
        "type": entry.get("type"),
        "state": state,
        "entity": entity,
        "uuid": entry.get("uuid"),
        "locations": entry.get("locations"),
        "governance": {**RelationEntry(entry).governance},
        "purge_requested": purge_requested(entry),
        "purge_task": entry.get("task"),
        "purge_after_ms": entry.get("purge_after"),
        "metadata_location": read.metadata.location,
        "metadata_ms": read.metadata.ms,
        "base": None if base is None else {"metadata_location": base.location, "metadata_ms": base.ms},
        "updated_ms": read.document.get("updated_ms"),
        "updated_by": read.document.get("updated_by"),
        "sequence": pointer.sequence,
        "recent": [*pointer.recent[:MOVES]],
        "dropped_by": pointer.dropped_by,
        "intent": await _intent(session, pointer),
        "open_markers": listed,
        "all_markers_seen": all_seen,
    }


async def _without_pointer(session: Session, entry: RelationEntry, state: str, name: str) -> JsonObject:
    """Returns the entry and the description of a relation without a pointer: a generic table, a semantic model, or a
    table that follows another catalog's. There are no markers in it, as only registry commits change such a
    relation."""
    return {
        "name": name,
        "type": entry.kind,
        "state": state,
        "entity": entry.entity,
        "format": entry.json.get("format"),
        "locations": [*entry.locations],
        **await _description(session, entry),
    }


async def _description(session: Session, entry: RelationEntry) -> JsonObject:
    """Returns the document of a generic table or semantic model, without the version of the format; of a table that
    follows another catalog's the UUID, governance, metadata file, and the time of the last notification or drop."""
    followed = FollowedTable.of(entry.json)
    if followed is None:
        stored = await session.state.description(entry.kind, entry.value)
        return {field: value for field, value in stored.items() if field != "version"}
    return {
        "uuid": entry.uuid,
        "governance": {**entry.governance},
        "metadata_location": followed.metadata.location,
        "metadata_ms": followed.metadata.ms,
        "notified": followed.notified,
    }


def _entry(index: Index, namespace: Namespace, name: str) -> tuple[JsonObject, str]:
    """Returns the entry of a name, or else its newest tombstone, and the state in words: `live`, `in a transaction`, or
    the tombstone's. Raises `NoSuchTable` without either."""
    entry = find_relation(index, namespace, name)
    if entry is not None:
        return entry.json, "live" if entry.transaction is None else "in a transaction"
    newest = newest_tombstone(tombstone for _, tombstone in index.scan(tombstones_of(namespace, name)))
    if newest is None:
        raise NoSuchTable(
            f"Table does not exist: {dotted(namespace, name)} is no table, view or other object to inspect, and no "
            "dropped one with a tombstone"
        )
    return newest, Tombstone(newest).state


async def _intent(session: Session, pointer: Pointer) -> JsonObject | None:
    """Returns the intent on the pointer's entity and the status of the intent's transaction, None without an intent.
    The status is `gone` if the transaction object was collected, which is long after the decision."""
    if pointer.intent is None:
        return None
    decision = await read_decision(session.state, pointer.intent)
    planned = mapping(mapping(pointer.document, "intent"), "state")
    return {
        "transaction": pointer.intent,
        "status": "gone" if decision is None else decision.status,
        "age_ms": None if decision is None else max(0, decision.age_ms),
        "metadata_location": planned.get("metadata_location"),
    }


async def _open_markers(session: Session, entity: str) -> tuple[list[JsonObject], bool]:
    """Reads the last slots of the newest `MAX_MARKERS` markers. Returns the markers that name the entity and have no
    final slot yet, newest first, and whether all markers of the catalog were listed and read."""
    last, complete = await _last_slots(session)
    newest = sorted(last, key=lambda listed: listed.written_ms, reverse=True)
    found: list[JsonObject] = []
    for start in range(0, min(len(newest), MAX_MARKERS), AT_ONCE):
        batch = newest[start : min(start + AT_ONCE, MAX_MARKERS)]
        markers = await gather(*(_open_marker(session, entity, listed.key) for listed in batch))
        found += [marker for marker in markers if marker is not None]
    return found, complete and len(newest) <= MAX_MARKERS


async def _last_slots(session: Session) -> tuple[Sequence[Listed], bool]:
    """Lists at most `MAX_PAGES` pages of the catalog's markers. Returns the last slot of every marker as it is listed,
    unread, and whether all markers were listed."""
    prefix = session.state.paths.markers
    last: dict[str, tuple[int, Listed]] = {}
    after: Cursor | None = None
    for _ in range(MAX_PAGES):
        page = await session.state.store.list(prefix, after)
        for listed in page.entries:
            marker, _, file = listed.key.rpartition("/")
            number = file.removesuffix(".json")
            if number.isdecimal() and (marker not in last or int(number) > last[marker][0]):
                last[marker] = int(number), listed
        after = page.after
        if after is None:
            break
    return [listed for _, listed in last.values()], after is None


async def _open_marker(session: Session, entity: str, key: str) -> JsonObject | None:
    """Returns the JSON of a marker whose last slot, at `key`, is not final and names the entity; None for any other."""
    found = await session.state.read(key)
    if found is None:
        return None
    slot = Slot.parse(found, key)
    if slot.final or not await _names(session, slot, entity):
        return None
    marker, _, number = key.rpartition("/")
    return {
        "marker": marker.rpartition("/")[2],
        "slot": int(number.removesuffix(".json")),
        "attempt": slot.attempt,
        "age_ms": max(0, found.now_ms - found.written_ms),
        "request": slot.identity or None,
    }


async def _names(session: Session, slot: Slot, entity: str) -> bool:
    """Whether the write set of a marker's slot includes the entity, or the transaction that the slot names, whose
    object is read, commits to it."""
    write_set = slot.write_set
    if entity in write_set.pointers or entity in write_set.marks:
        return True
    if write_set.creates is not None and write_set.creates[0] == entity:
        return True
    decision = None if write_set.transaction is None else await read_decision(session.state, write_set.transaction)
    members = [] if decision is None else objects(decision.document, "tables")
    return any(optional_text(member, "entity") == entity for member in members)
