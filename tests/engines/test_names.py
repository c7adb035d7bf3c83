"""Names that paths must escape, through the engines themselves: each spells them in its own way (docs/engines.md)."""

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from trino.exceptions import TrinoQueryError

from tests.engines.lake import Lake
from tests.engines.names import NAMES
from tests.engines.shell import Sql

BEYOND_TRINO = ("%2f", "what?", "#1", "back\\slash")
ONE = pa.table({"id": pa.array([1], pa.int64())})


def test_spark_spells_names_so_that_the_catalog_finds_them(spark: Sql, local_lake: Lake) -> None:
    for place, name in enumerate(NAMES):
        space, table, other = f"rest.`{name}`", f"rest.`{name}`.`{name}`", f"`{name}`.`{name} 2`"
        spark(f"CREATE NAMESPACE {space}")
        spark(f"CREATE TABLE {table} (id BIGINT) USING iceberg")
        spark(f"INSERT INTO {table} VALUES ({place})")
        spark(f"CREATE VIEW {space}.`v {name}` AS SELECT id + 1 AS next FROM {table}")
        assert spark(f"SELECT * FROM {space}.`v {name}`") == [(place + 1,)]
        spark(f"DROP VIEW {space}.`v {name}`")
        assert local_lake.bystander.list_tables((name,)) == [(name, name)]
        spark(f"ALTER TABLE {table} RENAME TO {other}")
        assert spark(f"SELECT * FROM rest.{other}") == [(place,)]
        assert local_lake.bystander.load_table((name, f"{name} 2")).scan().to_arrow().to_pylist() == [{"id": place}]
        spark(f"DROP TABLE rest.{other}")
        spark(f"DROP NAMESPACE {space}")
        assert (name,) not in local_lake.bystander.list_namespaces()


def test_trino_spells_names_so_that_the_catalog_finds_them(trino: Sql, local_lake: Lake) -> None:
    """A name that begins with a blank is tried without it: Trino does not keep the blank."""
    for place, name in enumerate(name.strip() for name in NAMES if name not in BEYOND_TRINO):
        space, table, other = f'rest."{name}"', f'rest."{name}"."{name}"', f'rest."{name}"."{name} 2"'
        trino(f"CREATE SCHEMA {space}")
        trino(f"CREATE TABLE {table} (id BIGINT)")
        trino(f"INSERT INTO {table} VALUES ({place})")
        trino(f'CREATE VIEW {space}."v {name}" AS SELECT id + 1 AS next FROM {table}')
        assert trino(f'SELECT * FROM {space}."v {name}"') == [(place + 1,)]
        trino(f'DROP VIEW {space}."v {name}"')
        assert local_lake.bystander.list_tables((name,)) == [(name, name)]
        trino(f"ALTER TABLE {table} RENAME TO {other}")
        assert trino(f"SELECT * FROM {other}") == [(place,)]
        assert local_lake.bystander.load_table((name, f"{name} 2")).scan().to_arrow().to_pylist() == [{"id": place}]
        trino(f"DROP TABLE {other}")
        trino(f"DROP SCHEMA {space}")
        assert (name,) not in local_lake.bystander.list_namespaces()


@pytest.mark.slow
@pytest.mark.parametrize("name", BEYOND_TRINO)
def test_trino_puts_a_table_s_name_into_its_location_where_not_every_character_may_be(
    trino: Sql, local_lake: Lake, name: str
) -> None:
    trino(f'CREATE SCHEMA rest."{name}"')
    with pytest.raises(TrinoQueryError, match="Failed to create transaction"):
        trino(f'CREATE TABLE rest."{name}"."{name}" (id BIGINT)')
    assert local_lake.bystander.list_tables((name,)) == []
    trino(f'DROP SCHEMA rest."{name}"')


@pytest.mark.parametrize("name", [*NAMES, "a.b", "trailing ", "b`t", 'q"t', "e\u0301"])
def test_pyiceberg_spells_names_so_that_the_catalog_finds_them(local_lake: Lake, name: str) -> None:
    catalog = local_lake.bystander
    catalog.create_namespace((name,))
    catalog.create_namespace((name, name))
    catalog.create_table((name, name, name), schema=ONE.schema).append(ONE)
    assert catalog.list_namespaces((name,)) == [(name, name)]
    assert catalog.list_tables((name, name)) == [(name, name, name)]
    catalog.rename_table((name, name, name), (name, f"{name}2"))
    assert catalog.load_table((name, f"{name}2")).scan().to_arrow().to_pylist() == [{"id": 1}]
    catalog.drop_table((name, f"{name}2"))
    catalog.drop_namespace((name, name))
    catalog.drop_namespace((name,))
    assert (name,) not in catalog.list_namespaces()
