"""`arco serve` queries Open Policy Agent: over HTTP, without a realm and in one, and a stand-in or OPA itself with the
policy on its page."""

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import aiohttp
import jwt
import pytest

from tests.authentication.issuer import private_key
from tests.cli.in_process import arco
from tests.cli.process import Server, serving
from tests.serve.test_authorization import NAMESPACES, Issuer, issuer, status
from tests.support.open_policy_agent import PROGRAM, open_policy_agent
from tests.support.policy_stub import PolicyStub
from tests.support.served_realms import LOGINS, bootstrapped
from tests.support.stub_server import stub_server
from tools.support.request_bodies import schema

__all__ = ["issuer"]

TABLES = f"{NAMESPACES}/sales/tables"


def urls(uri: str) -> Mapping[str, str]:
    rules = f"{uri}/v1/data/arco"
    return {"ARCO_OPA_URL": f"{rules}/allow", "ARCO_OPA_BATCH_URL": f"{rules}/batch", "ARCO_OPA_CACHE": "0"}


def token(issuer: Issuer, name: str, *roles: str) -> str:
    now = int(time.time())
    claims = {"iss": issuer.url, "aud": "lake", "sub": name, "iat": now, "exp": now + 3600, "roles": [*roles]}
    return jwt.encode(claims, private_key("RS256", 0), "RS256", headers={"kid": "k1"})


async def listed(server: Server, path: str, token: str) -> Any:
    async with (
        aiohttp.ClientSession(server.uri) as client,
        client.get(path, headers={"authorization": f"Bearer {token}"}) as answer,
    ):
        assert answer.status == 200, await answer.text()
        return await answer.json()


async def test_a_server_queries_for_each_request_and_refuses_none_without_an_answer(tmp_path: Path) -> None:
    stub = PolicyStub(lambda principal, action, kind, name: name != "secret")
    async with (
        stub_server(stub.handle) as opa,
        serving(f"file:{tmp_path}/store", "--quiet", **urls(opa.uri)) as server,
    ):
        assert await status(server, "POST", NAMESPACES, None, {"namespace": ["open"]}) == 200
        assert await status(server, "GET", f"{NAMESPACES}/open") == 200
        assert await status(server, "GET", f"{NAMESPACES}/secret") == 403
        assert stub.actions[:2] == ["NAMESPACE_CREATE arco", "NAMESPACE_READ_PROPERTIES open"]
        stub.silent = True
        assert await status(server, "GET", f"{NAMESPACES}/open") == 503
        stub.silent = False
        assert await status(server, "GET", f"{NAMESPACES}/open") == 200
        await opa.stop_listening()

    async with serving(f"file:{tmp_path}/store", "--quiet", **urls(opa.uri)) as server:
        assert await status(server, "GET", f"{NAMESPACES}/open") == 503
        assert await status(server, "GET", "/health") == 200


async def test_a_server_does_not_start_with_half_a_policy(tmp_path: Path) -> None:
    ended = await arco(
        "serve", "--store", f"file:{tmp_path}/s", "--port", "0", "--workers", "1", ARCO_OPA_BATCH_URL="https://opa/b"
    )

    assert ended.code == 1
    assert "ARCO_OPA_BATCH_URL is set, and ARCO_OPA_URL is not" in ended.err


@pytest.fixture
def opa() -> Iterator[str]:
    with open_policy_agent() as uri:
        yield uri


@pytest.mark.slow
@pytest.mark.needs(PROGRAM)
async def test_opa_decides_by_the_policy_on_the_page(opa: str, issuer: Issuer, tmp_path: Path) -> None:
    settings = {**issuer.settings, "ARCO_OIDC_ROLES_CLAIM": "roles", "ARCO_AUTHORIZATION": "off", **urls(opa)}
    admin, analyst = token(issuer, "ada", "admin"), token(issuer, "ann", "analyst")
    stranger = token(issuer, "eve", "nothing")
    async with serving(f"file:{tmp_path}/store", "--quiet", **settings) as server:
        for name in ("sales", "staff"):
            assert await status(server, "POST", NAMESPACES, admin, {"namespace": [name]}) == 200
        for name in ("orders", "secret_orders"):
            assert await status(server, "POST", TABLES, admin, {"name": name, "schema": schema("x")}) == 200

        assert await status(server, "GET", f"{TABLES}/orders", analyst) == 200
        assert await status(server, "GET", f"{TABLES}/secret_orders", analyst) == 403
        assert await status(server, "DELETE", f"{TABLES}/orders", analyst) == 403
        assert await status(server, "POST", TABLES, analyst, {"name": "mine", "schema": schema("x")}) == 403
        assert await status(server, "GET", f"{NAMESPACES}/staff/tables", analyst) == 403
        assert await status(server, "GET", f"{TABLES}/orders", stranger) == 403
        assert await status(server, "GET", f"{NAMESPACES}/system", analyst) == 403
        tables = await listed(server, TABLES, analyst)
        assert [each["name"] for each in tables["identifiers"]] == ["orders"]
        assert len((await listed(server, TABLES, admin))["identifiers"]) == 2
        assert (await listed(server, NAMESPACES, analyst))["namespaces"] == [["sales"], ["staff"]]
        assert await status(server, "DELETE", f"{TABLES}/secret_orders", admin) == 204
        assert await status(server, "POST", NAMESPACES, admin, {"namespace": ["staff", "sales"]}) == 200
        assert await status(server, "GET", f"{NAMESPACES}/staff%1Fsales/tables", analyst) == 403
        dropped = f"{TABLES}?deleted=true"
        assert len((await listed(server, dropped, admin))["identifiers"]) == 1
        assert (await listed(server, dropped, analyst))["identifiers"] == []


@pytest.mark.slow
@pytest.mark.needs(PROGRAM)
async def test_opa_decides_beside_the_grants_of_a_realm(opa: str, tmp_path: Path) -> None:
    store = f"file:{tmp_path}/store"
    root = await bootstrapped(store)
    async with serving(store, "--quiet", **LOGINS, **urls(opa)) as server:
        catalog = root.catalog(server.uri)
        catalog.create_namespace("sales")
        assert catalog.list_namespaces() == [("sales",)]


@pytest.mark.slow
@pytest.mark.needs(PROGRAM)
@pytest.mark.parametrize(
    "policy",
    [
        "package other\n",  # the rule is undefined
        "package arco\nallow if input.actor.principal == 5\nbatch := [0]\n",  # without a default
        "package arco\nallow := 1\nbatch := {0: true}\n",
        'package arco\nallow := "true"\nbatch := [5]\n',
    ],
)
async def test_what_opa_leaves_undefined_is_no_refusal(policy: str, tmp_path: Path) -> None:
    with open_policy_agent(policy) as uri:
        async with serving(f"file:{tmp_path}/store", "--quiet", **urls(uri)) as server:
            assert await status(server, "GET", f"{NAMESPACES}/db") == 503
            assert await status(server, "POST", NAMESPACES, None, {"namespace": ["db"]}) == 503
