"""What the registry's parts cost grows as they and the requests to them do, and no faster."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice

import pytest

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.entries import RelationEntry, held_by_another, overlapping
from arco_catalog.state.holds import location_holds
from arco_catalog.state.index import Growing, Index, namespace_key, relation_key, relations_in, tombstone_key
from arco_catalog.state.locations import AllowedLocations, Location, outermost
from arco_catalog.state.needs import Needs
from arco_catalog.state.registry import Operation, RegistryState
from arco_catalog.state.runtime import ulid_of
from arco_catalog.state.segments import Directory, Ref, Segment, encode_line
from arco_catalog.state.spilling import Limits, Spilling, spill
from tests.iceberg.counted import Items, Text, assert_linear, steps_of
from tests.state.counting_index import count_indexes, keyed
from tests.support.steps import result

SIZES = (50, 100, 200)
NS = ("db",)


@pytest.fixture(autouse=True)
def counting(monkeypatch: pytest.MonkeyPatch) -> None:
    count_indexes(monkeypatch)


def entity(number: int) -> str:
    return ulid_of(1, number.to_bytes(10, "big"))


def big_registry(size: int) -> dict[str, JsonObject | None]:
    """`size` of everything: namespaces, tables with their locations, and tombstones of one name."""
    entries: dict[str, JsonObject | None] = {}
    for number in range(size):
        place = f"s3://b/wh/db/t{number}-{entity(number)}"
        entry = RelationEntry.new(kind="table", entity=entity(number), uuid=None, locations=[place])
        entries[namespace_key((f"n{number}",))] = {"entity": entity(number), "value": "v", "location": "s3://b/wh"}
        entries[relation_key(NS, f"t{number:05}")] = entry.json
        entries |= location_holds(entity(number), [place])
        entries[tombstone_key(NS, "gone", entity(number))] = {"entity": entity(number), "sequence": number}
    return keyed(entries)


def directory_of(size: int) -> tuple[Directory, dict[str, Segment]]:
    """So many segments of tables' names, of two names each."""
    refs: list[Ref] = []
    segments: dict[str, Segment] = {}
    for number in range(size):
        keys = [relation_key(NS, f"t{number:05}{letter}") for letter in "ab"]
        segment = Segment(f"s{number}", [encode_line(key, {"type": "table", "entity": "E"}) for key in keys])
        segments[segment.id] = segment
        refs.append(Ref(Text(segment.id), Text(keys[0] if number else "relation\n"), segment.size, None))
    return Directory(refs), segments


def new_names(size: int) -> Iterator[dict[str, JsonObject | None]]:
    for number in range(size):
        yield {relation_key(NS, f"new{number:05}"): {"entity": "E"}, relation_key(NS, f"t{number:05}"): None}


def many_plans(size: int) -> int:
    index = Index(big_registry(size))

    def work() -> None:
        growing = Growing(index)
        for edits in new_names(size):
            growing.add(edits)
            assert growing.get(relation_key(NS, "new00000")) == {"entity": "E"}

    return steps_of(work)


def one_long_commit(size: int) -> int:
    head = RegistryState(
        {"version": 2, "id": "whole", "at_ms": 0, "sequence": 1, "recent": [["whole"]]}, Index(big_registry(size)), None
    )
    edits = {key: entry for each in new_names(size) for key, entry in each.items()}
    operations = [Operation(f"o{number}", "create-table", {}, None) for number in range(size)]
    return steps_of(partial(head.successor, commit="c", at_ms=1, edits=edits, operations=operations))


def reading(size: int) -> int:
    index = Index(big_registry(size))

    def work() -> None:
        assert not index.missing(Needs(keys=[relation_key(NS, f"t{number:05}") for number in range(size)]))
        for number in range(size):
            index.get(relation_key(NS, f"t{number:05}"))
            assert index.any_in(relation_key(NS, f"t{number:05}"))
        assert len([*index.scan(relations_in(NS))]) == size

    return steps_of(work)


def spilling_much(size: int) -> int:
    """One commit that is meant for each of many segments."""
    directory, segments = directory_of(size)
    edits = {relation_key(NS, f"t{number:05}b"): None for number in range(size)}
    index = Index(keyed({**big_registry(size), **edits}), directory, segments.get)
    spilling = Spilling(Limits(embedded=0, segment=1_000, least=0), lambda: "fresh")
    made: list[Segment] = []
    steps = steps_of(lambda: made.extend(result(spill(index, 16 * size, spilling))[1]))
    assert len(made) > size // 3
    return steps


def asking_for_operations(size: int) -> int:
    recent = Items([f"c{number}", f"o{number}"] for number in range(size))
    head = RegistryState({"recent": recent}, Index({}), None)

    def work() -> None:
        assert [head.commit_of(f"o{number}") for number in range(size)] == [f"c{number}" for number in range(size)]

    return steps_of(work)


@pytest.mark.parametrize(
    "cost", [many_plans, one_long_commit, reading, spilling_much, asking_for_operations], ids=lambda cost: cost.__name__
)
def test_work_on_the_index_costs_what_it_and_the_request_are_long(cost: Callable[[int], int]) -> None:
    assert_linear([cost(size) for size in SIZES], cost.__name__)


def pages_of(size: int) -> tuple[int, int]:
    """What one page costs, somewhere in the middle, and what all of them do: a few names of a segment each."""
    directory, segments = directory_of(size)
    index = Index(big_registry(size), directory, segments.get)

    def page(start: str) -> tuple[list[str], str | None]:
        names: list[str] = []
        for key_range in islice(index.key_ranges(relations_in(NS), start), 2):
            if names:
                return names, key_range.low
            for key, _ in index.entries(key_range, index.loaded(key_range.ref)):
                if len(names) == 3:
                    return names, key
                names.append(key)
        return names, None

    def all_pages() -> None:
        start: str | None = relations_in(NS)
        names = 0
        while start is not None:
            found, start = page(start)
            names += len(found)
        assert names == 3 * size

    return steps_of(lambda: page(relation_key(NS, f"t{size // 2:05}"))), steps_of(all_pages)


def test_a_page_costs_the_same_however_many_names_and_segments_are_before_and_behind_it() -> None:
    costs = [pages_of(size)[0] for size in (50, 400)]
    assert costs[1] <= costs[0] + 200, costs


def test_all_pages_of_a_level_cost_what_it_is_long() -> None:
    assert_linear([pages_of(size)[1] for size in SIZES], "all pages")


DEPTHS = (40, 80, 160, 320)


def deep(depth: int, tag: str = "a") -> Location:
    """As deep as the longest location may be."""
    return Location.parse(f"s3://b{f'/{tag}' * depth}")


def under_many_folders(depth: int) -> int:
    index = Index(keyed(location_holds("F", [deep(1, "z").normal])))
    location = deep(depth)
    return steps_of(lambda: (overlapping(index, location), held_by_another(index, location, "E")))


def parsing(depth: int) -> int:
    allowed = AllowedLocations([deep(1)], [deep(1, "z")])
    return steps_of(lambda: allowed.check("s3://b" + "/a" * min(depth, 300)))


@pytest.mark.parametrize("cost", [under_many_folders, parsing], ids=lambda cost: cost.__name__)
def test_a_location_costs_what_it_is_deep(cost: Callable[[int], int]) -> None:
    cost(1)  # patterns are compiled when they are first used
    assert_linear([cost(depth) for depth in DEPTHS], cost.__name__)


def places(size: int) -> list[Location]:
    """So many that lie inside each other, and so many beside each other."""
    inside = [deep(1 + number % 5, f"i{number % 7}") for number in range(size)]
    return [*inside, *(Location.parse(f"s3://b/x{number}") for number in range(size))]


def choosing_the_outermost(size: int) -> int:
    locations = places(size)
    return steps_of(lambda: outermost(locations))


def looking_for_folders(size: int) -> int:
    locations = places(size)
    folders = {location.normal for location in locations[1:]}
    return steps_of(lambda: [location.inside_any(folders) for location in locations])


def own_holds(size: int) -> int:
    """Many holds of one's own, inside the one location that is searched."""
    held = location_holds("E", [f"s3://b/a/x{number}" for number in range(size)])
    index = Index(keyed({**held, **location_holds("F", ["s3://b/b"])}))
    return steps_of(lambda: overlapping(index, deep(1), but=["E"]))


@pytest.mark.parametrize(
    "cost", [choosing_the_outermost, looking_for_folders, own_holds], ids=lambda cost: cost.__name__
)
def test_locations_cost_what_there_are_of_them(cost: Callable[[int], int]) -> None:
    assert_linear([cost(size) for size in SIZES], cost.__name__)


def test_the_outermost_locations_are_those_that_lie_in_no_other() -> None:
    named = ["s3://b/x/y", "s3://b/x", "s3://b/z", "s3://b/x-1", "s3://b/x/y/z", "s3://b/z/", "s3://c"]
    kept = outermost([Location.parse(each) for each in named])
    assert [location.uri for location in kept] == ["s3://b/x", "s3://b/z", "s3://b/x-1", "s3://c/"]
    assert [location.uri for location in outermost([Location.parse(each) for each in ("s3://b/x", "s3://b")])] == [
        "s3://b/"
    ]
