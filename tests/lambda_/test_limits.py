"""Where Lambda and API Gateway end: answers of 6 MB, requests of 29 s. The zip answers before either is reached."""

import asyncio
import gzip
import http.client
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import pytest
from pyiceberg.exceptions import BadRequestError

from arco_catalog.http.lambda_adapter import Endpoint
from arco_catalog.iceberg.json import JsonObject, dumps
from arco_catalog.state.runtime import SystemRuntime
from tests.lambda_.conftest import WAREHOUSE, Caller
from tests.support.dropping_proxy import Message
from tools.demo.engines import pyiceberg_catalog
from tools.gateway.running import API, open_gateway, running
from tools.gateway.sandbox import Function
from tools.support.asgi_client import Answer
from tools.support.many_snapshots import table
from tools.support.request_bodies import schema, set_property, uuid7
from tools.support.s3_servers import S3Server

NAMESPACE = f"/v1/{WAREHOUSE}/namespaces/db"
SNAPSHOTS = 16_000
PAYLOAD = 6 << 20


def put(s3: S3Server, location: str, body: bytes) -> None:
    """Leaves an object where an engine would."""
    where, what = urlsplit(s3.endpoint), urlsplit(location)
    connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=30)
    connection.request("PUT", f"/{what.netloc}{what.path}", body)
    assert connection.getresponse().status == 200
    connection.close()


def large_table(home: str) -> JsonObject:
    """A table whose answer is more than the host can carry, but for gzip."""
    return table(SNAPSHOTS, home)


def test_a_table_too_large_to_answer_with_says_so_and_how_to_read_it(
    folder: Path, deployed: Callable[[], dict[str, str]], s3_server: S3Server, tmp_path: Path
) -> None:
    environment = deployed()
    home = f"{environment['ARCO_STORE']}/{WAREHOUSE}/warehouse/big"
    body = dumps(large_table(home))
    assert len(body) > PAYLOAD
    put(s3_server, f"{home}/metadata/1.metadata.json", body)
    with running(folder, Endpoint.HTTP_API, tmp_path / "log", environment) as uri:
        caller = Caller(uri)
        caller.post(f"/v1/{WAREHOUSE}/namespaces", {"namespace": ["db"]})
        register = {"name": "big", "metadata-location": f"{home}/metadata/1.metadata.json"}

        refused = caller.post(f"{NAMESPACE}/register", register)
        assert (refused.status, _type(refused)) == (400, "AnswerTooLargeException")
        accepting = ("Accept-Encoding", "gzip")
        assert caller.post(f"{NAMESPACE}/register", register, accepting).status == 200

        plain = caller.get(f"{NAMESPACE}/tables/big")
        assert (plain.status, _type(plain)) == (400, "AnswerTooLargeException")
        assert all(way in plain.message for way in ("gzip", "snapshots=refs"))
        packed = caller.get(f"{NAMESPACE}/tables/big", accepting)
        assert packed.status == 200
        assert len(json.loads(gzip.decompress(packed.body))["metadata"]["snapshots"]) == SNAPSHOTS
        refs = caller.get(f"{NAMESPACE}/tables/big?snapshots=refs")
        assert len(cast(list[object], cast(JsonObject, refs.json["metadata"])["snapshots"])) == 1

        # A client that takes no gzip, as PyIceberg with this header: all snapshots are refused, the way out is not.
        plainly = {"header.Accept-Encoding": "identity"}
        with pytest.raises(BadRequestError, match="snapshots=refs"):
            pyiceberg_catalog(uri, WAREHOUSE, plainly).load_table("db.big")
        by_refs = pyiceberg_catalog(uri, WAREHOUSE, {**plainly, "snapshot-loading-mode": "refs"})
        assert len(by_refs.load_table("db.big").metadata.snapshots) == 1


def _type(answer: Answer) -> str:
    return str(cast(JsonObject, answer.json["error"])["type"])


@asynccontextmanager
async def freezing(endpoint: str, frozen: Callable[[str], bool]) -> AsyncIterator[str]:
    """A store before the store, which never answers requests whose first line is `frozen`. Yields its URI."""
    where = urlsplit(endpoint)
    over = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            message = await Message.read(reader)
            if frozen(message.start):
                await over.wait()
                return
            inward, outward = await asyncio.open_connection(where.hostname, where.port)
            outward.write(message.head + message.body)
            answer = await Message.read(inward, bodiless=message.start.startswith("HEAD"))
            outward.close()
            writer.write(answer.head + answer.body)
            await writer.drain()
        except asyncio.IncompleteReadError:
            return  # a connection that was opened and not used
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        over.set()
        server.close()
        await server.wait_closed()


async def test_a_commit_whose_store_stalls_is_answered_as_unknown_before_the_gateway_gives_up(
    folder: Path, deployed: Callable[[], dict[str, str]], tmp_path: Path
) -> None:
    environment = deployed()
    stalled: list[str] = []

    def frozen(start: str) -> bool:
        if not stalled or "iceberg_pointers" not in start or not start.startswith("PUT"):
            return False
        stalled.append(start)
        return True

    async with freezing(environment["AWS_ENDPOINT_URL_S3"], frozen) as store:
        environment |= {"AWS_ENDPOINT_URL_S3": store, "ARCO_ENDPOINT": Endpoint.HTTP_API}
        function = Function(folder, API, environment, tmp_path / "log")
        async with open_gateway(function, Endpoint.HTTP_API) as (uri, _):
            caller = Caller(uri)
            post = asyncio.to_thread
            await post(caller.post, f"/v1/{WAREHOUSE}/namespaces", {"namespace": ["db"]})
            await post(caller.post, f"{NAMESPACE}/tables", {"name": "t", "schema": schema("x")})
            key = ("Idempotency-Key", uuid7(SystemRuntime().now_ms(), SystemRuntime()))
            stalled.append("from now on")

            began = time.monotonic()
            answer = await post(caller.post, f"{NAMESPACE}/tables/t", set_property("k", "v"), key)

            assert (answer.status, _type(answer)) == (500, "CommitStateUnknownException")
            assert time.monotonic() - began < 29  # after which the gateway says 503, which clients misread
            assert len(stalled) > 1
