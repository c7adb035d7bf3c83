"""Spark, Trino and PyIceberg at a realm, with nothing but a client's id and its secret."""

import time
from collections.abc import Callable

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import ForbiddenError, OAuthError
from trino.exceptions import TrinoQueryError

from tests.engines.realm import Realm
from tests.engines.shell import EngineError, Sql
from tools.demo.server import WAREHOUSE

LACKS = "Principal reader lacks the privilege {} on table {}"
TRIES = 30
PAUSE_S = 3
"""After each try: in a minute and a half, tokens that live for ten seconds are renewed."""


def await_renewal(realm: Realm, work: Callable[[], object]) -> None:
    """Works until tokens were given that nobody but a running session asks for."""
    before = realm.tokens()
    for _ in range(TRIES):
        work()
        if realm.tokens() > before:
            return
        time.sleep(PAUSE_S)
    raise AssertionError("no token was renewed")


def test_spark_writes_as_the_owner_and_reads_as_the_reader(spark: Sql, realm: Realm) -> None:
    spark("CREATE NAMESPACE owner.sp")
    spark("CREATE TABLE owner.sp.t (x BIGINT)")
    spark("INSERT INTO owner.sp.t VALUES (1), (2)")
    assert spark("SELECT * FROM reader.sp.t ORDER BY x") == [(1,), (2,)]
    with pytest.raises(EngineError, match=LACKS.format("TABLE_ADD_SNAPSHOT", "sp.t")):
        spark("INSERT INTO reader.sp.t VALUES (3)")
    with pytest.raises(EngineError, match=LACKS.format("TABLE_DROP", "sp.t")):
        spark("DROP TABLE reader.sp.t")
    with pytest.raises(EngineError, match="The client id is unknown in this realm, or the secret is wrong"):
        spark("SHOW TABLES IN stranger.sp")
    await_renewal(realm, lambda: spark("SELECT count(*) FROM reader.sp.t"))
    assert realm.owner.rows("sp.t") == [(1,), (2,)]


def test_trino_writes_as_the_owner_and_reads_as_the_reader(trino: Sql, realm: Realm) -> None:
    trino("CREATE SCHEMA owner.tr")
    trino("CREATE TABLE owner.tr.t (x bigint)")
    trino("INSERT INTO owner.tr.t VALUES 1, 2")
    assert trino("SELECT * FROM reader.tr.t ORDER BY x") == [(1,), (2,)]
    with pytest.raises(TrinoQueryError, match=r"lacks the privilege|Failed to commit"):
        trino("INSERT INTO reader.tr.t VALUES 3")
    with pytest.raises(TrinoQueryError, match="Failed to drop table"):  # it keeps the reason for its log
        trino("DROP TABLE reader.tr.t")
    with pytest.raises(TrinoQueryError, match=r"The client id is unknown|Failed to|Not authorized|Cannot obtain"):
        trino("SHOW SCHEMAS FROM stranger")
    await_renewal(realm, lambda: trino("SELECT count(*) FROM reader.tr.t"))
    assert realm.owner.rows("tr.t") == [(1,), (2,)]


def test_pyiceberg_writes_as_the_owner_and_reads_as_the_reader(realm: Realm) -> None:
    owner = realm.owner.bystander
    owner.create_namespace("py")
    owner.create_table("py.t", pa.schema([("x", pa.int64())])).append(pa.table({"x": [1, 2]}))
    uri = realm.reader.server.uri
    reader = load_catalog("reader", type="rest", uri=uri, warehouse=WAREHOUSE, **realm.reader.login)
    assert reader.load_table("py.t").scan().to_arrow()["x"].to_pylist() == [1, 2]
    with pytest.raises(ForbiddenError, match=LACKS.format("TABLE_ADD_SNAPSHOT", "py.t")):
        reader.load_table("py.t").append(pa.table({"x": [3]}))
    with pytest.raises(ForbiddenError, match=LACKS.format("TABLE_DROP", "py.t")):
        reader.drop_table("py.t")
    with pytest.raises(OAuthError, match="The client id is unknown in this realm, or the secret is wrong"):
        load_catalog("stranger", type="rest", uri=uri, warehouse=WAREHOUSE, **realm.stranger.login)
