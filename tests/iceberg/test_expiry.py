"""What expires of a table (docs/design/expiry.md#rule-1). `engines/expiry` compares it with Java for drawn tables."""

import pytest

from arco_catalog.iceberg.accessors import allows_deletes
from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.expiry import MAX_STEPS, Retention, find_expired
from arco_catalog.iceberg.metadata import TableMetadata, complete
from arco_catalog.iceberg.updates import RemoveSnapshotRef, RemoveSnapshots
from tests.iceberg.values import Json, Object, commit, set_ref, table_with_snapshots

DAY_MS = 86_400_000
NOW_MS = 1_700_000_000_000 + 10 * DAY_MS


def aged(table: Object, *ages: float) -> TableMetadata:
    """The table with snapshots of these ages in days, in order."""
    snapshots: list[Json] = [
        {**each, "timestamp-ms": NOW_MS - round(age * DAY_MS)}
        for each, age in zip(table["snapshots"], ages, strict=True)
    ]
    return complete({**table, "snapshots": [*snapshots]})


def expired(metadata: TableMetadata, retention: Retention | None = None) -> list[int]:
    found = find_expired(metadata, retention or Retention(), NOW_MS)
    return [snapshot["snapshot-id"] for snapshot in found.snapshots]


def test_snapshots_older_than_the_age_expire_and_the_last_stays() -> None:
    assert expired(aged(table_with_snapshots(1, 2, 3), 9, 7, 6)) == [1, 2]
    assert expired(aged(table_with_snapshots(1, 2, 3), 9, 4, 3)) == [1]


def test_a_snapshot_of_the_very_age_stays() -> None:
    assert expired(aged(table_with_snapshots(1, 2, 3), 6, 5, 1)) == [1]


def test_a_branch_keeps_a_number_of_snapshots() -> None:
    assert expired(aged(table_with_snapshots(1, 2, 3), 9, 8, 7), Retention(to_keep=2)) == [1]


def test_an_old_snapshot_before_a_young_one_that_is_older_than_its_child_ends_what_is_kept() -> None:
    """A clock was wrong: Java stops at the first that is too old, too."""
    assert expired(aged(table_with_snapshots(1, 2, 3, 4), 1, 9, 1, 1)) == [1, 2]


def test_a_tag_keeps_its_snapshot_alone() -> None:
    table = commit(table_with_snapshots(1, 2, 3), set_ref("t", 2, "tag"))
    assert expired(aged(table, 9, 8, 7)) == [1]


def test_a_branch_has_a_retention_of_its_own() -> None:
    table = commit(table_with_snapshots(1, 2, 3), set_ref("b", 2, min_snapshots_to_keep=2))
    assert expired(aged(table, 9, 8, 7)) == []
    table = commit(table_with_snapshots(1, 2, 3), set_ref("b", 2, max_snapshot_age_ms=20 * DAY_MS))
    assert expired(aged(table, 9, 8, 7)) == []


def test_old_refs_expire_but_main() -> None:
    table = commit(table_with_snapshots(1, 2), set_ref("b", 1), set_ref("t", 1, "tag", max_ref_age_ms=20 * DAY_MS))
    found = find_expired(aged(table, 9, 8), Retention(ref_age_ms=DAY_MS), NOW_MS)
    assert found.refs == ["b"]
    assert found.updates == (RemoveSnapshotRef("b"),)


def test_a_ref_without_a_snapshot_expires() -> None:
    metadata = aged(table_with_snapshots(1), 1)
    metadata["refs"]["lost"] = {"snapshot-id": 7, "type": "tag"}
    assert find_expired(metadata, Retention(), NOW_MS).refs == ["lost"]


def test_a_snapshot_in_no_branch_expires_by_its_age() -> None:
    table = commit(table_with_snapshots(1, 2, 3), set_ref("main", 1))
    assert expired(aged(table, 9, 8, 1)) == [2]


def test_a_commit_removes_the_oldest_of_too_many() -> None:
    metadata = aged(table_with_snapshots(1, 2, 3, 4), 7, 9, 8, 6)
    found = find_expired(metadata, Retention(), NOW_MS, limit=2)
    assert found.updates == (RemoveSnapshots([2, 3]),)


def test_parents_in_a_circle_end() -> None:
    metadata = aged(table_with_snapshots(1, 2), 1, 1)
    metadata["snapshots"][0]["parent-snapshot-id"] = 2
    assert expired(metadata) == []


def test_branches_that_take_too_long_are_refused() -> None:
    metadata = aged(table_with_snapshots(1), 1)
    count = 1_500
    metadata["snapshots"] = [
        {"snapshot-id": number, "timestamp-ms": NOW_MS, "parent-snapshot-id": number - 1} for number in range(count)
    ]
    metadata["refs"] = {f"b{n}": {"snapshot-id": count - 1, "type": "branch"} for n in range(MAX_STEPS // count + 1)}
    with pytest.raises(BadRequest, match="branches keep more than"):
        expired(metadata)


def test_properties_set_the_retention_and_arguments_come_first() -> None:
    properties = {
        "history.expire.max-snapshot-age-ms": "7",
        "history.expire.min-snapshots-to-keep": "3",
        "history.expire.max-ref-age-ms": "9",
    }
    assert Retention.of(properties) == Retention(7, 3, 9)
    assert Retention.of(properties, snapshot_age_ms=0, to_keep=1) == Retention(0, 1, 9)


@pytest.mark.parametrize("text", ["30d", "-1", "0", "", "1.5", "9" * 30])
def test_a_property_that_is_no_positive_number_is_refused(text: str) -> None:
    with pytest.raises(BadRequest, match="max-snapshot-age-ms must be a positive whole number"):
        Retention.of({"history.expire.max-snapshot-age-ms": text})


def test_files_of_a_table_may_be_deleted_unless_a_property_forbids_it() -> None:
    assert allows_deletes({"properties": {}})
    assert allows_deletes({"properties": {"gc.enabled": "TRUE"}})
    assert not allows_deletes({"properties": {"gc.enabled": "false"}})
    assert not allows_deletes({"properties": {"gc.enabled": "no"}})
