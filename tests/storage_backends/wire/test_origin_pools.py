"""Connections to servers that URLs name."""

import pytest
from aiohttp import web

from storage_backends import StoreError
from storage_backends.wire.origin_pools import OriginPools
from storage_backends.wire.settings import ConnectionSettings
from tests.support.stub_server import stub_server


async def test_connections_to_many_servers_are_bounded() -> None:
    async def handle(_: web.BaseRequest) -> web.Response:
        return web.Response(text="fine")

    pools = OriginPools("test", ConnectionSettings())
    for _ in range(20):
        async with stub_server(handle) as server:
            assert (await pools.exchange("GET", server.uri, {}, b"")).status == 200
    assert len(vars(pools)["_pools"]) <= 16
    await pools.close()
    assert not vars(pools)["_pools"]


async def test_requests_to_one_server_share_connections() -> None:
    peers: set[object] = set()
    targets: list[str] = []

    async def handle(request: web.BaseRequest) -> web.Response:
        assert request.transport is not None
        peers.add(request.transport.get_extra_info("peername"))
        targets.append(request.path_qs)
        return web.Response(text="fine")

    pools = OriginPools("test", ConnectionSettings())
    async with stub_server(handle) as server:
        for path in ("", "/a?b=c", "/d"):
            assert (await pools.exchange("GET", f"{server.uri}{path}", {}, b"")).body == b"fine"
        await pools.close()

    assert targets == ["/", "/a?b=c", "/d"]
    assert len(peers) == 1


@pytest.mark.parametrize("url", ["http://[x", "http://x:port", "ftp://x"])
async def test_a_url_that_is_none_of_http_is_an_error_of_the_store(url: str) -> None:
    with pytest.raises(StoreError, match="test"):
        await OriginPools("test", ConnectionSettings()).exchange("GET", url, {}, b"")
