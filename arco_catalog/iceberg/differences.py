"""Compares parts of two metadata documents: mappings, numbered objects, and columns. Pure functions. A result of
mappings or columns has what was `added`, `dropped` and `changed` from the first to the second, that of numbered objects
only the first two; if both are equal, all parts are empty, False or None."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.iceberg.schema import Column, Schema, columns_by_id, type_name

T = TypeVar("T")

_CHANGES = {"added", "dropped", "changed"}
"""The parts of a result whose entries are differences, also one with the value "" or null."""


def compare_value(before: JsonValue, after: JsonValue) -> JsonObject | None:
    """Returns two values as `from` and `to`, None if they are equal."""
    return None if before == after else {"from": before, "to": after}


def compare_mappings(before: Mapping[str, JsonValue], after: Mapping[str, JsonValue]) -> JsonObject:
    """Compares two mappings by their keys. Returns the entries that only the second (`added`) or only the first has
    (`dropped`), and both values where they differ (`changed`), sorted by key."""
    changed = {name: compare_value(before[name], after[name]) for name in before.keys() & after.keys()}
    return {
        "added": {name: after[name] for name in sorted(after.keys() - before.keys())},
        "dropped": {name: before[name] for name in sorted(before.keys() - after.keys())},
        "changed": {name: change for name, change in sorted(changed.items()) if change is not None},
    }


def compare_numbered(
    before: Mapping[int, T], after: Mapping[int, T], describe: Callable[[int, T], JsonObject]
) -> JsonObject:
    """Compares immutable objects by their ids, and describes those that only one side has. An object that differs under
    one id is both dropped and added."""
    added = [number for number in after if number not in before or before[number] != after[number]]
    dropped = [number for number in before if number not in after or before[number] != after[number]]
    return {
        "added": [describe(number, after[number]) for number in sorted(added)],
        "dropped": [describe(number, before[number]) for number in sorted(dropped)],
    }


def compare_schemas(before: Schema, after: Schema) -> JsonObject:
    """Compares the columns of two schemas at every level by their ids, so that a rename is a change. `identifiers` has
    the ids of identifier columns before and after, None if they are equal; `reordered` is whether columns that both
    have are in another order. Raises `BadRequest` for a schema with ambiguous columns."""
    old, new = ({column.id: _column(column) for column in columns_by_id(schema).values()} for schema in (before, after))
    kept = [column for column in old if column in new]
    return {
        "added": [new[column] for column in new if column not in old],
        "dropped": [old[column] for column in old if column not in new],
        "changed": [_change(old[column], new[column]) for column in kept if old[column] != new[column]],
        "reordered": kept != [column for column in new if column in old],
        "identifiers": compare_value(_identifiers(before), _identifiers(after)),
    }


def is_equal(difference: JsonValue) -> bool:
    """Whether a result of these functions, or a mapping of such results, has no difference: nothing in it was added,
    dropped or changed, not even an entry whose value is empty or null."""
    if not isinstance(difference, dict):
        return not difference
    if difference.keys() == {"from", "to"}:
        return False
    return all(not part if name in _CHANGES else is_equal(part) for name, part in difference.items())


def _column(column: Column) -> JsonObject:
    """Returns the fields of a column that are compared, as JSON; of a nested type only the name."""
    return {
        "id": column.id,
        "name": column.name,
        "type": type_name(column.type),
        "required": column.required,
        "doc": column.doc,
        "initial-default": column.initial_default,
        "write-default": column.write_default,
    }


def _change(before: JsonObject, after: JsonObject) -> JsonObject:
    """Returns a changed object: before, after, and the names of the fields that differ."""
    differs: list[JsonValue] = [name for name in before if before[name] != after[name]]
    return {"id": before["id"], "from": before, "to": after, "differs": differs}


def _identifiers(schema: Schema) -> list[JsonValue]:
    """Returns the ids of the identifier fields, sorted."""
    return [*sorted(schema.get("identifier-field-ids", []))]
