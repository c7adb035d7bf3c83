"""Updates of snapshots, refs, the snapshot log and statistics (Iceberg's `TableMetadata.Builder`)."""

import pytest

from arco_catalog.iceberg.errors import BadRequest, CommitFailed
from tests.iceberg.values import (
    NOW,
    TWO_COLUMNS,
    UUID,
    Json,
    Object,
    add_snapshot,
    append,
    column,
    commit,
    history,
    ids,
    new_table,
    schema,
    set_ref,
    table_with_snapshots,
    try_commit,
)


def remove_snapshots(*snapshot_ids: int) -> Object:
    return {"action": "remove-snapshots", "snapshot-ids": list(snapshot_ids)}


def remove_ref(name: str) -> Object:
    return {"action": "remove-snapshot-ref", "ref-name": name}


def statistics(snapshot_id: int, path: str = "s3://b/stats.puffin", **fields: Json) -> Object:
    return {
        "snapshot-id": snapshot_id,
        "statistics-path": path,
        "file-size-in-bytes": 10,
        "file-footer-size-in-bytes": 2,
        "blob-metadata": [{"type": "ndv", "snapshot-id": snapshot_id, "sequence-number": 1, "fields": [1]}],
    } | fields


def partition_statistics(snapshot_id: int, path: str = "s3://b/part.parquet") -> Object:
    return {"snapshot-id": snapshot_id, "statistics-path": path, "file-size-in-bytes": 10}


def set_statistics(file: Object) -> Object:
    return {"action": "set-statistics", "snapshot-id": file["snapshot-id"], "statistics": file}


def set_partition_statistics(file: Object) -> Object:
    return {"action": "set-partition-statistics", "partition-statistics": file}


# --- adding snapshots ---


def test_an_added_snapshot_is_kept_as_it_came_and_named_by_no_ref() -> None:
    update = add_snapshot(2**62 + 1, 7, x_new={"deep": [None]}, key_id="k")
    table = commit(new_table(), update)
    assert table["snapshots"] == [update["snapshot"]]
    assert (table["current-snapshot-id"], table["refs"], table["snapshot-log"]) == (-1, {}, [])
    assert table["last-sequence-number"] == 7


@pytest.mark.parametrize("summary", [None, {}, {"operation": ""}, {"operation": "Append"}, {"operation": "merge" * 99}])
def test_a_snapshot_that_does_not_say_what_was_done_is_refused(summary: Json) -> None:
    with pytest.raises(BadRequest, match="operation must be append or replace or overwrite or delete, found"):
        try_commit(new_table(), add_snapshot(1, summary=summary))


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_negative_sequence_number_is_refused(version: int) -> None:
    with pytest.raises(BadRequest, match=r"Invalid sequence number of snapshot \d+ \(cannot be negative\): -1"):
        try_commit(new_table(version), add_snapshot(1, -1, first_row_id=0, added_rows=0))


def test_a_snapshot_whose_id_stands_for_none_is_refused() -> None:
    """Its table would say that it has no snapshot, and that main is one."""
    with pytest.raises(BadRequest, match="Cannot add a snapshot with the id -1, which stands for no snapshot"):
        try_commit(new_table(), *append(-1, 1))


def test_a_snapshot_from_before_1970_is_refused() -> None:
    """Readers subtract the times of a table's history, in 64 bits."""
    with pytest.raises(BadRequest, match=r"Invalid snapshot timestamp \(cannot be negative\): -1"):
        try_commit(new_table(), add_snapshot(1, timestamp_ms=-1))


def test_a_snapshot_comes_once() -> None:
    with pytest.raises(BadRequest, match="Snapshot already exists for id: 5"):
        try_commit(table_with_snapshots(5), add_snapshot(5, 6))
    with pytest.raises(BadRequest, match="Snapshot already exists for id: 5"):
        try_commit(new_table(), add_snapshot(5, 1), add_snapshot(5, 2))


@pytest.mark.parametrize("sequence", [4, 5])
def test_a_snapshot_with_a_parent_and_a_stale_sequence_number_may_be_retried(sequence: int) -> None:
    with pytest.raises(CommitFailed) as failed:
        try_commit(table_with_snapshots(5), add_snapshot(6, sequence, parent_snapshot_id=5))
    assert failed.value.message == (
        "Validation failed, please retry: "
        f"Cannot add snapshot with sequence number {sequence} older than last sequence number 5, or equal to it"
    )


def test_a_root_snapshot_may_be_stale_and_does_not_lower_the_tables_number() -> None:
    """Replacing a table meets a concurrent commit this way (notes, section 0, finding 1)."""
    table = commit(table_with_snapshots(5), remove_ref("main"), *append(6, 2))
    assert table["last-sequence-number"] == 5
    assert ids(table, "snapshots", "sequence-number") == [5, 2]
    with pytest.raises(CommitFailed, match="sequence number 3 older than last sequence number 5"):
        try_commit(table, add_snapshot(7, 3, parent_snapshot_id=6))


def test_v1_has_no_sequence_numbers() -> None:
    table = commit(new_table(1), *append(1, 0), add_snapshot(2, 0, parent_snapshot_id=1))
    assert ids(table, "snapshots", "snapshot-id") == [1, 2]
    with pytest.raises(BadRequest, match="Sequence number must be 0 in v1: 3"):
        try_commit(table, add_snapshot(3, 3))


def test_v1_takes_manifests_in_place_of_a_manifest_list() -> None:
    update = add_snapshot(1, 0, manifests=["s3://b/m.avro"])
    del update["snapshot"]["manifest-list"], update["snapshot"]["sequence-number"]
    assert commit(new_table(1), update)["snapshots"] == [update["snapshot"]]


@pytest.mark.parametrize(
    ("emptied", "message"),
    [
        ("schemas", "Attempting to add a snapshot before a schema is added"),
        ("partition-specs", "Attempting to add a snapshot before a partition spec is added"),
        ("sort-orders", "Attempting to add a snapshot before a sort order is added"),
    ],
)
def test_a_snapshot_needs_a_schema_a_spec_and_an_order(emptied: str, message: str) -> None:
    with pytest.raises(BadRequest, match=message):
        try_commit(new_table() | {emptied: []}, add_snapshot(1))


def test_a_create_adds_its_schema_before_its_snapshots() -> None:
    updates: list[Object] = [{"action": "assign-uuid", "uuid": UUID}, add_snapshot(1)]
    with pytest.raises(BadRequest, match="before a schema is added"):
        try_commit(None, *updates, requirements=[{"type": "assert-create"}])


# --- row lineage ---


def test_rows_of_v3_are_counted_on_whatever_branch() -> None:
    table = commit(new_table(3), *append(1, first_row_id=0, added_rows=10))
    table = commit(table, add_snapshot(2, first_row_id=10, added_rows=5), set_ref("audit", 2))
    assert table["next-row-id"] == 15


def test_a_gap_before_the_first_row_id_is_not_given_away_again() -> None:
    assert commit(new_table(3), *append(1, first_row_id=100, added_rows=10))["next-row-id"] == 110


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({}, "Cannot add a snapshot: first-row-id is null"),
        ({"added_rows": 3}, "Cannot add a snapshot: first-row-id is null"),
        ({"first_row_id": 10}, r"Invalid added-rows \(required when first-row-id is set\): null"),
        ({"first_row_id": 10, "added_rows": -1}, r"Invalid added-rows \(cannot be negative\): -1"),
        (
            {"first_row_id": 2**63 - 1, "added_rows": 1},
            r"Invalid added-rows \(first-row-id 9223372036854775807 \+ added-rows exceeds 9223372036854775807\): 1",
        ),
    ],
)
def test_snapshots_of_v3_say_which_rows_they_add(rows: Object, message: str) -> None:
    with pytest.raises(BadRequest, match=message):
        try_commit(table_with_snapshots(1, version=3), add_snapshot(2, **rows))


def test_a_first_row_id_that_is_taken_may_be_retried() -> None:
    table = table_with_snapshots(1, version=3)
    with pytest.raises(CommitFailed) as failed:
        try_commit(table, add_snapshot(2, first_row_id=9, added_rows=1))
    assert failed.value.message == (
        "Validation failed, please retry: Cannot add a snapshot, first-row-id is behind table next-row-id: 9 < 10"
    )


# --- branches and tags ---


def test_main_is_the_current_snapshot_and_its_moves_are_history() -> None:
    table = commit(new_table(), *append(1, timestamp_ms=NOW + 5))
    assert table["current-snapshot-id"] == 1
    assert table["refs"] == {"main": {"type": "branch", "snapshot-id": 1}}
    assert table["snapshot-log"] == [{"timestamp-ms": NOW + 5, "snapshot-id": 1}]


def test_a_rollback_is_logged_at_the_time_of_the_commit() -> None:
    table = commit(table_with_snapshots(1, 2), set_ref("main", 1), now_ms=NOW + 60_000)
    assert table["current-snapshot-id"] == 1
    assert history(table) == [1, 2, 1]
    assert table["snapshot-log"][-1]["timestamp-ms"] == NOW + 60_000 == table["last-updated-ms"]


def test_other_refs_are_no_history() -> None:
    table = commit(table_with_snapshots(1), set_ref("audit", 1), set_ref("v1", 1, "tag", max_ref_age_ms=5))
    assert table["refs"]["audit"] == {"type": "branch", "snapshot-id": 1}
    assert table["refs"]["v1"] == {"type": "tag", "snapshot-id": 1, "max-ref-age-ms": 5}
    assert history(table) == [1]


def test_an_identical_ref_is_no_change() -> None:
    table = commit(table_with_snapshots(1), set_ref("b", 1, min_snapshots_to_keep=2, max_snapshot_age_ms=9))
    same = set_ref("b", 1, max_snapshot_age_ms=9, min_snapshots_to_keep=2, max_ref_age_ms=None)
    assert try_commit(table, same, set_ref("main", 1)) is None


def test_retention_that_is_not_named_is_cleared_and_unknown_fields_stay() -> None:
    table = commit(table_with_snapshots(1), set_ref("b", 1, min_snapshots_to_keep=2, x_owner="ann"))
    moved = commit(table, set_ref("b", 1, max_ref_age_ms=7))
    assert moved["refs"]["b"] == {"type": "branch", "snapshot-id": 1, "max-ref-age-ms": 7, "x-owner": "ann"}


@pytest.mark.parametrize(
    ("update", "message"),
    [
        (set_ref("b", 9), "Cannot set b to unknown snapshot: 9"),
        (set_ref("main", 1, "tag"), "Cannot set main to a tag, it must be a branch"),
        (set_ref("t", 1, "tag", min_snapshots_to_keep=1), "Tags do not support setting minSnapshotsToKeep"),
        (set_ref("t", 1, "tag", max_snapshot_age_ms=1), "Tags do not support setting maxSnapshotAgeMs"),
        (set_ref("b", 1, min_snapshots_to_keep=0), "Min snapshots to keep must be greater than 0"),
        (set_ref("b", 1, max_snapshot_age_ms=0), "Max snapshot age must be greater than 0 ms"),
        (set_ref("b", 1, max_ref_age_ms=-1), "Max reference age must be greater than 0"),
    ],
)
def test_a_ref_that_cannot_be_is_refused(update: Object, message: str) -> None:
    with pytest.raises(BadRequest, match=message):
        try_commit(table_with_snapshots(1), update)


def test_removing_main_keeps_snapshots_and_history() -> None:
    table = commit(table_with_snapshots(1), remove_ref("main"))
    assert (table["current-snapshot-id"], table["refs"]) == (-1, {})
    assert history(table) == [1]
    assert ids(table, "snapshots", "snapshot-id") == [1]
    replaced = commit(table, *append(2))
    assert history(replaced) == [1, 2]


def test_without_main_v3_has_no_current_snapshot() -> None:
    assert "current-snapshot-id" not in commit(table_with_snapshots(1, version=3), remove_ref("main"))


def test_removing_another_ref_leaves_main_alone() -> None:
    table = commit(table_with_snapshots(1), set_ref("b", 1))
    removed = commit(table, remove_ref("b"), remove_ref("nothing"))
    assert (list(removed["refs"]), removed["current-snapshot-id"]) == (["main"], 1)


# --- removing snapshots ---


def test_removed_snapshots_take_their_statistics_and_refs_with_them() -> None:
    table = commit(
        table_with_snapshots(1, 2, 3),
        set_ref("b", 1),
        set_ref("t", 2, "tag"),
        *(set_statistics(statistics(snapshot_id)) for snapshot_id in (1, 2, 3)),
        *(set_partition_statistics(partition_statistics(snapshot_id)) for snapshot_id in (1, 2, 3)),
    )
    removed = commit(table, remove_snapshots(1, 2, 77))
    assert ids(removed, "snapshots", "snapshot-id") == [3]
    assert ids(removed, "statistics", "snapshot-id") == [3]
    assert ids(removed, "partition-statistics", "snapshot-id") == [3]
    assert list(removed["refs"]) == ["main"]
    assert history(removed) == [3]


def test_removing_the_current_snapshot_leaves_the_table_without_one() -> None:
    removed = commit(table_with_snapshots(1, 2), remove_snapshots(2))
    assert (removed["current-snapshot-id"], removed["refs"], removed["snapshot-log"]) == (-1, {}, [])


def test_a_snapshot_that_went_can_be_named_no_more() -> None:
    with pytest.raises(BadRequest, match="Cannot set main to unknown snapshot: 1"):
        try_commit(table_with_snapshots(1, 2), remove_snapshots(1), set_ref("main", 1))


def test_a_snapshot_added_and_removed_at_once_leaves_only_its_sequence_number() -> None:
    table = commit(table_with_snapshots(1), add_snapshot(2), remove_snapshots(2))
    assert ids(table, "snapshots", "snapshot-id") == [1]
    assert table["last-sequence-number"] == 2


# --- the snapshot log ---


def test_history_before_a_gap_is_forgotten() -> None:
    table = table_with_snapshots(1, 2, 3, 4)
    assert history(commit(table, remove_snapshots(2))) == [3, 4]
    assert history(commit(table, remove_snapshots(1))) == [2, 3, 4]
    assert history(commit(table, remove_snapshots(1, 3))) == [4]


def test_what_was_main_only_within_the_commit_is_no_history() -> None:
    table = commit(table_with_snapshots(1), *append(2), *append(3), *append(4))
    assert history(table) == [1, 4]
    assert ids(table, "snapshots", "snapshot-id") == [1, 2, 3, 4]


def test_going_back_within_the_commit_is_history_and_what_was_left_is_not() -> None:
    table = commit(table_with_snapshots(1), *append(2), set_ref("main", 1))
    assert history(table) == [1, 1]
    assert table["current-snapshot-id"] == 1


def test_an_older_snapshot_that_was_main_for_a_moment_is_history() -> None:
    """Only snapshots that the commit itself added are intermediate."""
    table = commit(table_with_snapshots(1, 2), set_ref("main", 1), *append(3))
    assert history(table) == [1, 2, 1, 3]


def test_a_log_that_does_not_end_at_the_current_snapshot_cannot_be_cut() -> None:
    table = table_with_snapshots(1, 2, 3)
    table["snapshot-log"] = table["snapshot-log"][:-1]
    with pytest.raises(BadRequest, match="Cannot set invalid snapshot log: latest entry is not the current snapshot"):
        try_commit(table, remove_snapshots(1))


def test_a_table_without_log_can_still_expire_snapshots() -> None:
    table = table_with_snapshots(1, 2)
    del table["snapshot-log"]
    assert commit(table, remove_snapshots(1))["snapshot-log"] == []


@pytest.mark.parametrize("ahead", [0, 59_000, 60_000])
def test_clocks_may_differ_by_a_minute(ahead: int) -> None:
    table = commit(new_table(), *append(1, timestamp_ms=NOW + ahead))
    assert commit(table, *append(2, timestamp_ms=NOW + ahead - 60_000))["current-snapshot-id"] == 2


def test_a_writer_whose_clock_is_ahead_by_more_is_refused() -> None:
    """A log that is ahead of the table could be read by nobody."""
    with pytest.raises(BadRequest, match=f"Invalid update timestamp {NOW + 1}: before last snapshot log entry"):
        try_commit(new_table(), *append(1, timestamp_ms=NOW + 60_002))


def test_a_writer_whose_clock_is_behind_by_more_is_refused() -> None:
    table = commit(new_table(), *append(1, timestamp_ms=NOW))
    with pytest.raises(BadRequest, match="Expected sorted snapshot log entries"):
        try_commit(table, *append(2, timestamp_ms=NOW - 60_001))


def test_a_snapshot_that_does_not_become_main_may_have_any_time() -> None:
    assert commit(new_table(), add_snapshot(1, timestamp_ms=NOW * 2))["snapshot-log"] == []


# --- statistics ---


def test_one_file_is_kept_for_each_snapshot_known_or_not() -> None:
    table = commit(new_table(), set_statistics(statistics(1, "a")), set_statistics(statistics(2, "b", **{"x-mark": 1})))
    table = commit(table, set_statistics(statistics(1, "c")))
    assert {file["snapshot-id"]: file["statistics-path"] for file in table["statistics"]} == {1: "c", 2: "b"}
    assert [file.get("x-mark") for file in table["statistics"] if file["snapshot-id"] == 2] == [1]
    assert try_commit(table, set_statistics(statistics(1, "c"))) is None


def test_one_file_of_partition_statistics_is_kept_for_each_snapshot() -> None:
    table = commit(new_table(), set_partition_statistics(partition_statistics(1, "a")))
    table = commit(table, set_partition_statistics(partition_statistics(1, "c")))
    assert table["partition-statistics"] == [partition_statistics(1, "c")]


def test_statistics_are_removed_by_snapshot() -> None:
    table = commit(
        new_table(),
        *(set_statistics(statistics(snapshot_id)) for snapshot_id in (1, 2)),
        *(set_partition_statistics(partition_statistics(snapshot_id)) for snapshot_id in (1, 2)),
    )
    table = commit(
        table,
        {"action": "remove-statistics", "snapshot-id": 1},
        {"action": "remove-partition-statistics", "snapshot-id": 2},
    )
    assert ids(table, "statistics", "snapshot-id") == [2]
    assert ids(table, "partition-statistics", "snapshot-id") == [1]


# --- replacing a table ---


def test_a_replaced_table_keeps_uuid_snapshots_and_history() -> None:
    """What the Java client sends for a replace (the compatibility kit's testCompleteReplaceTransaction)."""
    replaced = commit(
        table_with_snapshots(1, 2),
        remove_ref("main"),
        {"action": "add-schema", "schema": schema(*TWO_COLUMNS["fields"], column(3, "new"))},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "set-default-spec", "spec-id": 0},
        {"action": "set-default-sort-order", "sort-order-id": 0},
        {"action": "set-location", "location": "s3://b/new"},
        *append(3),
        base_location="s3://b/previous.metadata.json",
    )
    assert (replaced["table-uuid"], replaced["location"]) == (UUID, "s3://b/new")
    assert history(replaced) == [1, 2, 3]
    assert replaced["metadata-log"][-1]["metadata-file"] == "s3://b/previous.metadata.json"
