"""Cases for tools/bench/hostile.py: callers without rights and a hostile issuer of tokens, at a server of a realm."""

import asyncio
import base64
import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch
from urllib.parse import urlencode

import aiohttp
from aiohttp import web

from arco_catalog.iceberg.json import dumps
from tools.bench.hostile_site import DB, JSON, PREFIX, TIMEOUT, Site
from tools.bench.loop_delay import DelayFile
from tools.support import worst_callers as worst
from tools.support import worst_documents
from tools.support.arco_server import ARCO, WAREHOUSE, ArcoServer

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
KEY = "an-example-0123456789-abcdefghijklmnopqrstuvwxyz"
SLOW_S = 600


@dataclass
class HostileIssuer:
    """A hostile issuer of tokens on this machine. It answers with the given documents, or with nothing where one is
    None."""

    url: str = ""
    keys: bytes | None = None
    discovery: bytes | None = None
    """In place of a document with the URL of the keys."""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answers a request."""
        if request.path.endswith("openid-configuration"):
            good = dumps({"issuer": self.url, "jwks_uri": f"{self.url}/keys"})
            return web.Response(body=self.discovery or good, content_type="application/json")
        if self.keys is not None:
            return web.Response(body=self.keys, content_type="application/json")
        response = web.StreamResponse()
        await response.prepare(request)
        with suppress(ConnectionError):  # the server gives it up
            for _ in range(SLOW_S):
                await response.write(b" ")
                await asyncio.sleep(1)
        return response

    def token(self, number: int) -> str:
        """A token of this issuer whose key is in no set."""
        parts = (
            {"alg": "RS256", "kid": f"unknown{number}", "typ": "at+jwt"},
            {"iss": self.url, "aud": "arco", "exp": 9e9},
        )
        encoded = [base64.urlsafe_b64encode(dumps(part)).rstrip(b"=").decode() for part in parts]  # type: ignore[arg-type]
        return f"{encoded[0]}.{encoded[1]}.{'A' * 342}"


@asynccontextmanager
async def serving(issuer: HostileIssuer) -> AsyncIterator[None]:
    """Serves the issuer for as long as the context lasts."""
    app = web.Application()
    app.router.add_get("/{tail:.*}", issuer.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    place = web.TCPSite(runner, "127.0.0.1", 0)
    await place.start()
    issuer.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield
    finally:
        await runner.cleanup()


async def run(at_once: int) -> Sequence[str]:
    """Sends all of it, and returns what broke a bound."""
    issuer = HostileIssuer()
    with tempfile.TemporaryDirectory() as folder:
        store, delays = Path(folder) / "store", DelayFile(Path(folder) / "delay")
        command = (str(ARCO), "bootstrap", "--store", f"file:{store}", "--warehouse", WAREHOUSE, "--json")
        made = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        root = json.loads((await made.communicate())[0])
        program = (sys.executable, "-m", "tools.bench.loop_delay", f"{folder}/delay")
        async with serving(issuer):
            settings = {
                "ARCO_TOKEN_KEY": KEY,
                "ARCO_OIDC_ISSUERS": issuer.url,
                "ARCO_OIDC_AUDIENCES": "arco",
                "ARCO_OIDC_LOOPBACK_HTTP": "true",
            }
            server = ArcoServer(
                f"file:{store}", Path(folder) / "log", "--auth", "internal", "--auth", "oidc", program=program
            )
            with patch.dict(os.environ, settings), server:
                async with aiohttp.ClientSession(server.uri, timeout=TIMEOUT) as client:
                    token = await _token(client, root["client_id"], root["client_secret"])
                    site = Site(server, store, client, delays, at_once, {"Authorization": f"Bearer {token}"})
                    await site.send("POST", f"{PREFIX}/namespaces", dumps({"namespace": ["db"]}))
                    await site.table("ordinary")
                    await _forms(site)
                    await _issuers(site, issuer)
                    return site.faults


async def _token(client: aiohttp.ClientSession, client_id: str, secret: str) -> str:
    form = {
        "grant_type": "client_credentials",
        "client_id": client_id,
        "client_secret": secret,
        "scope": "PRINCIPAL_ROLE:ALL",
    }
    async with client.post("/v1/oauth/tokens", data=urlencode(form).encode(), headers=FORM) as answer:
        return str((await answer.json())["access_token"])


async def _forms(site: Site) -> None:
    for name, make in worst.FORMS.items():
        body = make()
        sent = site.crowd(lambda body=body: site.send("POST", "/v1/oauth/tokens", body, FORM))  # type: ignore[misc]
        await site.report(f"form: {name}", sent)
    for number, token in enumerate(worst.tokens()):
        await site.report(f"token {number}", _load(site, [token] * site.at_once))
    for name, make in worst_documents.GOVERNANCE.items():
        body = make()
        sent = site.crowd(lambda body=body: site.send("POST", f"{DB}/tables/ordinary/governance", body))  # type: ignore[misc]
        await site.report(f"governance: {name}", sent)


async def _issuers(site: Site, issuer: HostileIssuer) -> None:
    for name, make in worst.KEY_SETS.items():
        issuer.keys = make()
        await _unknown_keys(site, issuer, f"issuer's keys: {name}")
    issuer.keys = None
    await _unknown_keys(site, issuer, "issuer's keys: a byte a second")
    issuer.keys = b"{}"
    for name, make in worst.DISCOVERY.items():
        issuer.discovery = make()
        await _unknown_keys(site, issuer, f"issuer's discovery: {name}")


async def _unknown_keys(site: Site, issuer: HostileIssuer, name: str) -> None:
    """Sends tokens with unknown keys, for which the server fetches the set, but not within five seconds of the last."""
    await asyncio.sleep(5)
    await site.report(name, _load(site, [issuer.token(number) for number in range(site.at_once)]))


async def _load(site: Site, tokens: Sequence[str]) -> Counter[int]:
    sent = (
        site.send("GET", f"{DB}/tables/ordinary", None, JSON | {"Authorization": f"Bearer {token}"}) for token in tokens
    )
    return Counter(await asyncio.gather(*sent))
