"""Realms of real servers to be fuzzed, spoken to over HTTP."""

import asyncio
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import Request as HttpRequest
from urllib.request import urlopen

from storage_backends.open import open_store
from tests.fuzz import management
from tests.fuzz.campaign import Tally
from tests.fuzz.realms import LiveRealm, RealmAddress, as_request, seed
from tests.fuzz.services import Request, sent_over_http
from tests.support.served_realms import KEY, bootstrapped
from tools.support.arco_server import ArcoServer


@dataclass(frozen=True)
class RealmServer:
    """A server of a realm with `alice` in it, and the store behind it."""

    uri: str
    url: str
    address: RealmAddress

    def player(self, tally: Tally) -> Callable[[list[Request]], None]:
        """Plays requests, after what they are aimed at was made anew. Raises AssertionError."""

        async def play(sequence: list[Request]) -> None:
            store = open_store(self.url, os.environ)
            try:
                realm = LiveRealm(self.uri, self.address, store)
                await seed(realm)
                await management.play(realm, sequence, tally)
            finally:
                await store.close()

        def played(requests: list[Request]) -> None:
            try:
                asyncio.run(play(requests))
            except AssertionError as error:
                error.add_note("\n".join(["after", *(repr(request) for request in requests)]))
                raise

        return played


@contextmanager
def realm_server(store: Path, logs: Path) -> Iterator[RealmServer]:
    """A server of a realm that is bootstrapped in a folder."""
    url, key = f"file:{store}", logs / "token.key"
    key.write_text(KEY)
    root = asyncio.run(bootstrapped(url))
    options = ("--auth", "internal", "--token-key-file", str(key))
    with ArcoServer(url, logs / "log", *options) as server:
        root_token = _token(server.uri, root.client_id, root.secret)
        made = sent_over_http(
            server.uri.removeprefix("http://"),
            as_request("POST", "principals", {"principal": {"name": "alice"}}, root_token),
        )
        credentials = made.json["credentials"]
        assert isinstance(credentials, dict)
        other_token = _token(server.uri, str(credentials["clientId"]), str(credentials["clientSecret"]))
        yield RealmServer(server.uri, url, RealmAddress(f"file://{store}", root_token, other_token))


def _token(uri: str, client_id: str, secret: str) -> str:
    sequence = {"grant_type": "client_credentials", "scope": "PRINCIPAL_ROLE:ALL"}
    form = urlencode({**sequence, "client_id": client_id, "client_secret": secret}).encode()
    with urlopen(HttpRequest(f"{uri}/v1/oauth/tokens", form), timeout=60) as answer:
        return str(json.loads(answer.read())["access_token"])
