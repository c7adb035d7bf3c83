"""Files that somebody registers, and tables that older writers left behind (Iceberg's `CatalogHandlers`)."""

import pytest

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.table import check_registered
from tests.iceberg.values import (
    LOCATION,
    NOW,
    TWO_COLUMNS,
    Json,
    Object,
    append,
    column,
    commit,
    deep_copy,
    history,
    ids,
    new_table,
    order,
    schema,
    set_ref,
    snapshot,
    spec,
    table_with_snapshots,
)

OLDEST: Object = {
    "format-version": 1,
    "location": LOCATION,
    "last-updated-ms": NOW,
    "last-column-id": 2,
    "schema": TWO_COLUMNS,
    "partition-spec": spec((2, "day", "d"))["fields"],
    "current-snapshot-id": 7,
    "snapshots": [{"snapshot-id": 7, "timestamp-ms": NOW, "manifests": ["m.avro"], "x-mark": 1}],
    "x-mark": {"deep": None},
}


@pytest.mark.parametrize("version", [1, 2, 3])
def test_what_the_catalog_writes_can_be_registered_as_it_is(version: int) -> None:
    table = table_with_snapshots(1, 2, version=version)
    assert check_registered(table) is table
    assert check_registered(
        new_table(version, partition_spec=spec((2, "day", "d")), write_order=order((1, "identity")))
    )


def test_the_oldest_form_can_be_registered_and_committed_to() -> None:
    before = deep_copy(OLDEST)
    assert check_registered(OLDEST) == before
    table = commit(OLDEST, {"action": "set-properties", "updates": {"a": "1"}}, now_ms=NOW + 1)
    assert before == OLDEST
    with_id = {"schema-id": 0, **TWO_COLUMNS}
    numbered = spec((2, "day", "d"), first_id=1000)
    assert table == OLDEST | {
        "last-updated-ms": NOW + 1,
        "schema": with_id,
        "schemas": [with_id],
        "current-schema-id": 0,
        "partition-spec": numbered["fields"],
        "partition-specs": [{"spec-id": 0, **numbered}],
        "default-spec-id": 0,
        "last-partition-id": 1000,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "properties": {"a": "1"},
        "refs": {"main": {"type": "branch", "snapshot-id": 7}},
        "statistics": [],
        "partition-statistics": [],
        "snapshot-log": [],
        "metadata-log": [{"timestamp-ms": NOW, "metadata-file": "file:///w/t/metadata/00000-a.metadata.json"}],
    }
    assert check_registered(table) is table


def test_the_oldest_form_can_be_appended_to() -> None:
    table = commit(OLDEST, *append(8, 0, parent_snapshot_id=7), now_ms=NOW + 1)
    assert (table["current-snapshot-id"], history(table)) == (8, [8])
    assert table["snapshots"][0] == OLDEST["snapshots"][0]


def test_the_schemas_own_id_is_kept_in_the_oldest_form() -> None:
    table = commit(
        OLDEST | {"schema": TWO_COLUMNS | {"schema-id": 4}}, {"action": "set-properties", "updates": {"a": "1"}}
    )
    assert (table["current-schema-id"], ids(table, "schemas", "schema-id")) == (4, [4])


def test_v2_tables_may_leave_out_refs_snapshots_logs_statistics_and_properties() -> None:
    table = new_table()
    for name in (
        "refs",
        "snapshots",
        "snapshot-log",
        "metadata-log",
        "statistics",
        "partition-statistics",
        "properties",
    ):
        del table[name]
    del table["current-snapshot-id"]
    check_registered(table)
    assert commit(table, *append(1))["current-snapshot-id"] == 1


def test_known_fields_may_be_null() -> None:
    table = new_table() | {"current-snapshot-id": None, "refs": None, "statistics": None, "metadata-log": None}
    check_registered(table)
    assert commit(table, *append(1))["refs"]["main"]["snapshot-id"] == 1


def test_main_is_added_where_only_other_refs_are_listed() -> None:
    table = commit(table_with_snapshots(1), set_ref("b", 1))
    del table["refs"]["main"]
    check_registered(table)
    assert list(commit(table, set_ref("t", 1, "tag"))["refs"]) == ["main", "b", "t"]


TABLE = table_with_snapshots(1, 2)
MISSING = object()

REFUSED: list[tuple[Object, str]] = [
    ({"format-version": MISSING}, "missing required field 'format-version'"),
    ({"format-version": 4}, "Cannot read metadata of the unsupported format version 4"),
    ({"format-version": "2"}, "Invalid metadata.format-version: expected an integer"),
    ({"location": MISSING}, "missing required field 'location'"),
    ({"location": ""}, "Invalid metadata.location: the string must not be empty"),
    ({"table-uuid": MISSING}, "missing required field 'table-uuid'"),
    ({"last-updated-ms": "now"}, "Invalid metadata.last-updated-ms: expected an integer"),
    ({"last-sequence-number": MISSING}, "missing required field 'last-sequence-number'"),
    ({"last-column-id": 2**40}, "Invalid metadata.last-column-id: 1099511627776 does not fit into 32 bits"),
    ({"schemas": MISSING}, "missing required field 'schemas'"),
    ({"schemas": [1]}, r"Invalid metadata.schemas\[0\]: expected an object"),
    ({"schemas": [{"type": "struct", "fields": [{}]}]}, r"schemas\[0\].fields\[0\]: missing required field 'id'"),
    ({"schemas": [TWO_COLUMNS, TWO_COLUMNS]}, "schema-id 0 is there twice"),
    ({"schemas": [schema(column(1, "a"), column(1, "b"))]}, "same id 1"),
    ({"current-schema-id": 5}, "The current-schema-id of the table metadata is 5"),
    ({"default-spec-id": 5}, "The default-spec-id of the table metadata is 5"),
    ({"partition-specs": [{"spec-id": 0, **spec((1, "void", "v"))}]}, "partition spec 0 has fields without field-id"),
    ({"partition-specs": [{"spec-id": 0, **spec((9, "day", "d"), first_id=1000)}]}, "Cannot find source column"),
    (
        {"partition-specs": [{"spec-id": 0, "fields": []}, {"spec-id": 1, **spec((2, "day", "id"), first_id=1000)}]},
        "name that exists in schema: id",
    ),
    ({"partition-specs": [{"spec-id": None, "fields": []}]}, "partition-specs: spec-id must not be null"),
    ({"default-sort-order-id": 5}, "The default-sort-order-id of the table metadata is 5"),
    ({"sort-orders": [{"order-id": 0, **order((9, "identity"))}]}, "Cannot find source column for sort field"),
    ({"properties": {"a": 1}}, r"Invalid metadata.properties\['a'\]: expected a string"),
    ({"snapshots": [snapshot(1), snapshot(2), snapshot(2)]}, "snapshot-id 2 is there twice"),
    ({"snapshots": [snapshot(1), snapshot(2, 3)]}, "sequence number 3 greater than last sequence number 2"),
    ({"snapshots": [snapshot(1)]}, "Snapshot for reference main does not exist"),
    ({"refs": {"main": {"type": "branch", "snapshot-id": 1}}}, r"does not match main branch \(2 != 1\)"),
    ({"current-snapshot-id": -1}, r"does not match main branch \(None != 2\)"),
    ({"refs": {"main": {"type": "twig", "snapshot-id": 2}}}, r"refs\['main'\].type: expected 'branch' or 'tag'"),
    (
        {"snapshot-log": [{"snapshot-id": 2, "timestamp-ms": NOW * 2}]},
        "Invalid update timestamp .* before last snapshot log entry",
    ),
    (
        {"snapshot-log": [{"snapshot-id": 1, "timestamp-ms": NOW}, {"snapshot-id": 2, "timestamp-ms": NOW - 60_001}]},
        "Expected sorted snapshot log entries",
    ),
    (
        {"metadata-log": [{"metadata-file": "f", "timestamp-ms": NOW * 2}]},
        "'metadata-log' has a time that is more than a minute later",
    ),
    (
        {"metadata-log": [{"metadata-file": 1, "timestamp-ms": 1}]},
        r"metadata-log\[0\].metadata-file: expected a string",
    ),
]


@pytest.mark.parametrize(("fields", "message"), REFUSED)
def test_a_file_that_no_catalog_could_go_on_from_is_refused(fields: Object, message: str) -> None:
    document = {name: value for name, value in (TABLE | fields).items() if value is not MISSING}
    with pytest.raises(BadRequest, match=message):
        check_registered(document)


def test_v3_needs_its_row_counter() -> None:
    table = new_table(3)
    del table["next-row-id"]
    with pytest.raises(BadRequest, match="missing required field 'next-row-id'"):
        check_registered(table)


@pytest.mark.parametrize(
    ("left_out", "message"),
    [
        (["schema", "schemas"], "missing required field 'schema'"),
        (["current-schema-id"], "missing required field 'current-schema-id'"),
        (["partition-spec", "partition-specs"], "missing required field 'partition-spec'"),
        (["default-spec-id"], "missing required field 'default-spec-id'"),
        (["default-sort-order-id"], "missing required field 'default-sort-order-id'"),
    ],
)
def test_v1_needs_one_of_both_forms_whole(left_out: list[str], message: str) -> None:
    table = {name: value for name, value in new_table(1).items() if name not in left_out}
    with pytest.raises(BadRequest, match=message):
        check_registered(table)


@pytest.mark.parametrize("document", [None, [], "x", 1, True, 1.5])
def test_what_is_no_object_is_no_table(document: Json) -> None:
    with pytest.raises(BadRequest, match="Invalid metadata: expected an object"):
        check_registered(document)
