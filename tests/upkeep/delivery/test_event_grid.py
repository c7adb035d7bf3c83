"""Topics of Azure Event Grid take events: from a stub that follows Microsoft's reference, as there is no emulator."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

import pytest
from aiohttp import web

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.upkeep.delivery.queues import queue_of
from arco_catalog.upkeep.delivery.sink import DeliveryError, EventRefused, Message, ReceiverUnreachable
from storage_backends.azure import credentials
from storage_backends.azure.event_grid import MAX_MESSAGE_BYTES
from storage_backends.clock import system_now_ms
from tests.support.stub_server import stub_server
from tools.support.ports import free_port

CUSTOM = "https://changes.westeurope-1.eventgrid.azure.net/api/events"
OF_NAMESPACE = "https://lake.westeurope-1.eventgrid.azure.net/topics/changes"
KEY = "bm90LWEta2V5"
EVENT: JsonObject = {
    "specversion": "1.0",
    "id": "01KDVDNA00Q0CE18T0QX4DH52F",
    "source": "/v1/lake",
    "type": "arco.update-table",
    "subject": "db/ü",
    "sequence": "00000000000000000017",
    "partitionkey": "01KDVDNA000000000000000006",
    "data": {"event-id": "01KDVDNA00Q0CE18T0QX4DH52F"},
}


@dataclass
class EventGrid:
    """What the service does with a request: 404 for an unknown path, 400 for another version or batch, 401 for a wrong
    key, 413 for a large request, else `status`."""

    status: int = 200
    events: list[JsonObject] = field(default_factory=list)
    authorized: Mapping[str, str] = field(default_factory=lambda: {"aeg-sas-key": KEY})
    environment: dict[str, str] = field(default_factory=dict)

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        versions = {"/api/events": "2018-01-01", "/topics/changes:publish": "2024-06-01"}
        body = await request.read()
        if request.method != "POST" or request.path not in versions:
            return web.json_response({}, status=404)
        if request.query != {"api-version": versions[request.path]}:
            return web.json_response({}, status=400)
        if any(request.headers.get(name) != value for name, value in self.authorized.items()):
            return web.json_response({"error": {"code": "Unauthorized"}}, status=401)
        if len(body) > 1 << 20:
            return web.json_response({}, status=413)
        if request.headers["content-type"] != "application/cloudevents-batch+json; charset=utf-8":
            return web.json_response({}, status=400)
        batch = json.loads(body)
        attributes = ("specversion", "id", "source", "type")
        if not isinstance(batch, list) or any(
            not isinstance(each.get(name), str) for each in batch for name in attributes
        ):
            return web.json_response({}, status=400)
        if self.status == 200:
            self.events += batch
        return web.json_response({"error": {"message": "a secret"}}, status=self.status)


@asynccontextmanager
async def event_grid(status: int = 200) -> AsyncIterator[EventGrid]:
    """Runs the service, with the environment of a worker that has a key for it."""
    service = EventGrid(status)
    async with stub_server(service.handle) as server:
        service.environment = {"EVENTGRID_TOPIC_ENDPOINT": server.uri, "EVENTGRID_TOPIC_KEY": KEY}
        yield service


async def send(url: str, environment: Mapping[str, str], event: JsonObject = EVENT) -> None:
    topic = queue_of(url, environment, system_now_ms)
    assert topic is not None
    await topic.send(Message.of(event))


async def test_a_custom_topic_takes_an_event_with_its_key() -> None:
    async with event_grid() as service:
        await send(CUSTOM, service.environment)
    assert service.events == [EVENT]


async def test_a_topic_of_a_namespace_takes_an_event_with_its_key() -> None:
    async with event_grid() as service:
        service.authorized = {"authorization": f"SharedAccessKey {KEY}"}
        await send(OF_NAMESPACE, service.environment)
    assert service.events == [EVENT]


@pytest.mark.parametrize("url", [CUSTOM, OF_NAMESPACE])
async def test_without_a_key_the_worker_s_identity_authorizes(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    class Token(NamedTuple):
        token: str
        expires_on: int

    class Identity:
        def get_token(self, scope: str) -> Token:
            return Token(f"for {scope}", system_now_ms() // 1000 + 3600)

    monkeypatch.setattr(credentials, "_credential", lambda config: Identity())
    async with event_grid() as service:
        service.authorized = {"authorization": "Bearer for https://eventgrid.azure.net/.default"}
        await send(url, {"EVENTGRID_TOPIC_ENDPOINT": service.environment["EVENTGRID_TOPIC_ENDPOINT"]})
    assert service.events == [EVENT]


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, EventRefused),
        (413, EventRefused),
        (401, ReceiverUnreachable),
        (403, ReceiverUnreachable),
        (404, ReceiverUnreachable),
        (410, ReceiverUnreachable),
        (429, ReceiverUnreachable),
        (500, ReceiverUnreachable),
        (503, ReceiverUnreachable),
    ],
)
async def test_a_status_of_event_grid_decides_what_comes_next(status: int, error: type[DeliveryError]) -> None:
    async with event_grid(status) as service:
        with pytest.raises(DeliveryError, match=f"status {status}") as failed:
            await send(CUSTOM, service.environment)
    assert type(failed.value) is error
    assert "secret" not in str(failed.value)
    assert KEY not in str(failed.value)


async def test_a_wrong_key_and_an_outage_are_not_the_event_s_fault() -> None:
    async with event_grid() as service:
        with pytest.raises(ReceiverUnreachable, match="status 401"):
            await send(CUSTOM, {**service.environment, "EVENTGRID_TOPIC_KEY": "another"})
    with pytest.raises(ReceiverUnreachable):
        await send(CUSTOM, {**service.environment, "EVENTGRID_TOPIC_ENDPOINT": f"http://127.0.0.1:{free_port()}"})


async def test_an_event_that_is_too_large_is_refused_before_it_is_sent() -> None:
    fits = MAX_MESSAGE_BYTES - len(Message.of({**EVENT, "data": ""}).body)
    async with event_grid() as service:
        await send(CUSTOM, service.environment, {**EVENT, "data": "x" * fits})
        with pytest.raises(EventRefused, match="more than the queue takes"):
            await send(CUSTOM, service.environment, {**EVENT, "data": "x" * (fits + 1)})
    assert len(service.events) == 1


@pytest.mark.parametrize(
    "url",
    [
        f"{CUSTOM}/",
        f"{CUSTOM}?api-version=2018-01-01",
        CUSTOM.replace("https", "http"),
        CUSTOM.removesuffix("/api/events"),
        CUSTOM.replace("azure.net", "azure.net.example.com"),
        f"{OF_NAMESPACE}:publish",
    ],
)
def test_another_url_is_refused_with_the_form_of_one(url: str) -> None:
    with pytest.raises(ValueError, match="a topic of Event Grid is https://NAME"):
        queue_of(url, {}, system_now_ms)
