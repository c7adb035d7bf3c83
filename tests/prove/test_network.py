"""The network sends what it is to send, and nothing twice by itself."""

import asyncio

import pytest

from arco_catalog.prove.campaign import Campaign, CampaignOptions, open_campaign
from arco_catalog.prove.network import Network
from arco_catalog.prove.program import Fault
from arco_catalog.prove.requests import Request

CONFIG = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"


class ClosingServer:
    """A server that answers the first request of a connection, and closes the connection at the next one."""

    def __init__(self) -> None:
        self.requests: list[bytes] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in (CONFIG, b""):
            head = await reader.readuntil(b"\r\n\r\n")
            self.requests.append(head.partition(b" HTTP")[0])
            writer.write(answer)
            await writer.drain()
        writer.close()


@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE"])
async def test_a_request_whose_connection_is_closed_is_not_sent_again(method: str) -> None:
    server = ClosingServer()
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    uri = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"

    async def use(campaign: Campaign) -> None:
        async with asyncio.TaskGroup() as tasks:
            network = Network(campaign.session, [uri], tasks)
            assert (await network.send(Request(method, "/v1/x"), 0)).answer is None

    await open_campaign(CampaignOptions([uri]), use)
    listener.close()
    assert server.requests == [b"GET /v1/config", f"{method} /v1/x".encode()]


async def test_a_request_that_may_come_later_is_not_taken_for_one_that_was_never_sent() -> None:
    async def use(campaign: Campaign) -> None:
        async with asyncio.TaskGroup() as tasks:
            network = Network(campaign.session, ["http://127.0.0.1:1"], tasks)
            assert (await network.send(Request("DELETE", "/v1/x"), 0, Fault.DUPLICATED)).answer is None

    server = ClosingServer()
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    await open_campaign(CampaignOptions([f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"]), use)
    listener.close()
