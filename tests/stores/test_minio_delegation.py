"""Engines without keys of their own, over `arco serve` and MinIO: what they get from the catalog opens their table and
nothing else, and it is MinIO that refuses."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
import requests
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import ForbiddenError, SignError

from storage_backends import ANY, Applied, Found, StoreDenied
from storage_backends.s3.signature import Credentials
from storage_backends.s3.store import S3Store
from tests.stores.realm_lake import ROLE, SIGNED, Lake, realm_lake
from tools.support.s3_servers import S3Server

ROWS = pa.table({"n": [1, 2, 3]})


@pytest.fixture
def lake(minio_server: S3Server, tmp_path: Path) -> Iterator[Lake]:
    with realm_lake(minio_server, tmp_path, **ROLE) as it:
        yield it


def test_an_engine_with_vended_credentials_alone_creates_writes_and_reads_its_table(lake: Lake) -> None:
    writer = lake.client(lake.principal("writer", "CATALOG_MANAGE_CONTENT"))
    writer.create_namespace("db")
    table = writer.create_table("db.t", ROWS.schema)

    table.append(ROWS)
    table.append(ROWS)

    found = lake.client(lake.principal("reader", "TABLE_READ_DATA")).load_table("db.t").scan().to_arrow()
    assert sorted(found["n"].to_pylist()) == [1, 1, 2, 2, 3, 3]


def test_a_reader_who_writes_is_refused_by_the_store_and_by_the_catalog(lake: Lake) -> None:
    writer = lake.client(lake.principal("writer", "CATALOG_MANAGE_CONTENT"))
    writer.create_namespace("db")
    for name in ("t", "u"):
        writer.create_table(f"db.{name}", ROWS.schema).append(ROWS)
    table = lake.client(lake.principal("reader", "TABLE_READ_DATA")).load_table("db.t")

    with pytest.raises(OSError, match="ACCESS_DENIED"):
        table.append(ROWS)
    with pytest.raises(OSError, match="ACCESS_DENIED"), table.io.new_input(neighbour(writer)).open() as file:
        file.read()
    with pytest.raises(ForbiddenError, match="lacks the privilege"), table.transaction() as change:
        change.set_properties(a="b")
    assert len(writer.load_table("db.t").snapshots()) == 1


async def test_credentials_for_a_generic_table_open_its_place_and_nothing_else(lake: Lake) -> None:
    writer = lake.principal("writer", "CATALOG_MANAGE_CONTENT")
    lake.client(writer).create_namespace("db")
    token, base = lake.token(writer), f"{lake.arco.uri}/polaris/v1/lake/namespaces/db/generic-tables"
    headers = {"Authorization": f"Bearer {token}", "Polaris-Generic-Table-Access-Delegation": "vended-credentials"}
    key = "catalog/lake/db/g"
    body = {"name": "g", "format": "delta", "base-location": f"s3://{lake.bucket}/{key}"}
    made = await asyncio.to_thread(requests.post, base, json=body, headers=headers, timeout=60)
    assert made.status_code == 200, made.text
    (access,) = made.json()["storage-access-configs"]
    names = ("access-key-id", "secret-access-key", "session-token")
    keys = Credentials(*(access["config"][f"s3.{name}"] for name in names))
    store = S3Store(lake.bucket, config=replace(lake.server.config, credentials=keys))

    assert isinstance(await store.put(f"{key}/_delta_log/0.json", b"{}", ANY), Applied)
    assert isinstance(await store.get(f"{key}/_delta_log/0.json"), Found)
    for elsewhere in (f"{key}2/1", "catalog/lake/db/t/1", "catalog/lake/_catalog/core/manifest.json"):
        with pytest.raises(StoreDenied):
            await store.get(elsewhere)
        with pytest.raises(StoreDenied):
            await store.put(elsewhere, b"x", ANY)
    await store.close()


def neighbour(writer: RestCatalog) -> str:
    """A data file of another table."""
    return str(next(iter(writer.load_table("db.u").scan().plan_files())).file.file_path)


def test_an_engine_whose_requests_are_signed_creates_writes_reads_and_deletes_without_any_key(lake: Lake) -> None:
    writer = lake.client(lake.principal("writer", "CATALOG_MANAGE_CONTENT"), **SIGNED)
    writer.create_namespace("db")
    table = writer.create_table("db.t", ROWS.schema)
    table.append(ROWS)
    with writer.create_table_transaction("db.copy", ROWS.schema) as change:
        change.append(table.scan().to_arrow())  # before there is such a table

    reader = lake.client(lake.principal("reader", "TABLE_READ_DATA"), **SIGNED)
    copy = reader.load_table("db.copy")
    assert not [name for name in copy.io.properties if "key" in name or "session" in name]
    assert copy.scan().to_arrow() == ROWS
    with pytest.raises(SignError, match="403"):
        copy.append(ROWS)
    with pytest.raises(SignError, match="403"):
        copy.io.delete(copy.metadata_location)
    with pytest.raises(SignError, match="403"), copy.io.new_input(f"{lake.store}/_realm/core/manifest.json").open():
        pass
    writer.load_table("db.t").delete("n > 1")
    assert reader.load_table("db.t").scan().to_arrow()["n"].to_pylist() == [1]
    assert lake.answered("sign")
    assert not lake.answered("credentials")
