"""The console is served as files that hold no data: to browsers, below any path, also where a page elsewhere links."""

import gzip
from dataclasses import replace
from pathlib import Path

import pytest

from arco_catalog.http.app import create_app
from arco_catalog.http.console.clients import SignIn, parse_client
from arco_catalog.http.console.files import read_console
from arco_catalog.http.console.headers import console_headers
from arco_catalog.http.console.routes import CONSOLE
from arco_catalog.http.options import HttpOptions
from tests.authentication.realm import own_tokens
from tests.http.test_browsers import EVIL, HERE, send_page_request
from tests.support.fake_runtime import FakeRuntime
from tests.support.http_service import HttpService
from tests.support.realm_service import RealmApp
from tools.support.asgi_client import Client

LINK = {"sec-fetch-mode": "navigate", "sec-fetch-dest": "document", "sec-fetch-site": "cross-site", "host": HERE}
"""What Chromium sends when a user follows a link on another site."""
SCRIPT = "app-ABC.js"


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """A folder as `make console` leaves it."""
    (tmp_path / "index.html").write_text("<!doctype html><title>Arco</title>")
    (tmp_path / SCRIPT).write_text("export {};" * 100)
    (tmp_path / "app-ABC.css").write_text("body{}")
    (tmp_path / "notes.md").write_text("no file of the console")
    return tmp_path


def client_of(service: HttpService, folder: Path, **options: object) -> Client:
    wanted: HttpOptions = replace(service.options, **options)  # type: ignore[arg-type]  # whatever the test names
    return Client(create_app({"wh": service.catalog()}, wanted, console=read_console(folder)))


@pytest.mark.parametrize("base", ["", "/prod"])
async def test_a_browser_is_led_to_the_page_below_any_path(service: HttpService, built: Path, base: str) -> None:
    client = client_of(service, built, base_path=base.encode())

    first = await client.get(f"{base}/", accept="text/html,*/*;q=0.8")
    second = await client.get(f"{base}/ui")
    page = await client.get(f"{base}/ui/")

    assert [(each.status, each.headers["Location"]) for each in (first, second)] == [(307, "ui/"), (307, "ui/")]
    assert (page.status, page.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert page.body == b"<!doctype html><title>Arco</title>"


async def test_a_client_without_a_browser_finds_nothing_at_the_root(service: HttpService, built: Path) -> None:
    answer = await client_of(service, built).get("/", accept="application/json")

    assert (answer.status, "/v1/config lists the supported endpoints" in answer.message) == (404, True)


async def test_a_file_may_be_kept_for_as_long_as_its_name(service: HttpService, built: Path) -> None:
    client = client_of(service, built)

    script = await client.get(f"/ui/{SCRIPT}")
    page = await client.get("/ui/")

    assert script.headers["Content-Type"] == "text/javascript; charset=utf-8"
    assert script.headers["Cache-Control"] == "public, max-age=31536000, immutable"
    assert page.headers["Cache-Control"] == "no-cache"
    for target, answer in ((f"/ui/{SCRIPT}", script), ("/ui/", page)):
        again = await client.get(target, if_none_match=answer.headers["ETag"])
        assert (again.status, again.body) == (304, b"")


async def test_a_file_is_sent_compressed_where_that_is_accepted(service: HttpService, built: Path) -> None:
    client = client_of(service, built)

    packed = await client.get(f"/ui/{SCRIPT}", accept_encoding="br, gzip")
    plain = await client.get(f"/ui/{SCRIPT}", accept_encoding="gzip;q=0")

    assert packed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.body) == plain.body == b"export {};" * 100
    assert packed.headers["Vary"] == plain.headers["Vary"] == "Accept-Encoding"
    assert (await client.head(f"/ui/{SCRIPT}")).status == 200


@pytest.mark.parametrize("target", ["/ui/", f"/ui/{SCRIPT}", "/ui", "/ui/config.json"])
async def test_every_file_forbids_code_frames_and_addresses_of_others(
    service: HttpService, built: Path, target: str
) -> None:
    answer = await client_of(service, built).get(target)

    assert console_headers().items() <= answer.headers.items()
    policy = answer.headers["Content-Security-Policy"].split("; ")
    assert {"default-src 'none'", "script-src 'self'", "connect-src 'self'", "base-uri 'none'"} <= {*policy}
    assert {"frame-ancestors 'none'", "form-action 'self'", "require-trusted-types-for 'script'"} <= {*policy}
    assert "unsafe" not in answer.headers["Content-Security-Policy"]


async def test_the_page_has_a_name_for_gateways_without_a_route_for_a_slash(service: HttpService, built: Path) -> None:
    client = client_of(service, built)

    page, named = await client.get("/ui/"), await client.get("/ui/index.html")

    assert (named.status, named.body, named.headers) == (200, page.body, page.headers)


@pytest.mark.parametrize("base", ["", "/prod"])
async def test_an_error_below_the_console_has_the_headers_of_its_pages(
    service: HttpService, built: Path, base: str
) -> None:
    client = client_of(service, built, base_path=base.encode(), allowed_hosts=())
    evil = {"origin": EVIL, "host": HERE}
    for method, target, headers, status in (
        ("GET", "/ui/missing.js", {}, 404),
        ("GET", "/ui/a/b", {}, 404),
        ("POST", "/ui/", {}, 405),
        ("DELETE", "/ui", {}, 405),
        ("GET", "/ui/", evil, 403),
        ("GET", "/", {}, 404),
        ("GET", "/ui/%ff", {}, 400),
    ):
        answer = await send_page_request(client, method, base + target, headers)
        assert (answer.status, console_headers().items() <= answer.headers.items()) == (status, True), (method, target)


@pytest.mark.parametrize("target", ["/v1/config", "/uix", "/v1/ui/", "/health"])
async def test_what_is_not_below_the_console_has_no_headers_of_pages(
    service: HttpService, built: Path, target: str
) -> None:
    assert "Content-Security-Policy" not in (await client_of(service, built).get(target)).headers


@pytest.mark.parametrize("name", ["missing.js", "notes.md", "..%2Fpages.py", "%2e%2e", ""])
async def test_nothing_else_is_a_file_of_the_console(service: HttpService, built: Path, name: str) -> None:
    answer = await client_of(service, built).get(f"/ui/x{name}" if not name else f"/ui/{name}")

    assert answer.status == 404


@pytest.mark.parametrize("target", ["/", "/ui", "/ui/", f"/ui/{SCRIPT}"])
async def test_a_link_on_another_site_opens_a_page(service: HttpService, built: Path, target: str) -> None:
    client = client_of(service, built, allowed_hosts=())
    headers = {**LINK, "accept": "text/html"}

    assert (await send_page_request(client, "GET", target, headers)).status in (200, 307)
    assert (await send_page_request(client, "POST", target, headers)).status == 403
    for name, value in (("sec-fetch-mode", "cors"), ("sec-fetch-dest", "iframe"), ("sec-fetch-dest", "script")):
        assert (await send_page_request(client, "GET", target, {**headers, name: value})).status == 403
    rebound = {**headers, "host": "evil.example:8181"}
    assert (await send_page_request(client, "GET", target, rebound)).status == 403


@pytest.mark.parametrize("target", ["/v1/config", "/v1/wh/namespaces", "/ui/config.json", "/openapi.json", "/nowhere"])
async def test_a_link_on_another_site_opens_no_api(service: HttpService, built: Path, target: str) -> None:
    client = client_of(service, built, allowed_hosts=())

    assert (await send_page_request(client, "GET", target, LINK)).status == 403
    assert (await send_page_request(client, "GET", target, {**LINK, "origin": EVIL})).status == 403


async def test_without_built_files_the_page_has_how_to_build_them(service: HttpService, tmp_path: Path) -> None:
    page = await client_of(service, tmp_path / "nowhere").get("/ui/")

    assert (page.status, b"<code>make console</code>" in page.body) == (200, True)
    assert page.headers["Content-Security-Policy"]


async def test_without_the_console_there_is_no_page(service: HttpService) -> None:
    for target in ("/", "/ui", "/ui/", "/ui/config.json"):
        assert (await service.client.get(target, accept="text/html")).status == 404


async def test_no_api_lists_the_console(service: HttpService, built: Path) -> None:
    client = client_of(service, built)

    listed = (await client.get("/v1/config")).json["endpoints"]

    assert isinstance(listed, list)
    assert not {route.endpoint for route in CONSOLE} & {str(endpoint) for endpoint in listed}
    assert not [path for path in (await client.get("/openapi.json")).json["paths"] if path.startswith("/ui")]  # type: ignore[union-attr]


async def test_the_configuration_has_no_login_for_a_server_without(service: HttpService, built: Path) -> None:
    answer = await client_of(service, built).get("/ui/config.json")

    assert answer.headers["Cache-Control"] == "no-store"
    assert {**answer.json, "version": ""} == {
        "version": "",
        "warehouse": "wh",
        "realms": 0,
        "logins": [],
        "issuers": [],
    }


async def test_the_configuration_of_realms_has_the_ways_to_sign_in_and_names_no_catalog(built: Path) -> None:
    tokens = own_tokens(FakeRuntime())
    for given, logins in ((None, ["token"]), (tokens, ["client-credentials", "token"])):
        app = await RealmApp(tokens=given, console=read_console(built)).start()
        if given is None:
            await app.catalog("secret")

        answer = await Client(app.app).get("/ui/config.json")

        shown = {"version": "", "warehouse": None, "realms": 1, "logins": logins, "issuers": []}
        assert {**answer.json, "version": ""} == shown


async def test_the_configuration_names_the_issuers_and_the_policy_allows_no_other_origin(
    service: HttpService, built: Path
) -> None:
    clients = [
        parse_client(text, plain_loopback=True)
        for text in ("https://ID.example.com/realms/a arco openid email", "http://127.0.0.1:8080 console")
    ]
    console = read_console(built, SignIn(clients, ("https://tokens.example.com",)))
    client = Client(create_app({"wh": service.catalog()}, service.options, console=console))

    for target in ("/ui", "/ui/", f"/ui/{SCRIPT}", "/ui/config.json"):
        policy = (await client.get(target)).headers["Content-Security-Policy"].split("; ")
        origins = "https://id.example.com http://127.0.0.1:8080 https://tokens.example.com"
        assert [each for each in policy if each.startswith("connect-src")] == [f"connect-src 'self' {origins}"]
        assert {"script-src 'self'", "form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'"} <= {*policy}
    assert (await client.get("/ui/config.json")).json["issuers"] == [
        {"issuer": "https://ID.example.com/realms/a", "client-id": "arco", "scope": "openid email"},
        {"issuer": "http://127.0.0.1:8080", "client-id": "console", "scope": "openid"},
    ]


@pytest.mark.parametrize("query", ["?code=abc&state=xyz&iss=https%3A%2F%2Fid.example.com", "?error=access_denied"])
@pytest.mark.parametrize("base", ["", "/prod"])
async def test_a_redirect_of_an_issuer_opens_the_page(service: HttpService, built: Path, base: str, query: str) -> None:
    client = client_of(service, built, allowed_hosts=(), base_path=base.encode())

    page = await send_page_request(client, "GET", f"{base}/ui/{query}", {**LINK, "accept": "text/html"})

    assert (page.status, page.headers["Referrer-Policy"]) == (200, "no-referrer")
    for name, value in (("sec-fetch-mode", "cors"), ("sec-fetch-dest", "iframe")):
        other = {**LINK, name: value}
        assert (await send_page_request(client, "GET", f"{base}/ui/{query}", other)).status == 403
    assert (await send_page_request(client, "POST", f"{base}/ui/{query}", LINK)).status == 403
