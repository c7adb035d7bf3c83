"""The credentials of scan plans, judged by MinIO: they read the files of the plan's table, and nothing else."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest
from pyiceberg.exceptions import ForbiddenError, NoSuchTableError

from storage_backends import ANY, Found, StoreDenied
from storage_backends.s3.signature import Credentials
from storage_backends.s3.store import S3Store
from tests.engines.shell import Sql
from tests.engines.spark_shell import spark_shell
from tests.engines.vended_scans import (
    ROWS,
    assert_spark_reads_by_plans_what_its_principals_may_read,
    make_tables,
    plan,
    planning,
    planning_sparks,
    reader_of,
    request,
)
from tests.stores.realm_lake import ROLE, Lake, realm_lake
from tools.support.s3_servers import S3Server


@pytest.fixture(scope="module")
def lake(minio_server: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """A realm with the tables `t` and `closed`, of two files each."""
    with realm_lake(minio_server, tmp_path_factory.mktemp("realm"), **ROLE) as served:
        make_tables(served)
        yield served


@pytest.fixture(scope="module")
def logins(lake: Lake) -> dict[str, str]:
    """What principals log in with: readers of one table each, one who may write both, and one without their data."""
    return {
        "reader": reader_of(lake, "t"),
        "other": reader_of(lake, "closed"),
        "writer": lake.principal("writer-of-both", "CATALOG_MANAGE_CONTENT"),
        "lister": lake.principal("lister", "TABLE_READ_PROPERTIES", "TABLE_LIST"),
    }


@asynccontextmanager
async def opened(lake: Lake, credential: Mapping[str, Any] | None = None) -> AsyncIterator[S3Store]:
    """The bucket, opened by a credential, or by the keys of the server."""
    config = lake.server.config
    if credential is not None:
        given = credential["config"]
        names = ("access-key-id", "secret-access-key", "session-token")
        config = replace(config, credentials=Credentials(*(given[f"s3.{name}"] for name in names)))
    store = S3Store(lake.bucket, config=config)
    try:
        yield store
    finally:
        await store.close()


def folder_of(lake: Lake, login: str, table: str) -> str:
    location: str = lake.client(login).load_table(f"db.{table}").location()
    return location.removeprefix(f"s3://{lake.bucket}/") + "/"


async def objects_below(lake: Lake, prefix: str) -> dict[str, bytes]:
    async with opened(lake) as store:
        keys = [entry.key for entry in (await store.list(prefix)).entries]
        found = [await store.get(key) for key in keys]
    return {key: answer.body for key, answer in zip(keys, found, strict=True) if isinstance(answer, Found)}


@pytest.mark.parametrize("name", ["reader", "writer"])
@pytest.mark.parametrize("renewed", [False, True])
async def test_the_credentials_of_a_plan_read_its_table_and_minio_refuses_the_rest(
    lake: Lake, logins: Mapping[str, str], name: str, renewed: bool
) -> None:
    planned = plan(lake, logins[name], "t")
    credential = planned.credential
    if renewed:
        again = request(lake, logins[name], "t", f"credentials?planId={planned.plan_id}")
        [credential] = again["storage-credentials"]
    folder, other = (folder_of(lake, logins["writer"], table) for table in ("t", "closed"))
    of_table, of_other, kept = [await objects_below(lake, prefix) for prefix in (folder, other, "")]

    assert {key.rpartition(".")[2] for key in of_table} == {"parquet", "avro", "json"}
    assert {f"s3://{lake.bucket}/{key}" for key in of_table} > set(planned.files)
    async with opened(lake, credential) as store:
        for key, body in of_table.items():
            found = await store.get(key)
            assert isinstance(found, Found)
            assert found.body == body
        others = [key for key in kept if key not in of_table]
        assert set(others) > set(of_other)
        refused = [
            *(store.get(key) for key in others),
            *(store.list(prefix) for prefix in ("", "catalog/lake/db/", other)),
            *(store.put(key, b"x", ANY) for key in [*kept, f"{folder}data/new.parquet"]),
            *(store.delete(key, ANY) for key in kept),
        ]
        for result in await asyncio.gather(*refused, return_exceptions=True):
            assert isinstance(result, StoreDenied), result
    assert await objects_below(lake, "") == kept


def test_principals_without_the_data_get_nothing_by_plans_of_others_neither(
    lake: Lake, logins: Mapping[str, str]
) -> None:
    plan_id = plan(lake, logins["reader"], "t").plan_id

    for name, status in {"lister": "403", "other": "404"}.items():
        for path, body in {"plan": b"{}", f"plan/{plan_id}": None, f"credentials?planId={plan_id}": None}.items():
            with pytest.raises(HTTPError, match=status):
                request(lake, logins[name], "t", path, body)
    for path in (f"plan/{plan_id}", f"credentials?planId={plan_id}"):
        with pytest.raises(HTTPError, match="404"):
            request(lake, logins["other"], "closed", path)


def test_pyiceberg_reads_by_a_plan_what_its_principal_may_read(lake: Lake, logins: Mapping[str, str]) -> None:
    before = len(lake.answered("plan"))
    reader = planning(lake, logins["reader"])

    assert not [name for name in reader.properties if name.startswith("s3.")]
    assert reader.load_table("db.t").scan().to_arrow().sort_by("id").to_pylist() == ROWS.to_pylist()
    assert len(lake.answered("plan")) == before + 1
    with pytest.raises(NoSuchTableError):
        reader.load_table("db.closed")
    with pytest.raises(ForbiddenError, match="lacks the privilege TABLE_READ_DATA"):
        planning(lake, logins["lister"]).load_table("db.t")
    assert len(lake.answered("plan")) == before + 1


@pytest.fixture
def spark(lake: Lake, logins: Mapping[str, str], tmp_path: Path) -> Iterator[Sql]:
    with spark_shell(planning_sparks(lake, {"one": logins["reader"], "other": logins["other"]}), tmp_path) as sql:
        yield sql


def test_spark_reads_by_a_plan_what_its_principal_may_read(spark: Sql, lake: Lake) -> None:
    assert_spark_reads_by_plans_what_its_principals_may_read(spark, lake)
