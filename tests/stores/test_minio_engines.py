"""Spark, Trino and PyIceberg on MinIO without keys: with what the catalog gives they do all that their client may, and
MinIO refuses the rest. They are configured as `arco serve` prints it."""

import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from pyiceberg.exceptions import ForbiddenError
from trino.exceptions import TrinoQueryError

from tests.engines.printed import Printed, printed
from tests.engines.shell import EngineError, Sql
from tests.engines.spark_shell import spark_shell
from tests.engines.trino_server import run, trino_server
from tests.stores.realm_lake import ROLE, Lake, realm_lake
from tools.support.s3_servers import S3Server

READS = ("TABLE_READ_DATA", "TABLE_LIST", "NAMESPACE_READ_PROPERTIES", "NAMESPACE_LIST", "VIEW_LIST")
LACKS = "Principal reader lacks the privilege"
ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "name": ["a", "b", "c"]})
MINUTE = timedelta(minutes=1)
DELEGATION = "header.X-Iceberg-Access-Delegation"
CHANGED = [(1, "a"), (2, "bb"), (4, "d")]


@pytest.fixture(scope="module")
def lake(minio_server: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    with realm_lake(minio_server, tmp_path_factory.mktemp("realm"), **ROLE) as it:
        yield it


@pytest.fixture(scope="module")
def brief(lake: Lake) -> Iterator[Lake]:
    """The same at a server whose credentials are to be used for a minute."""
    with lake.beside("--vending-lifetime", str(MINUTE.seconds)) as it:
        yield it


@pytest.fixture(scope="module")
def logins(lake: Lake) -> dict[str, str]:
    """What a writer and a reader log in with."""
    return {"writer": lake.principal("writer", "CATALOG_MANAGE_CONTENT"), "reader": lake.principal("reader", *READS)}


@pytest.fixture(scope="module")
def clients(lake: Lake, logins: dict[str, str]) -> dict[str, Printed]:
    """What is printed for both."""
    return {name: printed_by(lake, login) for name, login in logins.items()}


def printed_by(lake: Lake, login: str) -> Printed:
    return printed(lake.arco.uri, "lake", lake.store, lake.server.environment, login, "internal")


@pytest.fixture(scope="module")
def spark(
    clients: dict[str, Printed], logins: dict[str, str], brief: Lake, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Sql]:
    """Spark, with a catalog for the writer, and for the reader, with vended credentials and with signatures; and with
    credentials that end after a minute."""
    vended = {name: client.spark for name, client in clients.items()}
    signed = {f"signed_{name}": {**properties, DELEGATION: "remote-signing"} for name, properties in vended.items()}
    catalogs = {**vended, **signed, "brief": printed_by(brief, logins["writer"]).spark}
    with spark_shell(catalogs, tmp_path_factory.mktemp("spark")) as sql:
        yield sql


@pytest.fixture(scope="module")
def trino(clients: dict[str, Printed], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sql]:
    catalogs = {name: client.trino for name, client in clients.items()}
    with trino_server(catalogs, tmp_path_factory.mktemp("trino")) as connection:
        yield lambda statement: run(connection, statement)


def assert_no_keys(clients: dict[str, Printed], home: Path) -> None:
    """Nothing that an engine is given, or could find, opens the store."""
    assert not [name for name in os.environ if "ACCESS_KEY" in name or "SECRET" in name or "PROFILE" in name]
    assert not (home / ".aws").exists()
    settings = [{**client.spark, **client.trino} for client in clients.values()]
    assert not [name for each in settings for name in each if "key" in name or "secret" in name]


def test_nothing_but_the_catalog_opens_the_store_for_them(clients: dict[str, Printed]) -> None:
    assert_no_keys(clients, Path.home())


def test_spark(spark: Sql, lake: Lake, clients: dict[str, Printed]) -> None:
    spark("CREATE NAMESPACE writer.spark")
    spark("CREATE TABLE writer.spark.t (id BIGINT, name STRING) PARTITIONED BY (bucket(2, id))")
    spark("INSERT INTO writer.spark.t VALUES (1, 'a'), (2, 'b')")
    spark(
        "MERGE INTO writer.spark.t t USING (SELECT 2L AS id, 'bb' AS name UNION SELECT 4L, 'd') s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET name = s.name WHEN NOT MATCHED THEN INSERT *"
    )
    spark("CREATE TABLE writer.spark.copy AS SELECT * FROM writer.spark.t")
    spark("CREATE OR REPLACE TABLE writer.spark.copy AS SELECT id FROM writer.spark.t WHERE id > 1")

    assert spark("SELECT * FROM reader.spark.t ORDER BY id") == CHANGED
    assert spark("SELECT * FROM reader.spark.copy ORDER BY id") == [(2,), (4,)]
    with pytest.raises(EngineError, match="Access Denied"):
        spark("INSERT INTO reader.spark.t VALUES (5, 'e')")
    for statement in ("ALTER TABLE reader.spark.t ADD COLUMN x INT", "DROP TABLE reader.spark.t"):
        with pytest.raises(EngineError, match=LACKS):
            spark(statement)
    spark("DROP TABLE writer.spark.copy PURGE")
    spark("DROP TABLE writer.spark.t")
    assert clients["reader"].pasted().list_tables("spark") == []


def test_spark_whose_requests_are_signed(spark: Sql, lake: Lake) -> None:
    signatures, refreshed = len(lake.answered("sign")), len(lake.answered("credentials"))
    spark("CREATE NAMESPACE signed_writer.signed")
    spark("CREATE TABLE signed_writer.signed.t (id BIGINT, name STRING)")
    spark("INSERT INTO signed_writer.signed.t VALUES (1, 'a'), (2, 'b'), (4, 'd')")
    spark(
        "MERGE INTO signed_writer.signed.t t USING (SELECT 2L AS id) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET name = 'bb'"
    )
    spark("CREATE TABLE signed_writer.signed.copy AS SELECT * FROM signed_writer.signed.t")

    assert spark("SELECT * FROM signed_reader.signed.copy ORDER BY id") == CHANGED
    assert spark("SELECT * FROM reader.signed.t ORDER BY id") == CHANGED
    with pytest.raises(EngineError, match="lacks the privilege TABLE_WRITE_DATA"):
        spark("INSERT INTO signed_reader.signed.t VALUES (5, 'e')")
    with pytest.raises(EngineError, match=r"Table does not exist: signed\.copy"):  # it drops it, then reads its files
        spark("DROP TABLE signed_writer.signed.copy PURGE")
    assert spark("SHOW TABLES IN signed_writer.signed") == [("signed", "t", False)]
    assert len(lake.answered("sign")) > signatures
    assert len(lake.answered("credentials")) == refreshed


def test_a_statement_of_spark_that_outlives_its_credentials_goes_on_with_others(spark: Sql, brief: Lake) -> None:
    """Each task waits for ten seconds, two at a time, and then writes a file."""
    spark("CREATE NAMESPACE brief.brief")
    spark("CREATE TABLE brief.brief.t (id BIGINT)")
    before = len(brief.answered("credentials"))
    waits = "java_method('java.util.concurrent.locks.LockSupport', 'parkNanos', 10000000000L)"
    spark(
        "INSERT INTO brief.brief.t "
        f"SELECT id FROM (SELECT id, {waits} AS waited FROM range(0, 24, 1, 24)) WHERE coalesce(waited, '') <> 'never'"
    )

    refreshed = brief.answered("credentials")[before:]
    assert refreshed[-1] - refreshed[0] > MINUTE
    assert len(refreshed) > (refreshed[-1] - refreshed[0]) // MINUTE
    assert spark("SELECT count(*) FROM reader.brief.t") == [(24,)]


def test_a_table_is_made_of_a_query_that_outlives_its_credentials(spark: Sql, brief: Lake) -> None:
    """Iceberg replaces them before each request to the store in the last five minutes: here before there is a table."""
    before = len(brief.answered("credentials"))
    spark("CREATE NAMESPACE brief.made_of")
    spark("CREATE TABLE brief.made_of.t AS SELECT 1 AS id")

    assert len(brief.answered("credentials")) > before
    assert spark("SELECT * FROM reader.made_of.t") == [(1,)]


def test_trino(trino: Sql, clients: dict[str, Printed]) -> None:
    trino("CREATE SCHEMA writer.trino")
    trino("CREATE TABLE writer.trino.t (id bigint, name varchar) WITH (partitioning = ARRAY['bucket(id, 2)'])")
    trino("INSERT INTO writer.trino.t VALUES (1, 'a'), (2, 'b')")
    trino(
        "MERGE INTO writer.trino.t t USING (VALUES (2, 'bb'), (4, 'd')) AS s (id, name) ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET name = s.name WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.name)"
    )
    trino("CREATE TABLE writer.trino.copy AS SELECT * FROM writer.trino.t")

    assert trino("SELECT * FROM reader.trino.t ORDER BY id") == CHANGED
    assert trino("SELECT * FROM reader.trino.copy ORDER BY id") == CHANGED
    with pytest.raises(TrinoQueryError, match="Error committing write parquet"):  # its log has MinIO's refusal
        trino("INSERT INTO reader.trino.t VALUES (5, 'e')")
    with pytest.raises(TrinoQueryError, match="Failed to drop table"):
        trino("DROP TABLE reader.trino.t")
    trino("DROP TABLE writer.trino.copy")
    trino("DROP TABLE writer.trino.t")
    assert clients["reader"].pasted().list_tables("trino") == []


def test_pyiceberg(clients: dict[str, Printed]) -> None:
    writer, reader = clients["writer"].pasted(), clients["reader"].pasted()
    writer.create_namespace("py")
    table = writer.create_table("py.t", ROWS.schema)
    table.append(ROWS)
    table.upsert(pa.table({"id": [2, 4], "name": ["bb", "d"]}), join_cols=["id"])
    table.delete("id = 3")
    with writer.create_table_transaction("py.copy", ROWS.schema) as change:
        change.append(table.scan().to_arrow())

    for name in ("py.t", "py.copy"):
        found = reader.load_table(name).scan().to_arrow().to_pylist()
        assert sorted(tuple(row.values()) for row in found) == CHANGED
    with pytest.raises(OSError, match="ACCESS_DENIED"):
        reader.load_table("py.t").append(ROWS)
    with pytest.raises(ForbiddenError, match=LACKS):
        reader.drop_table("py.t")
    writer.purge_table("py.copy")
    writer.drop_table("py.t")
    assert reader.list_tables("py") == []
