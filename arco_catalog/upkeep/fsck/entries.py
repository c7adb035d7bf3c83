"""Examines the registry's index for a check: segments, entries, and whether the entries are consistent."""

import hashlib
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field

from arco_catalog.iceberg.errors import InternalError
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.planning.answers import ValueKind
from arco_catalog.planning.names import called, dotted
from arco_catalog.state.catalog_state import CatalogState
from arco_catalog.state.entries import NamespaceEntry, RelationEntry, described_kind, has_pointer, purge_began
from arco_catalog.state.fields import parse_record, text, texts
from arco_catalog.state.index import Index, tombstone_key
from arco_catalog.state.policies import PolicyEntry
from arco_catalog.state.realm import CatalogEntry
from arco_catalog.state.segments import KeyRange, Segment, decode_line, range_of
from arco_catalog.state.tombstone import PURGED, PURGING, Tombstone
from arco_catalog.upkeep.fsck.codes import Code
from arco_catalog.upkeep.fsck.examination import LIVE, Examination, Findings, Relation
from arco_catalog.upkeep.fsck.findings import Finding
from arco_catalog.upkeep.fsck.roles import Roles

DIGEST_CHARACTERS = 16
"""Length of the digest at the end of a value's id. Values of previous versions have none."""

Entry = tuple[str, JsonObject]


@dataclass
class _IndexFacts:
    """Facts from the entries of an index, collected until all entries are read. A pair is an entity and a location,
    which is its own or one from which it borrows files."""

    namespaces: set[tuple[str, ...]] = field(default_factory=set)
    parents: dict[tuple[str, ...], str] = field(default_factory=dict)
    """Namespaces of entries, each with one of its entries."""
    values: dict[str, tuple[ValueKind, str]] = field(default_factory=dict)
    """Values of entities, each with the kind and name of the entity."""
    held: set[tuple[str, str]] = field(default_factory=set)
    released: set[tuple[str, str]] = field(default_factory=set)
    live: set[tuple[str, str]] = field(default_factory=set)
    dropped: set[tuple[str, str]] = field(default_factory=set)
    borrows: set[tuple[str, str]] = field(default_factory=set)
    lent: set[tuple[str, str]] = field(default_factory=set)
    purging: set[tuple[str, str]] = field(default_factory=set)
    held_for_purge: set[tuple[str, str]] = field(default_factory=set)
    roles: Roles = field(default_factory=Roles)
    tasks: dict[str, str] = field(default_factory=dict)
    """Tasks, each with the key of the tombstone in its entry."""


async def examine_entries(examination: Examination, index: Index) -> Findings:
    """Examines the entries in the index of HEAD and the values to which they refer, yields the findings, and adds the
    tables, views and other facts to the examination for later parts."""
    seen = _IndexFacts()
    complete, readable = True, True
    async for item in _entries(examination, index):
        if isinstance(item, Finding):
            complete = False
            yield item
            continue
        try:
            _note(examination, seen, *item)
        except InternalError as error:
            readable = False
            yield Finding(Code.ENTRY_UNREADABLE, item[0].replace("\n", " "), error.message)
    examination.index_read, examination.entries_read = complete, complete and readable
    if examination.entries_read:  # otherwise a missing entry may be one that can't be read
        for finding in _misfits(examination, seen):
            yield finding

    async def look(item: tuple[str, tuple[ValueKind, str]]) -> Sequence[Finding]:
        value, (kind, name) = item
        key, whose = examination.paths.entity_value(kind, value), f"{called(kind)} {name}"
        found = await examination.read(key)
        if found is None:
            return [Finding(Code.VALUE_MISSING, key, whose)]
        try:
            parse_record(found.body, key)
        except InternalError as error:
            return [Finding(Code.VALUE_UNREADABLE, key, f"{whose}: {error.message}")]
        digest = value.rpartition("-")[2]
        if len(digest) == DIGEST_CHARACTERS and digest != hashlib.sha256(found.body).hexdigest()[:DIGEST_CHARACTERS]:
            return [Finding(Code.VALUE_FOREIGN, key, whose)]
        return []

    async for finding in examination.each(seen.values.items(), look):
        yield finding


def _note(examination: Examination, seen: _IndexFacts, key: str, entry: JsonObject) -> None:
    """Adds the facts from one entry of the index to `seen` and to the examination. Raises `InternalError` for an entry
    without a field from which a fact is read; the privileges of a grant are no such field."""
    kind, _, rest = key.partition("\n")
    parent, _, name = rest.partition("\n")
    levels = tuple(parent.split("\t")) if parent else ()
    match kind:
        case "namespace":
            namespace = NamespaceEntry(entry)
            seen.namespaces.add((*levels, name))
            seen.values[namespace.value] = "namespace", dotted((*levels, name))
            if levels:
                seen.parents[levels] = dotted((*levels, name))
        case "relation":
            relation = RelationEntry(entry)
            seen.parents[levels] = dotted(levels, name)
            seen.live |= {(relation.entity, location) for location in relation.locations}
            seen.borrows |= {(relation.entity, folder) for folder in relation.borrowed}
            if relation.transaction is not None:
                examination.intended.add(relation.entity)
            elif described := described_kind(entry):
                seen.values[relation.value] = described, dotted(levels, name)
            elif has_pointer(entry):
                known = _relation(relation, dotted(levels, name), LIVE, key)
                examination.relations[relation.entity] = known
            _ = relation.governance  # parsed to raise for an invalid one
        case "tombstone":
            relation, stone = RelationEntry(entry), Tombstone(entry)
            places = {(relation.entity, location) for location in relation.locations}
            seen.dropped |= places
            if stone.state == PURGING:
                seen.purging |= places
            if stone.state != PURGED:
                seen.borrows |= {(relation.entity, folder) for folder in relation.borrowed}
            if stone.task is not None and stone.state != PURGED:
                examination.purges[stone.task] = stone
            if described := described_kind(entry):
                seen.values[relation.value] = described, dotted(levels, stone.name)
            elif has_pointer(entry):
                known = _relation(relation, dotted(levels, stone.name), stone.state, key)
                examination.relations.setdefault(relation.entity, known)
            _ = relation.governance
        case "policy":
            seen.parents[levels] = dotted(levels, name)
            seen.values[PolicyEntry(entry).value] = "policy", dotted(levels, name)
        case "borrowed":
            seen.lent.add((text(entry, "entity"), rest.rpartition("/\n")[0]))
        case "catalog" if examination.is_realm:
            examination.catalogs.add(CatalogEntry(entry).root)
        case "catalog":
            examination.is_closed = CatalogState(entry).is_closed
        case "task":
            seen.tasks[name] = tombstone_key(texts(entry, "namespace"), text(entry, "name"), text(entry, "entity"))
        case "location" | "dropped":
            hold = text(entry, "entity"), rest.rpartition("/\n")[0]
            holds = seen.released if kind == "dropped" or entry.get("state") == "dropped" else seen.held
            holds.add(hold)
            if kind == "location" and purge_began(entry):
                seen.held_for_purge.add(hold)
        case _:
            seen.roles.note(kind, parent, name, entry)


def _relation(entry: RelationEntry, name: str, state: str, key: str) -> Relation:
    """Returns the table or view of a registry entry as later parts of the check examine it. `key` is the key of the
    entry in the index, `state` is `live` or the state of the tombstone."""
    return Relation(entry.entity, entry.kind, name, state, key, entry.locations, entry.borrowed)


def _misfits(examination: Examination, seen: _IndexFacts) -> list[Finding]:
    """Returns the findings about entries that are each readable and do not fit together, such as a table with a
    location that no entry reserves. A purge that has begun reserves the locations of its tombstone."""
    where = examination.paths.manifest
    missing = [
        Finding(Code.PARENT_MISSING, where, f"the namespace in which {name} lies does not exist")
        for parent, name in seen.parents.items()
        if parent not in seen.namespaces
    ]
    purging = _normal(seen.purging)
    unheld = sorted((_normal(seen.live) - seen.held) | (purging - seen.held_for_purge))
    stray = sorted((seen.held - _normal(seen.live) - _normal(seen.dropped)) | (seen.held_for_purge - purging))
    unclaimed = sorted(seen.released - _normal(seen.dropped))
    return [
        *missing,
        *(
            Finding(Code.HOLD_MISSING, where, f"{location} is not reserved for entity {entity}, which has it")
            for entity, location in unheld
        ),
        *(
            Finding(
                Code.HOLD_STRAY,
                where,
                f"{location} is reserved for entity {entity}, or noted for it after a drop, and no entry of the entity "
                "fits this",
            )
            for entity, location in stray + unclaimed
        ),
        *(
            Finding(
                Code.LOAN_MISFIT, where, f"only one of two entries shows that entity {entity} takes files from {folder}"
            )
            for entity, folder in sorted(_normal(seen.borrows) ^ seen.lent)
        ),
        *(Finding(Code.TASK_MISFIT, where, f"task {task}") for task in _mismatched_tasks(examination, seen)),
        *(Finding(Code.ROLE_MISFIT, where, misfit) for misfit in seen.roles.misfits()),
    ]


def _mismatched_tasks(examination: Examination, seen: _IndexFacts) -> list[str]:
    """Returns the ids of tasks of which the entry in the registry and the tombstone do not refer to each other."""
    waiting = {task: stone.key for task, stone in examination.purges.items()}
    return sorted(task for task in {*waiting, *seen.tasks} if waiting.get(task) != seen.tasks.get(task))


def _normal(pairs: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Returns the pairs of entity and location without slashes at the end of the locations."""
    return {(entity, location.rstrip("/")) for entity, location in pairs}


async def _entries(examination: Examination, index: Index) -> AsyncGenerator[Entry | Finding, None]:
    """Yields the entries of the index in the order of their keys. For a segment that can't be read, yields a finding,
    and of the entries in its range only those that HEAD itself has."""
    for key_range in index.key_ranges(""):
        segment = None
        if key_range.ref is not None:
            read = await _segment(examination, key_range)
            if isinstance(read, Finding):
                yield read
            else:
                segment = read
        for entry in index.entries(key_range, segment):
            yield entry


async def _segment(examination: Examination, key_range: KeyRange) -> Segment | Finding:
    """Reads a segment of the index. Returns a finding in place of it if it is missing, corrupt, or differs from the
    reference in HEAD by size, order or range of keys."""
    ref = key_range.ref
    assert ref is not None
    key = examination.paths.index_segment(ref.id)
    found = await examination.read(key)
    if found is None:
        return Finding(Code.SEGMENT_MISSING, key, "this segment of the registry's index does not exist")
    try:
        segment = Segment.parse(ref.id, found.body, key)
        keys = [decode_line(line)[0] for line in segment.lines]
    except InternalError as error:
        return Finding(Code.SEGMENT_UNREADABLE, key, error.message)
    ordered = keys == sorted(set(keys))
    within = all(key >= ref.first and range_of(key) == range_of(ref.first) for key in keys)
    ends = key_range.high is None or not keys or keys[-1] < key_range.high
    if segment.size != ref.size:
        found_there = f"the segment has {len(keys):,} entries and {segment.size:,} bytes"
        return Finding(Code.SEGMENT_FOREIGN, key, f"{found_there}, and HEAD lists it with {ref.size:,} bytes")
    if not (ordered and within and ends):
        found_there = f"the {len(keys):,} keys in the segment are not in order, or not in the range that HEAD gives it"
        return Finding(Code.SEGMENT_FOREIGN, key, found_there)
    return segment
