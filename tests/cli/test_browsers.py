"""`arco serve` beside a browser: what pages send never gets to the catalog of a real server."""

import asyncio
import http.client

import pytest

from tests.cli.in_process import arco
from tests.cli.process import TIMEOUT_SECONDS, Server, serving

CONFIG = "/v1/config"


async def status(server: Server, method: str, path: str, headers: dict[str, str]) -> int:
    """The status of a request with these headers; a `Host` replaces the client's own."""

    def ask() -> int:
        port = int(server.uri.rpartition(":")[2])  # a server that listens everywhere prints this machine's name
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_SECONDS)
        try:
            connection.request(method, path, b'{"namespace":["db"]}' if method == "POST" else None, headers)
            return connection.getresponse().status
        finally:
            connection.close()

    return await asyncio.to_thread(ask)


async def test_a_page_neither_reads_nor_changes_what_a_laptop_serves() -> None:
    json = {"Content-Type": "application/json"}
    async with serving("memory:", "--quiet", "--host", "127.0.0.1") as server:
        here = server.uri.removeprefix("http://")
        assert await status(server, "GET", CONFIG, {"Host": "evil.example:8181"}) == 403
        assert await status(server, "GET", CONFIG, {"Origin": "https://evil.example"}) == 403
        assert await status(server, "POST", "/v1/arco/namespaces", {"Content-Type": "text/plain"}) == 415
        assert await status(server, "POST", "/v1/arco/namespaces", {**json, "Origin": "null"}) == 403
        assert await status(server, "POST", "/v1/arco/namespaces", {**json, "Sec-Fetch-Site": "cross-site"}) == 403
        assert await status(server, "GET", "/v1/arco/namespaces/db", {}) == 404
        assert await status(server, "POST", "/v1/arco/namespaces", {**json, "Origin": f"http://{here}"}) == 200


@pytest.mark.parametrize("workers", ["1", "2"])
async def test_a_server_on_all_addresses_is_judged_as_on_loopback_where_it_is_reached_there(
    workers: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    store = f"file:{tmp_path_factory.mktemp('store')}"
    options = ("--quiet", "--host", "0.0.0.0", "--workers", workers, "--allowed-host", "lake.example", "LAKE")
    async with serving(store, *options) as server:
        statuses = {
            host: await status(server, "GET", CONFIG, {"Host": host})
            for host in ("lake.example", "lake:80", "localhost", "evil.example")
        }

    assert statuses == {"lake.example": 200, "lake:80": 200, "localhost": 200, "evil.example": 403}


async def test_a_host_that_is_a_url_is_wrong_usage_reported_in_one_line() -> None:
    ended = await arco("serve", "--store", "memory:", "--port", "0", ARCO_ALLOWED_HOSTS="http://lake")

    assert ended.code == 1
    assert ended.err == (
        "arco: --allowed-host: expected a host name without scheme and port, or *, got 'http://lake'\n"
    )
