"""Realms that `arco bootstrap` made, and PyIceberg as one of their principals."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp
from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.rest import RestCatalog

from tests.cli.in_process import arco

KEY = "an-example-0123456789-abcdefghijklmnopqrstuvwxyz"
LOGINS = {"ARCO_AUTH": "internal", "ARCO_TOKEN_KEY": KEY}
"""Settings of a server that lets in who was bootstrapped."""


@dataclass(frozen=True)
class Root:
    """The root principal of a realm, None for the one at the store's root, as it was bootstrapped."""

    realm: str | None
    client_id: str
    secret: str

    @property
    def headers(self) -> Mapping[str, str]:
        """By which clients name the realm."""
        return {} if self.realm is None else {"header.Polaris-Realm": self.realm}

    def catalog(self, uri: str, warehouse: str = "arco", **properties: str) -> RestCatalog:
        """A catalog as PyIceberg sees it that logs in with this principal's credentials."""
        login = {"credential": f"{self.client_id}:{self.secret}", "scope": "PRINCIPAL_ROLE:ALL"}
        settings = {"uri": uri, "warehouse": warehouse, **login, **self.headers, **properties}
        settings.setdefault("oauth2-server-uri", f"{uri}/v1/oauth/tokens")
        catalog = load_catalog("arco", type="rest", **settings)
        assert isinstance(catalog, RestCatalog)
        return catalog


async def manage(store: str, *command: str) -> str:
    """Runs a command that changes a realm at its store, which must succeed, and returns its output."""
    ended = await arco(*command, "--store", store)
    assert ended.code == 0, ended
    return ended.out


async def token_of(uri: str, client_id: str, secret: str) -> str:
    """A token of a server for all roles of a principal."""
    form = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": secret}
    data = {**form, "scope": "PRINCIPAL_ROLE:ALL"}
    async with aiohttp.ClientSession() as client, client.post(f"{uri}/v1/oauth/tokens", data=data) as answer:
        assert answer.status == 200, await answer.text()
        return str((await answer.json())["access_token"])


async def bootstrapped(store: str, realm: str | None = None) -> Root:
    """Bootstraps a realm with the catalog `arco`."""
    named = () if realm is None else ("--realm", realm)
    ended = await arco("bootstrap", "--store", store, "--json", *named)
    assert ended.code == 0, ended.err
    made: dict[str, Any] = json.loads(ended.out)
    return Root(realm, made["client_id"], made["client_secret"])
