"""schemathesis on the document that a server serves of itself, with all of its checks: statuses, content types, headers
and bodies are as described, wrong requests are refused, right ones are not, methods and tokens are checked, nothing
fails. The requests are the same each time."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pytest

from tests.support.served_realms import LOGINS, bootstrapped
from tools.support.arco_server import ArcoServer
from tools.support.request_bodies import schema, view_request

SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")
CONFIG = Path(__file__).with_name("schemathesis.toml")
LIMIT_S = 3_000
"""For the whole of it, on a slow machine."""
NAMESPACES = "/v1/arco/namespaces"
POLARIS = "/polaris/v1/arco/namespaces/db"
MANAGEMENT = "/api/management/v1"
MODEL = {"document": {"version": "0.1.1", "semantic_model": "{}"}}
POLICY = {"type": "system.data-compaction", "content": json.dumps({"version": "2025-02-03", "enable": True})}

THINGS: Sequence[tuple[str, Mapping[str, Any]]] = (
    *((NAMESPACES, {"namespace": [name]}) for name in ("db", "dropped")),
    *((f"{NAMESPACES}/db/tables", {"name": name, "schema": schema("x")}) for name in ("t", "dropped")),
    *((f"{NAMESPACES}/db/views", view_request(name)) for name in ("v", "dropped-view")),
    *((f"{POLARIS}/generic-tables", {"name": name, "format": "csv"}) for name in ("g", "dropped-generic")),
    *((f"{POLARIS}/semantic-models", {"name": name, **MODEL}) for name in ("m", "dropped-model")),
    *((f"{POLARIS}/policies", {"name": name, **POLICY}) for name in ("p", "dropped")),
    *((f"{MANAGEMENT}/principals", {"principal": {"name": name}}) for name in ("alice", "dropped")),
    *((f"{MANAGEMENT}/principal-roles", {"principalRole": {"name": name}}) for name in ("people", "dropped")),
    *(
        (f"{MANAGEMENT}/catalogs/arco/catalog-roles", {"catalogRole": {"name": name}})
        for name in ("reading", "dropped")
    ),
)


@dataclass(frozen=True)
class ServedRealm:
    """A server of a realm, and a token of its root's."""

    uri: str
    token: str

    def post(self, path: str, body: Mapping[str, Any]) -> None:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.token}"}
        urlopen(Request(f"{self.uri}{path}", json.dumps(body).encode(), headers), timeout=60).close()


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServedRealm]:
    for name, value in LOGINS.items():
        monkeypatch.setenv(name, value)
    store = f"file:{tmp_path / 'store'}"
    root = asyncio.run(bootstrapped(store))
    with ArcoServer(store, tmp_path / "log") as server:
        credentials = {"grant_type": "client_credentials", "client_id": root.client_id, "client_secret": root.secret}
        form = urlencode({**credentials, "scope": "PRINCIPAL_ROLE:ALL"}).encode()
        with urlopen(f"{server.uri}/v1/oauth/tokens", form, timeout=60) as answer:
            realm = ServedRealm(server.uri, json.loads(answer.read())["access_token"])
        for path, body in THINGS:
            realm.post(path, body)
        yield realm


def check(served: ServedRealm, phases: str, examples: int, folder: Path) -> None:
    """Runs schemathesis, with one worker: what it draws depends on nothing but its seed."""
    options = ["--header", f"Authorization: Bearer {served.token}", "--seed", "1", "--workers", "1", "--no-shrink"]
    bounds = ["--phases", phases, "--max-examples", str(examples), "--request-timeout", "60", "--max-failures", "20"]
    kept = ["--continue-on-failure", "--suppress-health-check", "all", "--generation-database", "none"]
    done = subprocess.run(
        [SCHEMATHESIS, "--config-file", CONFIG, "run", f"{served.uri}/openapi.json", *options, *bounds, *kept],
        cwd=folder,
        env={**os.environ, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    print(done.stdout)
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-4_000:]


def test_a_server_conforms_to_its_document(served: ServedRealm, tmp_path: Path) -> None:
    check(served, "fuzzing", 2, tmp_path)


@pytest.mark.slow
def test_a_server_conforms_to_its_document_in_every_corner_of_each_schema(served: ServedRealm, tmp_path: Path) -> None:
    check(served, "examples,coverage,fuzzing,stateful", 5, tmp_path)
