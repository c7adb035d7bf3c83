"""Commits with `assert-create`: the end of a staged create (Iceberg's `RESTSessionCatalog`, `CatalogHandlers`)."""

import pytest

from arco_catalog.iceberg.errors import BadRequest, CommitFailed
from arco_catalog.iceberg.table import apply_commit, parse_commit
from tests.iceberg.values import (
    LOCATION,
    NOW,
    OTHER_UUID,
    TWO_COLUMNS,
    UUID,
    Object,
    append,
    column,
    commit,
    commit_body,
    history,
    ids,
    new_table,
    order,
    schema,
    spec,
    try_commit,
)

CREATE: list[Object] = [{"type": "assert-create"}]


def staged(table: Object) -> list[Object]:
    """What the Java client sends of a staged table, before the changes of its transaction."""
    return [
        {"action": "assign-uuid", "uuid": table["table-uuid"]},
        {"action": "upgrade-format-version", "format-version": table["format-version"]},
        {"action": "add-schema", "schema": table["schemas"][0]},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": table["partition-specs"][0]},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": table["sort-orders"][0]},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": table["location"]},
        {"action": "set-properties", "updates": table["properties"]},
    ]


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("write_order", [order(), order((1, "identity"))])
@pytest.mark.parametrize("partition_spec", [spec(), spec((2, "day", "d"), (1, "bucket[4]", "b"))])
def test_the_committed_table_is_the_staged_one(version: int, partition_spec: Object, write_order: Object) -> None:
    table = new_table(version, partition_spec=partition_spec, write_order=write_order, stage_create=True)
    assert commit(None, *staged(table), requirements=CREATE) == table


def test_ids_are_kept_as_the_client_sends_them() -> None:
    sparse = new_table(schema=TWO_COLUMNS)
    sparse["schemas"] = [schema(column(7, "a"), column(12, "b")) | {"schema-id": 0}]
    sparse["partition-specs"] = [spec((7, "identity", "a"), first_id=1005)]
    table = commit(None, *staged(sparse), requirements=CREATE)
    assert (table["last-column-id"], table["last-partition-id"]) == (12, 1005)
    assert ids(table["schemas"][0], "fields", "id") == [7, 12]


def test_one_commit_may_evolve_what_it_creates() -> None:
    """The compatibility kit's testCompleteCreateTransactionMultipleSchemas."""
    wider = schema(*TWO_COLUMNS["fields"], column(3, "new"))
    table = commit(
        None,
        *staged(new_table(write_order=order((1, "identity")))),
        *append(11, 1),
        {"action": "add-schema", "schema": wider},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": spec((3, "identity", "new"), first_id=1000)},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": order((3, "identity"))},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        *append(12, 2, parent_snapshot_id=11, schema_id=1),
        requirements=CREATE,
    )
    assert ids(table, "schemas", "schema-id") == [0, 1]
    assert ids(table, "partition-specs", "spec-id") == [0, 1]
    assert ids(table, "sort-orders", "order-id") == [1, 2]
    assert ids(table, "snapshots", "snapshot-id") == [11, 12]
    assert (table["current-schema-id"], table["default-spec-id"], table["default-sort-order-id"]) == (1, 1, 2)
    assert table["current-snapshot-id"] == 12
    assert history(table) == [12]
    assert table["last-sequence-number"] == 2
    assert table["metadata-log"] == []
    assert table["last-updated-ms"] == NOW


def test_the_table_begins_at_the_first_version_asked_for_and_may_be_upgraded_from_there() -> None:
    first = new_table(1)
    upgrade: Object = {"action": "upgrade-format-version", "format-version": 3}
    table = commit(None, *staged(first), upgrade, requirements=CREATE)
    assert (table["format-version"], table["next-row-id"]) == (3, 0)
    assert not {"schema", "partition-spec"} & set(table)


def test_without_a_version_the_table_has_the_default_one() -> None:
    updates = [update for update in staged(new_table()) if update["action"] != "upgrade-format-version"]
    assert commit(None, *updates, requirements=CREATE)["format-version"] == 2


def test_a_table_that_is_there_already_is_not_created() -> None:
    with pytest.raises(CommitFailed) as failed:
        try_commit(new_table(), *staged(new_table()), requirements=CREATE)
    assert failed.value.message == "Requirement failed: table already exists"


@pytest.mark.parametrize(
    ("left_out", "message"),
    [
        ("assign-uuid", "UUID is required in format v2"),
        ("set-location", "without a location"),
        ("add-schema", "no schema has been added"),
        ("add-spec", "no spec has been added"),
        ("add-sort-order", "no sort order has been added"),
    ],
)
def test_a_create_that_leaves_out_what_a_table_must_have_is_refused(left_out: str, message: str) -> None:
    updates = [update for update in staged(new_table()) if update["action"] != left_out]
    with pytest.raises(BadRequest, match=message):
        try_commit(None, *updates, requirements=CREATE)


@pytest.mark.parametrize("kind", ["schema", "spec", "sort-order"])
def test_a_create_of_nothing_but_a_name_is_refused(kind: str) -> None:
    updates = [update for update in staged(new_table()) if not update["action"].endswith(kind)]
    with pytest.raises(BadRequest, match=r"Cannot find the current schema|cannot be null or empty"):
        try_commit(None, *updates, requirements=CREATE)


def test_ids_may_be_named_instead_of_the_last_added_ones() -> None:
    table = new_table(partition_spec=spec((1, "identity", "id")), write_order=order((1, "identity")))
    named = {"schema-id": 0, "spec-id": 0, "sort-order-id": 1}
    updates = [{name: named.get(name, value) for name, value in update.items()} for update in staged(table)]
    assert commit(None, *updates, requirements=CREATE) == table


def test_location_and_uuid_may_come_from_the_catalog() -> None:
    updates = [update for update in staged(new_table()) if update["action"] not in ("assign-uuid", "set-location")]
    parsed = parse_commit(commit_body(*updates, requirements=CREATE))
    table = apply_commit(
        None,
        parsed,
        now_ms=NOW,
        base_location=None,
        name="ns.t",
        default_location=f"{LOCATION}/",
        new_uuid=UUID,
    )
    assert table == new_table()


def test_within_a_create_the_last_uuid_wins() -> None:
    again: Object = {"action": "assign-uuid", "uuid": OTHER_UUID}
    assert commit(None, *staged(new_table()), again, requirements=CREATE)["table-uuid"] == OTHER_UUID


@pytest.mark.parametrize("version", [4, 0, -3])
def test_a_create_at_an_unsupported_version_is_refused(version: int) -> None:
    updates = staged(new_table() | {"format-version": version})
    with pytest.raises(BadRequest, match=f"unsupported format version: v{version} "):
        try_commit(None, *updates, requirements=CREATE)
