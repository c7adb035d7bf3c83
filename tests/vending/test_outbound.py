"""Requests to the services that give credentials."""

import asyncio

import pytest

from arco_catalog.iceberg.errors import Unavailable
from arco_catalog.vending.outbound import ATTEMPTS, MAX_ANSWER_BYTES, WireOutbound
from tests.support.fake_runtime import FakeRuntime
from tests.vending.fake_clouds import connections, fake_cloud, text


@pytest.fixture
def runtime() -> FakeRuntime:
    return FakeRuntime()


async def test_a_request_arrives_as_it_was_given(runtime: FakeRuntime) -> None:
    async with fake_cloud(text("fine")) as cloud, connections(runtime) as outbound:
        answer = await outbound.send("POST", f"{cloud.uri}/a/b?c=d&e", {"x-y": "z"}, b"body")

    (asked,) = cloud.asked
    assert (answer.status, answer.body) == (200, b"fine")
    assert (asked.method, asked.path, asked.body) == ("POST", "/a/b?c=d&e", b"body")
    assert (asked.headers["x-y"], asked.headers["host"]) == ("z", cloud.uri.partition("://")[2])


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_a_passing_failure_is_asked_for_again_a_few_times(runtime: FakeRuntime, status: int) -> None:
    began_ms = runtime.ms
    async with fake_cloud(text("", status)) as cloud, connections(runtime) as outbound:
        with pytest.raises(Unavailable, match=str(status)):
            await outbound.send("POST", cloud.uri, {}, b"")

    assert len(cloud.asked) == ATTEMPTS
    assert runtime.ms > began_ms


async def test_a_definite_answer_is_not(runtime: FakeRuntime) -> None:
    async with fake_cloud(text("", 403)) as cloud, connections(runtime) as outbound:
        assert (await outbound.send("POST", cloud.uri, {}, b"")).status == 403

    assert len(cloud.asked) == 1


async def test_an_answer_that_does_not_end_is_given_up(runtime: FakeRuntime) -> None:
    async with fake_cloud(text("x" * (MAX_ANSWER_BYTES + 1))) as cloud, connections(runtime) as outbound:
        with pytest.raises(Unavailable, match="longer than"):
            await outbound.send("GET", cloud.uri, {}, b"")


async def test_a_header_that_would_begin_another_is_not_sent(runtime: FakeRuntime) -> None:
    async with fake_cloud(text("")) as cloud, connections(runtime) as outbound:
        with pytest.raises(Unavailable, match="printable"):
            await outbound.send("GET", cloud.uri, {"authorization": "Bearer a\r\nx: y"}, b"")

    assert cloud.asked == []


def test_another_event_loop_gets_connections_of_its_own(runtime: FakeRuntime) -> None:
    outbound = WireOutbound(runtime.sleep, runtime.random)

    async def ask() -> int:
        async with fake_cloud(text("fine")) as cloud:
            status = (await outbound.send("GET", cloud.uri, {}, b"")).status
            await outbound.close()
            return status

    assert [asyncio.run(ask()) for _ in range(2)] == [200, 200]
