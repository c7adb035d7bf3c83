"""Access points: by which URLs they are named, where requests to them go, and what is refused."""

from dataclasses import replace

import aiohttp
import pytest
from aiohttp import web

from storage_backends import ABSENT, Applied, Found, Matches, Missing, PreconditionFailed
from storage_backends.open import canonical_url, open_store
from storage_backends.s3.config import S3Config
from storage_backends.s3.open import open_url
from storage_backends.url import StoreUrl
from storage_backends.wire.proxies import Proxies
from tests.support.stub_server import stub_server
from tools.support.s3_servers import S3Server

ARN = "arn:aws:s3:eu-west-3:111122223333:accesspoint:tables"
WITH_SLASH = "arn:aws:s3:eu-west-3:111122223333:accesspoint/tables"


@pytest.mark.parametrize("arn", [ARN, WITH_SLASH])
async def test_what_is_written_by_an_access_points_arn_is_in_its_bucket(
    s3_server: S3Server, s3_bucket: str, arn: str
) -> None:
    """The host of an access point is found, on the way to an emulator, by a proxy of the test's own."""
    hosts: set[str] = set()

    async def forward(request: web.BaseRequest) -> web.Response:
        hosts.add(request.host)
        target = f"{s3_server.endpoint}/{s3_bucket}{request.rel_url.raw_path_qs}"
        headers = {**request.headers, "Host": s3_server.endpoint.partition("://")[2]}
        async with (
            aiohttp.ClientSession(auto_decompress=False) as session,
            session.request(request.method, target, headers=headers, data=await request.read()) as answer,
        ):
            kept = {name: value for name, value in answer.headers.items() if name.lower() != "transfer-encoding"}
            return web.Response(status=answer.status, headers=kept, body=await answer.read())

    async with stub_server(forward) as proxy:
        far = replace(S3Server("http://s3.invalid").config, region=None, proxies=Proxies(http=proxy.uri))
        store = open_url(StoreUrl.parse(f"s3://{arn}/a/prefix"), far)
        first = await store.put("folder/key", b"one", ABSENT)
        assert isinstance(first, Applied)
        assert isinstance(await store.put("folder/key", b"two", ABSENT), PreconditionFailed)
        assert isinstance(await store.put("folder/key", b"two", Matches(first.version)), Applied)
        found = await store.get("folder/key")
        assert isinstance(found, Found)
        assert found.body == b"two"
        assert [entry.key for entry in (await store.list("folder/")).entries] == ["folder/key"]
        bucket = open_store(f"s3://{s3_bucket}", s3_server.environment)
        assert isinstance(await bucket.get("a/prefix/folder/key"), Found)
        assert isinstance(await store.delete("folder/key"), Applied)
        assert isinstance(await bucket.get("a/prefix/folder/key"), Missing)
        await store.close()
        await bucket.close()

    assert hosts == {"tables-111122223333.s3.invalid"}


@pytest.mark.parametrize("arn", [ARN, WITH_SLASH])
def test_locations_of_tables_have_the_whole_arn_where_others_have_a_bucket(arn: str) -> None:
    """Iceberg's `S3URI` takes what is before the first slash for the bucket."""
    assert canonical_url(f"s3://{arn}/a%20b/c", {}) == f"s3://{ARN}/a%20b/c"
    assert canonical_url(f"s3://{arn}", {}) == f"s3://{ARN}"


@pytest.mark.parametrize(
    ("host", "why"),
    [
        ("arn:aws:s3::111122223333:accesspoint/mfzwi23gnjvgw.mrap", "multi-Region.*SigV4A.*in one Region"),
        ("mfzwi23gnjvgw.mrap", "multi-Region.*in one Region"),
        ("arn:aws:s3-outposts:us-east-1:111122223333:outpost/op-0123/accesspoint/tables", "Outposts.*name a bucket"),
        ("arn:aws:s3-object-lambda:us-east-1:111122223333:accesspoint/tables", "Object Lambda.*name a bucket"),
        ("arn:aws:s3express:us-east-1:111122223333:accesspoint/t--use1-az4--xa-s3", "its alias.*--xa-s3"),
        ("arn:aws:s3:::bucket", "expected s3://arn:aws:s3:REGION:ACCOUNT:accesspoint/NAME/prefix; name a bucket"),
        ("arn:aws:s3:us-east-1:111122223333:accesspoint:no_name", "expected s3://arn"),
        ("arn:aws", "expected s3://arn"),
    ],
)
def test_what_is_no_access_point_in_one_region_is_refused_in_words_that_name_the_way(host: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        open_url(StoreUrl.parse(f"s3://{host}/prefix"), S3Config())
    if host.startswith("arn:"):
        with pytest.raises(ValueError, match=why):
            canonical_url(f"s3://{host}/prefix", {})
