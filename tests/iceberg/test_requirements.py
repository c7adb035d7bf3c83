"""The eight requirements: what each says when it does not hold (Iceberg's `UpdateRequirement`)."""

import pytest

from arco_catalog.iceberg.errors import CommitFailed, NoSuchTable
from tests.iceberg.values import (
    OTHER_UUID,
    UUID,
    Object,
    add_snapshot,
    commit,
    new_table,
    order,
    set_ref,
    spec,
    table_with_snapshots,
    try_commit,
)

TABLE = commit(
    new_table(partition_spec=spec((2, "day", "d")), write_order=order((1, "identity"))),
    add_snapshot(5),
    set_ref("main", 5),
    set_ref("v1", 5, "tag"),
    set_ref("audit", 5),
)

HOLDS: list[Object] = [
    {"type": "assert-table-uuid", "uuid": UUID},
    {"type": "assert-table-uuid", "uuid": UUID.upper()},
    {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 5},
    {"type": "assert-ref-snapshot-id", "ref": "v1", "snapshot-id": 5},
    {"type": "assert-ref-snapshot-id", "ref": "other", "snapshot-id": None},
    {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 2},
    {"type": "assert-current-schema-id", "current-schema-id": 0},
    {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 1000},
    {"type": "assert-default-spec-id", "default-spec-id": 0},
    {"type": "assert-default-sort-order-id", "default-sort-order-id": 1},
]

FAILS: list[tuple[Object, str]] = [
    ({"type": "assert-create"}, "table already exists"),
    ({"type": "assert-table-uuid", "uuid": OTHER_UUID}, f"UUID does not match: expected {UUID} != {OTHER_UUID}"),
    (
        {"type": "assert-ref-snapshot-id", "ref": "audit", "snapshot-id": None},
        "branch audit was created concurrently",
    ),
    ({"type": "assert-ref-snapshot-id", "ref": "v1", "snapshot-id": None}, "tag v1 was created concurrently"),
    (
        {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 4},
        "branch main has changed: expected id 4 != 5",
    ),
    ({"type": "assert-ref-snapshot-id", "ref": "v1", "snapshot-id": 4}, "tag v1 has changed: expected id 4 != 5"),
    (
        {"type": "assert-ref-snapshot-id", "ref": "old", "snapshot-id": 4},
        "branch or tag old is missing, expected 4",
    ),
    (
        {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 1},
        "last assigned field id changed: expected id 1 != 2",
    ),
    ({"type": "assert-current-schema-id", "current-schema-id": 7}, "current schema changed: expected id 7 != 0"),
    (
        {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 999},
        "last assigned partition id changed: expected id 999 != 1000",
    ),
    ({"type": "assert-default-spec-id", "default-spec-id": 1}, "default partition spec changed: expected id 1 != 0"),
    (
        {"type": "assert-default-sort-order-id", "default-sort-order-id": 0},
        "default sort order changed: expected id 0 != 1",
    ),
]


def test_requirements_that_hold_let_the_commit_through() -> None:
    assert (
        commit(TABLE, {"action": "set-properties", "updates": {"a": "1"}}, requirements=HOLDS)["properties"]["a"] == "1"
    )


def test_a_commit_of_requirements_alone_changes_nothing() -> None:
    assert try_commit(TABLE, requirements=HOLDS) is None


@pytest.mark.parametrize(("requirement", "reason"), FAILS)
def test_a_requirement_that_does_not_hold_says_so_in_the_references_words(requirement: Object, reason: str) -> None:
    with pytest.raises(CommitFailed) as failed:
        try_commit(TABLE, requirements=[requirement])
    assert failed.value.message == f"Requirement failed: {reason}"


def test_the_first_requirement_that_fails_in_the_requests_order_is_named() -> None:
    wrong = [requirement for requirement, _ in FAILS if requirement["type"] != "assert-create"]
    for ordering in (wrong, wrong[::-1]):
        reason = next(reason for requirement, reason in FAILS if requirement == ordering[0])
        with pytest.raises(CommitFailed) as failed:
            try_commit(TABLE, requirements=ordering)
        assert failed.value.message == f"Requirement failed: {reason}"


def test_requirements_are_judged_before_updates() -> None:
    nonsense: Object = {"action": "set-current-schema", "schema-id": 99}
    with pytest.raises(CommitFailed, match="UUID does not match"):
        try_commit(TABLE, nonsense, requirements=[{"type": "assert-table-uuid", "uuid": OTHER_UUID}])


def test_main_can_be_asserted_where_an_older_writer_left_out_refs() -> None:
    table = table_with_snapshots(5)
    del table["refs"]
    assert try_commit(table, requirements=[{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 5}]) is None
    with pytest.raises(CommitFailed, match="branch main was created concurrently"):
        try_commit(table, requirements=[{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None}])


def test_a_table_without_uuid_matches_no_uuid() -> None:
    table = new_table(1)
    del table["table-uuid"]
    with pytest.raises(CommitFailed, match=f"UUID does not match: expected null != {UUID}"):
        try_commit(table, requirements=[{"type": "assert-table-uuid", "uuid": UUID}])


def test_a_commit_to_a_table_that_is_not_there_is_told_so() -> None:
    with pytest.raises(NoSuchTable, match=r"Table does not exist: ns\.t"):
        try_commit(None, requirements=[{"type": "assert-table-uuid", "uuid": UUID}])
