"""Requests under way share the memory that there is: what can't be had in time is answered so, and comes back."""

import asyncio
import tracemalloc
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from arco_catalog.http.asgi import Message, Receive, Scope, Send
from arco_catalog.http.clients import products
from arco_catalog.http.principal import AUTHENTICATED_CALLER, Caller
from arco_catalog.http.responses import PIECE_BYTES
from arco_catalog.iceberg.json import JsonObject, dumps
from arco_catalog.operations import listing
from arco_catalog.state.memory import BODY_WEIGHT
from tests.support.http_service import HttpService
from tools.support.asgi_client import Client, scope_of

MEMORY = 2 << 20
LARGEST = MEMORY * 3 // 4 // BODY_WEIGHT
"""The largest body that fits: large requests have three quarters of the memory."""
NAMESPACES = "/v1/wh/namespaces"


def body_of(size: int) -> bytes:
    body = dumps({"namespace": ["n"], "x": ""})
    return body[:-2] + b"y" * (size - len(body)) + body[-2:]


@pytest.fixture
def small_site(service_with: Callable[..., HttpService]) -> HttpService:
    """A service with little memory and no waiting for it."""
    return service_with(request_memory_bytes=MEMORY, memory_seconds=0.0)


@asynccontextmanager
async def arriving(service: HttpService, declared: int, principal: str | None = None) -> AsyncIterator[None]:
    """A request whose body is on its way for as long as the context lasts."""
    gone, reading = asyncio.Event(), asyncio.Event()

    async def receive() -> Message:
        reading.set()
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        raise AssertionError("no request must be sent")

    headers = {"content-length": str(declared), "content-type": "application/json"}
    scope = scope_of("POST", NAMESPACES, headers)
    if principal is not None:
        scope = {**scope, AUTHENTICATED_CALLER: Caller(principal)}
    task = asyncio.ensure_future(service.client.app(scope, receive, send))
    begins = asyncio.create_task(reading.wait())
    await asyncio.wait((task, begins), return_when=asyncio.FIRST_COMPLETED)
    assert begins.done(), "it was answered before its body was read"
    yield
    gone.set()
    await task


@pytest.mark.parametrize("declared", [True, False])
async def test_a_body_without_memory_is_answered_503_with_retry_after(small_site: HttpService, declared: bool) -> None:
    body = body_of(LARGEST - 1_000)
    headers = {"content-length": str(len(body))} if declared else {}
    async with arriving(small_site, LARGEST // 2):
        refused = await small_site.client.send("POST", NAMESPACES, body, headers, 7)
        small = await small_site.client.post(NAMESPACES, {"namespace": ["small"]})
    again = await small_site.client.send("POST", NAMESPACES, body, headers, 7)

    assert (refused.status, refused.error_type) == (503, "ServiceUnavailableException")
    assert refused.headers["Retry-After"] == "1"
    assert "memory" in refused.message
    assert small.status == 200
    assert again.status == 200


async def test_a_commit_that_finds_no_memory_for_its_body_has_not_begun(small_site: HttpService) -> None:
    body = dumps({"requirements": [], "updates": [], "x": "y" * (LARGEST - 1_000)})
    async with arriving(small_site, LARGEST // 2):
        refused = await small_site.client.send("POST", f"{NAMESPACES}/db/tables/t", body, {})

    assert (refused.status, refused.error_type) == (503, "ServiceUnavailableException")


@pytest.mark.parametrize("declared", [True, False])
async def test_a_body_that_could_never_have_its_memory_is_too_large(small_site: HttpService, declared: bool) -> None:
    body = body_of(LARGEST + 1)
    headers = {"content-length": str(len(body))} if declared else {}

    answer = await small_site.client.send("POST", NAMESPACES, body, headers, 7)

    assert (answer.status, answer.error_type) == (413, "BadRequestException")
    assert f"larger than {LARGEST} bytes" in answer.message
    assert (await small_site.client.send("POST", NAMESPACES, body_of(LARGEST), {}, 7)).status == 200


async def test_values_are_counted_beside_the_bytes_of_a_body(small_site: HttpService) -> None:
    values = dumps({"namespace": ["n"], "x": [[] for _ in range(20_000)]})
    async with arriving(small_site, LARGEST // 2):
        refused = await small_site.client.send("POST", NAMESPACES, values, {"content-length": str(len(values))})
    alone = await small_site.client.send("POST", NAMESPACES, values, {"content-length": str(len(values))})

    assert refused.status == 503
    assert alone.status == 200


async def test_a_large_head_is_counted_too(small_site: HttpService) -> None:
    async with arriving(small_site, LARGEST - 1):
        refused = await small_site.client.get("/v1/config", x_long="a" * 200_000)
    assert refused.status == 503
    assert (await small_site.client.get("/v1/config", x_long="a" * 200_000)).status == 200


async def test_a_large_table_is_changed_and_loaded_within_the_memory_again_and_again(small_site: HttpService) -> None:
    await small_site.namespace("db", "db")
    await small_site.table("t")
    for number in range(20):
        wanted: JsonObject = {"action": "set-properties", "updates": {"a": f"{number}" + "x" * 50_000}}
        changed = await small_site.client.post(f"{NAMESPACES}/db/tables/t", {"requirements": [], "updates": [wanted]})
        loaded = await small_site.client.get(f"{NAMESPACES}/db/tables/t")
        assert (changed.status, loaded.status) == (200, 200)


async def test_a_listing_without_pages_takes_memory_as_it_grows(
    small_site: HttpService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "ITEMS_AT_ONCE", 4)
    monkeypatch.setattr(listing, "ITEM_BYTES", MEMORY // 5)
    for number in range(12):
        await small_site.namespace(str(number), str(number))
    async with arriving(small_site, LARGEST // 2):
        refused = await small_site.client.get(NAMESPACES)
        paged = await small_site.client.get(f"{NAMESPACES}?pageToken=")
    alone = await small_site.client.get(NAMESPACES)

    assert (refused.status, refused.error_type) == (503, "ServiceUnavailableException")
    assert (paged.status, alone.status) == (200, 200)


@pytest.mark.parametrize("size", [PIECE_BYTES - 200, 3 * PIECE_BYTES + 1])
async def test_a_large_answer_goes_out_in_pieces(service: HttpService, size: int) -> None:
    wanted: JsonObject = {"action": "set-properties", "updates": {"a": "x" * size}}
    await service.client.post(f"{NAMESPACES}/db/tables/t", {"requirements": [], "updates": [wanted]})
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    await service.client.app(scope_of("GET", f"{NAMESPACES}/db/tables/t", {}), receive, send)

    start, *pieces = sent
    assert max(len(piece["body"]) for piece in pieces) <= PIECE_BYTES
    whole = b"".join(piece["body"] for piece in pieces)
    assert dict(start["headers"])[b"content-length"] == b"%d" % len(whole)
    assert len(whole) > size


def test_long_user_agents_are_not_kept() -> None:
    products("warm/1")
    tracemalloc.start()
    try:
        for number in range(300):
            products(f"agent/{number} " + "x" * 240_000)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 2 << 20


async def test_large_bodies_of_one_principal_leave_room_for_those_of_others(small_site: HttpService) -> None:
    body = body_of(LARGEST // 2 - 1_000)
    app = small_site.client.app

    def of(principal: str) -> Client:
        async def called(scope: Scope, receive: Receive, send: Send) -> None:
            await app({**scope, AUTHENTICATED_CALLER: Caller(principal)}, receive, send)

        return Client(called)

    headers, tiny = {"content-length": str(len(body))}, dumps({"namespace": ["small"]})
    async with arriving(small_site, len(body), "a"):
        refused = await of("a").send("POST", NAMESPACES, body, headers)
        small = await of("a").send("POST", NAMESPACES, tiny, {"content-length": str(len(tiny))})
        other = await of("b").send("POST", NAMESPACES, body, headers)
    again = await of("a").send("POST", NAMESPACES, body_of(LARGEST // 2).replace(b'"n"', b'"m"'), {})

    assert (refused.status, refused.error_type) == (503, "ServiceUnavailableException")
    assert "same principal" in refused.message
    assert refused.headers["Retry-After"] == "1"
    assert (small.status, other.status, again.status) == (200, 200, 200)
