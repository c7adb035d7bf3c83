"""What a commit costs grows as its body and its table do, and no faster: every kind of update and requirement, many of
them, on a table that is large in every dimension at once."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial

import pytest

from arco_catalog.iceberg.commit import MAX_REQUIREMENTS, MAX_UPDATES
from arco_catalog.iceberg.errors import BadRequest, CommitFailed
from arco_catalog.iceberg.properties import MAX_PROPERTIES
from arco_catalog.iceberg.requirements import TABLE_REQUIREMENTS
from arco_catalog.iceberg.table import apply_commit, check_registered, parse_commit
from arco_catalog.iceberg.updates import TABLE_UPDATES
from tests.iceberg.big_table import REQUIREMENTS, UPDATES, big_table, schema_of
from tests.iceberg.counted import Items, assert_linear, counted, steps_of
from tests.iceberg.values import LOCATION, NOW, UUID, Object

SIZES = (20, 40, 80)


def cost_of(table: Object, body: Object) -> int:
    """Steps of a commit that must succeed."""
    base, request = counted(table), counted(body)

    def work() -> None:
        commit = parse_commit(request)
        apply_commit(base, commit, now_ms=NOW + 1, base_location=f"{LOCATION}/m.json", name="db.t")

    return steps_of(work)


@pytest.mark.parametrize("kind", UPDATES)
def test_many_updates_of_a_kind_cost_what_they_and_the_table_are_long(kind: str) -> None:
    costs = [
        cost_of(
            big_table(size),
            {"requirements": [], "updates": [each for n in range(size) for each in UPDATES[kind](size, n)]},
        )
        for size in SIZES
    ]
    assert_linear(costs, kind)


@pytest.mark.parametrize("kind", REQUIREMENTS)
def test_many_requirements_of_a_kind_cost_what_they_and_the_table_are_long(kind: str) -> None:
    costs = [
        cost_of(big_table(size), {"requirements": [REQUIREMENTS[kind](size, n) for n in range(size)], "updates": []})
        for size in SIZES
    ]
    assert_linear(costs, kind)


@pytest.mark.parametrize("kind", UPDATES)
def test_one_more_update_of_a_kind_costs_the_same_on_a_table_eight_times_as_large(kind: str) -> None:
    """What a table is looked through for once, the first of them have paid."""

    def cost_of_more(size: int) -> int:
        few, many = (
            cost_of(
                big_table(size),
                {"requirements": [], "updates": [each for n in numbers for each in UPDATES[kind](size, n)]},
            )
            for numbers in (range(8), range(24))
        )
        return many - few

    small, large = cost_of_more(32), cost_of_more(256)
    assert large <= 1.5 * small + 200, f"16 more of {kind} take {small} steps on a small table, {large} on a large one"


def test_a_long_uuid_is_not_read_for_each_that_is_asked_about() -> None:
    def asking(size: int) -> int:
        table = counted({**big_table(1), "table-uuid": UUID + "-" * size})
        (requirement,) = parse_commit(
            counted({"requirements": [{"type": "assert-table-uuid", "uuid": UUID}]})
        ).requirements

        def work() -> None:
            for _ in range(size):
                with suppress(CommitFailed):
                    requirement.check(table)

        return steps_of(work)

    assert_linear([asking(size) for size in (1_000, 2_000, 4_000)], "asking for a uuid")


def test_every_kind_is_among_them() -> None:
    named = {name for kind in UPDATES for name in kind.split(", ")}
    assert set(TABLE_UPDATES) - named == {"assign-uuid"}
    assert set(TABLE_REQUIREMENTS) - set(REQUIREMENTS) == {"assert-create", "assert-table-uuid"}


def test_one_update_that_is_long_costs_what_it_is_long() -> None:
    def updates(size: int) -> list[Object]:
        return [
            {"action": "add-schema", "schema": schema_of(0, size, "e")},
            {"action": "remove-snapshots", "snapshot-ids": [*range(2, size)]},
            {"action": "remove-partition-specs", "spec-ids": [*range(size - 1, 0, -1)]},
            {"action": "remove-schemas", "schema-ids": [*range(size + 1, 1, -1)]},
            {"action": "remove-properties", "removals": [f"p{n}" for n in range(size)]},
            {"action": "set-properties", "updates": {f"q{n}": "v" for n in range(size)}},
        ]

    costs = [cost_of(big_table(size), {"requirements": [], "updates": updates(size)}) for size in SIZES]
    assert_linear(costs, "long updates")


def test_schemas_of_as_many_sizes_as_there_are_do_not_meet_each_other() -> None:
    """Each size is looked for once, and all that there are only once for all sizes."""

    def sized(size: int) -> Object:
        table = big_table(size)
        return {**table, "partition-specs": [{"spec-id": n, "fields": []} for n in range(size * size // 8)]}

    def updates(size: int) -> list[Object]:
        fields = [
            {"source-id": 1, "transform": "identity", "name": "c0"},
            *({"source-id": 1, "transform": f"bucket[{n + 1}]", "name": f"p{n}"} for n in range(size)),
        ]
        return [{"action": "add-spec", "spec": {"fields": fields[: n + 1]}} for n in range(size)]

    # The square of these sizes is what body and table have: costs are to grow as that does.
    sizes = (12, 17, 24, 34, 48)
    costs = [cost_of(sized(size), {"requirements": [], "updates": updates(size)}) for size in sizes]
    assert_linear(costs, "sizes")


def test_registering_costs_what_the_file_is_long() -> None:
    costs = [steps_of(partial(check_registered, counted(big_table(size)))) for size in SIZES]
    assert_linear(costs, "registering")


@pytest.mark.parametrize(("field", "most"), [("updates", MAX_UPDATES), ("requirements", MAX_REQUIREMENTS)])
def test_a_commit_with_more_than_are_allowed_is_told_how_many_are(field: str, most: int) -> None:
    entry: Object = {"action": "remove-properties", "removals": []}
    if field == "requirements":
        entry = {"type": "assert-default-spec-id", "default-spec-id": 0}
    parse_commit({field: [entry] * most})
    with pytest.raises(BadRequest, match=f"at most {most:,} {field}, not {most + 1:,}"):
        parse_commit({field: [entry] * (most + 1)})


@pytest.mark.parametrize(
    "update",
    [
        {"action": "set-properties", "updates": {f"p{number}": "" for number in range(MAX_PROPERTIES + 1)}},
        {"action": "remove-properties", "removals": ["p"] * (MAX_PROPERTIES + 1)},
    ],
    ids=lambda update: str(update["action"]),
)
def test_an_update_with_more_properties_than_are_allowed_is_told_how_many_are(update: Object) -> None:
    with pytest.raises(BadRequest, match=f"at most {MAX_PROPERTIES:,}"):
        parse_commit({"updates": [update]})


class OutOfTime(Exception):
    """What a checkpoint raises."""


def test_work_stops_at_the_checkpoint_that_says_so() -> None:
    body: Object = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}] * 9}
    asked = 0

    def checkpoint() -> None:
        nonlocal asked
        asked += 1
        if asked == 5:
            raise OutOfTime

    def stopped(work: Callable[[], object]) -> None:
        nonlocal asked
        asked = 0
        with pytest.raises(OutOfTime):
            work()
        assert asked == 5

    table = big_table(9)
    commit = parse_commit(body)
    stopped(lambda: parse_commit(body, checkpoint))
    stopped(lambda: apply_commit(table, commit, now_ms=NOW, base_location=None, name="db.t", checkpoint=checkpoint))
    stopped(lambda: check_registered(table, checkpoint))


@pytest.mark.parametrize(
    "work",
    [
        lambda items: [max(items) for _ in items],
        lambda items: [sorted(items) for _ in items],
        lambda items: [item in list(items) for item in items],
        lambda items: [items.index(item) for item in items],
        lambda items: [[*items] for _ in items],
        lambda items: [items.copy() for _ in items],
        lambda items: [items[1:] for _ in items],
        lambda items: [sum(1 for other in items) for _ in items],
        lambda items: [items == [*items] for _ in items],
    ],
)
def test_the_count_finds_what_costs_the_square(work: Callable[[Items], object]) -> None:
    costs = [steps_of(partial(work, counted([*range(size)]))) for size in SIZES]
    with pytest.raises(AssertionError, match="grows beyond linear"):
        assert_linear(costs, "a square")
