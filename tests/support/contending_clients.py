"""Clients that change names of one catalog at once, each by a process of its own: none of them may fail or starve.

A client's requests are about names of its own, so each has one right answer, a success.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

import aiohttp

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.runtime import SystemRuntime
from tools.support.request_bodies import schema, set_property, uuid7, view_request

NAMESPACE = "db"
MANAGEMENT = "/api/management/v1"
ANSWER_S = 60.0


@dataclass
class Client:
    """A client of one process, at `uri`: sends requests one after the other, each under a key, and measures the seconds
    of each. The paths of its catalog begin with `catalog`."""

    session: aiohttp.ClientSession
    uri: str
    catalog: str
    name: str
    rounds: int = 0
    """How often it has begun its work."""
    seconds: list[float] = field(default_factory=list)
    tables: list[str] = field(default_factory=list)
    """Names of its tables in the namespace `NAMESPACE`."""

    async def send(self, method: str, path: str, body: JsonObject | None = None) -> None:
        """Sends a request, which must succeed at once."""
        runtime, since = SystemRuntime(), time.monotonic()
        headers = {"Idempotency-Key": uuid7(runtime.now_ms(), runtime)}
        async with self.session.request(method, f"{self.uri}{path}", json=body, headers=headers) as answer:
            assert 200 <= answer.status < 300, f"{method} {path}: {answer.status} {await answer.text()}"
        self.seconds.append(time.monotonic() - since)

    async def listed_tables(self) -> Sequence[str]:
        """Returns the names of the tables in the namespace `NAMESPACE`, of all clients, sorted."""
        async with self.session.get(f"{self.uri}{self.catalog}/namespaces/{NAMESPACE}/tables") as answer:
            assert answer.status == 200, await answer.text()
            return sorted(identifier["name"] for identifier in (await answer.json())["identifiers"])


Work = Callable[[Client, int], Awaitable[None]]
"""Requests of a client, in the round of this number."""


async def create_namespace(client: Client, number: int) -> None:
    """Creates the namespace `NAMESPACE`."""
    await client.send("POST", f"{client.catalog}/namespaces", {"namespace": [NAMESPACE]})


async def create_table(client: Client, number: int) -> None:
    """Creates a table."""
    name = f"{client.name}-{number}"
    await client.send("POST", f"{client.catalog}/namespaces/{NAMESPACE}/tables", {"name": name, "schema": schema("x")})
    client.tables.append(name)


async def change_all_kinds_of_names(client: Client, number: int) -> None:
    """Creates and drops a namespace, and creates, renames, changes in a transaction, drops and purges what is in it."""
    name, catalog = f"{client.name}-{number}", client.catalog
    inside = f"{catalog}/namespaces/{name}"
    await client.send("POST", f"{catalog}/namespaces", {"namespace": [name]})
    await client.send("POST", f"{inside}/tables", {"name": "t", "schema": schema("x")})
    await client.send("POST", f"{inside}/views", view_request("v"))
    await client.send("POST", f"{inside}/properties", {"updates": {"a": "b"}})
    source: JsonObject = {"namespace": [name], "name": "t"}
    here: JsonObject = {"namespace": [NAMESPACE], "name": name}
    await client.send("POST", f"{catalog}/tables/rename", {"source": source, "destination": here})
    client.tables.append(name)
    await client.send("POST", f"{inside}/tables", {"name": "u", "schema": schema("x")})
    there: JsonObject = {"namespace": [name], "name": "u"}
    changes: list[JsonObject] = [{"identifier": each, **set_property("a", "b")} for each in (here, there)]
    await client.send("POST", f"{catalog}/transactions/commit", {"table-changes": [*changes]})
    await client.send("DELETE", f"{inside}/tables/u?purgeRequested=true")
    await client.send("DELETE", f"{inside}/views/v")
    await client.send("DELETE", inside)


async def grant_and_revoke(client: Client, number: int) -> None:
    """Creates a principal with a role that may read a table of its own, takes the grant back, and drops the role."""
    name = f"{client.name}-{number}"
    roles = f"{MANAGEMENT}/catalogs/{client.catalog.rpartition('/')[2]}/catalog-roles"
    await create_table(client, number)
    await client.send("POST", f"{MANAGEMENT}/principals", {"principal": {"name": name}})
    await client.send("POST", f"{MANAGEMENT}/principal-roles", {"principalRole": {"name": name}})
    await client.send("PUT", f"{MANAGEMENT}/principals/{name}/principal-roles", {"principalRole": {"name": name}})
    await client.send("POST", roles, {"catalogRole": {"name": name}})
    granted = f"{MANAGEMENT}/principal-roles/{name}/catalog-roles/{client.catalog.rpartition('/')[2]}"
    await client.send("PUT", granted, {"catalogRole": {"name": name}})
    table: JsonObject = {"type": "table", "namespace": [NAMESPACE], "tableName": name, "privilege": "TABLE_READ_DATA"}
    await client.send("PUT", f"{roles}/{name}/grants", {"grant": table})
    await client.send("POST", f"{roles}/{name}/grants", {"grant": table})
    await client.send("DELETE", f"{roles}/{name}")


@dataclass(frozen=True)
class Clients:
    """A client of each of these servers, of one catalog that they all serve."""

    each: Sequence[Client]

    @classmethod
    async def of(
        cls, stack: AsyncExitStack, uris: Sequence[str], warehouse: str, headers: Mapping[str, str] | None = None
    ) -> "Clients":
        """Makes the clients, which close with the stack. Each sends `headers` in all requests."""
        timeout = aiohttp.ClientTimeout(total=ANSWER_S)
        sessions = [
            await stack.enter_async_context(aiohttp.ClientSession(timeout=timeout, headers=headers)) for _ in uris
        ]
        each = [
            Client(session, uri, f"/v1/{warehouse}", f"s{n}")
            for n, (session, uri) in enumerate(zip(sessions, uris, strict=True))
        ]
        await create_namespace(each[0], 0)
        return cls(each)

    async def work(self, work: Work, seconds: float) -> Sequence[float]:
        """Lets all clients do the work over and over for so many seconds, at once, and returns the seconds of each
        request, in order of length. Afterwards two of the servers must list exactly the tables of the clients."""
        for client in self.each:
            client.seconds.clear()
        async with asyncio.TaskGroup() as group:
            end = time.monotonic() + seconds
            for client in self.each:
                group.create_task(_repeat(client, work, end))
        expected = sorted(name for client in self.each for name in client.tables)
        for client in (self.each[0], self.each[-1]):
            assert await client.listed_tables() == expected
        return sorted(second for client in self.each for second in client.seconds)


async def _repeat(client: Client, work: Work, end: float) -> None:
    while time.monotonic() < end:
        client.rounds += 1
        await work(client, client.rounds)


def describe(took: Sequence[float], calls: float) -> str:
    """A line with the number of requests, their times, in order of length, and the store's calls for each."""
    median, p99 = took[len(took) // 2], took[int(0.99 * len(took))]
    return f"{len(took)} requests, median {median:.2f}, p99 {p99:.2f}, worst {took[-1]:.2f} s, {calls:.1f} calls each"
