"""The entries of the registry's index: the segments that hold them, and whether they fit together."""

import hashlib
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field

from arco_catalog.iceberg.errors import InternalError
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.fsck.examination import Examination, Findings, Relation
from arco_catalog.operations.fsck.findings import Code, Finding
from arco_catalog.planning.names import dotted
from arco_catalog.state.entries import NamespaceEntry, RelationEntry
from arco_catalog.state.fields import parse_record, text
from arco_catalog.state.index import Index
from arco_catalog.state.segments import KeyRange, Segment, decode_line, range_of

DIGEST_CHARACTERS = 16
"""Of the digest at the end of a value's id. Values of earlier versions have none."""

Entry = tuple[str, JsonObject]


@dataclass
class _Seen:
    """What the entries tell, until all were read. Holds are pairs of an entity and a location."""

    namespaces: set[tuple[str, ...]] = field(default_factory=set)
    parents: dict[tuple[str, ...], str] = field(default_factory=dict)
    """Namespaces that names lie in, each with one of these names."""
    values: dict[str, str] = field(default_factory=dict)
    """Values of namespaces, each with the namespace's name."""
    held: set[tuple[str, str]] = field(default_factory=set)
    released: set[tuple[str, str]] = field(default_factory=set)
    live: set[tuple[str, str]] = field(default_factory=set)
    dropped: set[tuple[str, str]] = field(default_factory=set)


async def examine_entries(examination: Examination, index: Index) -> Findings:
    """All findings about the index of HEAD. The relations that it names are left in the examination."""
    seen = _Seen()
    complete = True
    async for item in _entries(examination, index):
        if isinstance(item, Finding):
            complete = False
            yield item
            continue
        try:
            _note(examination, seen, *item)
        except InternalError as error:
            yield Finding(Code.ENTRY_UNREADABLE, item[0].replace("\n", " "), error.message)
    if complete:  # else what is missed here may be in a segment that can't be read
        for finding in _misfits(examination, seen):
            yield finding

    async def look(item: tuple[str, str]) -> Sequence[Finding]:
        value, name = item
        key = examination.paths.entity_value("namespace", value)
        found = await examination.read(key)
        if found is None:
            return [Finding(Code.VALUE_MISSING, key, f"namespace {name}")]
        try:
            parse_record(found.body, key)
        except InternalError as error:
            return [Finding(Code.VALUE_UNREADABLE, key, f"namespace {name}: {error.message}")]
        digest = value.rpartition("-")[2]
        if len(digest) == DIGEST_CHARACTERS and digest != hashlib.sha256(found.body).hexdigest()[:DIGEST_CHARACTERS]:
            return [Finding(Code.VALUE_FOREIGN, key, f"namespace {name}")]
        return []

    async for finding in examination.each(seen.values.items(), look):
        yield finding


def _note(examination: Examination, seen: _Seen, key: str, entry: JsonObject) -> None:
    kind, _, rest = key.partition("\n")
    parent, _, name = rest.partition("\n")
    levels = tuple(parent.split("\t")) if parent else ()
    match kind:
        case "namespace":
            namespace = NamespaceEntry(entry)
            seen.namespaces.add((*levels, name))
            seen.values[namespace.value] = dotted((*levels, name))
            if levels:
                seen.parents[levels] = dotted((*levels, name))
        case "relation":
            relation = RelationEntry(entry)
            seen.parents[levels] = dotted(levels, name)
            seen.live |= {(relation.entity, location) for location in relation.locations}
            if relation.transaction is None:
                known = Relation(relation.entity, relation.kind, dotted(levels, name), live=True)
                examination.relations[relation.entity] = known
        case "tombstone":
            relation = RelationEntry(entry)
            seen.dropped |= {(relation.entity, location) for location in relation.locations}
            known = Relation(relation.entity, relation.kind, dotted(levels, text(entry, "name")), live=False)
            examination.relations.setdefault(relation.entity, known)
        case "location" | "dropped":
            holds = seen.released if kind == "dropped" or entry.get("state") == "dropped" else seen.held
            holds.add((text(entry, "entity"), rest.rpartition("/\n")[0]))


def _misfits(examination: Examination, seen: _Seen) -> list[Finding]:
    """Entries that don't fit each other. A purge that has begun holds what its tombstone names."""
    where = examination.paths.manifest
    missing = [
        Finding(Code.PARENT_MISSING, where, f"{name} lies in no namespace")
        for parent, name in seen.parents.items()
        if parent not in seen.namespaces
    ]
    unheld = sorted(_normal(seen.live) - seen.held)
    stray = sorted(seen.held - _normal(seen.live) - _normal(seen.dropped))
    unclaimed = sorted(seen.released - _normal(seen.dropped))
    return [
        *missing,
        *(Finding(Code.HOLD_MISSING, where, f"{location} of entity {entity}") for entity, location in unheld),
        *(Finding(Code.HOLD_STRAY, where, f"{location} for entity {entity}") for entity, location in stray + unclaimed),
    ]


def _normal(pairs: set[tuple[str, str]]) -> set[tuple[str, str]]:
    return {(entity, location.rstrip("/")) for entity, location in pairs}


async def _entries(examination: Examination, index: Index) -> AsyncGenerator[Entry | Finding, None]:
    """All entries in order, a segment at a time, or what is wrong with the segment that should have them."""
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
    ref = key_range.ref
    assert ref is not None
    key = examination.paths.index_segment(ref.id)
    found = await examination.read(key)
    if found is None:
        return Finding(Code.SEGMENT_MISSING, key, "no such object")
    try:
        segment = Segment.parse(ref.id, found.body, key)
        keys = [decode_line(line)[0] for line in segment.lines]
    except InternalError as error:
        return Finding(Code.SEGMENT_UNREADABLE, key, error.message)
    ordered = keys == sorted(set(keys))
    within = all(key >= ref.first and range_of(key) == range_of(ref.first) for key in keys)
    ends = key_range.high is None or not keys or keys[-1] < key_range.high
    if segment.size != ref.size or not (ordered and within and ends):
        return Finding(
            Code.SEGMENT_FOREIGN, key, f"{len(keys):,} entries, {segment.size:,} bytes; HEAD says {ref.size:,}"
        )
    return segment
