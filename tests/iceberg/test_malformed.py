"""Whatever a client sends is read or refused: nothing but `BadRequest` ever comes out."""

from collections.abc import Callable
from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from arco_catalog.iceberg.errors import BadRequest, Refusal
from arco_catalog.iceberg.requirements import TABLE_REQUIREMENTS
from arco_catalog.iceberg.table import (
    apply_commit,
    check_registered,
    new_table_metadata,
    parse_commit,
    parse_create_table,
)
from arco_catalog.iceberg.updates import TABLE_UPDATES
from tests.iceberg.strategies import json_values, new_tables, updates
from tests.iceberg.values import LOCATION, NOW, UUID, Json, Object, create_request, table_with_snapshots

FIELD_NAMES = [
    "uuid", "ref", "ref-name", "type", "snapshot-id", "schema", "spec", "sort-order", "snapshot", "updates", "removals",
    "snapshot-ids", "schema-ids", "spec-ids", "statistics", "partition-statistics", "encryption-key", "key-id", "id",
    "fields", "name", "required", "element", "element-id", "element-required", "key", "value", "value-id", "transform",
    "source-id", "location", "direction", "null-order", "identifier-field-ids", "initial-default",
]  # fmt: skip
WORDS = ["long", "struct", "list", "map", "branch", "identity", "bucket[4]", "decimal(9,2)", "asc", ""]

almost: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELD_NAMES), inner, max_size=6),
    max_leaves=20,
)
"""Values that have the right words in the wrong places."""

TABLE = table_with_snapshots(1, 2, version=3)

fields_of_anything = st.dictionaries(st.sampled_from(FIELD_NAMES), almost, max_size=8)


def read_or_refused(read: Callable[[Json], object], value: Json) -> None:
    """Any other exception fails the test."""
    with suppress(BadRequest):
        read(value)


@given(json_values | almost)
def test_any_value_as_a_commit(value: Json) -> None:
    read_or_refused(parse_commit, value)


@given(st.lists(json_values), st.lists(json_values))
def test_any_values_as_updates_and_requirements(some: Json, others: Json) -> None:
    read_or_refused(parse_commit, {"updates": some, "requirements": others})


@given(st.sampled_from(sorted(TABLE_UPDATES)), fields_of_anything)
def test_any_fields_of_a_known_update(action: str, fields: Object) -> None:
    read_or_refused(parse_commit, {"updates": [fields | {"action": action}]})


@given(st.sampled_from(sorted(TABLE_REQUIREMENTS)), fields_of_anything)
def test_any_fields_of_a_known_requirement(kind: str, fields: Object) -> None:
    read_or_refused(parse_commit, {"requirements": [fields | {"type": kind}]})


def places(value: Json) -> list[tuple[Json, Json]]:
    """Every container in the value with a key or index of it."""
    if isinstance(value, dict):
        found: list[tuple[Json, Json]] = [(value, name) for name in value]
    elif isinstance(value, list):
        found = [(value, position) for position in range(len(value))]
    else:
        return []
    return found + [place for _, key in found for place in places(value[key])]


@given(updates, st.data())
def test_an_update_with_anything_in_one_of_its_places_is_applied_or_refused(
    update: Object, data: st.DataObject
) -> None:
    """What parsing lets through breaks nothing after it."""
    body: Json = {"updates": [deep(update)]}
    container, key = data.draw(st.sampled_from(places(body)))
    container[key] = data.draw(almost | json_values)
    with suppress(Refusal):
        apply_commit(TABLE, parse_commit(body), now_ms=NOW, base_location="f", name="ns.t")


def deep(value: Json) -> Json:
    if isinstance(value, dict):
        return {name: deep(item) for name, item in value.items()}
    return [deep(item) for item in value] if isinstance(value, list) else value


@given(json_values | almost)
def test_any_value_as_a_create(value: Json) -> None:
    read_or_refused(parse_create_table, value)


@given(
    st.sampled_from(["name", "schema", "partition-spec", "write-order", "properties", "stage-create", "location"]),
    almost | json_values,
)
def test_any_value_in_one_field_of_a_create(name: str, value: Json) -> None:
    with suppress(BadRequest):
        wanted = parse_create_table(create_request() | {name: value})
        new_table_metadata(wanted, location=LOCATION, table_uuid=UUID, now_ms=NOW)


@given(new_tables, st.data())
def test_any_value_in_one_place_of_a_registered_file(table: Object, data: st.DataObject) -> None:
    document = deep(table)
    container, key = data.draw(st.sampled_from(places(document)))
    container[key] = data.draw(almost | json_values)
    with suppress(Refusal):
        registered = check_registered(document)
        commit = parse_commit({"updates": [{"action": "set-properties", "updates": {"some": "change"}}]})
        apply_commit(registered, commit, now_ms=NOW, base_location="f", name="ns.t")
