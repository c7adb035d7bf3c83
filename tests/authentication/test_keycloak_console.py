"""People sign in to the console at Keycloak, in Chromium, as docs/identity-providers/keycloak.md has it
(`make test-oidc`)."""

import asyncio
import json
from pathlib import Path

import pytest

from tests.cli.process import serving
from tests.console.chromium import needs_chromium, play, scenarios_in
from tests.console.lake import Lake
from tests.console.people_lake import BASE, accepting, person
from tests.support.keycloak import INSTALLED, keycloak
from tests.support.keycloak_realm import AUDIENCE, PASSWORD, console_client, make_realm
from tests.support.served_realms import LOGINS, bootstrapped
from tools.support.ports import free_port

FILE = "keycloak.test.mjs"
pytestmark = [pytest.mark.slow, pytest.mark.optional(INSTALLED), needs_chromium]


def test_people_sign_in_at_keycloak(tmp_path: Path) -> None:
    port = free_port()
    with keycloak(tmp_path / "keycloak.log") as provider:
        make_realm(provider, "lake")
        provider.manage("POST", "/lake/clients", console_client(f"http://127.0.0.1:{port}{BASE}/ui/"))
        outcomes = asyncio.run(_play(tmp_path, port, provider.issuer("lake"), provider.user("lake", "ada")))

    assert [*outcomes] == scenarios_in(FILE)
    assert not any(outcomes.values()), outcomes


async def _play(folder: Path, port: int, issuer: str, user: str) -> dict[str, str]:
    store = f"file:{folder}/store"
    root = await bootstrapped(store)
    await person(store, f"{issuer} {user}")
    settings = {**LOGINS, **accepting([issuer], "arco-console", AUDIENCE)}
    async with serving(store, "--port", str(port), "--base-path", BASE, **settings) as server:
        root.catalog(server.uri).create_namespace("sales")
        lake = Lake(server, root, ("ada", PASSWORD))
        return {**await play(FILE, {**lake.settings, "ARCO_ISSUERS": json.dumps({"issuer": issuer})})}
