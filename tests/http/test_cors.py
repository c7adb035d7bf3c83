"""Pages of origins that the operator named may use the catalog from a browser; all others are refused as before."""

from dataclasses import replace

import pytest

from arco_catalog.http.browsers import parse_origin
from arco_catalog.http.compression import WORTHWHILE_BYTES
from tests.http.test_browsers import EVIL, FOREIGN, HERE, TABLE, send_page_request
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


def cors_headers(answer: Answer) -> dict[str, str]:
    """The CORS headers of an answer."""
    return {name.lower(): value for name, value in answer.headers.items() if name.lower().startswith(CORS)}


def header(answer: Answer, name: str) -> str | None:
    """One header of an answer."""
    return {key.lower(): value for key, value in answer.headers.items()}.get(name)


async def test_a_page_of_an_allowed_origin_reads_answers_and_errors(client: Client) -> None:
    page = {"host": HERE, "origin": CONSOLE, "sec-fetch-site": "cross-site"}

    found = await send_page_request(client, "GET", "/v1/wh/namespaces/db", page)
    missing = await send_page_request(client, "GET", f"{TABLE}_absent", page)

    assert (found.status, missing.status) == (200, 404)
    for answer in (found, missing):
        assert cors_headers(answer)["access-control-allow-origin"] == CONSOLE
        assert "ETag" in cors_headers(answer)["access-control-expose-headers"]
        assert "access-control-allow-credentials" not in cors_headers(answer)
        assert header(answer, "vary") == "Origin"


async def test_a_preflight_of_an_allowed_origin_lists_what_may_be_sent(client: Client) -> None:
    preflight = {
        "host": HERE,
        "origin": CONSOLE,
        "access-control-request-method": "DELETE",
        "access-control-request-headers": "authorization,content-type, idempotency-key",
    }

    answer = await send_page_request(client, "OPTIONS", TABLE, preflight)

    assert (answer.status, answer.body) == (204, b"")
    assert cors_headers(answer)["access-control-allow-origin"] == CONSOLE
    assert "DELETE" in cors_headers(answer)["access-control-allow-methods"]
    assert cors_headers(answer)["access-control-allow-headers"] == "authorization,content-type, idempotency-key"


async def test_no_header_is_split_by_the_headers_of_a_preflight(client: Client) -> None:
    preflight = {"host": HERE, "origin": CONSOLE, "access-control-request-method": "GET"}
    answer = await send_page_request(
        client, "OPTIONS", TABLE, {**preflight, "access-control-request-headers": "a\r\nset-cookie: x=1"}
    )

    assert "access-control-allow-headers" not in cors_headers(answer)


@pytest.mark.parametrize("page", FOREIGN, ids=str)
async def test_a_page_of_any_other_origin_is_still_refused(client: Client, page: dict[str, str]) -> None:
    answer = await send_page_request(client, "GET", TABLE, {"host": HERE, **page})

    assert answer.status == 403
    assert not cors_headers(answer)


async def test_a_preflight_of_another_origin_is_no_leave(client: Client) -> None:
    preflight = {"host": HERE, "origin": EVIL, "access-control-request-method": "POST"}

    answer = await send_page_request(client, "OPTIONS", TABLE, preflight)

    assert answer.status == 403
    assert not cors_headers(answer)


async def test_an_allowed_origin_does_not_lift_the_check_of_the_host(client: Client) -> None:
    answer = await send_page_request(client, "GET", TABLE, {"host": "evil.example:8181", "origin": CONSOLE})

    assert answer.status == 403


async def test_caches_keep_answers_apart_by_origin_and_encoding(service: HttpService, client: Client) -> None:
    """Without `Origin` among them a shared cache gives a page the answer of another client, without permission."""
    large = await service.client.post("/v1/wh/namespaces/db/tables/t", set_property("note", "x" * WORTHWHILE_BYTES))
    assert large.status == 200

    answer = await send_page_request(client, "GET", TABLE, {"host": HERE, "accept-encoding": "gzip"})

    assert header(answer, "vary") == "Accept-Encoding, Origin"
    assert not cors_headers(answer)


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        (CONSOLE, CONSOLE),
        ("HTTP://LocalHost:3000", "http://localhost:3000"),
        ("http://[::1]:80", "http://[::1]"),
        ("https://a:443", "https://a"),
        ("https://a:4443", "https://a:4443"),
    ],
)
def test_an_origin_is_a_scheme_a_host_and_a_port(text: str, origin: str) -> None:
    assert parse_origin(text) == origin


@pytest.mark.parametrize("text", ["*", "null", "", "console.example.com", f"{CONSOLE}/", f"{CONSOLE}/x", "file://"])
def test_what_is_no_origin_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected an origin"):
        parse_origin(text)
