"""`arco serve --audit-log -`: every worker's audit lines on the standard output of the command."""

import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.cli.process import serving
from tests.support.served_realms import LOGINS, Root, bootstrapped, token_of

REQUESTS = 20


async def stranger(uri: str, root: Root) -> str:
    """The token of a new principal without rights."""
    login = {"authorization": f"Bearer {await token_of(uri, root.client_id, root.secret)}"}
    made = {"principal": {"name": "stranger"}}
    async with (
        aiohttp.ClientSession(headers=login) as client,
        client.post(f"{uri}/api/management/v1/principals", json=made) as answer,
    ):
        credentials = (await answer.json())["credentials"]
    return await token_of(uri, credentials["clientId"], credentials["clientSecret"])


async def denied(uri: str, bearer: str) -> int:
    """Status of a request, on a connection of its own, that lacks a right."""
    login = {"authorization": f"Bearer {bearer}"}
    async with aiohttp.ClientSession(headers=login) as client, client.get(f"{uri}/v1/arco/namespaces") as answer:
        return answer.status


def audit_lines(printed: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in printed.splitlines() if line.startswith("{")]


@pytest.mark.parametrize("workers", ["1", "2"])
async def test_each_denial_is_on_the_standard_output_of_the_server(workers: str, tmp_path: Path) -> None:
    store = f"file:{tmp_path}/store"
    root = await bootstrapped(store)
    async with serving(store, "--workers", workers, "--quiet", "--audit-log", "-", **LOGINS) as server:
        bearer = await stranger(server.uri, root)
        statuses = {await denied(server.uri, bearer) for _ in range(REQUESTS)}
        ended = await server.stop()

    lines = audit_lines(ended.out)
    assert statuses == {404}
    assert [line["event"] for line in lines] == ["denied"] * REQUESTS
    assert {line["logger"] for line in lines} == {"arco_catalog.audit"}
    assert {line["principal_name"] for line in lines} == {"stranger"}
    assert len({line["request_id"] for line in lines}) == REQUESTS
