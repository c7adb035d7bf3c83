"""A web page can neither change nor read a local catalog: what browsers send for one is refused on every route."""

from dataclasses import replace

import pytest

from arco_catalog.http.browsers import parse_host
from arco_catalog.http.route import Effect, Route
from arco_catalog.http.routes import HEALTH, ROUTES
from tests.http.templates import path_of
from tests.support.http_service import HttpService
from tools.support.asgi_client import Answer, Client, scope_of
from tools.support.request_bodies import set_property

TABLE = "/v1/wh/namespaces/db/tables/t"
HERE = "127.0.0.1:8181"
EVIL = "https://evil.example"
every_route = pytest.mark.parametrize("route", [*HEALTH, *ROUTES], ids=lambda route: route.endpoint)

FOREIGN = [
    {"origin": EVIL},
    {"origin": "null"},
    {"origin": ""},
    {"origin": "http://127.0.0.1:3000"},
    {"origin": "http://localhost:8181"},
    {"origin": "file://"},
    {"origin": f"{EVIL}, http://{HERE}"},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site"},
    {"sec-fetch-site": "Cross-Site"},
]
"""What browsers add to a request of another origin's page. A page at another port of this machine is one, too."""


def local(service: HttpService, *hosts: str) -> Client:
    """A client of a server that listens here."""
    service.options = replace(service.options, allowed_hosts=hosts, health=True)
    return service.serve()


async def send_page_request(
    client: Client, method: str, target: str, headers: dict[str, str], server: tuple[str, int] | None = ("127.0.0.1", 1)
) -> Answer:
    """The answer to a request that arrived at an address."""
    body = b"{}" if method == "POST" else b""
    scope = {**scope_of(method, target, {"content-type": "application/json", **headers}), "server": server}
    return await client.exchange(scope, [{"type": "http.request", "body": body, "more_body": False}])


@every_route
async def test_no_page_of_another_origin_reaches_a_route(service: HttpService, route: Route) -> None:
    client = local(service)
    for page in FOREIGN:
        answer = await send_page_request(client, route.method, path_of(route.template), {"host": HERE, **page})

        assert answer.status == 403, page
        assert not [name for name in answer.headers if name.lower().startswith("access-control")], page
        assert (await service.serve().head(TABLE)).status == 204, page


@pytest.mark.parametrize("host", [{}, {"host": ""}], ids=str)
@pytest.mark.parametrize("origin", ["null", "", "http://", EVIL])
async def test_no_page_without_an_origin_is_of_a_server_without_a_name(
    service: HttpService, origin: str, host: dict[str, str]
) -> None:
    answer = await send_page_request(local(service), "GET", TABLE, {**host, "origin": origin}, ("10.0.0.7", 1))

    assert (answer.status, "--allowed-origin" in answer.message) == (403, True)


@every_route
async def test_no_page_whose_name_was_rebound_to_this_machine_reaches_a_route(
    service: HttpService, route: Route
) -> None:
    """To the browser it is of the same origin: it may send JSON, and read answers."""
    headers = {"host": "evil.example:8181", "origin": "http://evil.example:8181", "sec-fetch-site": "same-origin"}

    answer = await send_page_request(local(service), route.method, path_of(route.template), headers)

    assert answer.status == 403
    if route.method != "HEAD":
        assert "--allowed-host" in answer.message


@pytest.mark.parametrize("method", ["OPTIONS", "PUT", "TRACE"])
async def test_a_preflight_is_answered_without_leave(service: HttpService, method: str) -> None:
    preflight = {"host": HERE, "origin": EVIL, "access-control-request-method": "POST"}

    answer = await send_page_request(local(service), method, TABLE, preflight)

    assert answer.status == 403
    assert not [name for name in answer.headers if name.lower().startswith("access-control")]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"host": HERE},
        {"host": "localhost"},
        {"host": "LOCALHOST:8181"},
        {"host": "localhost.:8181"},
        {"host": "arco.localhost:8181"},
        {"host": "[::1]:8181"},
        {"host": "127.8.9.1"},
        {"host": "192.168.1.5:8181"},
        {"host": HERE, "origin": f"http://{HERE}", "sec-fetch-site": "same-origin"},
        {"host": HERE, "sec-fetch-site": "none"},
    ],
    ids=str,
)
async def test_engines_and_the_address_bar_are_let_in(service: HttpService, headers: dict[str, str]) -> None:
    assert (await send_page_request(local(service), "GET", TABLE, headers)).status == 200
    assert (await send_page_request(local(service), "DELETE", TABLE, headers)).status == 204


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "x", "127.0.0.1.evil.example", "localhost.evil.example", "notlocalhost", ""),
        *(f"{HERE}, evil.example", "evil.example:x", "[::1", "127.0.0.1:8181@evil.example", "0x7f.1", "ü"),
    ],
)
@pytest.mark.parametrize("server", ["127.0.0.1", "127.3.2.1", "::1", "::ffff:127.0.0.1"])
async def test_over_loopback_only_loopback_s_names_are_served(service: HttpService, server: str, host: str) -> None:
    answer = await send_page_request(local(service), "GET", TABLE, {"host": host}, (server, 8181))

    assert (answer.status, answer.error_type) == (403, "NotAuthorizedException")


@pytest.mark.parametrize(
    ("allowed", "server", "host", "status"),
    [
        ((), "10.0.0.7", "lake.example", 200),
        ((), "/run/arco.sock", "lake.example", 200),
        (("lake.example",), "10.0.0.7", "lake.example:8181", 200),
        (("Lake.Example",), "127.0.0.1", "LAKE.example.", 200),
        (("lake.example",), "10.0.0.7", "10.0.0.7", 200),
        (("lake.example",), "10.0.0.7", "localhost", 200),
        (("lake.example",), "10.0.0.7", "evil.example", 403),
        (("lake.example",), "127.0.0.1", "evil.example", 403),
        (("lake.example",), "127.0.0.1", "evil.lake.example", 403),
        (("*",), "127.0.0.1", "evil.example", 200),
    ],
)
async def test_elsewhere_any_name_is_served_until_some_are_allowed(
    service: HttpService, allowed: tuple[str, ...], server: str, host: str, status: int
) -> None:
    assert (
        await send_page_request(local(service, *allowed), "GET", TABLE, {"host": host}, (server, 8181))
    ).status == status


async def test_a_page_is_foreign_under_an_allowed_name_too(service: HttpService) -> None:
    client = local(service, "lake.example")
    for origin, status in (("https://lake.example", 200), (EVIL, 403)):
        headers = {"host": "lake.example", "origin": origin}
        assert (await send_page_request(client, "GET", TABLE, headers)).status == status


async def test_behind_a_gateway_its_own_name_and_a_page_of_the_account_s_are_none_of_our_business(
    service: HttpService,
) -> None:
    headers = {"host": "a1b2.execute-api.us-east-1.amazonaws.com", "origin": EVIL}

    assert (await send_page_request(service.client, "GET", TABLE, headers)).status == 200


SIMPLE = [
    "text/plain",
    "text/plain; charset=application/json",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "text/json",
    "application/jsonp",
    "application/json, text/plain",
    "json",
    ";",
]
"""Types that a page may send without asking first, and such as were misspelled."""


@pytest.mark.parametrize(
    "route",
    [route for route in ROUTES if route.has_body or route.effect is not Effect.READS],
    ids=lambda route: route.endpoint,
)
async def test_a_body_of_another_type_changes_nothing(service: HttpService, route: Route) -> None:
    for kind in SIMPLE:
        answer = await service.client.send(route.method, path_of(route.template), b"{}", {"content-type": kind})

        assert (answer.status, answer.error_type) == (415, "BadRequestException"), kind
        assert "Content-Type must be application/json" in answer.message, kind


async def test_a_body_of_no_type_at_all_is_refused_with_what_to_send(service: HttpService) -> None:
    """`fetch` sends a Blob without a type so, to any origin."""
    client = service.client
    answer = await client.send("POST", TABLE, b'{"requirements":[],"updates":[]}', {"content-type": ""})

    assert answer.status == 415
    assert "none was given: send the body as JSON under that type" in answer.message


@pytest.mark.parametrize(
    "kind",
    [
        "application/json",
        "Application/JSON; charset=utf-8",
        "application/json;charset=UTF-8",
        "application/json, application/json",
    ],
)
async def test_what_clients_send_is_taken(service: HttpService, kind: str) -> None:
    assert (await service.client.post(TABLE, set_property("k", "v"), content_type=kind)).status == 200


@pytest.mark.parametrize("headers", [{"content-type": ""}, {"content-type": "application/json"}], ids=str)
@pytest.mark.parametrize("data", [b"", b"{}"])
async def test_unregistering_needs_no_body(service: HttpService, headers: dict[str, str], data: bytes) -> None:
    """The specification gives it none."""
    assert (await service.client.send("POST", f"{TABLE}/unregister", data, headers)).status == 200


@pytest.mark.parametrize("text", ["http://lake", "lake:8181", "", "la ke", "-", "a/b", "*.lake"])
def test_what_is_no_host_is_not_allowed(text: str) -> None:
    with pytest.raises(ValueError, match="without scheme and port"):
        parse_host(text)
