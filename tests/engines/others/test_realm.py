"""DuckDB and Flink at a realm, configured as `arco serve` prints it: by a client's id and secret, and by a token."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines.others.conftest import duckdb_shell, flink_shell
from tests.engines.realm import Realm, realm_served
from tests.engines.shell import EngineError
from tests.engines.test_logins import LACKS, await_renewal


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    """A realm whose tokens outlive the tests."""
    with realm_served(tmp_path_factory.mktemp("lasting"), "3600") as served:
        yield served


def folder(within: Path, name: str) -> Path:
    made = within / name
    made.mkdir()
    return made


def test_duckdb_writes_as_the_owner_and_reads_as_the_reader(realm: Realm, tmp_path: Path) -> None:
    with duckdb_shell(folder(tmp_path, "owner"), *realm.printed(realm.owner).duckdb) as duckdb:
        duckdb("CREATE SCHEMA arco.duck")
        duckdb("CREATE TABLE arco.duck.t (id BIGINT)")
        duckdb("INSERT INTO arco.duck.t VALUES (1), (2)")
    with duckdb_shell(folder(tmp_path, "reader"), *realm.printed(realm.reader).duckdb) as duckdb:
        assert duckdb("SELECT * FROM arco.duck.t ORDER BY id") == [(1,), (2,)]
        with pytest.raises(EngineError, match=LACKS.format("TABLE_ADD_SNAPSHOT", "duck.t")):
            duckdb("INSERT INTO arco.duck.t VALUES (3)")
        with pytest.raises(EngineError, match=LACKS.format("TABLE_DROP", "duck.t")):
            duckdb("DROP TABLE arco.duck.t")
        await_renewal(realm, lambda: duckdb("SELECT count(*) FROM arco.duck.t"))
    assert realm.owner.rows("duck.t") == [(1,), (2,)]


def test_duckdb_logs_in_with_a_token(lasting: Realm, tmp_path: Path) -> None:
    with duckdb_shell(tmp_path, *lasting.printed_for_a_token().duckdb) as duckdb:
        duckdb("CREATE SCHEMA arco.duck")
        duckdb("CREATE TABLE arco.duck.t (id BIGINT)")
        duckdb("INSERT INTO arco.duck.t VALUES (1)")
    assert lasting.owner.rows("duck.t") == [(1,)]


def test_flink_writes_as_the_owner_and_reads_as_the_reader(realm: Realm, lasting: Realm, tmp_path: Path) -> None:
    owner, reader, token = realm.printed(realm.owner), realm.printed(realm.reader), lasting.printed_for_a_token()
    catalogs = {"owner": owner, "reader": reader, "token": token}
    made = [client.flink.replace("CATALOG arco", f"CATALOG {name}") for name, client in catalogs.items()]
    with flink_shell(tmp_path, *made) as flink:
        for name in ("owner", "token"):
            flink(f"CREATE DATABASE {name}.flink")
            flink(f"CREATE TABLE {name}.flink.t (id BIGINT)")
            flink(f"INSERT INTO {name}.flink.t VALUES (1), (2)")
        assert sorted(flink("SELECT * FROM reader.flink.t")) == [(1,), (2,)]
        with pytest.raises(EngineError, match=LACKS.format("TABLE_ADD_SNAPSHOT", "flink.t")):
            flink("INSERT INTO reader.flink.t VALUES (3)")
        with pytest.raises(EngineError, match=LACKS.format("TABLE_DROP", "flink.t")):
            flink("DROP TABLE reader.flink.t")
        await_renewal(realm, lambda: flink("SELECT count(*) FROM reader.flink.t"))
    assert realm.owner.rows("flink.t") == lasting.owner.rows("flink.t") == [(1,), (2,)]
