"""A small catalog in memory, correct unless it is given a lie."""

import asyncio
import copy
import random
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from enum import StrEnum
from typing import Any

from aiohttp import web

ENDPOINTS = (
    "POST /v1/{prefix}/tables/rename",
    "POST /v1/{prefix}/transactions/commit",
    "HEAD /v1/{prefix}/namespaces/{namespace}/tables/{table}",
)
LAG_S = 0.05
Table = dict[str, Any]


class Lie(StrEnum):
    """What the catalog does wrong, now and then."""

    ACKNOWLEDGES_WITHOUT_APPLYING = "a commit is answered with success, and is not there"
    REFUSES_WHAT_IT_APPLIES = "a commit is refused, and is there"
    IGNORES_REQUIREMENTS = "a commit replaces one that it has not read"
    APPLIES_A_PART = "a commit changes the properties, and adds no snapshot"
    STALE_LOADS = "a load shows what was there before"
    TAKES_BACK = "a commit is there, and later is not"
    HALF_TRANSACTIONS = "a transaction is applied to its first table"
    SHOWS_HALF_TRANSACTIONS = "a transaction is applied to one table after the other"
    CREATES_TWICE = "two creations of one name succeed"
    KEEPS_WHAT_IS_DROPPED = "a drop is answered with success, and the table is there"
    KEEPS_WHAT_IS_RENAMED = "a table has its old and its new name"
    ALWAYS_NOT_MODIFIED = "a conditional load shows no change"
    FORGETS_KEYS = "a request with a known key is executed again"
    STALE_LISTINGS = "a listing shows what was there before"
    LOSES_TABLES = "a load does not find a table that is there"


class Refusal(Exception):
    """An answer with an error."""

    def __init__(self, status: int, kind: str) -> None:
        self.status = status
        self.kind = kind


class LyingCatalog:
    """The catalog. Its chance is `seed`'s. With `refuses_creations`, it makes no table."""

    def __init__(self, lie: Lie | None = None, seed: int = 0, *, refuses_creations: bool = False) -> None:
        self._lie = lie
        self._refuses_creations = refuses_creations
        self._random = random.Random(seed)
        self._tables: dict[str, Table] = {}
        self._before: dict[str, Table] = {}
        self._answers: dict[str, tuple[int, object]] = {}
        self._background: set[asyncio.Task[None]] = set()

    def _lies(self, lie: Lie, share: float = 0.3) -> bool:
        return self._lie is lie and self._random.random() < share

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[str]:
        """Serves on loopback, and yields the URI."""
        app = web.Application()
        table = "/v1/namespaces/{namespace}/tables/{table}"
        app.router.add_get("/v1/config", self._config)
        app.router.add_post("/v1/namespaces", self._nothing)
        app.router.add_delete("/v1/namespaces/{namespace}", self._nothing)
        app.router.add_post("/v1/tables/rename", self._once(self._rename))
        app.router.add_post("/v1/transactions/commit", self._once(self._transaction))
        app.router.add_get("/v1/namespaces/{namespace}/tables", self._list)
        app.router.add_post("/v1/namespaces/{namespace}/tables", self._once(self._create))
        app.router.add_get(table, self._load, allow_head=False)
        app.router.add_head(table, self._exists)
        app.router.add_post(table, self._once(self._commit))
        app.router.add_delete(table, self._once(self._drop))
        runner = web.AppRunner(app, shutdown_timeout=1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        try:
            yield f"http://127.0.0.1:{runner.addresses[0][1]}"
        finally:
            await runner.cleanup()
            for task in [*self._background]:
                task.cancel()

    async def _config(self, request: web.Request) -> web.Response:
        body = {"defaults": {}, "overrides": {}, "endpoints": ENDPOINTS, "idempotency-key-lifetime": "PT30M"}
        return web.json_response(body)

    async def _nothing(self, request: web.Request) -> web.Response:
        return web.json_response({})

    def _once(
        self, handle: Callable[[web.Request, Any], Awaitable[object]]
    ) -> Callable[[web.Request], Awaitable[web.Response]]:
        """Executes a request once for each key."""

        async def answer(request: web.Request) -> web.Response:
            body = await request.json() if request.can_read_body else None
            key = request.headers.get("Idempotency-Key", str(uuid.uuid4()))
            if key not in self._answers or self._lies(Lie.FORGETS_KEYS, 1):
                try:
                    self._answers[key] = 200, copy.deepcopy(await handle(request, body))
                except Refusal as refusal:
                    error = {"error": {"type": refusal.kind, "code": refusal.status, "message": refusal.kind}}
                    self._answers[key] = refusal.status, error
            status, document = self._answers[key]
            return web.json_response(document, status=status) if document is not None else web.Response(status=204)

        return answer

    def _named(self, request: web.Request) -> str:
        return f"{request.match_info['namespace']}.{request.match_info['table']}"

    def _get(self, name: str) -> Table:
        if name not in self._tables:
            raise Refusal(404, "NoSuchTableException")
        return self._tables[name]

    async def _create(self, request: web.Request, body: Any) -> object:
        name = f"{request.match_info['namespace']}.{body['name']}"
        if self._refuses_creations:
            raise Refusal(400, "BadRequestException")
        if name in self._tables and not self._lies(Lie.CREATES_TWICE):
            raise Refusal(409, "AlreadyExistsException")
        self._tables[name] = {
            "table-uuid": str(uuid.UUID(int=self._random.getrandbits(128))),
            "location": f"file:///{name}",
            "properties": dict(body["properties"]),
            "current-snapshot-id": None,
            "last-sequence-number": 0,
            "last-updated-ms": 0,
        }
        return {"metadata": self._tables[name]}

    async def _load(self, request: web.Request) -> web.Response:
        name = self._named(request)
        tables = self._before if self._lies(Lie.STALE_LOADS) and name in self._before else self._tables
        if name not in tables or self._lies(Lie.LOSES_TABLES, 0.1):
            return web.json_response({"error": {"type": "NoSuchTableException", "code": 404}}, status=404)
        table = tables[name]
        etag = f'"{table["table-uuid"]}-{table["properties"].get("prove.commits", "")}"'
        known = request.headers.get("If-None-Match")
        if known == etag or (known and self._lies(Lie.ALWAYS_NOT_MODIFIED, 1)):
            return web.Response(status=304, headers={"ETag": known})
        return web.json_response({"metadata": table}, headers={"ETag": etag})

    async def _exists(self, request: web.Request) -> web.Response:
        return web.Response(status=204 if self._named(request) in self._tables else 404)

    async def _list(self, request: web.Request) -> web.Response:
        namespace = request.match_info["namespace"]
        tables = self._before if self._lies(Lie.STALE_LISTINGS) else self._tables
        names = [name.partition(".")[2] for name in tables if name.partition(".")[0] == namespace]
        return web.json_response({"identifiers": [{"namespace": [namespace], "name": name} for name in names]})

    async def _commit(self, request: web.Request, body: Any) -> object:
        name = self._named(request)
        self._check(name, body)
        return {"metadata": self._apply(name, body)}

    async def _transaction(self, request: web.Request, body: Any) -> object:
        changes = [
            (f"{each['identifier']['namespace'][0]}.{each['identifier']['name']}", each)
            for each in body["table-changes"]
        ]
        for name, change in changes:
            self._check(name, change)
        self._apply(*changes[0])
        if self._lies(Lie.SHOWS_HALF_TRANSACTIONS, 1):
            await asyncio.sleep(LAG_S)
            for name, change in changes[1:]:
                self._check(name, change)
        if not self._lies(Lie.HALF_TRANSACTIONS):
            for name, change in changes[1:]:
                self._apply(name, change)
        return None

    def _check(self, name: str, body: Any) -> None:
        table = self._get(name)
        uuid_, snapshot = body["requirements"][0]["uuid"], body["requirements"][1]["snapshot-id"]
        if table["table-uuid"] != uuid_:
            raise Refusal(409, "CommitFailedException")
        if table["current-snapshot-id"] != snapshot and self._lie is not Lie.IGNORES_REQUIREMENTS:
            raise Refusal(409, "CommitFailedException")

    def _apply(self, name: str, body: Any) -> Table:
        """Returns the table after a commit."""
        old = self._tables[name]
        added, _, properties = body["updates"]
        snapshot = added["snapshot"]
        new = {
            **old,
            "properties": {**old["properties"], **properties["updates"]},
            "current-snapshot-id": snapshot["snapshot-id"],
            "last-sequence-number": snapshot["sequence-number"],
            "last-updated-ms": snapshot["timestamp-ms"],
        }
        if self._lies(Lie.APPLIES_A_PART):
            new["current-snapshot-id"] = old["current-snapshot-id"]
        if not self._lies(Lie.ACKNOWLEDGES_WITHOUT_APPLYING):
            self._replace(name, new)
        if self._lies(Lie.REFUSES_WHAT_IT_APPLIES):
            raise Refusal(409, "CommitFailedException")
        if self._lies(Lie.TAKES_BACK):
            self._later(lambda: self._take_back(name, new, old))
        return new

    def _replace(self, name: str, table: Table) -> None:
        before = self._tables.get(name)
        if before is not None:
            self._before[name] = before
        self._tables[name] = table

    def _take_back(self, name: str, new: Table, old: Table) -> None:
        if self._tables.get(name) is new:
            self._tables[name] = old

    def _later(self, change: Callable[[], object]) -> None:
        async def run() -> None:
            await asyncio.sleep(LAG_S)
            change()

        task = asyncio.create_task(run())
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _drop(self, request: web.Request, body: Any) -> object:
        name = self._named(request)
        self._before[name] = self._get(name)
        if not self._lies(Lie.KEEPS_WHAT_IS_DROPPED):
            del self._tables[name]
        return None

    async def _rename(self, request: web.Request, body: Any) -> object:
        source, target = (f"{body[end]['namespace'][0]}.{body[end]['name']}" for end in ("source", "destination"))
        table = self._get(source)
        if target in self._tables:
            raise Refusal(409, "AlreadyExistsException")
        self._tables[target] = table
        if not self._lies(Lie.KEEPS_WHAT_IS_RENAMED):
            del self._tables[source]
        return None
