"""What holds for every table and every commit."""

from collections.abc import Iterator
from contextlib import suppress

import pytest
from hypothesis import given

from arco_catalog.iceberg.errors import Refusal
from arco_catalog.iceberg.json import dumps, loads
from arco_catalog.iceberg.table import apply_commit, check_registered, parse_commit
from tests.iceberg.engine_updates import Step, histories_of, steps_of, updates_of
from tests.iceberg.strategies import new_tables
from tests.iceberg.values import NOW, Json, Object, commit_body, new_table, try_commit


def steps(table: Object, history: list[list[Step]]) -> Iterator[tuple[Object, Object]]:
    """Base and result of every commit that had an effect. Each result is the next base."""
    for number, chosen in enumerate(history):
        try:
            result = try_commit(table, *updates_of(table, chosen), now_ms=NOW + number, base_location=f"f{number}")
        except Refusal:
            continue
        if result is not None:
            yield table, result
            table = result


def after(table: Object, history: list[list[Step]]) -> Object:
    """The table when all commits that can be made are made."""
    for _, result in steps(table, history):
        table = result
    return table


@given(new_tables, histories_of(), steps_of())
def test_a_commit_never_changes_its_base(table: Object, history: list[list[Step]], last: list[Step]) -> None:
    base = after(table, history)
    before = dumps(base)
    with suppress(Refusal):
        try_commit(base, *updates_of(base, last))
    assert dumps(base) == before


@given(new_tables, histories_of())
def test_a_result_is_a_table_that_every_reader_accepts(table: Object, history: list[list[Step]]) -> None:
    """`check_registered` holds ids, references, logs and shapes against the specification."""
    for _, result in steps(table, history):
        check_registered(result)


@given(new_tables, histories_of())
def test_counters_only_grow_and_ids_are_never_given_twice(table: Object, history: list[list[Step]]) -> None:
    counters = ("last-column-id", "last-partition-id", "last-sequence-number", "next-row-id", "format-version")
    for base, result in steps(table, history):
        assert all(result.get(name, 0) >= base.get(name, 0) for name in counters)
        fields = [field["field-id"] for spec in result["partition-specs"] for field in spec["fields"]]
        assert max(fields, default=999) <= result["last-partition-id"]


@given(new_tables, histories_of())
def test_a_tables_time_strictly_grows(table: Object, history: list[list[Step]]) -> None:
    for base, result in steps(table, history):
        assert result["last-updated-ms"] > base["last-updated-ms"]


@given(new_tables, histories_of())
def test_the_metadata_log_keeps_its_bound_and_ends_with_the_base(table: Object, history: list[list[Step]]) -> None:
    for base, result in steps(table, history):
        limit = int(result["properties"].get("write.metadata.previous-versions-max", "100"))
        log, before = result["metadata-log"], base["metadata-log"]
        assert len(log) == min(limit, len(before) + 1)
        assert log[-1]["timestamp-ms"] == base["last-updated-ms"]
        assert log[:-1] == before[len(before) + 1 - len(log) :]


@given(new_tables, histories_of())
def test_a_commit_with_an_effect_says_something_new(table: Object, history: list[list[Step]]) -> None:
    for base, result in steps(table, history):
        assert {**result, "last-updated-ms": base["last-updated-ms"], "metadata-log": base["metadata-log"]} != base


@given(new_tables, histories_of())
def test_what_was_said_last_is_no_change_when_said_again(table: Object, history: list[list[Step]]) -> None:
    """Setting a table to what it is has no effect: properties, location, current and default ids, refs."""
    found = after(table, history)
    again: list[Object] = [
        {"action": "set-properties", "updates": found["properties"]},
        {"action": "set-location", "location": found["location"]},
        {"action": "upgrade-format-version", "format-version": found["format-version"]},
        {"action": "set-current-schema", "schema-id": found["current-schema-id"]},
        {"action": "set-default-spec", "spec-id": found["default-spec-id"]},
        {"action": "set-default-sort-order", "sort-order-id": found["default-sort-order-id"]},
        *({"action": "add-schema", "schema": schema} for schema in found["schemas"]),
        *({"action": "add-spec", "spec": spec} for spec in found["partition-specs"]),
        *({"action": "add-sort-order", "sort-order": order} for order in found["sort-orders"]),
        *({"action": "set-snapshot-ref", "ref-name": name, **ref} for name, ref in found["refs"].items()),
        *({"action": "set-statistics", "statistics": file} for file in found["statistics"]),
    ]
    assert try_commit(found, *again) is None


@given(new_tables, histories_of(), steps_of())
def test_the_same_commit_has_the_same_outcome(table: Object, history: list[list[Step]], last: list[Step]) -> None:
    base = after(table, history)
    parsed = parse_commit(commit_body(*updates_of(base, last)))

    def outcome() -> Json:
        try:
            return apply_commit(base, parsed, now_ms=NOW, base_location="f", name="ns.t")
        except Refusal as refusal:
            return type(refusal), refusal.message

    assert outcome() == outcome()


LISTS = (
    "schemas", "partition-specs", "sort-orders", "snapshots", "statistics", "partition-statistics", "encryption-keys",
    "snapshot-log", "metadata-log",
)  # fmt: skip
MARK: Object = {"x-mark": [None, 2**70]}


def marked(value: Json) -> Json:
    """The value with a field that nobody knows in every object at every level."""
    if isinstance(value, list):
        return [marked(item) for item in value]
    if isinstance(value, dict):
        return {name: item if name == "summary" else marked(item) for name, item in value.items()} | MARK
    return value


def marked_table(table: Object) -> Object:
    lists = {name: [marked(entry) for entry in table[name]] for name in LISTS if name in table}
    return table | lists | MARK | {"x-null": None, "refs": {name: marked(ref) for name, ref in table["refs"].items()}}


def forgets(updates: list[Object]) -> bool:
    """Whether the commit removes or replaces anything but refs by refs."""
    return any(update["action"].startswith("remove") or "statistics" in update["action"] for update in updates)


@given(new_tables, histories_of(), steps_of())
def test_unknown_fields_survive_at_every_level(table: Object, history: list[list[Step]], chosen: list[Step]) -> None:
    """An entry is kept as it was, down to the last field that nobody knows, or it is a new one."""
    found = after(table, history)
    base, last = marked_table(found), updates_of(found, chosen)
    try:
        result = try_commit(base, *last, now_ms=NOW + 1000)
    except Refusal:
        return
    if result is None:
        return
    assert (result["x-mark"], result["x-null"]) == (MARK["x-mark"], None)
    for name in LISTS:
        for entry in result.get(name, []):
            assert entry in base.get(name, []) or "x-mark" not in str(entry)
        if not forgets(last) and name not in ("snapshot-log", "metadata-log"):
            assert all(entry in result[name] for entry in base.get(name, []))
    if not forgets(last):
        assert all("x-mark" in result["refs"][name] for name in base["refs"])


@pytest.mark.parametrize("number", [2**53 + 1, 2**63 - 1, -(2**63)])
def test_integers_beyond_2_to_the_53_stay_exact(number: int) -> None:
    snapshot: Object = {
        "snapshot-id": number,
        "timestamp-ms": NOW,
        "manifest-list": "m",
        "sequence-number": 1,
        "summary": {"operation": "append"},
        "x-mark": number * 3,
    }
    base: Json = loads(dumps(new_table()))
    body = loads(dumps({"updates": [{"action": "add-snapshot", "snapshot": snapshot}]}))
    table = apply_commit(base, parse_commit(body), now_ms=NOW, base_location="f", name="ns.t")
    stored: Json = loads(dumps(table))
    assert stored["snapshots"] == [snapshot]
