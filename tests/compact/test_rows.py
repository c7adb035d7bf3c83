"""What becomes rows, and which: pure functions of what is stored (docs/design/pipeline.md#tables)."""

from typing import Any

import pytest

from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.state.task import TABLE_PURGE, Task
from reconciler.compact.commits import commit_row, needs_metadata
from reconciler.compact.events import event_rows
from reconciler.compact.health import Health
from reconciler.compact.projection import project
from reconciler.compact.tasks import task_row
from reconciler.compact.version import Metadata, MissingMetadata, Version
from reconciler.compact.versions import with_newest
from reconciler.live_files import live_file
from reconciler.system import tables
from reconciler.system.definition import Row, SystemTable
from reconciler.system.iceberg import arrow_schema, partition_spec_of, schema_of, sort_order_of
from reconciler.system.writing import to_arrow

REST: JsonObject = {"kind": "IcebergRest", "client_info": "Spark/4.1"}
SERVO: JsonObject = {"kind": "Servo", "run_id": "R", "task_id": "T", "principal": "servo"}


def receipt(**more: JsonValue) -> JsonObject:
    """A committed receipt of an append."""
    return {
        "event_id": "E1",
        "commit_key": "k1",
        "entity": "T1",
        "entity_type": "table",
        "table_uuid": "u1",
        "metadata_location": "s3://b/m/00001.metadata.json",
        "metadata_ms": 1_000,
        "previous_metadata_location": "s3://b/m/00000.metadata.json",
        "namespace": ["a", "b"],
        "name": "t",
        "snapshot_id": 7,
        "added_snapshot_ids": [7],
        "requirements": ["assert-table-uuid"],
        "updates": ["add-snapshot", "set-snapshot-ref"],
        "principal": "ada",
        "source": REST,
        "request": {"method": "POST", "path": "/v1/wh/namespaces/a/tables/t"},
        **more,
    }


METADATA: JsonObject = {
    "format-version": 2,
    "table-uuid": "u1",
    "location": "s3://b/t",
    "last-sequence-number": 2,
    "current-schema-id": 1,
    "schemas": [
        {"schema-id": 0, "fields": []},
        {
            "schema-id": 1,
            "fields": [
                {"id": 1, "name": "id", "type": "long", "required": True, "doc": "key"},
                {
                    "id": 2,
                    "name": "items",
                    "required": False,
                    "type": {
                        "type": "list",
                        "element-id": 3,
                        "element": {
                            "type": "struct",
                            "fields": [{"id": 4, "name": "x", "type": "int", "required": False}],
                        },
                    },
                },
            ],
        },
    ],
    "default-spec-id": 0,
    "partition-specs": [{"spec-id": 0, "fields": []}],
    "properties": {"owner": "ada"},
    "current-snapshot-id": 7,
    "refs": {"main": {"type": "branch", "snapshot-id": 7}, "v1": {"type": "tag", "snapshot-id": 6}},
    "snapshots": [
        {"snapshot-id": 6, "timestamp-ms": 500, "sequence-number": 1, "summary": {"operation": "append"}},
        {
            "snapshot-id": 7,
            "parent-snapshot-id": 6,
            "timestamp-ms": 999,
            "sequence-number": 2,
            "manifest-list": "s3://b/t/snap-7.avro",
            "summary": {"operation": "overwrite", "added-records": "10", "total-records": "many"},
        },
    ],
    "metadata-log": [{"metadata-file": "s3://b/m/00000.metadata.json", "timestamp-ms": 600}],
}

SQL_VIEW: JsonObject = {
    "view-uuid": "v1",
    "format-version": 1,
    "current-version-id": 2,
    "versions": [
        {
            "version-id": 2,
            "schema-id": 0,
            "representations": [{"type": "sql", "sql": "SELECT 1", "dialect": "spark"}],
        }
    ],
    "schemas": [{"schema-id": 0, "fields": [{"id": 1, "name": "one", "type": "int", "required": False}]}],
}


def version(**more: Any) -> Version:
    """The version of that receipt."""
    said: dict[str, Any] = {
        "entity": "T1",
        "is_view": False,
        "commit_key": "k1",
        "committed_ms": 1_000,
        "namespace": "a.b",
        "name": "t",
        "uuid": "u1",
        "metadata_location": "s3://b/m/00001.metadata.json",
        "previous": True,
        "snapshot_id": 7,
        "added_snapshot_ids": (7,),
        "updates": ("add-snapshot",),
        "restored": False,
        "newest": True,
        "newest_schema": True,
    }
    return Version(**{**said, **more})


def rows(of: Version, document: Metadata) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for table, row in project(of, document):
        found.setdefault(table, []).append(row)
    return found


def test_a_receipt_is_a_row_with_the_snapshot_that_it_added() -> None:
    row = commit_row(receipt(), METADATA, 3)
    assert (row["event_id"], row["commit_key"], row["committed_at"], row["batch"]) == ("E1", "k1", 1_000, 3)
    assert (row["namespace"], row["name"], row["principal"], row["client"]) == ("a.b", "t", "ada", "Spark/4.1")
    assert (row["operation"], row["sequence_number"]) == ("overwrite", 2)
    assert row["summary"] == {"added-records": "10", "total-records": "many"}
    assert row["metadata_gone"] is False


def test_a_receipt_tells_of_its_request_what_it_has() -> None:
    asked: JsonObject = {"method": "POST", "path": "/v1", "id": "req-1", "idempotency_key_hash": "ab"}
    row, older = commit_row(receipt(request=asked), METADATA, 1), commit_row(receipt(), METADATA, 1)
    assert (row["request_id"], row["idempotency_key_hash"]) == ("req-1", "ab")
    assert (older["request_id"], older["idempotency_key_hash"]) == (None, None)


def test_a_receipt_whose_metadata_is_gone_says_so() -> None:
    row = commit_row(receipt(), MissingMetadata.GONE, 1)
    assert (row["metadata_gone"], row["operation"], row["summary"]) == (True, None, None)
    assert not needs_metadata(receipt(added_snapshot_ids=[]))
    assert commit_row(receipt(added_snapshot_ids=[]), None, 1)["metadata_gone"] is False


@pytest.mark.parametrize(
    ("source", "confidence", "quality"),
    [
        (SERVO, "Verified", "Checked"),
        ({**SERVO, "claimed": True}, "DeclaredUnverified", "NotChecked"),
        (REST, "DeclaredUnverified", "NotChecked"),
        ({"kind": "AdminApi", "user_id": "u"}, "None", "NotChecked"),
        ({"kind": "Restored"}, "None", "NotChecked"),
        (None, "None", "NotChecked"),
    ],
)
def test_confidence_follows_from_who_made_the_commit(source: JsonValue, confidence: str, quality: str) -> None:
    row = commit_row(receipt(source=source), METADATA, 1)
    assert (row["lineage_confidence"], row["quality_status"]) == (confidence, quality)


def test_a_registry_commit_is_a_row_for_each_operation_that_somebody_asked_for() -> None:
    commit: JsonObject = {
        "id": "C1",
        "sequence": 9,
        "at_ms": 77,
        "operations": [
            {"id": "O1", "kind": "create-table", "namespace": ["a"], "name": "t", "entity": "T1", "answer": {"x": 1}},
            {"id": "O2", "kind": "fence"},
            {"id": "O3", "kind": "rename-table", "namespace": ["a"], "name": "t", "to": {"name": "u"}, "source": REST},
            {"id": "O4", "kind": "create-table", "namespace": ["system"], "name": "commits"},
            {"id": "O5", "kind": "add-grant", "namespace": ["system"], "role": "readers", "principal": "root"},
        ],
    }
    made = list(event_rows(commit))
    assert [row["event_id"] for row in made] == ["O1", "O3", "O5"]
    assert (made[0]["details"], made[1]["details"]) == (None, '{"to":{"name":"u"}}')
    assert [row["sequence"] for row in made] == [9, 9, 9]
    assert made[2]["principal"] == "root"


def test_a_version_is_a_row_of_each_table_of_metadata() -> None:
    found = rows(version(previous=False), METADATA)
    assert {table: len(each) for table, each in found.items()} == {
        "tables": 1,
        "snapshots": 1,
        "refs": 2,
        "columns": 3,
    }
    [table] = found["tables"]
    assert (table["snapshots"], table["schema_id"], table["properties"]) == (2, 1, {"owner": "ada"})
    [snapshot] = found["snapshots"]
    assert (snapshot["snapshot_id"], snapshot["added_records"], snapshot["total_records"]) == (7, 10, None)
    assert [row["column_name"] for row in found["columns"]] == ["id", "items", "items.element.x"]
    assert [row["nullable"] for row in found["columns"]] == [False, True, True]


def test_columns_have_rows_at_every_level_of_lists_and_maps() -> None:
    def struct(*fields: JsonObject) -> JsonObject:
        return {"type": "struct", "fields": [*fields]}

    def field(number: int, name: str, kind: JsonValue) -> JsonObject:
        return {"id": number, "name": name, "type": kind, "required": False}

    def array(element: JsonValue) -> JsonObject:
        return {"type": "list", "element-id": 90, "element": element}

    def mapping(key: JsonValue, value: JsonValue) -> JsonObject:
        return {"type": "map", "key-id": 91, "key": key, "value-id": 92, "value": value}

    nested = struct(
        field(1, "lists", array(array(struct(field(2, "x", "int"))))),
        field(
            3, "maps", mapping(struct(field(4, "k", "int")), array(struct(field(5, "v", struct(field(6, "w", "int"))))))
        ),
        field(7, "deep", mapping("string", mapping("string", struct(field(8, "y", "int"))))),
        field(9, "last", "int"),
    )
    found = rows(version(previous=False), METADATA | {"schemas": [{"schema-id": 1, **nested}]})

    assert [(row["field_id"], row["column_name"]) for row in found["columns"]] == [
        (1, "lists"),
        (2, "lists.element.element.x"),
        (3, "maps"),
        (4, "maps.key.k"),
        (5, "maps.value.element.v"),
        (6, "maps.value.element.v.w"),
        (7, "deep"),
        (8, "deep.value.value.y"),
        (9, "last"),
    ]


def test_columns_are_told_where_a_schema_may_have_changed() -> None:
    assert "columns" not in rows(version(), METADATA)
    assert "columns" in rows(version(updates=("add-schema", "set-current-schema")), METADATA)
    assert "columns" in rows(version(restored=True), METADATA)


def test_a_version_whose_file_is_gone_is_what_the_receipt_tells() -> None:
    found = rows(version(previous=False), MissingMetadata.GONE)
    assert {*found} == {"tables", "snapshots"}
    assert all(row["metadata_gone"] for each in found.values() for row in each)


def test_a_restored_version_has_the_snapshots_since_the_file_before() -> None:
    found = rows(version(restored=True, added_snapshot_ids=()), METADATA)
    assert [row["snapshot_id"] for row in found["snapshots"]] == [7]


def test_a_view_is_a_row_with_its_sql() -> None:
    found = rows(version(is_view=True, previous=False, snapshot_id=None, added_snapshot_ids=()), SQL_VIEW)
    assert (found["views"][0]["sql"], found["views"][0]["dialects"]) == ("SELECT 1", ["spark"])
    assert [row["column_name"] for row in found["columns"]] == ["one"]


def test_the_newest_version_of_each_entity_is_current_unless_a_newer_one_is_known() -> None:
    old, new = version(committed_ms=1, commit_key="old"), version(committed_ms=2, commit_key="new")
    other = version(entity="T2", committed_ms=1, previous=False)
    marked = with_newest([new, other, old], {"T2": 5}, {})
    assert [(each.commit_key, each.newest) for each in marked if each.entity == "T1"] == [("new", True), ("old", False)]
    assert [(each.newest, each.newest_schema) for each in marked if each.entity == "T2"] == [(False, True)]


def test_a_task_is_a_row_when_it_has_ended() -> None:
    task = Task.submitted(record="r", task="A", kind=TABLE_PURGE, payload={}, at_ms=5, not_before_ms=6)
    assert task_row(task) is None
    row = task_row(Task({**task.document, "task_version": 4, "status": "SUCCESS", "last_status_change_ts": 9}))
    assert row is not None
    assert (row["task_id"], row["task_version"], row["created_at"], row["ended_at"]) == ("A", 4, 5, 9)


def test_the_row_of_a_task_tells_of_which_table_it_is() -> None:
    identity: JsonObject = {"table_entity_id": "T1", "namespace_levels": ["a", "b"], "table_name": "t"}
    payload: JsonObject = {"operation_parameters": {"table_identity": identity}}
    task = Task.submitted(record="r", task="A", kind=TABLE_PURGE, payload=payload, at_ms=5, not_before_ms=6)
    row = task_row(Task({**task.document, "status": "SUCCESS"}))
    assert row is not None
    assert (row["entity"], row["namespace"], row["name"]) == ("T1", "a.b", "t")


def test_the_event_of_a_rename_tells_where_the_table_is_since() -> None:
    renamed: JsonObject = {
        **{"id": "E", "kind": "rename-table", "entity": "T1", "namespace": ["a"], "name": "t"},
        "to": {"namespace": ["b", "c"], "name": "u"},
    }
    commit: JsonObject = {"id": "C", "sequence": 1, "at_ms": 5, "operations": [renamed]}
    [row] = event_rows(commit)
    assert (row["namespace"], row["name"]) == ("a", "t")
    assert (row["to_namespace"], row["to_name"]) == ("b.c", "u")


def test_health_counts_live_files() -> None:
    def entry(status: int, size: int, content: int = 0, day: int = 1) -> JsonObject:
        file: JsonObject = {"content": content, "record_count": 2, "file_size_in_bytes": size, "partition": {"d": day}}
        return {"status": status, "data_file": file}

    health = Health(target_bytes=100)
    for each in (entry(1, 10), entry(0, 100, day=2), entry(2, 10), entry(1, 5, content=1)):
        file = live_file(each)
        if file is not None:
            health.add(file)
    assert health.columns() == {
        "data_files": 2,
        "small_files": 1,
        "delete_files": 1,
        "manifests": 0,
        "records": 4,
        "bytes": 110,
        "small_bytes": 10,
        "largest_bytes": 100,
        "partitions": 2,
        "largest_partition_bytes": 100,
    }


@pytest.mark.parametrize("table", [*tables.ALL, tables.READERS], ids=lambda table: table.name)
def test_a_definition_is_whole(table: SystemTable) -> None:
    schema = schema_of(table)
    ids = [field.field_id for field in schema.fields]
    assert ids == list(range(1, len(table.columns) + 1))
    assert [field.name for field in arrow_schema(table)] == [column.name for column in table.columns]
    assert len(sort_order_of(table, schema).fields) == len(table.order)
    assert len(partition_spec_of(table, schema).fields) == (table.has_current or table.day is not None)
    assert all(column.doc for column in table.columns)


def test_rows_are_written_in_the_order_of_the_table() -> None:
    first, second = commit_row(receipt(entity="B"), METADATA, 1), commit_row(receipt(entity="A"), METADATA, 1)
    made = to_arrow(tables.COMMITS, [first, second])
    assert made["entity"].to_pylist() == ["A", "B"]
    assert made["summary"].to_pylist()[0] == [("added-records", "10"), ("total-records", "many")]
    assert made["committed_at"].to_pylist()[0].timestamp() == 1.0
