"""Builds the stored state of a catalog with very many tables, without making their create calls."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from arco_catalog.iceberg.json import JsonObject, dumps
from arco_catalog.iceberg.table import last_updated_ms, new_table_metadata, parse_create_table, table_uuid
from arco_catalog.state.access import encode_value
from arco_catalog.state.entries import NamespaceEntry, RelationEntry
from arco_catalog.state.holds import location_holds
from arco_catalog.state.index import Index, namespace_key, relation_key
from arco_catalog.state.locations import Location
from arco_catalog.state.paths import Paths
from arco_catalog.state.pointer import MetadataFile, Pointer
from arco_catalog.state.registry import RECENT_COMMITS, Operation, RegistryState
from arco_catalog.state.runtime import Runtime
from arco_catalog.state.segments import RANGES, Directory, Ref, Segment, decode_line, encode_line, range_of, separator
from arco_catalog.state.spilling import Limits, Spilling, cut
from tests.support.steps import result

Entries = dict[str, JsonObject]
Objects = Iterator[tuple[str, bytes]]


def packed(entries: Mapping[str, JsonObject], limits: Limits, runtime: Runtime) -> tuple[Index, list[Segment]]:
    """An index of these entries: a small range embedded, a larger one in segments three quarters full, as splitting in
    halves leaves them."""
    edits: Entries = {}
    refs: list[Ref] = []
    segments: list[Segment] = []
    for beginning in RANGES:
        keys = sorted(key for key in entries if range_of(key) == beginning)
        lines = [encode_line(key, entries[key]) for key in keys]
        if sum(map(len, lines)) <= limits.embedded:
            edits |= {key: entries[key] for key in keys}
            continue
        start = beginning
        for number, piece in enumerate(cut(lines, limits.segment * 3 // 4)):
            if number:
                start = separator(decode_line(segments[-1].lines[-1])[0], decode_line(piece[0])[0])
            segments.append(Segment(runtime.ulid(), piece))
            refs.append(Ref.of(segments[-1], start))
    return Index(edits, Directory(refs)), segments


class RegistryBuilder:
    """Builds a registry. Its methods yield the objects to store as key and body. `base` is the location of the store's
    root."""

    def __init__(self, base: Location, paths: Paths, runtime: Runtime, limits: Limits) -> None:
        self.base = base
        self.paths = paths
        self.runtime = runtime
        self.limits = limits
        self.entries: Entries = {}
        self.uuid = runtime.uuid()

    def namespace(self, name: str) -> Objects:
        """A namespace: the value that its entry names."""
        value, location = self.runtime.ulid(), self.base.below(self.paths.warehouse, name).uri
        entry = NamespaceEntry.new(entity=self.runtime.ulid(), value=value, location=location)
        self.entries[namespace_key((name,))] = entry.json
        yield self.paths.entity_value("namespace", value), encode_value({"location": location})

    def table(self, namespace: str, name: str) -> tuple[str, Location]:
        """A name and a place, and nothing that they lead to. Returns entity and location."""
        entity = self.runtime.ulid()
        home = self.base.below(self.paths.warehouse, namespace, f"{name}-{entity}")
        self.entries |= named(namespace, name, entity, self.uuid, home)
        return entity, home

    def whole_table(self, namespace: str, name: str, body: JsonObject) -> Objects:
        """A table that can be loaded: its metadata file and its pointer."""
        entity, home = self.table(namespace, name)
        document = new_table_metadata(
            parse_create_table({"name": name, **body}),
            location=home.uri,
            table_uuid=self.uuid,
            now_ms=self.runtime.now_ms(),
        )
        yield from self.state_of(entity, home.below("metadata"), document)

    def state_of(self, entity: str, folder: Location, document: JsonObject) -> Objects:
        """What a table's name leads to: a metadata file in a folder, and the pointer to it."""
        file = folder.below(f"00000-{entity}-1.metadata.json")
        pointer = Pointer.first(
            entity=entity,
            kind="table",
            move=entity,
            metadata=MetadataFile(file.uri, last_updated_ms(document)),
            summary={"table_uuid": table_uuid(document), "current_snapshot_id": None, "refs": {}},
        )
        yield "/".join(file.segments[len(self.base.segments) :]), dumps(document)
        yield self.paths.pointer(entity), pointer.body

    def one_commit(self) -> Objects:
        """A registry that one commit made, with all entries embedded."""
        head = self._commit(RegistryState.empty(), self.entries, spilling=False)
        yield self.paths.registry_commit(head.id or ""), head.body
        yield self.paths.manifest, head.body

    def registry(self, later: Iterable[tuple[str, str]] = (), written: list[int] | None = None) -> Objects:
        """The segments, the last commit and the manifest, after 500 commits and then the creates of `later`, which
        leave the buffer of recent edits as it is in a catalog at work. `written` hears how many bytes of segments each
        of them wrote."""
        index, segments = packed(self.entries, self.limits, self.runtime)
        segments_by_id = {segment.id: segment for segment in segments}
        head = RegistryState(RegistryState.empty().document, index.with_segments(segments_by_id.get), None)
        for _ in range(RECENT_COMMITS):
            head = self._commit(head, {})
        for namespace, name in later:
            self.entries.clear()
            self.table(namespace, name)
            head = self._commit(head, self.entries)
            segments_by_id |= {segment.id: segment for segment in head.spilled}
            if written is not None:
                written.append(sum(segment.size for segment in head.spilled))
        for ref in head.index.directory.refs:
            yield self.paths.index_segment(ref.id), segments_by_id[ref.id].body
        yield self.paths.registry_commit(head.id or ""), head.body
        yield self.paths.manifest, head.body

    def _commit(self, head: RegistryState, edits: Entries, *, spilling: bool = True) -> RegistryState:
        made = Operation(self.runtime.ulid(), "create-table", {}, None)
        spilled = result(head.index_after(edits, Spilling(self.limits, self.runtime.ulid))) if spilling else None
        commit, at_ms = self.runtime.ulid(), self.runtime.now_ms()
        return head.successor(commit=commit, at_ms=at_ms, edits=edits, operations=[made], spilled=spilled)


def named(namespace: str, name: str, entity: str, uuid: str, home: Location) -> Entries:
    """A table's entries in the index."""
    entry = RelationEntry.new(kind="table", entity=entity, uuid=uuid, locations=[home.normal])
    held = {key: hold for key, hold in location_holds(entity, [home.normal]).items() if hold is not None}
    return {relation_key((namespace,), name): entry.json, **held}


def spread(tables: int, each: int = 1_000) -> Sequence[tuple[str, str]]:
    """Names of so many tables in namespaces of so many each."""
    return [(f"db{number // each:03}", f"table_{number % each:05}") for number in range(tables)]
