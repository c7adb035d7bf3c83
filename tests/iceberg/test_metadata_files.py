"""The metadata log, the table's own time, and the names of metadata files (Iceberg's `TableMetadata`)."""

import pytest
from pyiceberg.catalog import MetastoreCatalog

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.table import (
    files_that_left_the_log,
    is_metadata_file_name,
    metadata_codec,
    metadata_directory,
    metadata_file_name,
    next_metadata_version,
    uses_gzip,
)
from tests.iceberg.values import NOW, Object, commit, ids, new_table


def keep(versions: str, **more: str) -> Object:
    """Sets the log's limit, and what else is given."""
    return {"action": "set-properties", "updates": {"write.metadata.previous-versions-max": versions, **more}}


def numbered(table: Object, *numbers: int) -> Object:
    """The table after a commit onto each file of these numbers."""
    for number in numbers:
        update: Object = {"action": "set-properties", "updates": {"n": str(number)}}
        table = commit(table, update, base_location=f"f{number}", now_ms=NOW + number)
    return table


def log(table: Object) -> list[str]:
    return ids(table, "metadata-log", "metadata-file")


def test_each_commit_logs_the_file_it_replaces_with_that_files_time() -> None:
    table = numbered(new_table(), 1, 2)
    assert table["metadata-log"] == [
        {"timestamp-ms": NOW, "metadata-file": "f1"},
        {"timestamp-ms": NOW + 1, "metadata-file": "f2"},
    ]


@pytest.mark.parametrize(("now_ms", "expected"), [(NOW + 5, NOW + 5), (NOW, NOW + 1), (0, NOW + 1), (NOW + 1, NOW + 1)])
def test_a_tables_time_grows_whatever_the_clock_says(now_ms: int, expected: int) -> None:
    update: Object = {"action": "set-properties", "updates": {"a": "1"}}
    assert commit(new_table(), update, now_ms=now_ms)["last-updated-ms"] == expected


def test_the_log_keeps_a_hundred_files() -> None:
    assert log(numbered(new_table(), *range(120))) == [f"f{number}" for number in range(20, 120)]


def test_the_log_is_cut_by_the_property_that_the_same_commit_sets() -> None:
    table = numbered(new_table(), 1, 2, 3)
    assert log(commit(table, keep("2"), base_location="f4")) == ["f3", "f4"]


@pytest.mark.parametrize("limit", ["0", "-5", "1"])
def test_the_log_always_keeps_the_previous_file(limit: str) -> None:
    table = numbered(new_table(), 1, 2)
    assert log(commit(table, keep(limit), base_location="f3")) == ["f3"]


def test_a_limit_that_is_no_number_is_refused() -> None:
    with pytest.raises(BadRequest, match=r"write\.metadata\.previous-versions-max must have integer value"):
        commit(new_table(), keep("many"))


def test_a_file_that_left_the_log_may_be_deleted_only_where_the_table_asks_for_it() -> None:
    table = numbered(new_table(), 1, 2, 3)
    asks = commit(table, keep("2", **{"write.metadata.delete-after-commit.enabled": "True"}), base_location="f4")
    silent = commit(table, keep("2"), base_location="f4")
    assert files_that_left_the_log(table, asks) == ["f1", "f2"]
    assert files_that_left_the_log(table, silent) == []
    assert files_that_left_the_log(None, asks) == []


FILE_ID = "6c97e413-d51b-4538-ac70-12fe2a85cb83"


def test_files_are_named_after_number_and_uuid() -> None:
    assert metadata_file_name(0, FILE_ID, "none") == f"00000-{FILE_ID}.metadata.json"
    assert metadata_file_name(123456, FILE_ID, "gzip") == f"123456-{FILE_ID}.gz.metadata.json"


@pytest.mark.parametrize("codec", ["none", "gzip"])
@pytest.mark.parametrize("number", [0, 7, 99_999, 123_456])
def test_pyiceberg_finds_number_and_uuid_in_a_name(number: int, codec: str) -> None:
    location = f"s3://b/t/metadata/{metadata_file_name(number, FILE_ID, codec)}"
    assert MetastoreCatalog._parse_metadata_version(location) == number


@pytest.mark.parametrize(
    "name",
    [
        f"00000-{FILE_ID}.metadata.json",
        f"123456-{FILE_ID}.gz.metadata.json",
        "00012-01KAN0Y7Q2M3C4D5E6F7G8H9JK-1.metadata.json",
        "00012-01KAN0Y7Q2M3C4D5E6F7G8H9JK-14.gz.metadata.json",
    ],
)
def test_names_of_metadata_files_are_recognised_of_whatever_version_they_are(name: str) -> None:
    assert is_metadata_file_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "manifest.json",
        "v3.metadata.json",
        f"00000-{FILE_ID}.avro",
        f"snap-1-1-{FILE_ID}.avro",
        f"00000-{FILE_ID}.metadata.json.crc",
        f"x/00000-{FILE_ID}.metadata.json",
        f"0-{FILE_ID}.metadata.json",
        f"00000-{FILE_ID.upper()}.metadata.json",
        f"00000-{FILE_ID}-1.metadata.json",
        f"00000-{FILE_ID.replace('-', '')}.metadata.json",
        f"00000-{FILE_ID}.metadata.json\n",
        "00012-01KAN0Y7Q2M3C4D5E6F7G8H9JK.metadata.json",
        "٠٠٠٠٠-01KAN0Y7Q2M3C4D5E6F7G8H9JK-1.metadata.json",
    ],
)
def test_other_names_are_no_metadata_files_of_ours(name: str) -> None:
    assert not is_metadata_file_name(name)


@pytest.mark.parametrize(
    ("previous", "number"),
    [
        (None, 0),
        ("s3://b/t/metadata/00000-a.metadata.json", 1),
        ("file:///w/00041-01J-2.gz.metadata.json", 42),
        (f"file:///w/00041-{FILE_ID}.gz.metadata.json", 42),
        (f"s3://b/t/metadata/2147483648-{FILE_ID}.metadata.json", 0),
        ("00999-a.metadata.json.gz", 1000),
        ("s3://b/00007-x/v3.metadata.json", 0),
        ("s3://b/t/metadata/current.json", 0),
        ("s3://b/t/metadata/-5-a.metadata.json", 0),
        ("s3://b/t/metadata/٣-a.metadata.json", 0),
    ],
)
def test_the_next_number_follows_the_previous_file(previous: str | None, number: int) -> None:
    assert next_metadata_version(previous) == number


def test_metadata_goes_below_the_location_unless_a_path_is_set() -> None:
    assert metadata_directory(new_table(), "s3://b/t/") == "s3://b/t/metadata"
    assert metadata_directory(new_table(properties={"write.metadata.path": "s3://b/m/"}), "s3://b/t") == "s3://b/m"


@pytest.mark.parametrize(("codec", "zipped"), [("gzip", True), ("GZIP", True), ("none", False), (None, False)])
def test_the_codec_of_metadata_files_is_the_tables_choice(codec: str | None, zipped: bool) -> None:
    properties = {} if codec is None else {"write.metadata.compression-codec": codec}
    table = new_table(properties=properties)
    assert uses_gzip(table) is zipped
    assert metadata_codec(table) == ("gzip" if zipped else "none")
