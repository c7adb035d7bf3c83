"""What a change of a view costs grows as its body and the view do, and no faster."""

from collections.abc import Callable
from functools import partial

import pytest

from arco_catalog.iceberg.view import (
    apply_view_commit,
    check_registered_view,
    new_view_metadata,
    parse_create_view,
    parse_view_commit,
)
from arco_catalog.iceberg.view_commit import VIEW_REQUIREMENTS, VIEW_UPDATES
from tests.iceberg.big_table import schema_of
from tests.iceberg.counted import assert_linear, counted, steps_of
from tests.iceberg.values import LOCATION, NOW, UUID, Object

SIZES = (20, 40, 80)


def version(version_id: int, representations: int, tag: str, schema_id: int = 0) -> Object:
    return {
        "version-id": version_id,
        "timestamp-ms": NOW,
        "schema-id": schema_id,
        "summary": {},
        "representations": [
            {"type": "sql", "sql": f"SELECT '{tag}'", "dialect": f"dialect{number}"}
            for number in range(representations)
        ],
        "default-namespace": ["db"],
    }


def big_view(size: int) -> Object:
    """`size` of everything: versions, entries of their log, schemas, columns of one, representations, levels of the
    default namespace and entries of the summary of one version, and properties."""
    wide = version(1, size, "wide")
    wide["default-namespace"] = [f"level{number}" for number in range(size)]
    wide["summary"] = {f"s{number}": "v" for number in range(size)}
    return {
        "view-uuid": UUID,
        "format-version": 1,
        "location": LOCATION,
        "schemas": [schema_of(0, size), *(schema_of(number, 1, f"n{number}_") for number in range(1, size))],
        "current-version-id": 1,
        "versions": [wide, *(version(number, 1, f"old{number}") for number in range(2, size + 1))],
        "version-log": [{"timestamp-ms": NOW, "version-id": 1 + number} for number in range(size)],
        "properties": {
            **{f"p{number}": "v" for number in range(size)},
            "version.history.num-entries": str(size),
            "replace.drop-dialect.allowed": "true",
        },
    }


UPDATES: dict[str, Callable[[int, int], list[Object]]] = {
    "assign-uuid": lambda _, __: [{"action": "assign-uuid", "uuid": UUID}],
    "upgrade-format-version": lambda _, __: [{"action": "upgrade-format-version", "format-version": 1}],
    "add-schema": lambda _, n: [{"action": "add-schema", "schema": schema_of(0, 1, f"new{n}_")}],
    "add-schema, known": lambda size, n: [{"action": "add-schema", "schema": schema_of(0, 1, f"n{1 + n % size}_")}],
    "set-location": lambda _, n: [{"action": "set-location", "location": f"{LOCATION}/{n}"}],
    "set-properties": lambda _, n: [{"action": "set-properties", "updates": {f"new{n}": "v"}}],
    "remove-properties": lambda _, n: [{"action": "remove-properties", "removals": [f"p{n}"]}],
    "add-view-version": lambda _, n: [{"action": "add-view-version", "view-version": version(1, 1, f"new{n}")}],
    "add-view-version, known": lambda size, n: [
        {"action": "add-view-version", "view-version": version(1, 1, f"old{2 + n % (size - 1)}")}
    ],
    "add-view-version, set-current-view-version": lambda _, n: [
        {"action": "add-view-version", "view-version": version(1, 2, f"new{n}")},
        {"action": "set-current-view-version", "view-version-id": -1},
    ],
    "add-schema, add-view-version": lambda _, n: [
        {"action": "add-schema", "schema": schema_of(0, 1, f"new{n}_")},
        {"action": "add-view-version", "view-version": version(1, 1, "new", schema_id=-1)},
    ],
    "set-current-view-version": lambda size, n: [
        {"action": "set-current-view-version", "view-version-id": 1 + n % size}
    ],
}
"""By name, the updates that are the nth of their kind on a view of a size."""


def cost_of(view: Object, body: Object) -> int:
    """Steps of a commit that must succeed."""
    base, request = counted(view), counted(body)

    def work() -> None:
        apply_view_commit(base, parse_view_commit(request), now_ms=NOW + 1, name="db.v")

    return steps_of(work)


def many(kind: str, size: int, numbers: range) -> Object:
    return {"requirements": [], "updates": [each for n in numbers for each in UPDATES[kind](size, n)]}


@pytest.mark.parametrize("kind", UPDATES)
def test_many_updates_of_a_kind_cost_what_they_and_the_view_are_long(kind: str) -> None:
    assert_linear([cost_of(big_view(size), many(kind, size, range(size))) for size in SIZES], kind)


@pytest.mark.parametrize("kind", UPDATES)
def test_one_more_update_of_a_kind_costs_the_same_on_a_view_eight_times_as_large(kind: str) -> None:
    """What a view is looked through for once, the first of them have paid."""

    def cost_of_more(size: int) -> int:
        few, more = (cost_of(big_view(size), many(kind, size, numbers)) for numbers in (range(8), range(24)))
        return more - few

    small, large = cost_of_more(32), cost_of_more(256)
    assert large <= 1.5 * small + 200, f"16 more of {kind} take {small} steps on a small view, {large} on a large one"


def test_many_requirements_cost_what_they_and_the_view_are_long() -> None:
    requirement: Object = {"type": "assert-view-uuid", "uuid": UUID}
    costs = [cost_of(big_view(size), {"requirements": [requirement] * size, "updates": []}) for size in SIZES]
    assert_linear(costs, "assert-view-uuid")


def test_every_kind_is_among_them() -> None:
    assert set(VIEW_UPDATES) == {name for kind in UPDATES for name in kind.split(", ")} - {"known"}
    assert set(VIEW_REQUIREMENTS) == {"assert-view-uuid"}


def long_updates(size: int) -> list[Object]:
    wide = version(1, size, "new")
    wide["default-namespace"] = [f"new{number}" for number in range(size)]
    wide["summary"] = {f"new{number}": "v" for number in range(size)}
    return [
        {"action": "add-schema", "schema": schema_of(0, size, "e")},
        {"action": "add-view-version", "view-version": wide},
        {"action": "set-current-view-version", "view-version-id": -1},
        {"action": "remove-properties", "removals": [f"p{n}" for n in range(size)]},
        {"action": "set-properties", "updates": {f"q{n}": "v" for n in range(size)}},
    ]


@pytest.mark.parametrize("place", range(5))
def test_one_update_that_is_long_costs_what_it_is_long(place: int) -> None:
    """Each beside the others, so that those which rest on another have it."""
    short = long_updates(2)
    costs = []
    for size in SIZES:
        updates = [*short[:place], long_updates(size)[place], *short[place + 1 :]]
        costs.append(cost_of(big_view(size), {"requirements": [], "updates": updates}))
    assert_linear(costs, "a long update")


def test_a_view_that_keeps_few_versions_lets_many_go_at_once() -> None:
    """And a log that names what went again and again is cut off once."""

    def crowded(size: int) -> Object:
        view = big_view(size)
        view["properties"]["version.history.num-entries"] = "1"
        return view

    body: Object = {"requirements": [], "updates": long_updates(2)[1:3]}
    assert_linear([cost_of(crowded(size), body) for size in SIZES], "versions that go")


def test_versions_of_as_many_sizes_as_there_are_do_not_meet_each_other() -> None:
    def updates(size: int) -> list[Object]:
        return [{"action": "add-view-version", "view-version": version(1, 1 + n, f"new{n}")} for n in range(size)]

    # The square of these sizes is what the body has: costs are to grow as that does.
    sizes = (12, 17, 24, 34, 48)
    costs = [cost_of(big_view(size * size // 8), {"requirements": [], "updates": updates(size)}) for size in sizes]
    assert_linear(costs, "sizes")


def test_creating_a_view_costs_what_the_request_is_long() -> None:
    def create(body: Object) -> None:
        new_view_metadata(parse_create_view(body), location=LOCATION, view_uuid=UUID, now_ms=NOW)

    costs = []
    for size in SIZES:
        view = big_view(size)
        body = {
            "name": "v",
            "schema": schema_of(0, size),
            "view-version": view["versions"][0],
            "properties": view["properties"],
        }
        costs.append(steps_of(partial(create, counted(body))))
    assert_linear(costs, "creating")


def test_registering_costs_what_the_file_is_long() -> None:
    costs = [steps_of(partial(check_registered_view, counted(big_view(size)))) for size in SIZES]
    assert_linear(costs, "registering")
