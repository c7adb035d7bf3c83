"""Pages of origins that the operator named may use the catalog from a browser; all others are refused as before."""

from dataclasses import replace

import pytest

from arco_catalog.http.compression import WORTHWHILE_BYTES
from arco_catalog.http.middleware.cors import parse_origin
from tests.http.test_browsers import EVIL, FOREIGN, HERE, TABLE, asked
from tests.support.http_service import HttpService
from tools.support.asgi_client import Answer, Client
from tools.support.request_bodies import set_property

CONSOLE = "https://console.example.com"
CORS = "access-control-"


@pytest.fixture
def client(service: HttpService) -> Client:
    """A client of a server that a console of another origin may use."""
    service.options = replace(service.options, allowed_hosts=(), allowed_origins=(CONSOLE,), health=True, gzip=True)
    return service.serve()


def told(answer: Answer) -> dict[str, str]:
    """What an answer says to browsers about other origins."""
    return {name.lower(): value for name, value in answer.headers.items() if name.lower().startswith(CORS)}


def header(answer: Answer, name: str) -> str | None:
    """One header of an answer."""
    return {key.lower(): value for key, value in answer.headers.items()}.get(name)


async def test_a_page_of_an_allowed_origin_reads_answers_and_errors(client: Client) -> None:
    page = {"host": HERE, "origin": CONSOLE, "sec-fetch-site": "cross-site"}

    found = await asked(client, "GET", "/v1/wh/namespaces/db", page)
    missing = await asked(client, "GET", f"{TABLE}_absent", page)

    assert (found.status, missing.status) == (200, 404)
    for answer in (found, missing):
        assert told(answer)["access-control-allow-origin"] == CONSOLE
        assert "ETag" in told(answer)["access-control-expose-headers"]
        assert "access-control-allow-credentials" not in told(answer)
        assert header(answer, "vary") == "Origin"


async def test_a_preflight_of_an_allowed_origin_says_what_may_be_sent(client: Client) -> None:
    asks = {
        "host": HERE,
        "origin": CONSOLE,
        "access-control-request-method": "DELETE",
        "access-control-request-headers": "authorization,content-type, idempotency-key",
    }

    answer = await asked(client, "OPTIONS", TABLE, asks)

    assert (answer.status, answer.body) == (204, b"")
    assert told(answer)["access-control-allow-origin"] == CONSOLE
    assert "DELETE" in told(answer)["access-control-allow-methods"]
    assert told(answer)["access-control-allow-headers"] == "authorization,content-type, idempotency-key"


async def test_no_header_is_split_by_what_a_preflight_asks_for(client: Client) -> None:
    asks = {"host": HERE, "origin": CONSOLE, "access-control-request-method": "GET"}
    answer = await asked(client, "OPTIONS", TABLE, {**asks, "access-control-request-headers": "a\r\nset-cookie: x=1"})

    assert "access-control-allow-headers" not in told(answer)


@pytest.mark.parametrize("page", FOREIGN, ids=str)
async def test_a_page_of_any_other_origin_is_still_refused(client: Client, page: dict[str, str]) -> None:
    answer = await asked(client, "GET", TABLE, {"host": HERE, **page})

    assert answer.status == 403
    assert not told(answer)


async def test_a_preflight_of_another_origin_is_no_leave(client: Client) -> None:
    asks = {"host": HERE, "origin": EVIL, "access-control-request-method": "POST"}

    answer = await asked(client, "OPTIONS", TABLE, asks)

    assert answer.status == 403
    assert not told(answer)


async def test_an_allowed_origin_does_not_lift_the_check_of_the_host(client: Client) -> None:
    answer = await asked(client, "GET", TABLE, {"host": "evil.example:8181", "origin": CONSOLE})

    assert answer.status == 403


async def test_caches_keep_answers_apart_by_origin_and_encoding(service: HttpService, client: Client) -> None:
    """Without `Origin` among them a shared cache gives a page the answer that somebody else got, without leave."""
    large = await service.client.post("/v1/wh/namespaces/db/tables/t", set_property("note", "x" * WORTHWHILE_BYTES))
    assert large.status == 200

    answer = await asked(client, "GET", TABLE, {"host": HERE, "accept-encoding": "gzip"})

    assert header(answer, "vary") == "Accept-Encoding, Origin"
    assert not told(answer)


@pytest.mark.parametrize(
    ("text", "origin"),
    [(CONSOLE, CONSOLE), ("HTTP://LocalHost:3000", "http://localhost:3000"), ("http://[::1]:80", "http://[::1]:80")],
)
def test_an_origin_is_a_scheme_a_host_and_a_port(text: str, origin: str) -> None:
    assert parse_origin(text) == origin


@pytest.mark.parametrize("text", ["*", "null", "", "console.example.com", f"{CONSOLE}/", f"{CONSOLE}/x", "file://"])
def test_what_is_no_origin_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected an origin"):
        parse_origin(text)
