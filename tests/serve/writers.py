"""Clients that never give up: each request has a key, and is sent again until the answer is definite."""

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import aiohttp

from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps, loads
from arco_catalog.state.fields import integer, mapping, text
from arco_catalog.state.runtime import SystemRuntime
from tools.support.arco_server import WAREHOUSE
from tools.support.request_bodies import schema, uuid7

NAMESPACE = "db"
TABLES = f"/v1/{WAREHOUSE}/namespaces/{NAMESPACE}/tables"
LAST = "last-request"
"""The table property that every commit and create sets to its own token: so each leaves its name in the metadata."""

PERMANENT = [f"p{number}" for number in range(3)]
"""Tables that no writer drops or renames: a commit to one that requires nothing can't be refused."""
CONTESTED = [f"c{number}" for number in range(4)]

ANSWER_S = 30.0
PAUSE_S = 0.2
LONGEST_PAUSE_S = 4.0
TIMEOUT_S = 1.0
"""How long a writer waits for one answer before it goes on to its next request."""

Uris: TypeAlias = Callable[[], Sequence[str]]


@dataclass(eq=False)
class Request:
    """One mutation, and what became of it.

    `token` is its name: servers keep it as the client's name in receipts and registry commits. `status` is that of
    the definite answer, 0 until there is one; times are those of one clock in seconds.
    """

    token: str
    key: str
    method: str
    path: str
    body: JsonObject | None
    may_fail: bool
    snapshot: int | None = None
    began: float = 0.0
    ended: float = 0.0
    tries: int = 0
    status: int = 0
    error: str = ""

    @property
    def acknowledged(self) -> bool:
        return 200 <= self.status < 300

    @property
    def refused(self) -> bool:
        return 400 <= self.status < 500


@dataclass
class Sender:
    """Sends requests to any of the servers until they are answered."""

    session: aiohttp.ClientSession
    uris: Uris
    rng: random.Random

    async def send(self, request: Request) -> None:
        """Tries with the same key, wherever, until the answer is definite."""
        request.began = time.perf_counter()
        while not request.status:
            request.tries += 1
            status, error = await self.ask(request)
            if 200 <= status < 500:
                request.status, request.error = status, error
                request.ended = time.perf_counter()
            else:
                longest = min(LONGEST_PAUSE_S, PAUSE_S * 2**request.tries)
                await asyncio.sleep(longest * (0.5 + self.rng.random()))

    async def ask(self, request: Request) -> tuple[int, str]:
        """Status and error type of one try; 599 for no answer."""
        headers = {"Idempotency-Key": request.key, "User-Agent": request.token, "Content-Type": "application/json"}
        data = None if request.body is None else dumps(request.body)
        url = self.rng.choice(self.uris()) + request.path
        try:
            async with self.session.request(request.method, url, data=data, headers=headers) as answer:
                body = await answer.read()
                error = "" if answer.status < 400 else text(mapping(_object(body), "error"), "type")
                return answer.status, error
        except (aiohttp.ClientError, TimeoutError, ConnectionError):
            return 599, ""

    async def load(self, name: str) -> JsonObject | None:
        """Returns a table's metadata, None if it does not exist; retries until a server answers."""
        while True:
            try:
                async with self.session.get(f"{self.rng.choice(self.uris())}{TABLES}/{name}") as answer:
                    if answer.status == 200:
                        return mapping(_object(await answer.read()), "metadata")
                    if answer.status == 404:
                        return None
            except (aiohttp.ClientError, TimeoutError, ConnectionError):
                pass  # that server is down: ask again
            await asyncio.sleep(PAUSE_S * self.rng.random())


@dataclass
class Crowd:
    """Concurrent writers. `requests` has their requests and the answers."""

    sender: Sender
    rng: random.Random
    requests: list[Request] = field(default_factory=list)
    runtime: SystemRuntime = field(default_factory=SystemRuntime)

    def request(
        self, method: str, path: str, body: Callable[[str], JsonObject] | None = None, *, may_fail: bool = True
    ) -> Request:
        """A new request, its body made from its token."""
        token = f"writers/{len(self.requests)}"
        key = uuid7(self.runtime.now_ms(), self.runtime)
        made = Request(token, key, method, path, None if body is None else body(token), may_fail)
        self.requests.append(made)
        return made

    def create(self, name: str) -> Request:
        return self.request(
            "POST", TABLES, lambda token: {"name": name, "schema": schema("x"), "properties": {LAST: token}}
        )

    def commit(self, name: str) -> Request:
        """A commit that requires nothing."""
        return self.request(
            "POST", f"{TABLES}/{name}", lambda token: _commit([], token), may_fail=name not in PERMANENT
        )

    async def append(self, name: str) -> Request | None:
        """A commit of a snapshot on top of the current one, and on top of no other."""
        metadata = await self.sender.load(name)
        if metadata is None:
            return None
        main = mapping(mapping(metadata, "refs"), "main").get("snapshot-id")
        snapshot = self.rng.getrandbits(62)

        def body(token: str) -> JsonObject:
            added: JsonObject = {
                "snapshot-id": snapshot,
                "sequence-number": integer(metadata, "last-sequence-number") + 1,
                "timestamp-ms": self.runtime.now_ms(),
                "manifest-list": f"{text(metadata, 'location')}/metadata/snap-{snapshot}.avro",
                "summary": {"operation": "append"},
                "schema-id": 0,
                **({} if main is None else {"parent-snapshot-id": main}),
            }
            ref: JsonObject = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch"}
            return _commit(
                [{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": main}],
                token,
                {"action": "add-snapshot", "snapshot": added},
                {**ref, "snapshot-id": snapshot},
            )

        request = self.request("POST", f"{TABLES}/{name}", body)
        request.snapshot = snapshot
        return request

    def drop(self, name: str) -> Request:
        return self.request("DELETE", f"{TABLES}/{name}")

    def rename(self, source: str, destination: str) -> Request:
        ends: JsonObject = {
            end: {"namespace": [NAMESPACE], "name": name}
            for end, name in (("source", source), ("destination", destination))
        }
        return self.request("POST", f"/v1/{WAREHOUSE}/tables/rename", lambda token: ends)

    async def next_request(self) -> Request | None:
        """Whatever a writer does next."""
        rng = self.rng
        permanent, contested, other = rng.choice(PERMANENT), rng.choice(CONTESTED), rng.choice(CONTESTED)
        gestures = {"commit": 30, "append": 25, "create": 15, "drop": 8, "rename": 10, "commit contested": 12}
        match rng.choices([*gestures], weights=[*gestures.values()])[0]:
            case "commit":
                return self.commit(permanent)
            case "append":
                return await self.append(permanent)
            case "create":
                return self.create(contested)
            case "drop":
                return self.drop(contested)
            case "rename":
                return self.rename(contested, other)
            case _:
                return self.commit(contested)

    async def write(self, writers: int, meanwhile: "asyncio.Task[None]", pause_s: float = 0.0) -> None:
        """Lets writers write, each with a pause of `pause_s` on average after each request, until that task is done,
        and returns when every request has a definite answer."""
        async with asyncio.TaskGroup() as waiting:

            async def writer() -> None:
                while not meanwhile.done():
                    request = await self.next_request()
                    if request is not None:
                        sending = waiting.create_task(self.sender.send(request))
                        await asyncio.wait([sending], timeout=TIMEOUT_S)
                    if pause_s:
                        await asyncio.sleep(2 * pause_s * self.rng.random())

            for _ in range(writers):
                waiting.create_task(writer())


def _commit(requirements: list[JsonValue], token: str, *updates: JsonValue) -> JsonObject:
    return {
        "requirements": requirements,
        "updates": [*updates, {"action": "set-properties", "updates": {LAST: token}}],
    }


def _object(body: bytes) -> JsonObject:
    document = loads(body)
    assert isinstance(document, dict), body
    return document
