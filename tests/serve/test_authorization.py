"""`ARCO_AUTHORIZATION=off`: authenticated clients may do everything, other clients nothing."""

import json
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import jwt
import pytest
from aiohttp import web

from tests.authentication.issuer import private_key, public_jwk
from tests.cli.in_process import arco
from tests.cli.process import Server, serving
from tests.support.served_realms import KEY, bootstrapped
from tests.support.stub_server import stub_server

NAMESPACES = "/v1/arco/namespaces"


@dataclass(frozen=True)
class Issuer:
    """An identity provider on this machine."""

    url: str

    @property
    def settings(self) -> Mapping[str, str]:
        return {
            "ARCO_AUTH": "oidc",
            "ARCO_OIDC_ISSUERS": self.url,
            "ARCO_OIDC_AUDIENCES": "lake",
            "ARCO_OIDC_LOOPBACK_HTTP": "true",
        }

    def token(self, audience: str = "lake") -> str:
        now = int(time.time())
        claims = {"iss": self.url, "aud": audience, "sub": "ada", "iat": now, "exp": now + 3600}
        return jwt.encode(claims, private_key("RS256", 0), "RS256", headers={"kid": "k1"})


@pytest.fixture
async def issuer() -> AsyncIterator[Issuer]:
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        keys = {"keys": [public_jwk(private_key("RS256", 0), "k1", alg="RS256")]}
        here = f"http://{request.host}"
        return web.json_response(keys if request.path == "/keys" else {"issuer": here, "jwks_uri": f"{here}/keys"})

    async with stub_server(answer) as server:
        yield Issuer(server.uri)


async def status(server: Server, method: str, path: str, token: str | None = None, body: object = None) -> int:
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    async with (
        aiohttp.ClientSession(server.uri) as client,
        client.request(method, path, headers=headers, json=body) as answer,
    ):
        return answer.status


async def test_over_a_store_without_a_realm_only_authenticated_clients_get_in(issuer: Issuer, tmp_path: Path) -> None:
    store, wanted = f"file:{tmp_path}/store", {"namespace": ["db"]}
    async with serving(store, "--workers", "1", "--quiet", ARCO_AUTHORIZATION="off", **issuer.settings) as server:
        assert await status(server, "GET", "/health") == 200
        for token in (None, "x", issuer.token("another")):
            assert await status(server, "GET", NAMESPACES, token) == 401
            assert await status(server, "POST", NAMESPACES, token, wanted) == 401
            assert await status(server, "GET", "/v1/nowhere", token) == 401
        assert await status(server, "POST", NAMESPACES, issuer.token(), wanted) == 200
        assert await status(server, "GET", f"{NAMESPACES}/db", issuer.token()) == 200

    operations = json.loads((await arco("history", "--store", store, "--json")).out)
    assert [(each["kind"], each["source"]["principal"]) for each in operations] == [("create-namespace", "ada")]


async def test_over_a_realm_an_authenticated_client_needs_no_grant(issuer: Issuer, tmp_path: Path) -> None:
    store = f"file:{tmp_path}/store"
    await bootstrapped(store)
    found = {}
    for authorization in ("on", "off"):
        options = {"ARCO_AUTHORIZATION": authorization, **issuer.settings}
        async with serving(store, "--workers", "1", "--quiet", **options) as server:
            found[authorization] = [
                await status(server, "GET", NAMESPACES),
                await status(server, "GET", NAMESPACES, issuer.token()),
                await status(server, "GET", "/api/management/v1/principals", issuer.token()),
            ]

    assert found == {"on": [401, 401, 401], "off": [401, 200, 200]}


@pytest.mark.parametrize(
    ("variables", "why"),
    [
        ({}, "or ARCO_AUTHORIZATION=off allows every authenticated client everything"),
        ({"ARCO_AUTHORIZATION": "on"}, "or ARCO_AUTHORIZATION=off allows every authenticated client everything"),
        ({"ARCO_AUTHORIZATION": "none"}, "ARCO_AUTHORIZATION: expected on or off, got 'none'"),
        ({"ARCO_AUTHORIZATION": "off", "ARCO_AUTH": "internal", "ARCO_TOKEN_KEY": KEY}, "`arco bootstrap` makes one\n"),
    ],
)
async def test_without_a_realm_no_client_is_let_in_unless_authorization_is_off(
    variables: Mapping[str, str], why: str, issuer: Issuer, tmp_path: Path
) -> None:
    options = {**issuer.settings, **variables}

    ended = await arco("serve", "--store", f"file:{tmp_path}/store", "--port", "0", "--workers", "1", **options)

    assert (ended.code, why in ended.err) == (1, True), ended.err
