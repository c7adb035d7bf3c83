"""What was vended is held to its limits by the server: MinIO judges the session policies of its STS, and the signatures
of single requests."""

import asyncio
import io
import itertools
import tarfile
from base64 import b64encode
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from hashlib import md5

import pytest

from arco_catalog.iceberg.errors import Forbidden
from arco_catalog.state.locations import Location
from arco_catalog.vending.credential import StorageCredential
from arco_catalog.vending.outbound import WireOutbound
from arco_catalog.vending.scope import Scope
from arco_catalog.vending.service import Issuers, Outcome, Vending
from arco_catalog.vending.sign_request import SignRequest
from arco_catalog.vending.storage_config import AwsStorage
from arco_catalog.vending.storage_policy import StoragePolicy
from arco_catalog.vending.sts import StsIssuer
from storage_backends import ANY, Applied, Found, StoreDenied
from storage_backends.clock import system_now_ms
from storage_backends.s3.credentials import FixedCredentials
from storage_backends.s3.signature import Credentials, path_of
from storage_backends.s3.store import S3Store
from storage_backends.wire.http1 import Response
from tools.support.s3_servers import S3Server

_buckets = itertools.count(1)
NEIGHBOURS = ("db/t2", "db/t*", "db/t$", "db/t${x}", "db/tx", "db/u", "other")
EXPIRY_MS = 900_000


@dataclass
class Lake:
    """A bucket with a file in each of some tables, and a façade over its server."""

    server: S3Server
    bucket: str
    outbound: WireOutbound
    vending: Vending
    config: AwsStorage
    outcomes: list[Outcome]
    root: S3Store

    def scope(self, *tables: str, write: bool = False) -> Scope:
        return Scope.of([Location("s3", self.bucket, tuple(table.split("/"))) for table in tables], write=write)

    async def vended(self, *tables: str, write: bool = False) -> tuple[StorageCredential, ...]:
        return await self.vending.credentials(self.config, self.scope(*tables, write=write), "entity", "alice")

    def store_of(self, credential: StorageCredential) -> S3Store:
        keys = [credential.config[f"s3.{name}"] for name in ("access-key-id", "secret-access-key", "session-token")]
        return S3Store(self.bucket, config=replace(self.server.config, credentials=Credentials(*keys)))

    async def send(
        self,
        method: str,
        path: str,
        headers: dict[str, str] | None = None,
        body: bytes = b"",
        scope: Scope | None = None,
        later: dict[str, str] | None = None,
        shown: str | None = None,
    ) -> Response:
        """A request as a client of remote signing makes it; `later` are headers that it adds to what was signed."""
        headers = headers or {}
        given = {name: (value,) for name, value in headers.items()}
        uri = f"{self.server.endpoint}/{self.bucket}{path}"
        wanted = scope or self.scope("db/t", write=True)
        answer = await self.vending.sign(
            self.config, wanted, "entity", "alice", SignRequest("us-east-1", uri, method, given, shown)
        )
        return await self.outbound.send(method, answer.uri, {**headers, **answer.headers, **(later or {})}, body)


@pytest.fixture
async def lake(minio_server: S3Server) -> AsyncIterator[Lake]:
    bucket = f"lake-{next(_buckets)}"
    minio_server.make_bucket(bucket)
    root = S3Store(bucket, config=minio_server.config)
    for table in ("db/t", *NEIGHBOURS):
        assert isinstance(await root.put(f"{table}/1.parquet", b"data", ANY), Applied)
    outbound = WireOutbound(asyncio.sleep, lambda: 0.5)
    own = FixedCredentials(Credentials(minio_server.access_key, minio_server.secret_key))
    issuers = Issuers(s3=StsIssuer(outbound, own, system_now_ms, lifetime_s=EXPIRY_MS // 1_000), signer=own)
    outcomes: list[Outcome] = []
    config = AwsStorage(
        role_arn="arn:aws:iam::123456789012:role/lake",
        region="us-east-1",
        endpoint=minio_server.endpoint,
        path_style=True,
    )
    vending = Vending(
        issuers, system_now_ms, outcomes.append, outbound, policy=StoragePolicy.of([minio_server.endpoint])
    )
    yield Lake(minio_server, bucket, outbound, vending, config, outcomes, root)
    await vending.close()
    await root.close()


async def opened_by(store: S3Store, tables: Sequence[str]) -> list[str]:
    """The tables of which the server let something through."""
    opened: list[str] = []
    for table in tables:
        results = await asyncio.gather(
            store.get(f"{table}/1.parquet"),
            store.list(f"{table}/"),
            store.list(table),
            store.put(f"{table}/2.parquet", b"x", ANY),
            store.delete(f"{table}/1.parquet", ANY),
            return_exceptions=True,
        )
        if not all(isinstance(result, StoreDenied) for result in results):
            opened.append(table)
    return opened


async def test_a_reader_reads_its_table_and_nothing_else(lake: Lake) -> None:
    began_ms = system_now_ms()
    (credential,) = await lake.vended("db/t")
    store = lake.store_of(credential)

    found = await store.get("db/t/1.parquet")
    assert isinstance(found, Found)
    assert found.body == b"data"
    assert [entry.key for entry in (await store.list("db/t/")).entries] == ["db/t/1.parquet"]
    for attempt in (store.put("db/t/2.parquet", b"x", ANY), store.delete("db/t/1.parquet", ANY), store.list("")):
        with pytest.raises(StoreDenied):
            await attempt
    assert await opened_by(store, NEIGHBOURS) == []
    assert 0 < credential.expires_ms - began_ms <= EXPIRY_MS + 60_000
    await store.close()


async def test_a_writer_writes_its_table_and_nothing_else(lake: Lake) -> None:
    (credential,) = await lake.vended("db/t", write=True)
    store = lake.store_of(credential)

    assert isinstance(await store.put("db/t/2.parquet", b"new", ANY), Applied)
    assert isinstance(await store.delete("db/t/2.parquet", ANY), Applied)
    assert await opened_by(store, NEIGHBOURS) == []
    await store.close()


@pytest.mark.parametrize("table", ["db/t$", "db/t2", "other"])
async def test_names_that_begin_alike_are_kept_apart(lake: Lake, table: str) -> None:
    (credential,) = await lake.vended(table, write=True)
    store = lake.store_of(credential)

    assert isinstance(await store.get(f"{table}/1.parquet"), Found)
    assert await opened_by(store, [other for other in ("db/t", *NEIGHBOURS) if other != table]) == []
    await store.close()


@pytest.mark.parametrize("table", ["db/t*", "db/t${x}", "db/?"])
async def test_names_that_minio_would_read_as_patterns_get_no_credentials(lake: Lake, table: str) -> None:
    assert await lake.vended(table) == ()
    assert lake.outcomes == [Outcome.NONE]


async def test_one_credential_opens_all_locations_of_a_table_and_nothing_between(lake: Lake) -> None:
    (credential,) = await lake.vended("db/t", "other")
    store = lake.store_of(credential)

    assert credential.prefix == f"s3://{lake.bucket}/"
    assert isinstance(await store.get("db/t/1.parquet"), Found)
    assert isinstance(await store.get("other/1.parquet"), Found)
    assert await opened_by(store, [table for table in NEIGHBOURS if table != "other"]) == []
    await store.close()


async def test_keys_that_were_tampered_with_open_nothing(lake: Lake) -> None:
    (credential,) = await lake.vended("db/t")
    for name in ("s3.session-token", "s3.secret-access-key"):
        wrong = replace(credential, config={**credential.config, name: credential.config[name][:-2] + "xx"})
        store = lake.store_of(wrong)
        assert await opened_by(store, ["db/t"]) == []
        await store.close()


async def test_requests_that_were_signed_one_by_one_do_what_they_say(lake: Lake) -> None:
    assert (await lake.send("PUT", "/db/t/a%20b%2Bc.parquet", body=b"new")).status == 200
    assert (await lake.send("GET", "/db/t/a%20b%2Bc.parquet", {"range": "bytes=1-2"})).body == b"ew"
    assert (await lake.send("HEAD", "/db/t/1.parquet")).status == 200
    listed = await lake.send("GET", "?list-type=2&prefix=db%2Ft%2F")
    assert listed.body.count(b"<Key>") == 2
    assert (await lake.send("DELETE", "/db/t/a%20b%2Bc.parquet")).status == 204


async def test_an_upload_in_parts_is_signed_from_its_beginning_to_its_end(lake: Lake) -> None:
    begun = await lake.send("POST", "/db/t/big.parquet?uploads")
    upload = begun.body.partition(b"<UploadId>")[2].partition(b"</UploadId>")[0].decode()
    part = await lake.send("PUT", f"/db/t/big.parquet?partNumber=1&uploadId={path_of(upload)}", body=b"part")
    parts = f"<Part><PartNumber>1</PartNumber><ETag>{part.headers['etag']}</ETag></Part>"
    body = f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>".encode()

    assert (await lake.send("GET", f"/db/t/big.parquet?uploadId={path_of(upload)}")).status == 200
    assert (await lake.send("POST", f"/db/t/big.parquet?uploadId={path_of(upload)}", body=body)).status == 200
    found = await lake.root.get("db/t/big.parquet")
    assert isinstance(found, Found)
    assert found.body == b"part"


async def test_deletes_reach_nothing_outside_even_with_another_body_than_was_shown(lake: Lake) -> None:
    """MinIO does not compare the body with the signed hash; the keys that signed open the table alone."""

    def body(key: str) -> str:
        return f"<Delete><Object><Key>{key}</Key></Object></Delete>"

    async def delete(sent: str) -> bytes:
        checksum = {"content-md5": b64encode(md5(sent.encode()).digest()).decode()}
        return (await lake.send("POST", "?delete", checksum, sent.encode(), shown=body("db/t/1.parquet"))).body

    for table in NEIGHBOURS:
        assert b"<Code>AccessDenied</Code>" in await delete(body(f"{table}/1.parquet"))
        assert isinstance(await lake.root.get(f"{table}/1.parquet"), Found)
    assert b"<Deleted>" in await delete(body("db/t/1.parquet"))
    assert not isinstance(await lake.root.get("db/t/1.parquet"), Found)


@pytest.mark.parametrize(
    "later",
    [
        {"x-amz-copy-source": "/BUCKET/db/t2/1.parquet"},
        {"x-amz-copy-source": "/BUCKET/db/u/1.parquet", "x-amz-metadata-directive": "COPY"},
        {"x-amz-meta-snowball-auto-extract": "true", "x-amz-meta-minio-snowball-prefix": "db/u"},
    ],
)
async def test_headers_that_are_added_to_a_signed_request_reach_nothing_outside(
    lake: Lake, later: dict[str, str]
) -> None:
    """MinIO takes headers that are not signed; the keys that signed open the table alone."""
    later = {name: value.replace("BUCKET", lake.bucket) for name, value in later.items()}
    answer = await lake.send("PUT", "/db/t/stolen.tar", body=tar_of("2.parquet"), later=later)

    assert answer.status == 403
    assert not isinstance(await lake.root.get("db/t/stolen.tar"), Found)
    for key in ("2.parquet", "db/u/2.parquet"):
        assert not isinstance(await lake.root.get(key), Found)


@pytest.mark.parametrize("table", ["db/t*", "db/t${x}"])
async def test_names_that_get_no_credentials_are_read_by_signed_requests_and_not_written(
    lake: Lake, table: str
) -> None:
    scope = lake.scope(table, write=True)

    assert (await lake.send("GET", f"/{path_of(table)}/1.parquet", scope=scope)).body == b"data"
    for other in ("db/t", *(name for name in NEIGHBOURS if name != table)):
        with pytest.raises(Forbidden):
            await lake.send("GET", f"/{path_of(other)}/1.parquet", scope=scope)
    with pytest.raises(Forbidden, match="not signed"):
        await lake.send("PUT", f"/{path_of(table)}/2.parquet", scope=scope)


def tar_of(name: str) -> bytes:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        entry = tarfile.TarInfo(name)
        entry.size = 4
        tar.addfile(entry, io.BytesIO(b"evil"))
    return archive.getvalue()
