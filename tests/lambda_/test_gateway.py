"""The gateway and its processes, with functions of a few lines: what AWS does, and what it does not let pass."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from arco_catalog.http.lambda_adapter import Endpoint
from tests.lambda_.conftest import Caller
from tools.gateway.gateway import LIMITS
from tools.gateway.running import open_gateway
from tools.gateway.sandbox import Function, Pool
from tools.support.asgi_client import Answer

FUNCTION = """
import json, os, pathlib, time

def handler(event, context):
    path = event.get("rawPath") or event["path"]
    body = {"pid": os.getpid(), "left": context.get_remaining_time_in_millis(), "event": event}
    if path == "/die":
        os._exit(1)
    if path == "/raise":
        raise ValueError("no")
    if path == "/hang":
        time.sleep(60)
    if path == "/large":
        body = {"text": "x" * int(event["rawQueryString"])}
    if path == "/meet":
        folder = pathlib.Path(os.environ["MEETING"])
        (folder / str(os.getpid())).touch()
        for _ in range(1000):
            if len([*folder.iterdir()]) >= 2:
                break
            time.sleep(0.01)
        else:
            raise TimeoutError("nobody else came")
    return {"statusCode": 200, "headers": {"Content-Type": "application/json"}, "body": json.dumps(body)}
"""

Ask = Callable[..., Answer]
Opened = Callable[..., AbstractAsyncContextManager[tuple[Caller, Pool]]]


@pytest.fixture
def opened(tmp_path: Path) -> Opened:
    """Opens gateways over that function; `seconds` is how long it may take, `timeout` how long the endpoint waits."""
    (tmp_path / "meeting").mkdir()
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "function.py").write_text(FUNCTION)

    @asynccontextmanager
    async def open_(
        endpoint: Endpoint = Endpoint.HTTP_API, *, seconds: float = 30.0, timeout: float | None = None, **more: Any
    ) -> AsyncIterator[tuple[Caller, Pool]]:
        environment = {"MEETING": str(tmp_path / "meeting")}
        function = Function(tmp_path / "code", "function.handler", environment, tmp_path / "log", seconds)
        limits = LIMITS[endpoint] if timeout is None else replace(LIMITS[endpoint], seconds=timeout)
        async with open_gateway(function, endpoint, limits=limits, **more) as (uri, pool):
            yield Caller(uri), pool

    return open_


async def get(caller: Caller, target: str, *headers: tuple[str, str]) -> Answer:
    return await asyncio.to_thread(caller.get, target, *headers)


async def post(caller: Caller, target: str, body: bytes) -> Answer:
    return await asyncio.to_thread(caller.send, "POST", target, body, (("Content-Type", "text/plain"),))


@pytest.mark.parametrize("endpoint", list(Endpoint))
async def test_a_request_reaches_the_function_as_the_endpoint_s_event(opened: Opened, endpoint: Endpoint) -> None:
    async with opened(endpoint) as (caller, _):
        answer = await get(caller, "/a%20b?x=%2F", ("X-Test", "1"))
    event: Any = answer.json["event"]
    assert answer.status == 200
    match endpoint:
        case Endpoint.HTTP_API:
            assert (event["version"], event["rawPath"], event["headers"]["x-test"]) == ("2.0", "/a b", "1")
        case Endpoint.FUNCTION_URL:
            assert (event["version"], event["rawPath"], event["rawQueryString"]) == ("2.0", "/a%20b", "x=%2F")
        case Endpoint.REST_API:
            assert (event["path"], event["requestContext"]["path"]) == ("/a%20b", "/live/a%20b")
            assert event["headers"]["X-Test"] == "1"


async def test_a_named_stage_is_part_of_the_uri_and_nothing_is_beside_it(opened: Opened) -> None:
    async with opened(stage="prod") as (caller, _):
        assert caller.uri.endswith("/prod")
        event: Any = (await get(caller, "/x")).json["event"]
        assert event["rawPath"] == "/prod/x"
        beside = await get(Caller(caller.uri.removesuffix("/prod")), "/x")
    assert (beside.status, beside.json) == (404, {"message": "Not Found"})


TIMED_OUT = [
    (Endpoint.HTTP_API, 503, "Service Unavailable"),
    (Endpoint.REST_API, 504, "Endpoint request timed out"),
]
FAILED = [
    (Endpoint.HTTP_API, 500, "Internal Server Error"),
    (Endpoint.REST_API, 502, "Internal server error"),
    (Endpoint.FUNCTION_URL, 502, "Internal Server Error"),
]


@pytest.mark.parametrize(("endpoint", "status", "message"), TIMED_OUT)
async def test_an_endpoint_gives_up_while_the_function_runs_on(
    opened: Opened, endpoint: Endpoint, status: int, message: str
) -> None:
    async with opened(endpoint, timeout=1.0) as (caller, pool):
        answer = await get(caller, "/hang")
        assert (answer.status, answer.json) == (status, {"message": message})
        assert len(pool.pids) == 1


async def test_a_function_that_takes_too_long_is_ended_and_the_next_event_starts_another(opened: Opened) -> None:
    async with opened(seconds=2.0) as (caller, pool):
        assert (await get(caller, "/hang")).status == 500
        assert pool.pids == []
        pool.function = replace(pool.function, seconds=29.0)  # to start another may take longer than two seconds
        again = await get(caller, "/")
        assert again.status == 200
        assert pool.pids == [again.json["pid"]]
        left = again.json["left"]
        assert isinstance(left, int)
        assert left <= 29_000


@pytest.mark.parametrize("target", ["/die", "/raise"])
@pytest.mark.parametrize(("endpoint", "status", "message"), FAILED)
async def test_a_function_that_fails_is_answered_for_and_the_next_event_is_not_lost(
    opened: Opened, endpoint: Endpoint, status: int, message: str, target: str
) -> None:
    async with opened(endpoint) as (caller, _):
        answer = await get(caller, target)
        assert (answer.status, answer.json) == (status, {"message": message})
        assert (await get(caller, "/")).status == 200


async def test_a_process_killed_while_it_waits_takes_no_later_event_along(opened: Opened) -> None:
    async with opened() as (caller, pool):
        first = (await get(caller, "/")).json["pid"]
        assert pool.pids == [first]
        os.kill(pool.pids[0], signal.SIGKILL)
        await get(caller, "/")  # fails if its death was not seen yet
        again = await get(caller, "/")
        assert again.status == 200
        assert pool.pids == [again.json["pid"]] != [first]


async def test_a_function_that_always_dies_is_not_started_for_ever(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tools.gateway.sandbox.MAX_STARTS", 2)
    async with opened() as (caller, pool):
        statuses = [(await get(caller, "/die")).status for _ in range(3)]
        assert statuses == [500, 500, 500]
        assert (await get(caller, "/")).status == 500
        assert pool.pids == []


async def test_two_events_at_once_are_worked_on_by_two_processes(opened: Opened) -> None:
    async with opened(concurrency=2) as (caller, pool):
        answers = await asyncio.gather(get(caller, "/meet"), get(caller, "/meet"))
        assert [answer.status for answer in answers] == [200, 200]
        assert {answer.json["pid"] for answer in answers} == {*pool.pids}
        assert len(pool.pids) == 2


async def test_one_event_after_the_other_is_worked_on_by_one(opened: Opened) -> None:
    async with opened() as (caller, pool):
        pids = {(await get(caller, "/")).json["pid"] for _ in range(3)}
        assert pids == {*pool.pids}
        assert len(pids) == 1


async def test_what_is_too_large_does_not_pass(opened: Opened) -> None:
    async with opened() as (caller, pool):
        for size in (10 << 20, (10 << 20) + 1, 6 << 20):  # an event has its own limit, in which a body is only a part
            too_large = await post(caller, "/", b"x" * size)
            assert (too_large.status, too_large.json) == (413, {"message": "Request Entity Too Large"})
        assert pool.pids == []
        assert (await post(caller, "/large?10", b"x" * (5 << 20))).status == 200
        assert (await get(caller, f"/large?{5 << 20}")).status == 200
        answer = await get(caller, f"/large?{6 << 20}")
        assert (answer.status, answer.json) == (500, {"message": "Internal Server Error"})
        assert (await get(caller, "/")).status == 200


@pytest.mark.parametrize("endpoint", [Endpoint.HTTP_API, Endpoint.REST_API])
async def test_a_request_line_with_its_headers_has_a_limit(opened: Opened, endpoint: Endpoint) -> None:
    async with opened(endpoint) as (caller, _):
        assert (await get(caller, "/", ("X-Long", "x" * 9000))).status == 200
        for target, value in (("/", "x" * 10_240), (f"/{'x' * 10_240}", "")):
            assert (await get(caller, target, ("X-Long", value))).status == 431


async def test_what_is_no_http_is_refused(opened: Opened) -> None:
    async with opened() as (caller, _), asyncio.timeout(20):
        host, _, port = caller.uri.removeprefix("http://").partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"nonsense\r\n\r\n")
        assert (await reader.readline()).split()[1] == b"400"
        writer.close()


async def test_a_head_and_a_chunked_body_are_http_too(opened: Opened) -> None:
    async with opened() as (caller, _), asyncio.timeout(20):
        host, _, port = caller.uri.removeprefix("http://").partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"HEAD / HTTP/1.1\r\nHost: x\r\n\r\n")
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 ")
        writer.write(
            b"POST / HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nExpect: 100-continue\r\n"
            b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n"
        )
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        _, _, body = (await reader.read()).partition(b"\r\n\r\n")
        assert json.loads(body)["event"]["body"] == "abcd"
        writer.close()
