"""What carries requests: our own connections, or Amazon's SDK for what those refuse."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from aiohttp import web

from storage_backends import ABSENT, Applied, Missing, StoreDenied, StoreError, StoreUnavailable
from storage_backends.s3.config import Carrier, S3Config
from storage_backends.s3.store import S3Store
from storage_backends.wire.client import Pauses
from storage_backends.wire.proxies import Proxies
from tests.storage_backends.s3.scripted_s3 import Reply, scripted_s3
from tests.storage_backends.wire.servers import serve
from tests.support.stub_server import stub_server
from tools.support.s3_servers import S3Server

EXPRESS = "bucket--use1-az4--x-s3"
ACCESS_POINT = "arn:aws:s3:us-east-1:111122223333:accesspoint/tables"
SESSION = (
    "<CreateSessionResult><Credentials><SessionToken>a-session</SessionToken><SecretAccessKey>hush</SecretAccessKey>"
    "<AccessKeyId>of-the-session</AccessKeyId><Expiration>2038-01-01T00:00:00Z</Expiration></Credentials>"
    "</CreateSessionResult>"
)
# A server that no machine has: what is sent to it goes through a proxy, or nowhere.
FAR = replace(S3Server("http://s3.invalid").config, connect_timeout_s=3.0)


async def no_pause(_seconds: float) -> None:
    return


@asynccontextmanager
async def store_of(bucket: str, config: S3Config) -> AsyncIterator[S3Store]:
    store = S3Store(bucket, config=config, pauses=Pauses(no_pause))
    try:
        yield store
    finally:
        await store.close()


async def test_a_proxy_in_the_environment_is_used() -> None:
    sent: list[str] = []

    async def answer(request: web.BaseRequest) -> web.Response:
        sent.append(str(request.url))
        return web.Response(headers={"ETag": '"1"'})

    async with stub_server(answer) as proxy:
        config = replace(FAR, proxies=Proxies(http=proxy.uri))
        async with store_of("bucket", config) as store:
            assert isinstance(await store.put("key", b"body", ABSENT), Applied)

    assert sent == ["http://s3.invalid/bucket/key"]


async def test_a_proxy_that_does_not_answer_is_no_answer_and_nothing_was_sent() -> None:
    async with store_of("bucket", replace(FAR, proxies=Proxies(http="http://127.0.0.1:9"))) as store:
        with pytest.raises(StoreUnavailable, match="no connection"):
            await store.put("key", b"body", ABSENT)


@pytest.mark.parametrize(
    ("bucket", "config", "why"),
    [
        (EXPRESS, FAR, "directory bucket"),
        (ACCESS_POINT, FAR, "ARN"),
        ("bucket", replace(FAR, proxies=Proxies(http="http://proxy.invalid")), "proxy"),
    ],
)
async def test_what_the_wire_refuses_is_refused_in_words_that_name_the_way(
    bucket: str, config: S3Config, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with store_of(bucket, replace(config, carrier=Carrier.WIRE)) as store:
        with pytest.raises(StoreError, match=f"{why}.*ARCO_S3_CLIENT=sdk.*extra 's3-sdk' of arco-catalog"):
            await store.get("key")
    monkeypatch.delitem(sys.modules, "storage_backends.s3.sdk", raising=False)
    monkeypatch.setitem(sys.modules, "aiobotocore.config", None)  # as if it were not installed
    async with store_of(bucket, config) as store:
        with pytest.raises(StoreError, match=f"{why}.*not installed.*extra 's3-sdk' of arco-catalog"):
            await store.get("key")


async def test_a_directory_bucket_is_spoken_to_in_a_session() -> None:
    async with (
        scripted_s3([Reply(200, text=SESSION)]) as s3,
        store_of(EXPRESS, S3Server(s3.endpoint).config) as store,
    ):
        assert isinstance(await store.put("key", b"one", ABSENT), Applied)
        await store.get("key")

    sent, *others = s3.requests
    assert (sent.method, sent.query_string) == ("GET", "session")
    assert [request.method for request in others] == ["PUT", "GET"]
    for request in others:
        assert "Credential=of-the-session/" in request.headers["Authorization"]
        assert request.headers["x-amz-s3session-token"] == "a-session"


async def test_a_session_that_is_denied_is_a_denial() -> None:
    async with (
        scripted_s3([Reply(403, "AccessDenied")]) as s3,
        store_of(EXPRESS, S3Server(s3.endpoint).config) as store,
    ):
        with pytest.raises(StoreDenied, match="AccessDenied"):
            await store.put("key", b"one", ABSENT)


async def test_the_message_about_a_session_that_is_refused_is_only_a_message() -> None:
    message = "&lt;Region&gt;nowhere&lt;/Region&gt;"
    text = f"<Error><Code>AuthorizationHeaderMalformed</Code><Message>{message}</Message></Error>"
    async with (
        scripted_s3([Reply(400, text=text)]) as s3,
        store_of(EXPRESS, S3Server(s3.endpoint).config) as store,
    ):
        with pytest.raises(StoreError, match=f"status 400 AuthorizationHeaderMalformed: {message}"):
            await store.get("key")


async def test_an_access_point_has_an_address_of_its_own() -> None:
    sent: list[str] = []

    async def answer(request: web.BaseRequest) -> web.Response:
        sent.append(request.host)
        return web.Response(headers={"ETag": '"1"'})

    async with stub_server(answer) as proxy:
        config = replace(FAR, proxies=Proxies(http=proxy.uri))
        async with store_of(ACCESS_POINT, config) as store:
            await store.put("key", b"one", ABSENT)

    assert sent == ["tables-111122223333.s3.invalid"]


def test_an_unknown_client_is_reported() -> None:
    with pytest.raises(ValueError, match="ARCO_S3_CLIENT: expected auto, wire, sdk, got 'http'"):
        S3Config.from_environment({"ARCO_S3_CLIENT": "http"})


@pytest.mark.parametrize("carrier", [Carrier.WIRE, Carrier.SDK])
async def test_a_write_that_is_refused_before_it_was_sent_whole_keeps_no_other_request_waiting(
    carrier: Carrier,
) -> None:
    connections, over = 0, asyncio.Event()
    refused = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"
    missing = b"HTTP/1.1 404 Not Found\r\nContent-Length: 22\r\n\r\n<Code>NoSuchKey</Code>"

    async def early_at_first(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await reader.readuntil(b"\r\n\r\n")
        if connections == 1:
            writer.write(refused)
            await over.wait()  # reads no more
        else:
            writer.write(missing)

    async with asyncio.timeout(60), serve(early_at_first) as port:
        config = replace(S3Server(f"http://127.0.0.1:{port}").config, carrier=carrier)
        try:
            async with store_of("bucket", config) as store:
                with pytest.raises(StoreDenied):
                    await store.put("key", bytes(8_000_000), ABSENT)
                assert isinstance(await store.get("key"), Missing)
        finally:
            over.set()
    assert connections == 2
