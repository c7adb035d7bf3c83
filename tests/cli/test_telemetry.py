"""What a server records of its requests, as an operator gets it: on stderr, and at a collector of traces."""

import asyncio
import json
import re
import urllib.request
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from aiohttp import web

from tests.cli.process import arco, serving
from tests.support.stub_server import stub_server
from tools.support.request_bodies import schema

NS = "/v1/arco/namespaces"
PLANTED = "hunter2"


@dataclass
class Collector:
    """Takes OTLP over HTTP, and keeps the bodies."""

    uri: str = ""
    paths: list[str] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    async def handle(self, request: web.BaseRequest) -> web.Response:
        self.paths.append(request.path)
        self.bodies.append(await request.read())
        self.arrived.set()
        return web.Response()


@pytest.fixture
async def collector() -> AsyncIterator[Collector]:
    collector = Collector()
    async with stub_server(collector.handle) as server:
        collector.uri = server.uri
        yield collector


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"file:{tmp_path}/store"


async def test_a_server_shows_of_its_requests_in_json_metrics_and_traces_and_of_no_secret(
    store: str, collector: Collector
) -> None:
    environment = {
        "AWS_ACCESS_KEY_ID": PLANTED,
        "AWS_SECRET_ACCESS_KEY": f"{PLANTED}/secret",
        "AWS_SESSION_TOKEN": f"{PLANTED}/token",
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.uri,
        "OTEL_EXPORTER_OTLP_HEADERS": f"authorization=Bearer%20{PLANTED}",
        "ARCO_METRICS_NAMESPACE": "Lake",
    }
    async with serving(store, "--log-format", "json", "--log-level", "debug", **environment) as server:
        await server.call("POST", NS, {"namespace": ["db"], "properties": {"token": PLANTED}})
        body = {"name": "t", "schema": schema("x"), "properties": {"token": PLANTED}}
        assert (await server.call("POST", f"{NS}/db/tables", body))[0] == 200
        assert (await server.call("GET", f"{NS}/db/tables/t?token={PLANTED}"))[0] == 200
        assert (await server.call("GET", f"{NS}/db/tables/none?token={PLANTED}"))[0] == 404
        ended = await server.stop()

    lines = [json.loads(line) for line in ended.err.splitlines()]
    requests = [line for line in lines if "Operation" in line]
    assert sorted((line["Operation"], line["status"]) for line in requests) == [  # concurrent workers log in any order
        ("createNamespace", 200),
        ("createTable", 200),
        ("loadTable", 200),
        ("loadTable", 404),
    ]
    assert {line["_aws"]["CloudWatchMetrics"][0]["Namespace"] for line in requests} == {"Lake"}
    assert {*collector.paths} == {"/v1/traces"}
    spans = b"".join(collector.bodies)
    for line in requests:
        assert bytes.fromhex(line["trace_id"]) in spans
    assert b"createTable" in spans
    assert PLANTED not in ended.err
    assert PLANTED not in ended.out
    assert PLANTED.encode() not in spans


async def test_json_has_a_line_a_request_however_quiet_the_log_is(store: str) -> None:
    async with serving(store, "--log-format", "json", "--log-level", "error") as server:
        await server.call("GET", "/health")
        ended = await server.stop()

    [line] = [json.loads(line) for line in ended.err.splitlines()]
    assert (line["Operation"], line["status"], line["Warehouse"]) == ("health", 200, "arco")
    assert "_aws" not in line


async def test_text_has_none_unless_debugging(store: str) -> None:
    async with serving(store) as server:
        await server.call("GET", "/v1/config")
        assert (await server.stop()).err == ""


@pytest.mark.parametrize(
    ("options", "environment", "why"),
    [
        (("--metrics-namespace", "Lake"), {}, "requires --log-format json"),
        (("--log-format", "json", "--metrics-namespace", "AWS/x"), {}, "invalid CloudWatch metrics namespace"),
        ((), {"OTEL_TRACES_EXPORTER": "zipkin"}, "got 'zipkin'"),
    ],
)
async def test_a_setting_that_can_not_be_followed_is_reported_at_the_start(
    store: str, options: tuple[str, ...], environment: dict[str, str], why: str
) -> None:
    ended = await arco("serve", "--store", store, "--port", "0", *options, **environment)

    assert ended.code == 1
    assert re.fullmatch(r"arco: .*\n", ended.err)
    assert why in ended.err


async def test_gzip_is_served_where_it_is_requested(store: str) -> None:
    for option, expected in (((), False), (("--gzip",), True)):
        async with serving(store, *option) as server:
            await server.call("POST", NS, {"namespace": ["db"]})
            columns = [f"a_rather_long_name_for_a_column_{number}" for number in range(1200)]
            await server.call("POST", f"{NS}/db/tables", {"name": "t", "schema": schema(*columns)})
            assert await vary(server.uri) is expected


async def vary(uri: str) -> bool:
    """Whether a large answer depends on what the client accepts."""

    def ask() -> bool:
        request = urllib.request.Request(f"{uri}{NS}/db/tables/t", headers={"Accept-Encoding": "gzip"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            return "gzip" in answer.headers.get_all("content-encoding", [])

    return await asyncio.to_thread(ask)
