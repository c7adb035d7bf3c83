"""Keycloak, an identity provider, which `make .tools/keycloak` installs.

It runs in processes of its own on 127.0.0.1, with a database in memory, and ends with the context that started it.
"""

import json
import os
import re
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tests.support.login_pages import submit_forms
from tools.demo.java import java_home
from tools.support.environment import PROJECT
from tools.support.ports import free_port

HOME = PROJECT / ".tools" / "keycloak"
INSTALLED = ".tools/keycloak/complete"
START_S = 180.0
ANSWER_S = 60.0
ADMINISTRATOR = "admin"
_HEADERS = {"Content-Type": "application/json"}


@dataclass(frozen=True)
class Keycloak:
    """A running Keycloak."""

    url: str

    def issuer(self, realm: str) -> str:
        """The claim `iss` of a realm's tokens."""
        return f"{self.url}/realms/{realm}"

    def document(self, realm: str, path: str) -> Any:
        """A document of a realm, as anyone can read it."""
        return json.loads(_answer(urllib.request.Request(f"{self.issuer(realm)}/{path}")))

    def tokens(self, realm: str, client: str, secret: str | None = None, **form: str) -> dict[str, Any]:
        """The answer of a realm's token endpoint, by client credentials unless the form names another grant. Raises
        `urllib.error.HTTPError` if it refuses."""
        sent = {"grant_type": "client_credentials", "client_id": client, **form}
        if secret is not None:
            sent["client_secret"] = secret
        url = f"{self.issuer(realm)}/protocol/openid-connect/token"
        answer: dict[str, Any] = json.loads(_answer(urllib.request.Request(url, urlencode(sent).encode())))
        return answer

    def manage(self, method: str, path: str, body: object = None) -> Any:
        """Sends a request of the administrator to the admin API, and returns the answer; for a new object its id."""
        token = self.tokens(
            "master", "admin-cli", grant_type="password", username=ADMINISTRATOR, password=ADMINISTRATOR
        )
        headers = {**_HEADERS, "Authorization": f"Bearer {token['access_token']}"}
        content = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}/admin/realms{path}", content, headers, method=method)
        with urllib.request.urlopen(request, timeout=ANSWER_S) as answer:
            read = answer.read()
            return json.loads(read) if read else str(answer.headers.get("Location", "")).rpartition("/")[2]

    def add_key(self, realm: str, name: str, priority: int) -> str:
        """Gives a realm a new RSA key, which signs if none has a higher priority, and returns its provider's id."""
        config = {"priority": [str(priority)], "keySize": ["2048"], "algorithm": ["RS256"]}
        component = {
            "name": name,
            "providerId": "rsa-generated",
            "providerType": "org.keycloak.keys.KeyProvider",
            "parentId": self.manage("GET", f"/{realm}")["id"],
            "config": {**config, "enabled": ["true"], "active": ["true"]},
        }
        return str(self.manage("POST", f"/{realm}/components", component))

    def signing_keys(self, realm: str) -> list[str]:
        """The ids of the providers of a realm's keys that sign by RS256, of which the first signs."""
        found = [key for key in self.manage("GET", f"/{realm}/keys")["keys"] if key.get("algorithm") == "RS256"]
        return [key["providerId"] for key in sorted(found, key=lambda key: -int(key["providerPriority"]))]

    def remove_key(self, realm: str, provider: str) -> None:
        """Removes a key of a realm: it neither signs nor is published."""
        self.manage("DELETE", f"/{realm}/components/{provider}")

    def user(self, realm: str, name: str) -> str:
        """The id of a user, which is the claim `sub`."""
        return str(self.manage("GET", f"/{realm}/users?username={name}&exact=true")[0]["id"])


@contextmanager
def keycloak(log: Path) -> Iterator[Keycloak]:
    """Runs Keycloak for as long as it is needed; it logs to a file. Raises `LookupError` if it is not installed, and
    `RuntimeError` if it does not start within `START_S`."""
    if not (PROJECT / INSTALLED).exists():
        raise LookupError(".tools/keycloak is not installed: run 'make .tools/keycloak', which needs Maven and a JDK")
    port, management = free_port(), free_port()
    settings = {
        "JAVA_HOME": str(java_home()),
        "JAVA_OPTS_KC_HEAP": "-Xms128m -Xmx512m",
        "JAVA_OPTS_APPEND": "-XX:TieredStopAtLevel=1",
        "KC_BOOTSTRAP_ADMIN_USERNAME": ADMINISTRATOR,
        "KC_BOOTSTRAP_ADMIN_PASSWORD": ADMINISTRATOR,
        "KC_HTTP_ENABLED": "true",
        "KC_HTTP_HOST": "127.0.0.1",
        "KC_HTTP_PORT": str(port),
        "KC_HTTP_MANAGEMENT_PORT": str(management),
        "KC_HOSTNAME_STRICT": "false",
        "KC_CACHE": "local",
    }
    command = ["bash", str(HOME / "bin" / "kc.sh"), "start", "--optimized"]
    with (
        log.open("wb") as out,
        subprocess.Popen(
            command, stdout=out, stderr=out, env={**os.environ, **settings}, start_new_session=True
        ) as process,
    ):
        try:
            running = Keycloak(f"http://127.0.0.1:{port}")
            _await_start(running, process, log)
            yield running
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def _await_start(running: Keycloak, process: "subprocess.Popen[bytes]", log: Path) -> None:
    give_up = time.perf_counter() + START_S
    while time.perf_counter() < give_up and process.poll() is None:
        try:
            running.document("master", ".well-known/openid-configuration")
        except (OSError, ValueError):  # it does not listen yet, or has 503 for an answer
            time.sleep(0.2)
        else:
            return
    raise RuntimeError(f"Keycloak did not start: {log.read_text()[-4000:]}")


def _answer(request: urllib.request.Request) -> bytes:
    with urllib.request.urlopen(request, timeout=ANSWER_S) as answer:
        content: bytes = answer.read()
        return content


def log_in(url: str, name: str, password: str) -> str:
    """Logs a user in, confirms every form of Keycloak's pages, and returns the text at the end."""
    return submit_forms(url, lambda form: _filled(form, {"username": name, "password": password}))


def _filled(form: str, known: Mapping[str, str]) -> Mapping[str, str]:
    """The fields of a form that a person fills in, leaves as they are, or agrees with."""
    fields = {}
    for field in re.findall(r"<input[^>]*>", form):
        attributes = dict(re.findall(r'(\w+)="([^"]*)"', field))
        named = attributes.get("name", "")
        if named in known:
            fields[named] = known[named]
        elif attributes.get("type") == "hidden" or named == "accept":
            fields[named] = unescape(attributes.get("value", ""))
    return fields
