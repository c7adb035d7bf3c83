"""One catalog of `arco serve` has tables of Iceberg and of Delta for Spark with Polaris's plugin, beside each other."""

from pathlib import Path

import pytest

from tests.engines.shell import EngineError, Sql


def test_tables_of_both_formats_are_made_written_joined_listed_and_dropped(owner: Sql, warehouse: str) -> None:
    folder = Path(warehouse.removeprefix("file:"), "delta", "d")
    owner("CREATE NAMESPACE both")
    owner("CREATE TABLE both.ice (x BIGINT) USING iceberg")
    owner("INSERT INTO both.ice VALUES (1), (2), (3)")
    owner(f"CREATE TABLE both.d (id BIGINT, note STRING) USING delta LOCATION '{warehouse}/delta/d'")
    owner("INSERT INTO both.d VALUES (1, 'a'), (2, 'b')")
    owner("UPDATE both.d SET note = 'c' WHERE id = 1")
    owner("DELETE FROM both.d WHERE id = 2")
    owner(
        "MERGE INTO both.d t USING both.ice s ON t.id = s.x "
        "WHEN MATCHED THEN UPDATE SET note = 'seen' WHEN NOT MATCHED THEN INSERT (id, note) VALUES (s.x, 'new')"
    )

    joined = owner("SELECT d.id, d.note FROM both.d d JOIN both.ice i ON d.id = i.x ORDER BY d.id")
    listed = {str(row[1]) for row in owner("SHOW TABLES IN both")}
    owner("DROP TABLE both.d")

    assert joined == [(1, "seen"), (2, "new"), (3, "new")]
    assert listed == {"ice", "d"}
    assert {str(row[1]) for row in owner("SHOW TABLES IN both")} == {"ice"}
    with pytest.raises(EngineError, match="TABLE_OR_VIEW_NOT_FOUND"):
        owner("SELECT * FROM both.d")
    assert (folder / "_delta_log").is_dir(), "its files stay"


def test_a_table_made_where_one_was_dropped_has_its_rows(owner: Sql, warehouse: str) -> None:
    make = f"CREATE TABLE again.d (id BIGINT) USING delta LOCATION '{warehouse}/delta/again'"
    owner("CREATE NAMESPACE again")
    owner(make)
    owner("INSERT INTO again.d VALUES (7)")
    owner("DROP TABLE again.d")

    owner(make)

    assert owner("SELECT * FROM again.d") == [(7,)]


def test_a_name_means_one_thing(owner: Sql, warehouse: str) -> None:
    owner("CREATE NAMESPACE names")
    owner("CREATE TABLE names.ice (x BIGINT) USING iceberg")
    owner(f"CREATE TABLE names.d (x BIGINT) USING delta LOCATION '{warehouse}/delta/names'")

    with pytest.raises(EngineError, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
        owner(f"CREATE TABLE names.ice (x BIGINT) USING delta LOCATION '{warehouse}/delta/names-2'")
    with pytest.raises(EngineError, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
        owner("CREATE TABLE names.d (x BIGINT) USING iceberg")


def test_a_place_that_is_another_tables_or_not_allowed_is_refused(owner: Sql, warehouse: str, tmp_path: Path) -> None:
    owner("CREATE NAMESPACE places")
    owner(f"CREATE TABLE places.d (x BIGINT) USING delta LOCATION '{warehouse}/delta/places'")

    with pytest.raises(EngineError, match="overlaps the location of"):
        owner(f"CREATE TABLE places.inside (x BIGINT) USING delta LOCATION '{warehouse}/delta/places/inside'")
    with pytest.raises(EngineError, match=r"not allowed|outside"):
        owner(f"CREATE TABLE places.out (x BIGINT) USING delta LOCATION '{tmp_path.as_uri()}'")


def test_a_reader_reads_both_and_drops_neither(owner: Sql, reader: Sql, warehouse: str) -> None:
    owner("CREATE NAMESPACE shared")
    owner("CREATE TABLE shared.ice (x BIGINT) USING iceberg")
    owner(f"CREATE TABLE shared.d (x BIGINT) USING delta LOCATION '{warehouse}/delta/shared'")
    owner("INSERT INTO shared.d VALUES (1)")

    assert reader("SELECT * FROM shared.d") == [(1,)]
    with pytest.raises(EngineError, match="lacks the privilege TABLE_DROP"):
        reader("DROP TABLE shared.d")
    with pytest.raises(EngineError, match="lacks the privilege TABLE_CREATE"):
        reader(f"CREATE TABLE shared.mine (x BIGINT) USING delta LOCATION '{warehouse}/delta/mine'")
