"""PyIceberg's signer, in front of Amazon's own SDK, through our signatures to MinIO."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web
from botocore import UNSIGNED  # type: ignore[import-untyped]
from botocore.config import Config  # type: ignore[import-untyped]
from botocore.session import Session  # type: ignore[import-untyped]
from pyiceberg.exceptions import SignError
from pyiceberg.io.fsspec import S3V4RestSigner

from arco_catalog.iceberg.errors import Forbidden
from arco_catalog.iceberg.json import loads
from arco_catalog.vending.sign_request import NO_CACHE, SignRequest
from storage_backends import Found
from tests.stores.test_minio_vending import Lake, lake
from tests.support.stub_server import stub_server

__all__ = ["lake"]


async def through_pyiceberg(lake: Lake, work: Callable[[Any], object], *, write: bool) -> object:
    """What a function does with a client whose requests PyIceberg has signed for the table `db/t`."""

    async def handle(request: web.BaseRequest) -> web.Response:
        try:
            wanted = SignRequest.parse(loads(await request.read()))
            answer = await lake.vending.sign(lake.config, lake.scope("db/t", write=write), "entity", "alice", wanted)
        except Forbidden as error:
            return web.json_response({"error": {"message": error.message}}, status=403)
        return web.json_response(answer.json, headers=NO_CACHE)

    def in_thread(uri: str) -> object:
        client = Session().create_client(
            "s3",
            endpoint_url=lake.server.endpoint,
            region_name="us-east-1",
            config=Config(signature_version=UNSIGNED, retries={"max_attempts": 0}),
        )
        client.meta.events.register_last(
            "before-sign.s3", S3V4RestSigner({"uri": uri, "s3.signer.endpoint": "v1/sign"})
        )
        return work(client)

    async with stub_server(handle) as server:
        return await asyncio.to_thread(in_thread, server.uri)


async def test_a_table_is_written_read_listed_and_deleted(lake: Lake) -> None:
    def work(client: Any) -> object:
        table = {"Bucket": lake.bucket, "Prefix": "db/t/"}
        for key in ("db/t/p=a%2Fb/x y.parquet", "db/t/2.parquet"):
            client.put_object(Bucket=lake.bucket, Key=key, Body=b"new")
            assert client.get_object(Bucket=lake.bucket, Key=key, Range="bytes=1-2")["Body"].read() == b"ew"
        listed = [entry["Key"] for entry in client.list_objects_v2(**table)["Contents"]]
        upload = {"Bucket": lake.bucket, "Key": "db/t/big"}
        upload["UploadId"] = client.create_multipart_upload(**upload)["UploadId"]
        tag = client.upload_part(**upload, PartNumber=1, Body=b"part")["ETag"]
        client.complete_multipart_upload(**upload, MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": tag}]})
        for key in listed:
            client.delete_object(Bucket=lake.bucket, Key=key)
        return listed, [entry["Key"] for entry in client.list_objects_v2(**table)["Contents"]]

    assert await through_pyiceberg(lake, work, write=True) == (
        ["db/t/1.parquet", "db/t/2.parquet", "db/t/p=a%2Fb/x y.parquet"],
        ["db/t/big"],
    )


async def test_many_are_not_deleted_at_once_since_pyiceberg_shows_no_body(lake: Lake) -> None:
    def work(client: Any) -> object:
        return client.delete_objects(Bucket=lake.bucket, Delete={"Objects": [{"Key": "db/t/1.parquet"}]})

    with pytest.raises(SignError):
        await through_pyiceberg(lake, work, write=True)
    assert isinstance(await lake.root.get("db/t/1.parquet"), Found)


@pytest.mark.parametrize(
    "work",
    [
        lambda client, bucket: client.get_object(Bucket=bucket, Key="db/t2/1.parquet"),
        lambda client, bucket: client.list_objects_v2(Bucket=bucket, Prefix="db/t"),
        lambda client, bucket: client.list_objects_v2(Bucket=bucket),
        lambda client, bucket: client.list_buckets(),
        lambda client, bucket: client.put_object(Bucket=bucket, Key="db/t/2", Body=b"x"),
        lambda client, bucket: client.delete_object(Bucket=bucket, Key="db/t/1.parquet"),
        lambda client, bucket: client.copy_object(Bucket=bucket, Key="db/t/2", CopySource=f"{bucket}/db/t2/1.parquet"),
        lambda client, bucket: client.get_bucket_policy(Bucket=bucket),
        lambda client, bucket: client.get_object_acl(Bucket=bucket, Key="db/t/1.parquet"),
        lambda client, bucket: client.delete_bucket(Bucket=bucket),
    ],
)
async def test_a_reader_gets_no_signature_for_anything_else(lake: Lake, work: Callable[[Any, str], object]) -> None:
    with pytest.raises(SignError):
        await through_pyiceberg(lake, lambda client: work(client, lake.bucket), write=False)

    assert isinstance(await lake.root.get("db/t/1.parquet"), Found)
