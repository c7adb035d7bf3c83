"""A webhook gets each event by one signed POST; what it answers decides whether the event is sent again."""

import hashlib
import hmac
import math
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from contextlib import nullcontext

import pytest
from aiohttp import web

from arco_catalog.iceberg.json import JsonObject, loads
from arco_catalog.planning.cloud_events import cloud_event
from arco_catalog.upkeep.delivery.sink import DeliveryError, EventRefused, Message, ReceiverUnreachable
from arco_catalog.upkeep.delivery.webhook import Webhook
from storage_backends.clock import system_now_ms
from storage_backends.wire import dial
from tests.support.stub_server import stub_server

SECRET = "whsec_" + b64encode(bytes(range(32))).decode()
EVENT = cloud_event(
    {
        "event-id": "01KDVDNA00Q0CE18T0QX4DH52F",
        "timestamp-ms": 1_767_225_600_007,
        "operation": {"operation-type": "update-table", "identifier": {"namespace": ["db"], "name": "ü/t"}},
        "arco": {"entity": "01KDVDNA000000000000000006"},
    },
    17,
    "my lake",
)
MESSAGE = Message.of(EVENT)


def is_verified(headers: Mapping[str, str], body: bytes) -> bool:
    """What a receiver computes, by the text of the scheme."""
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = b64encode(hmac.new(b64decode(SECRET.removeprefix("whsec_")), signed, hashlib.sha256).digest()).decode()
    return headers["webhook-signature"] == f"v1,{expected}"


async def test_a_receiver_gets_a_signed_cloud_event() -> None:
    got: list[tuple[str, Mapping[str, str], bytes]] = []

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        got.append(
            (request.method, {name.lower(): value for name, value in request.headers.items()}, await request.read())
        )
        return web.Response(status=204)

    async with stub_server(handle) as server:
        await Webhook(f"{server.uri}/hook?a=b", SECRET, system_now_ms, allows_private=True).send(MESSAGE)

    [(method, headers, body)] = got
    assert method == "POST"
    assert headers["content-type"] == "application/cloudevents+json; charset=utf-8"
    assert is_verified(headers, body)
    assert not is_verified(headers, body + b" ")
    assert headers["webhook-id"] == EVENT["id"] == "01KDVDNA00Q0CE18T0QX4DH52F"
    assert loads(body) == {
        "specversion": "1.0",
        "id": "01KDVDNA00Q0CE18T0QX4DH52F",
        "source": "/v1/my%20lake",
        "type": "arco.update-table",
        "subject": "db/%C3%BC%2Ft",
        "time": "2026-01-01T00:00:00.007Z",
        "datacontenttype": "application/json",
        "sequence": "00000000000000000017",
        "partitionkey": "01KDVDNA000000000000000006",
        "data": EVENT["data"],
    }


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (301, ReceiverUnreachable),
        (307, ReceiverUnreachable),
        (400, EventRefused),
        (401, ReceiverUnreachable),
        (404, ReceiverUnreachable),
        (408, DeliveryError),
        (410, ReceiverUnreachable),
        (413, EventRefused),
        (429, DeliveryError),
        (500, DeliveryError),
        (503, DeliveryError),
    ],
)
async def test_a_status_decides_what_comes_next(status: int, error: type[DeliveryError]) -> None:
    requests: list[str] = []

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        requests.append(request.path)
        return web.Response(status=status, headers={"location": "/elsewhere"}, text="secret")

    async with stub_server(handle) as server:
        with pytest.raises(DeliveryError) as failed:
            await Webhook(f"{server.uri}/hook", SECRET, system_now_ms, allows_private=True).send(MESSAGE)

    assert type(failed.value) is error
    assert "secret" not in str(failed.value)
    assert requests == ["/hook"], "no redirect is followed, nothing is sent twice"


@pytest.mark.parametrize(
    ("status", "retry_after", "pause_s"),
    [
        (429, "120", 120.0),
        (503, "120", 120.0),
        (503, "9" * 400, math.inf),
        (503, "-1", 0.0),
        (503, "1e9", 0.0),
        (503, "soon", 0.0),
        (500, "120", 0.0),
        (401, "120", 0.0),
        (422, "120", 0.0),
    ],
)
async def test_an_overloaded_receiver_may_request_a_pause(status: int, retry_after: str, pause_s: float) -> None:
    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=status, headers={"retry-after": retry_after})

    async with stub_server(handle) as server:
        with pytest.raises(DeliveryError) as failed:
            await Webhook(f"{server.uri}/hook", SECRET, system_now_ms, allows_private=True).send(MESSAGE)

    assert failed.value.pause_s == pause_s


@pytest.mark.parametrize(("status", "error"), [(200, None), (400, EventRefused), (503, DeliveryError)])
async def test_the_status_alone_counts_of_a_response_that_is_too_large(
    status: int, error: type[DeliveryError] | None
) -> None:
    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=status, body=b"x" * (70 << 10))

    async with stub_server(handle) as server:
        webhook = Webhook(server.uri, SECRET, system_now_ms, allows_private=True)
        with pytest.raises(error) if error is not None else nullcontext() as failed:
            await webhook.send(MESSAGE)

    assert error is None or (failed is not None and type(failed.value) is error)


def test_an_event_without_a_name_has_no_subject() -> None:
    gap: JsonObject = {"event-id": "gap-1", "operation": {"operation-type": "x-gap"}, "arco": {}}
    assert "subject" not in cloud_event(gap, 1, "lake")


async def test_a_receiver_that_does_not_listen_is_not_the_event_s_fault() -> None:
    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response()

    async with stub_server(handle) as server:
        uri = server.uri
    with pytest.raises(ReceiverUnreachable, match="no connection"):
        await Webhook(uri, SECRET, system_now_ms, allows_private=True).send(MESSAGE)


@pytest.mark.parametrize(
    "url",
    ["http://example.com/", "http://127.0.0.1/", "ftp://example.com", "https://user@example.com/", "https:///x", "x"],
)
def test_only_https_is_a_webhook(url: str) -> None:
    with pytest.raises(ValueError, match="must be"):
        Webhook(url, SECRET, system_now_ms, allows_private=False)


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.1", "::1", "169.254.169.254"])
async def test_no_connection_is_made_to_a_private_address_to_which_a_name_leads(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    attempts: list[object] = []
    _leads_to(monkeypatch, address, attempts.append)

    with pytest.raises(ReceiverUnreachable, match="no address that is permitted"):
        await Webhook("https://hook.example.com/", SECRET, system_now_ms, allows_private=False).send(MESSAGE)

    assert attempts == []


async def test_an_allowed_private_address_is_never_link_local(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts: list[object] = []
    _leads_to(monkeypatch, "169.254.169.254", attempts.append)

    with pytest.raises(ReceiverUnreachable, match="no address that is permitted"):
        await Webhook("https://hook.example.com/", SECRET, system_now_ms, allows_private=True).send(MESSAGE)

    assert attempts == []


def _leads_to(monkeypatch: pytest.MonkeyPatch, address: str, attempt: Callable[[object], object]) -> None:
    """Makes every name lead to an address, and reports attempts to connect."""
    import socket

    family = socket.AF_INET6 if ":" in address else socket.AF_INET

    async def resolve(host: str, port: int) -> list[dial.Address]:
        return [(family, (address, port))]

    async def connect(family: object, to: object) -> socket.socket:
        attempt(to)
        raise OSError("refused")

    monkeypatch.setattr(dial, "resolve", resolve)
    monkeypatch.setattr(dial, "_attempt", connect)
