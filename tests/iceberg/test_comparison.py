"""What differs between two versions of a table or view, and what holds for each comparison."""

from typing import Any

import pytest
from hypothesis import given

from arco_catalog.iceberg.comparison import compare_tables, compare_views
from arco_catalog.iceberg.json import JsonObject, dumps
from arco_catalog.iceberg.metadata import complete, current_schema
from arco_catalog.iceberg.schema import columns_by_id
from arco_catalog.iceberg.snapshot_ancestry import MAX_LISTED, compare_snapshots
from tests.iceberg.engine_updates import Step, histories_of
from tests.iceberg.strategies import new_tables
from tests.iceberg.test_laws import after
from tests.iceberg.test_views import new_view, replaced
from tests.iceberg.values import (
    Object,
    add_snapshot,
    column,
    commit,
    mapping,
    new_table,
    schema,
    set_ref,
    spec,
    struct,
    table_with_snapshots,
)

REVERSED = {"added": "dropped", "dropped": "added", "from": "to", "to": "from"}
RELATIONS = {"ahead": "behind", "behind": "ahead"}


def reverse(value: Any) -> Any:
    """A comparison in the other direction. Lists are compared without their order: each side lists its own."""
    if isinstance(value, dict):
        return {REVERSED.get(name, name): reverse(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [reverse(inner) for inner in value]
    return RELATIONS.get(value, value) if isinstance(value, str) else value


def unordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: unordered(inner) for name, inner in value.items()}
    return sorted((unordered(each) for each in value), key=dumps) if isinstance(value, list) else value


@given(new_tables, histories_of())
def test_a_table_does_not_differ_from_itself(table: Object, history: list[list[Step]]) -> None:
    version = after(table, history)

    found = compare_tables(version, version)

    assert found["equal"] is True
    assert found["snapshots"] == {
        "added": [],
        "dropped": [],
        "relation": "equal",
        "between": [],
        "counts": {"added": 0, "dropped": 0, "between": 0},
    }


@given(new_tables, histories_of(), histories_of())
def test_the_other_direction_exchanges_both_sides(
    table: Object, history: list[list[Step]], later: list[list[Step]]
) -> None:
    first = after(table, history)
    second = after(first, later)

    assert unordered(compare_tables(second, first)) == unordered(reverse(compare_tables(first, second)))


@given(new_tables, histories_of(), histories_of())
def test_a_comparison_applied_to_the_first_version_gives_the_second(
    table: Object, history: list[list[Step]], later: list[list[Step]]
) -> None:
    first = after(table, history)
    second = after(first, later)

    found: Any = compare_tables(first, second)

    for part, before, now in (
        ("properties", first["properties"], second["properties"]),
        ("refs", complete(first)["refs"], complete(second)["refs"]),
    ):
        changed = {name: change["to"] for name, change in found[part]["changed"].items()}
        applied = {name: value for name, value in {**before, **changed}.items() if name not in found[part]["dropped"]}
        assert {**applied, **found[part]["added"]} == now
    columns = set(columns_by_id(current_schema(complete(first))))
    columns -= {each["id"] for each in found["schema"]["dropped"]}
    columns |= {each["id"] for each in found["schema"]["added"]}
    assert columns == columns_by_id(current_schema(complete(second))).keys()
    snapshots = {each["snapshot-id"] for each in complete(first)["snapshots"]}
    snapshots -= {each["snapshot-id"] for each in found["snapshots"]["dropped"]}
    snapshots |= {each["snapshot-id"] for each in found["snapshots"]["added"]}
    assert snapshots == {each["snapshot-id"] for each in complete(second)["snapshots"]}
    for part, numbers, number in (
        ("partition-specs", "partition-specs", "spec-id"),
        ("sort-orders", "sort-orders", "order-id"),
    ):
        known = {each[number] for each in first[numbers]} - {each["id"] for each in found[part]["dropped"]}
        assert known | {each["id"] for each in found[part]["added"]} == {each[number] for each in second[numbers]}


@pytest.mark.parametrize("value", ["", "x"])
def test_a_property_is_a_difference_whatever_value_it_has(value: str) -> None:
    without = new_table()
    having: Any = {**without, "properties": {**without["properties"], "k": value}}

    assert compare_tables(without, having)["equal"] is False
    assert compare_tables(having, without)["equal"] is False


def test_a_default_catalog_without_a_name_differs_from_none() -> None:
    view: Any = new_view()
    [version] = view["versions"]
    named: Any = {**view, "versions": [{**version, "default-catalog": ""}]}

    assert compare_views(view, named)["equal"] is False


def test_columns_are_compared_by_their_ids_at_every_level() -> None:
    before = new_table(schema=schema(column(1, "id"), column(2, "place", struct(column(3, "city", "string")))))
    then = schema(
        column(1, "key", "long", required=True, doc="d"),
        column(2, "place", struct(column(4, "zip", "string"))),
        column(5, "tags", mapping(6, 7)),
    )
    now = new_table(schema=schema(column(1, "x")))
    now["schemas"] = [{**then, "schema-id": 0}]

    found: Any = compare_tables(before, now)["schema"]

    assert [(each["id"], each["name"], each["type"]) for each in found["added"]] == [
        (4, "place.zip", "string"),
        (5, "tags", "map"),
        (6, "tags.key", "string"),
        (7, "tags.value", "long"),
    ]
    assert [(each["id"], each["name"]) for each in found["dropped"]] == [(3, "place.city")]
    [renamed] = found["changed"]
    assert (renamed["id"], renamed["differs"]) == (1, ["name", "required", "doc"])
    assert (renamed["from"]["name"], renamed["to"]["name"], renamed["to"]["doc"]) == ("id", "key", "d")
    assert (found["reordered"], found["identifiers"]) == (False, None)


def test_an_order_of_columns_and_identifiers_are_differences() -> None:
    before = new_table(schema=schema(column(1, "a", required=True), column(2, "b", required=True)))
    now = new_table(schema=schema(column(2, "b", required=True), column(1, "a", required=True), identifiers=[1]))
    now["schemas"][0]["fields"] = [*reversed(before["schemas"][0]["fields"])]

    found: Any = compare_tables(before, now)

    assert found["equal"] is False
    assert found["schema"]["reordered"] is True
    assert found["schema"]["identifiers"]["from"] == []


def test_layouts_are_described_by_their_columns() -> None:
    before = new_table()
    added = commit(before, {"action": "add-spec", "spec": spec((1, "bucket[16]", "b"))})
    now = commit(added, {"action": "set-default-spec", "spec-id": 1})

    found: Any = compare_tables(before, now)["partition-specs"]

    assert found == {"default": {"from": 0, "to": 1}, "added": [{"id": 1, "fields": ["bucket[16](id)"]}], "dropped": []}


def test_sizes_are_those_of_the_current_snapshots_and_unknown_where_no_summary_has_them() -> None:
    empty, table = new_table(), table_with_snapshots(1)
    table["snapshots"][0]["summary"] = {"operation": "append", "total-records": "7", "total-files-size": "x"}

    found: Any = compare_tables(empty, table)["size"]

    assert found == {
        "records": {"from": 0, "to": 7},
        "data-files": {"from": 0, "to": None},
        "delete-files": {"from": 0, "to": None},
        "bytes": {"from": 0, "to": None},
    }


class TestSnapshots:
    def relation(self, before: Object, now: Object) -> tuple[str, list[int]]:
        found: Any = compare_tables(before, now)["snapshots"]
        return found["relation"], found["between"]

    def test_between_are_the_snapshots_after_the_older_one(self) -> None:
        old, new = table_with_snapshots(1, 2), table_with_snapshots(1, 2, 3, 4)

        assert self.relation(old, new) == ("ahead", [3, 4])
        assert self.relation(new, old) == ("behind", [3, 4])
        assert self.relation(new_table(), new) == ("ahead", [1, 2, 3, 4])

    def test_branches_from_one_ancestor_have_diverged(self) -> None:
        one = table_with_snapshots(1, 2)
        other = commit(table_with_snapshots(1), add_snapshot(3, parent_snapshot_id=1), set_ref("main", 3))

        assert self.relation(one, other) == ("diverged", [])

    def test_what_expired_snapshots_hide_is_unknown(self) -> None:
        old, new = table_with_snapshots(1), table_with_snapshots(1, 2, 3)
        new["snapshots"] = new["snapshots"][2:]
        old["snapshots"][0]["parent-snapshot-id"] = 9

        assert self.relation(old, new) == ("unknown", [])

    def test_parents_in_a_circle_end(self) -> None:
        table = table_with_snapshots(1, 2)
        table["snapshots"][0]["parent-snapshot-id"] = 2
        other = table_with_snapshots(5)

        assert self.relation(table, other)[0] == "unknown"

    def test_long_lists_are_cut_off_and_counted(self) -> None:
        count = MAX_LISTED + 5
        snapshots: Any = {
            number: {"snapshot-id": number, "timestamp-ms": number, "parent-snapshot-id": number - 1 or None}
            for number in range(1, count + 1)
        }

        found: Any = compare_snapshots({}, snapshots, None, count)

        assert found["counts"] == {"added": count, "dropped": 0, "between": count}
        assert found["between"] == [*range(6, count + 1)]
        assert [each["snapshot-id"] for each in found["added"]] == found["between"]


def test_views_are_compared_by_their_sql_in_each_dialect() -> None:
    before = new_view()
    now = replaced(before, "SELECT 2")

    found: Any = compare_views(before, now)

    assert found["equal"] is False
    assert [*found["representations"]["changed"]] == ["spark"]
    assert found["representations"]["changed"]["spark"]["to"] == "SELECT 2"
    assert found["view-versions"]["current"] is not None
    assert compare_views(now, now)["equal"] is True
    assert unordered(compare_views(now, before)) == unordered(reverse(found))


@pytest.mark.parametrize("version", [1, 2, 3])
def test_tables_of_every_format_version_are_compared(version: int) -> None:
    found: JsonObject = compare_tables(new_table(version), new_table(3))

    assert found["equal"] is (version == 3)
    assert (found["fields"] == {}) is (version == 3)
