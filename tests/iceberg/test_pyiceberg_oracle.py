"""PyIceberg, which wrote its own semantics of the same specification, comes to the same tables.

It differs knowingly, and the comparison leaves that out:
- time: it stamps a table with the newest snapshot's time, or with its own clock (only ids of the log are compared);
- history: it drops only the removed snapshots' entries from the log, leaving gaps, and keeps what was main only
  within a commit (neither happens in the histories compared here);
- ids: it takes the ids that a client gives to schemas, specs and orders, and adds equal ones again (the updates
  compared here carry the ids that the table gives, and only new ones);
- v1: it never changes the old `schema` and `partition-spec` (not compared);
- numbers: a stale root snapshot lowers its last sequence number (not compared here).
"""

from hypothesis import given
from pydantic import TypeAdapter
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil
from pyiceberg.table.update import TableUpdate, update_table_metadata

from arco_catalog.iceberg.errors import Refusal
from tests.iceberg.engine_updates import Step, histories_of, updates_of
from tests.iceberg.strategies import new_tables
from tests.iceberg.values import NOW, Object, deep_copy, try_commit

_UPDATES: TypeAdapter[tuple[TableUpdate, ...]] = TypeAdapter(tuple[TableUpdate, ...])


def read(table: Object) -> TableMetadata:
    return TableMetadataUtil.parse_obj(deep_copy(table))


def said(metadata: TableMetadata) -> Object:
    """What the table is, but for the times and the order of lists that are sets."""
    found = metadata.model_dump()
    for name in ("last-updated-ms", "schema", "partition-spec"):
        found.pop(name, None)
    for name in ("snapshot-log", "metadata-log"):
        found[name] = [{key: value for key, value in entry.items() if key != "timestamp-ms"} for entry in found[name]]
    for name in ("statistics", "partition-statistics"):
        found[name] = sorted(found[name], key=lambda file: file["snapshot-id"])
    return found


def oracle(base: Object, updates: list[Object], location: str) -> TableMetadata:
    parsed = _UPDATES.validate_python(deep_copy({"updates": updates})["updates"])
    return update_table_metadata(read(base), parsed, metadata_location=location)


def comparable(base: Object, result: Object, updates: list[Object]) -> list[Object]:
    """The updates with the ids that the table gave, those aside that added what was there already."""
    kept = []
    for update in updates:
        found = _given(update, base, result)
        if found is not None:
            kept.append(found)
    return kept


_ADDED = {
    "add-schema": ("schema", "schemas"),
    "add-spec": ("spec", "partition-specs"),
    "add-sort-order": ("sort-order", "sort-orders"),
}
_CHOSEN = {
    "set-current-schema": ("schema-id", "current-schema-id"),
    "set-default-spec": ("spec-id", "default-spec-id"),
    "set-default-sort-order": ("sort-order-id", "default-sort-order-id"),
}


def _given(update: Object, base: Object, result: Object) -> Object | None:
    action = update["action"]
    if action in _ADDED:
        field, name = _ADDED[action]
        new = [entry for entry in result[name] if entry not in base[name]]
        return {"action": action, field: new[0]} if new else None
    if action in _CHOSEN:
        field, name = _CHOSEN[action]
        return {"action": action, field: result[name]}
    return update


@given(
    new_tables,
    histories_of(
        "append", "stage", "roll back", "tag", "drop a ref", "add a column", "partition", "sort", "revert the spec",
        "revert the order", "revert the schema", "set a property", "limit the log", "analyse", "move",
    ),
)  # fmt: skip
def test_pyiceberg_comes_to_the_same_table(table: Object, history: list[list[Step]]) -> None:
    for number, chosen in enumerate(history):
        updates = updates_of(table, chosen[:1])  # several chosen in one commit differ knowingly, see above
        try:
            result = try_commit(table, *updates, now_ms=NOW + number, base_location=f"f{number}")
        except Refusal:
            continue
        if result is not None:
            theirs = oracle(table, comparable(table, result, updates), f"f{number}")
            assert said(read(result)) == said(theirs)
            table = result


@given(new_tables, histories_of())
def test_pyiceberg_reads_every_table(table: Object, history: list[list[Step]]) -> None:
    read(table)
    for number, chosen in enumerate(history):
        try:
            result = try_commit(table, *updates_of(table, chosen), now_ms=NOW + number, base_location=f"f{number}")
        except Refusal:
            continue
        if result is not None:
            assert read(result).last_column_id == result["last-column-id"]
            table = result
