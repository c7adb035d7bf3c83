"""A spilled index is the sorted dictionary of its edits, however small its limits, and never guesses."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arco_catalog.iceberg.errors import InternalError
from arco_catalog.iceberg.json import JsonObject, loads
from arco_catalog.state.entries import overlapping as holder_of
from arco_catalog.state.holds import location_holds, released_holds
from arco_catalog.state.index import Edits, Index, location_key, namespace_key, relation_key, relations_in
from arco_catalog.state.locations import Location
from arco_catalog.state.needs import Needs, Scan
from arco_catalog.state.runtime import ulid_of
from arco_catalog.state.segments import RANGES, Directory, Ref, Segment, encode_line, key_of, range_of, separator
from arco_catalog.state.spilling import Limits, Spilling, spill
from tests.support.steps import lacks, result


def overlapping(index: Index, location: Location, *, but: Iterable[str] = (), fresh: str | None = None) -> str | None:
    """The entity that is in a location's way."""
    holder = result(holder_of(index, location, but=but, fresh=fresh), index)
    return None if holder is None else holder.entity


@dataclass
class Registry:
    """An index as commit follows commit, with the segments that were written, each read back from its bytes."""

    limits: Limits
    written: dict[str, Segment] = field(default_factory=dict)
    index: Index = field(init=False)

    def __post_init__(self) -> None:
        self.index = Index({}).with_segments(self.written.get)

    def commit(self, edits: Edits) -> None:
        """One commit. What it writes becomes readable only after it."""
        made = iter(range(1000))
        spilling = Spilling(self.limits, lambda: f"s{len(self.written)}.{next(made)}")
        index, segments = result(spill(self.index.edited(edits), len(edits), spilling))
        for segment in segments:
            assert segment.id not in self.written
            self.written[segment.id] = Segment.parse(segment.id, segment.body, segment.id)
        self.index = Index.parse(index.to_json()).with_segments(self.written.get)


kinds = st.sampled_from(["dropped", "location", "namespace", "relation", "tombstone"])
names = st.text("ab/\té", min_size=1, max_size=3)
keys = st.builds(lambda kind, parent, name: f"{kind}\n{parent}\n{name}", kinds, st.sampled_from("xy"), names)
entries: st.SearchStrategy[JsonObject | None] = st.none() | st.integers(0, 9).map(lambda n: {"n": n})
commits = st.lists(st.dictionaries(keys, entries, min_size=1, max_size=5), max_size=25)
limits = st.builds(Limits, embedded=st.sampled_from([0, 30, 200]), segment=st.sampled_from([30, 90, 300]))


@given(limits, commits, st.lists(keys, max_size=5))
def test_a_spilled_index_is_the_sorted_dictionary_of_its_edits(
    limits: Limits, commits: Sequence[Mapping[str, JsonObject | None]], others: Sequence[str]
) -> None:
    registry, model = Registry(limits), dict[str, JsonObject]()
    for edits in commits:
        registry.commit(edits)
        for key, entry in edits.items():
            if entry is None:
                model.pop(key, None)
            else:
                model[key] = entry
        assert list(registry.index.scan("")) == sorted(model.items())
    for key in (*model, *others):
        assert registry.index.get(key) == model.get(key)
        prefix = key[: key.rindex("\n") + 1]
        assert list(registry.index.scan(prefix)) == [
            item for item in sorted(model.items()) if item[0].startswith(prefix)
        ]
        assert [found for found, _ in registry.index.scan(prefix, key)] == [
            known for known in sorted(model) if known.startswith(prefix) and known >= key
        ]


@given(limits, commits)
def test_segments_keep_to_their_range_their_order_and_their_bounds(
    limits: Limits, commits: Sequence[Mapping[str, JsonObject | None]]
) -> None:
    registry = Registry(limits)
    for edits in commits:
        registry.commit(edits)
        refs = registry.index.directory.refs
        assert [ref.first for ref in refs] == sorted({ref.first for ref in refs})
        for place, ref in enumerate(refs):
            begins = place == 0 or range_of(refs[place - 1].first) != range_of(ref.first)
            assert (ref.first in RANGES) == begins
            segment = registry.written[ref.id]
            held = [key for key, _ in segment.scan("")]
            assert held == sorted(set(held)) != []
            assert all(registry.index.directory.covering(key) == ref for key in held)
            assert ref == Ref.of(segment, ref.first)
            assert len(held) == 1 or ref.size <= 2 * limits.segment + max(map(len, segment.lines))


@given(limits, st.lists(st.lists(st.integers(0, 300), min_size=1, max_size=4), max_size=30), st.booleans())
def test_what_is_embedded_is_bounded_by_the_limit_and_a_few_edits_a_segment(
    limits: Limits, batches: list[list[int]], drops: bool
) -> None:
    registry, largest = Registry(limits), 1
    created: list[Edits] = [{relation_key(("db",), f"t{n:03}"): {"n": n} for n in batch} for batch in batches]
    dropped: list[Edits] = [dict.fromkeys(edits) for edits in created if drops]
    for edits in created + dropped:
        registry.commit(edits)
        largest = max(largest, len(registry.index.directory.refs))
        embedded = sum(len(encode_line(key, entry or {})) for key, entry in registry.index.edits.items())
        assert embedded <= limits.embedded + 4 * 40 * largest


def test_a_flush_rewrites_the_one_segment_with_the_largest_part_of_the_edits() -> None:
    registry = Registry(Limits(embedded=10_000, segment=2_000))
    registry.commit({relation_key(("db",), f"t{n:04}"): {"n": n} for n in range(500)})
    while registry.index.edits:
        registry.limits = Limits(embedded=0, segment=2_000)
        registry.commit({})
    assert len(registry.index.directory.refs) > 5
    registry.limits = Limits(embedded=100, segment=2_000)
    before = {ref.id for ref in registry.index.directory.refs}
    registry.commit(
        {relation_key(("db",), "t0001+"): {}, **{relation_key(("db",), f"t0400+{n}"): {} for n in range(6)}}
    )
    after = {ref.id for ref in registry.index.directory.refs}
    assert len(before - after) == 1
    assert relation_key(("db",), "t0001+") in registry.index.edits
    assert relation_key(("db",), "t0400+1") not in registry.index.edits


def test_what_is_all_gone_leaves_no_segment_and_no_mark() -> None:
    registry = Registry(Limits(embedded=0, segment=100))
    tables = [relation_key(("db",), f"t{n}") for n in range(30)]
    for key in tables:
        registry.commit({key: {}})
    assert len(registry.index.directory.refs) > 3
    for key in tables:
        registry.commit({key: None})
    assert registry.index.directory.refs == ()
    assert registry.index.edits == {}


def test_small_neighbours_become_one() -> None:
    registry = Registry(Limits(embedded=0, segment=400))
    tables = [relation_key(("db",), f"t{n:03}") for n in range(200)]
    for key in tables:
        registry.commit({key: {}})
    full = len(registry.index.directory.refs)
    for number, key in enumerate(tables):
        if number % 10:
            registry.commit({key: None})
    assert len(registry.index.directory.refs) <= full / 4


def test_a_huge_index_that_was_never_spilled_is_flushed_piece_by_piece() -> None:
    registry = Registry(Limits(embedded=100, segment=300))
    registry.index = registry.index.edited({relation_key(("db",), f"t{n:04}"): {} for n in range(1_000)})
    for number in range(100):
        before = len(registry.written)
        registry.commit({relation_key(("db",), f"new{number:04}"): {}})
        assert len(registry.written) - before <= 12
    assert len(registry.index.edits) < 20
    assert len(list(registry.index.scan(""))) == 1_100


def test_an_entry_that_depends_on_a_transaction_stays_embedded() -> None:
    registry = Registry(Limits(embedded=0, segment=100))
    intent, table = relation_key(("db",), "intent"), relation_key(("db",), "table")
    registry.commit({intent: {"transaction": "T"}, table: {}})
    assert [*registry.index.edits] == [intent]
    registry.commit({intent: {}})
    assert [*registry.index.edits] == []


def test_what_is_not_at_hand_is_not_taken_for_what_is_not_there() -> None:
    registry = Registry(Limits(embedded=0, segment=60))
    for n in range(9):
        registry.commit({relation_key(("db",), f"t{n}"): {}, namespace_key((f"n{n}",)): {}})
    blind = registry.index.with_segments(lambda segment: None)
    with pytest.raises(InternalError, match="before it was loaded"):
        blind.get(relation_key(("db",), "never"))
    with pytest.raises(InternalError, match="before it was loaded"):
        blind.any_in(relations_in(("db",)))
    names = relation_key(("db",), "t0"), relation_key(("db",), "t8"), namespace_key(("n1",))
    assert len(blind.missing(Needs(keys=names))) == 3
    assert len(blind.missing(Needs(scans=[Scan(relations_in(("db",)))]))) == len(
        {ref.id for ref in blind.directory.refs if range_of(ref.first) == "relation\n"}
    )
    edited = blind.edited({relation_key(("db",), "t3"): None})
    assert lacks(spill(edited, 1, Spilling(Limits(0, 60), lambda: "x")), edited)


def test_a_scan_that_may_end_early_needs_no_segment_after_its_end() -> None:
    registry = Registry(Limits(embedded=0, segment=60))
    for n in range(9):
        registry.commit({relation_key(("db",), f"t{n}"): {"n": n}})
    first, *others = [ref.id for ref in registry.index.directory.refs]
    loaded = {first}
    some = registry.index.with_segments(lambda segment: registry.written[segment] if segment in loaded else None)
    assert some.missing(Needs(scans=[Scan(relations_in(("db",)), until=lambda entry: entry == {"n": 0})])) == []
    late = Needs(scans=[Scan(relations_in(("db",)), until=lambda entry: entry == {"n": 8})])
    for segment in others:
        assert some.missing(late) == [segment]
        loaded.add(segment)
    assert some.missing(late) == []


@given(keys, keys)
def test_a_separator_is_the_shortest_beginning_behind_what_comes_before(one: str, other: str) -> None:
    before, key = sorted((one, other))
    if before == key:
        return
    found = separator(before, key)
    assert before < found <= key
    assert key.startswith(found)
    assert all(key[:length] <= before for length in range(len(found)))


# Locations.

parts = st.sampled_from(["a", "b", "a-b", "c+c", f"t-{ulid_of(1, b'0123456789')}", f"u-{ulid_of(2, b'0123456789')}"])
places = st.lists(parts, max_size=4).map(lambda names: Location("s3", "bucket", tuple(names)))


@dataclass
class HeldLocations:
    """What each entity holds, as a plain dictionary: the judge of overlaps."""

    live: dict[str, Location] = field(default_factory=dict)

    def overlapping(self, location: Location) -> set[str]:
        return {entity for entity, held in self.live.items() if held.inside(location) or location.inside(held)}


@given(limits, st.lists(st.tuples(places, st.sampled_from(["hold", "release", "force"])), max_size=25), places)
def test_overlaps_in_a_spilled_index_are_those_that_comparing_all_would_find(
    limits: Limits, steps: list[tuple[Location, str]], location: Location
) -> None:
    registry, held = Registry(limits), HeldLocations()
    for number, (place, step) in enumerate(steps):
        entity = f"E{number}"
        found = overlapping(registry.index, place)
        truth = held.overlapping(place)
        assert (found in truth) if truth else found is None
        if step == "release":
            for other in truth:
                released = released_holds(registry.index, other, [held.live.pop(other).normal])
                registry.commit(result(released, registry.index))
        elif step == "force" or not truth:
            registry.commit(location_holds(entity, [place.normal]))
            held.live[entity] = place
    found, truth = overlapping(registry.index, location), held.overlapping(location)
    assert (found in truth) if truth else found is None
    others = [*truth][1:]
    assert overlapping(registry.index, location, but=others) == next(iter(truth - {*others}), None)


@given(limits, st.lists(places, max_size=20), places)
def test_a_default_location_is_judged_as_any_other(limits: Limits, held: list[Location], folder: Location) -> None:
    registry, fresh = Registry(limits), ulid_of(3, b"0123456789")
    for number, place in enumerate(held):
        registry.commit(location_holds(f"E{number}", [place.normal]))
    wanted = folder.below(f"t-{fresh}")
    found = overlapping(registry.index, wanted, fresh=fresh)
    assert (found is None) == (overlapping(registry.index, wanted) is None)


def test_a_default_location_among_default_locations_needs_no_segment() -> None:
    registry, folder = Registry(Limits(embedded=0, segment=300)), Location.parse("s3://bucket/wh/warehouse/db")
    for number in range(20):
        registry.commit(location_holds("E", [folder.below(f"t-{ulid_of(number, b'0123456789')}").normal]))
    registry.commit(location_holds("explicit", [folder.below("mine").normal]))
    blind, fresh = registry.index.with_segments(lambda segment: None), ulid_of(99, b"0123456789")
    assert overlapping(blind, folder.below(f"t-{fresh}"), fresh=fresh) is None
    assert lacks(holder_of(blind, folder.below(f"t-{fresh}")), blind)


def test_a_held_folder_is_in_the_way_of_a_default_location_in_it() -> None:
    registry, folder = Registry(Limits(embedded=0, segment=300)), Location.parse("s3://bucket/wh/warehouse/db")
    registry.commit(location_holds("E", [folder.normal]))
    for number in range(20):
        registry.commit(location_holds("E", [folder.below(f"t-{ulid_of(number, b'0123456789')}").normal]))
    fresh = ulid_of(99, b"0123456789")
    assert overlapping(registry.index, folder.below(f"t-{fresh}"), fresh=fresh) == "E"
    blind = registry.index.with_segments(lambda segment: None)
    assert lacks(holder_of(blind, folder.below(f"t-{fresh}"), fresh=fresh), blind)


# The stored form.


def test_a_segment_is_one_json_document_with_an_entry_a_line() -> None:
    segment = Segment("s", [encode_line("a", {"z": 1, "b": [2]}), encode_line("b\n", {})])
    assert loads(segment.body) == {"version": 1, "entries": [["a", {"b": [2], "z": 1}], ["b\n", {}]]}
    assert [*Segment.parse("s", segment.body, "x").scan("")] == [("a", {"b": [2], "z": 1}), ("b\n", {})]


@pytest.mark.parametrize("body", [b"", b"{}", b'{"version":2,"entries":[\n]}', b'{"version":1,"entries":[\n["a",{}]'])
def test_what_is_not_a_segment_is_our_own_fault(body: bytes) -> None:
    with pytest.raises(InternalError):
        Segment.parse("s", body, "x")


@given(st.text(), st.dictionaries(st.text(), st.text()))
def test_the_key_of_an_entry_is_found_without_its_value(key: str, entry: dict[str, str]) -> None:
    for each in (key, f'{key}",{{', f'{key}\\",{{', f"{key}\\"):
        assert key_of(encode_line(each, {**entry})) == each


@pytest.mark.parametrize("line", [b"x", b"[]", b'["a",1]', b"[1,{}]", b'[\x07",{}]', b'[1",{}]'])
def test_a_line_that_is_no_entry_is_our_own_fault(line: bytes) -> None:
    segment = Segment("01SEGMENT", [line])
    for read in (lambda: segment.get("a"), lambda: segment.get_all({"a", "b"}), lambda: [*segment.scan("")]):
        with pytest.raises(InternalError, match="01SEGMENT"):
            read()


def test_an_empty_directory_covers_nothing() -> None:
    assert Directory().covering(location_key("s3://b/t", "E")) is None
