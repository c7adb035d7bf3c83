"""What engines drop with purge is gone to the last byte when the time to undo it has passed, and nothing else is
(docs/design/purge.md): on local files and on S3, with a leak audit of the whole store."""

import pytest

from tests.engines.lake import Lake
from tests.engines.purging import SPARK, SPARK_ROWS, TRINO, Session, drop_restore_and_purge, folder_of
from tests.engines.shell import Sql
from tests.engines.trino_releases import CHOSEN, NEWEST


@pytest.fixture(params=["s3_purging", pytest.param("purging", marks=pytest.mark.slow)])
def lake(request: pytest.FixtureRequest, purging_lakes: tuple[Lake, Lake]) -> Lake:
    """Each of them in turn: the catalog on local files with `make test-thorough`."""
    return next(found for found in purging_lakes if found.name == request.param)


def test_trino_which_purges_with_every_drop(trino: Sql, lake: Lake) -> None:
    session = Session(trino, lake, TRINO, reads_itself=CHOSEN is NEWEST)  # PyIceberg does not read its delete files
    trino(f"CREATE SCHEMA {lake.name}.trino")
    session.make("trino.t")
    session.make("trino.t2")
    trino(f"CREATE VIEW {lake.name}.trino.v AS SELECT id FROM {lake.name}.trino.t2")

    drop_restore_and_purge(session, "trino.t", "trino.t2", lambda: trino(f"DROP TABLE {lake.name}.trino.t"))

    assert trino(f"SELECT count(*) FROM {lake.name}.trino.v") == [(4,)]


@pytest.mark.parametrize("version", [pytest.param(2, marks=pytest.mark.slow), 3])
def test_tables_of_spark_that_pyiceberg_purges(spark: Sql, lake: Lake, version: int) -> None:
    """Position deletes or deletion vectors, a branch, a tag, statistics; a view and a table beside, whose location
    begins as the purged one's does."""
    session = Session(spark, lake, SPARK)
    spark(f"CREATE NAMESPACE {lake.name}.spark{version}")
    bare, neighbour = f"spark{version}.t", f"spark{version}.t2"
    session.make(bare, version)
    session.make(neighbour, location=f"{lake.bystander.load_table(bare).location()}2")
    spark(f"CREATE VIEW {lake.name}.spark{version}.v AS SELECT id FROM {lake.name}.{neighbour}")
    assert lake.rows(bare) == SPARK_ROWS

    drop_restore_and_purge(session, bare, neighbour, lambda: lake.bystander.purge_table(bare))

    assert spark(f"SELECT count(*) FROM {lake.name}.spark{version}.v") == [(4,)]


@pytest.mark.slow
def test_what_spark_purges_itself_leaves_nothing_and_nothing_to_do(spark: Sql, lake: Lake) -> None:
    """Iceberg's Spark deletes the files, and sends a plain drop, unless it is told to leave that to the catalog."""
    session = Session(spark, lake, SPARK)
    spark(f"CREATE NAMESPACE {lake.name}.itself")
    session.make("itself.t")
    session.make("itself.t2")
    files, place = session.purges.files(), folder_of(lake, "itself.t")

    spark(f"DROP TABLE {lake.name}.itself.t PURGE")

    assert session.purges.files() == {key for key in files if not key.startswith(f"{place}/")}
    assert lake.rows("itself.t2") == SPARK_ROWS
