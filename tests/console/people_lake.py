"""A catalog whose users sign in at issuers, in their browsers, or by ids and secrets."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.cli.process import serving
from tests.console.lake import Lake
from tests.support.oidc_provider import oidc_provider
from tests.support.served_realms import LOGINS, bootstrapped, manage
from tools.support.ports import free_port

AUDIENCE = "arco-of-this-test"
BASE = "/prod"


@dataclass(frozen=True)
class PeopleLake:
    """A server below a path of its own, and the issuers at which people sign in: `issuer`; `elsewhere`, whose tokens
    are for another service; and `closed`, whose answers no page may read."""

    lake: Lake
    issuer: str
    elsewhere: str
    closed: str

    @property
    def settings(self) -> dict[str, str]:
        """What the programs in the browser are given."""
        issuers = {"issuer": self.issuer, "elsewhere": self.elsewhere, "closed": self.closed}
        return {**self.lake.settings, "ARCO_ISSUERS": json.dumps(issuers)}


@asynccontextmanager
async def served_people(folder: Path) -> AsyncIterator[PeopleLake]:
    """Serves the catalog `arco` with the namespace `sales`. Who signs in at `issuer` as ada may list namespaces."""
    port = free_port()
    page = f"http://127.0.0.1:{port}{BASE}/ui/"
    async with (
        oidc_provider(AUDIENCE, page) as issuer,
        oidc_provider("another-service", page) as elsewhere,
        oidc_provider(AUDIENCE, page, cors=False) as closed,
    ):
        issuers = [issuer.issuer, elsewhere.issuer, closed.issuer]
        store = f"file:{folder}/store"
        root = await bootstrapped(store)
        ada = await person(store, f"{issuer.issuer} ada")
        options = ("--port", str(port), "--base-path", BASE)
        async with serving(store, *options, **{**LOGINS, **accepting(issuers)}) as server:
            root.catalog(server.uri).create_namespace("sales")
            yield PeopleLake(Lake(server, root, ada), *issuers)


def accepting(issuers: list[str], client: str = "console", audience: str = AUDIENCE) -> dict[str, str]:
    """Settings of a server that takes tokens of issuers, at which people sign in to the console."""
    return {
        "ARCO_AUTH": "internal,oidc",
        "ARCO_OIDC_ISSUERS": ",".join(issuers),
        "ARCO_OIDC_AUDIENCES": audience,
        "ARCO_OIDC_LOOPBACK_HTTP": "true",
        "ARCO_CONSOLE_CLIENTS": ",".join(f"{issuer} {client} openid" for issuer in issuers),
    }


async def person(store: str, subject: str) -> tuple[str, str]:
    """Makes the principal ada, who may list namespaces and is a subject of an issuer, and returns her id and secret."""
    made = json.loads(
        await manage(store, "principals", "create", "ada", "--property", f"arco.subject={subject}", "--json")
    )
    for command in (
        ("roles", "create", "analyst"),
        ("roles", "assign", "analyst", "--to", "ada"),
        ("roles", "create", "reader", "--catalog-role"),
        ("roles", "assign", "reader", "--catalog-role", "--to", "analyst"),
        ("grants", "add", "reader", "NAMESPACE_LIST"),
    ):
        await manage(store, *command)
    return made["credentials"]["clientId"], made["credentials"]["clientSecret"]
