"""What pointers, receipts and answers take from a document."""

from arco_catalog.iceberg.table import (
    current_snapshot_id,
    last_sequence_number,
    last_updated_ms,
    location,
    refs,
    table_uuid,
    visible_snapshots_only,
    written_locations,
)
from tests.iceberg.values import LOCATION, NOW, UUID, commit, deep_copy, ids, new_table, set_ref, table_with_snapshots

TABLE = commit(table_with_snapshots(1, 2, 3), set_ref("v1", 1, "tag"), now_ms=NOW + 9000)


def test_a_document_tells_who_where_and_when_it_is() -> None:
    assert (table_uuid(TABLE), location(TABLE), last_updated_ms(TABLE)) == (UUID, LOCATION, NOW + 9000)
    assert (last_sequence_number(TABLE), current_snapshot_id(TABLE)) == (3, 3)


def test_a_document_without_snapshot_has_no_current_one() -> None:
    assert [current_snapshot_id(new_table(version)) for version in (1, 2, 3)] == [None, None, None]
    assert current_snapshot_id({}) is None


def test_the_oldest_documents_have_neither_uuid_nor_sequence_number() -> None:
    assert (table_uuid({"format-version": 1}), last_sequence_number({"format-version": 1})) == (None, 0)


def test_main_is_a_ref_even_where_it_is_not_listed() -> None:
    assert refs({"current-snapshot-id": 7, "refs": None}) == {"main": {"snapshot-id": 7, "type": "branch"}}
    assert refs(TABLE) == TABLE["refs"]
    assert refs(new_table()) == {}


def test_a_document_without_hidden_snapshots_keeps_all_else() -> None:
    file = {"snapshot-id": 2, "statistics-path": "s", "file-size-in-bytes": 1}
    table = TABLE | {"partition-statistics": [file], "x-mark": 1}
    before = deep_copy(table)
    visible = visible_snapshots_only(table)
    assert ids(visible, "snapshots", "snapshot-id") == [1, 3]
    assert visible | {"snapshots": table["snapshots"]} == table == before


def test_a_table_without_refs_shows_no_snapshots() -> None:
    removed = commit(TABLE, {"action": "remove-snapshot-ref", "ref-name": "main"})
    assert ids(visible_snapshots_only(removed), "snapshots", "snapshot-id") == [1]
    assert visible_snapshots_only({"format-version": 1})["snapshots"] == []


def test_the_places_where_a_document_sends_writers_are_found() -> None:
    table = new_table(properties={"write.metadata.path": "s3://b/m", "write.data.path": "s3://b/d", "a": "s3://b/a"})
    assert written_locations(table) == ("s3://b/m", "s3://b/d")
