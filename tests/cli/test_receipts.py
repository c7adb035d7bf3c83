"""How commits are listed."""

from arco_catalog.cli.receipts import as_table
from arco_catalog.iceberg.json import JsonObject

CREATED: JsonObject = {
    "metadata_ms": 1_767_225_600_000,
    "metadata_location": "file:///wh/db/t-1/metadata/00000-a-1.metadata.json",
    "previous_metadata_location": None,
    "previous_metadata_ms": None,
    "snapshot_id": None,
    "updates": [],
    "principal": "anonymous",
    "source": {"kind": "IcebergRest", "client_info": None, "principal": "anonymous"},
    "state": "committed",
}
APPENDED: JsonObject = {
    **CREATED,
    "metadata_ms": 1_767_225_601_234,
    "metadata_location": "file:///wh/db/t-1/metadata/00001-b-1.metadata.json",
    "previous_metadata_location": CREATED["metadata_location"],
    "previous_metadata_ms": CREATED["metadata_ms"],
    "snapshot_id": 9_000_000_000_000_000_001,
    "updates": ["add-snapshot", "set-snapshot-ref", "add-snapshot"],
    "source": {"kind": "IcebergRest", "client_info": "Spark/4.1", "principal": "anonymous"},
    "state": "pending",
}


def test_the_table_is_pinned() -> None:
    headings, appended, created = as_table([APPENDED, CREATED]).splitlines()

    assert headings == (
        "TIME (UTC)               SNAPSHOT             CHANGES                           "
        "BY                     STATE      METADATA FILE"
    )
    assert appended == (
        "2026-01-01 00:00:01.234  9000000000000000001  2 add-snapshot, set-snapshot-ref  "
        "anonymous (Spark/4.1)  pending    file:///wh/db/t-1/metadata/00001-b-1.metadata.json"
    )
    assert created == (
        "2026-01-01 00:00:00.000  -                    create                            "
        "anonymous              committed  file:///wh/db/t-1/metadata/00000-a-1.metadata.json"
    )


def test_what_a_receipt_lacks_is_a_dash() -> None:
    assert as_table([{}]).splitlines()[1].split() == ["-", "-", "create", "-", "-", "-"]


def test_a_create_from_a_commit_shows_its_updates_too() -> None:
    assert "create, add-schema" in as_table([{**CREATED, "updates": ["add-schema"]}])


def test_no_commits_count_as_none() -> None:
    assert as_table([]) == "No commits were made through this catalog."


def test_the_engine_is_named_where_it_is_known() -> None:
    assert "anonymous (trino, Spark/4.1)" in as_table([{**APPENDED, "engine": "trino"}])
