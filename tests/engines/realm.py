"""A served realm as tests of engines see it: one catalog, to its owner, to a reader, and to who has a wrong secret."""

import json
import subprocess
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import pytest
from pyiceberg.catalog import load_catalog

from tests.engines.lake import Lake
from tests.engines.printed import Printed, printed
from tools.demo.server import ARCO, WAREHOUSE, serving

KEY = "an-example-0123456789-abcdefghijklmnopqrstuvwxyz"
LIFETIME_S = "10"
SCOPE = "PRINCIPAL_ROLE:ALL"
MANAGEMENT = "/api/management/v1"
READS = ("TABLE_READ_DATA", "NAMESPACE_READ_PROPERTIES", "VIEW_READ_PROPERTIES")


@dataclass(frozen=True)
class Realm:
    """The lakes of the owner, of the reader, and of a stranger to whom engines can't connect; where the server logs."""

    owner: Lake
    reader: Lake
    stranger: Lake
    log: Path

    @property
    def lakes(self) -> Sequence[Lake]:
        return self.owner, self.reader, self.stranger

    def printed(self, lake: Lake) -> Printed:
        """What the server prints, for the client to whom this lake belongs."""
        server = lake.server
        return printed(server.uri, WAREHOUSE, server.store, {}, lake.login["credential"], "internal")

    def printed_for_a_token(self) -> Printed:
        """What a server prints that takes tokens of an issuer, with one of the owner's."""
        server, (client_id, _, secret) = self.owner.server, self.owner.login["credential"].partition(":")
        return printed(server.uri, WAREHOUSE, server.store, {}, _token(server.uri, client_id, secret), "oidc")

    def tokens(self) -> int:
        """How many tokens were given so far."""
        return self.log.read_text().count("POST /v1/oauth/tokens 200")


@contextmanager
def realm_served(folder: Path, lifetime_s: str = LIFETIME_S) -> Iterator[Realm]:
    """Bootstraps a realm, serves it with tokens that live that long, and makes a reader of its catalog."""
    store, log = f"file:{folder / 'store'}", folder / "server.log"
    command = [str(ARCO), "bootstrap", "--store", store, "--warehouse", WAREHOUSE, "--json"]
    root = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=60).stdout)
    settings = {
        "ARCO_AUTH": "internal",
        "ARCO_TOKEN_KEY": KEY,
        "ARCO_TOKEN_LIFETIME": lifetime_s,
        "ARCO_LOG_LEVEL": "debug",
        "ARCO_WORKERS": "1",
    }
    with ExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in settings.items():
                patch.setenv(name, value)
            server = stack.enter_context(serving(store, log))
        owner = root["client_id"], root["client_secret"]
        reader = _make_reader(server.uri, owner)
        bystander = load_catalog(
            "owner", type="rest", uri=server.uri, warehouse=WAREHOUSE, **_login(server.uri, *owner)
        )
        lakes = {
            name: Lake(name, server, bystander, {}, _login(server.uri, *client))
            for name, client in {"owner": owner, "reader": reader, "stranger": (reader[0], "wrong")}.items()
        }
        yield Realm(lakes["owner"], lakes["reader"], lakes["stranger"], log)


def _login(uri: str, client_id: str, secret: str) -> dict[str, str]:
    return {"credential": f"{client_id}:{secret}", "scope": SCOPE, "oauth2-server-uri": f"{uri}/v1/oauth/tokens"}


def _token(uri: str, client_id: str, secret: str) -> str:
    form = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": secret, "scope": SCOPE}
    typed = {"Content-Type": "application/x-www-form-urlencoded"}
    request = urllib.request.Request(f"{uri}/v1/oauth/tokens", urlencode(form).encode(), typed)
    return str(_send(request)["access_token"])


def _make_reader(uri: str, owner: tuple[str, str]) -> tuple[str, str]:
    token = _token(uri, *owner)

    def manage(method: str, path: str, **body: object) -> dict[str, dict[str, str]]:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
        url = f"{uri}{MANAGEMENT}/{path}"
        made: dict[str, dict[str, str]] = _send(
            urllib.request.Request(url, json.dumps(body).encode(), headers, method=method)
        )
        return made

    made = manage("POST", "principals", principal={"name": "reader"})["credentials"]
    people, reading = {"name": "readers"}, {"name": "reading"}
    manage("POST", "principal-roles", principalRole=people)
    manage("PUT", "principals/reader/principal-roles", principalRole=people)
    manage("POST", f"catalogs/{WAREHOUSE}/catalog-roles", catalogRole=reading)
    manage("PUT", f"principal-roles/readers/catalog-roles/{WAREHOUSE}", catalogRole=reading)
    for privilege in READS:
        grant = {"type": "catalog", "privilege": privilege}
        manage("PUT", f"catalogs/{WAREHOUSE}/catalog-roles/reading/grants", grant=grant)
    return made["clientId"], made["clientSecret"]


def _send(request: urllib.request.Request):  # type: ignore[no-untyped-def]
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.loads(answer.read() or b"{}")
