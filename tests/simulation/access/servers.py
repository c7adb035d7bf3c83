"""The catalog of a realm as each simulated process serves it, over HTTP, and the clients that ask it."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from arco_catalog.http.asgi import Asgi
from arco_catalog.http.realms import catalog_of
from arco_catalog.iceberg.errors import CommitStateUnknown, Refusal, Unavailable
from arco_catalog.iceberg.json import JsonObject, dumps
from arco_catalog.operations.undrop import undrop
from arco_catalog.protocol.access import ALLOW_ALL
from arco_catalog.protocol.operation_request import OperationRequest
from storage_backends import StoreError
from tests.simulation.access.judge import Ask, Judge
from tests.simulation.access.policy import ChangingPolicy
from tests.simulation.access.rights import Right
from tests.simulation.clients import EAGER
from tests.simulation.scenarios import TINY
from tests.simulation.world import DIED, Process, World
from tests.support.realm_service import MANAGEMENT, Entropy, RealmApp, on_catalog, table_request
from tools.support.asgi_client import Answer, Client
from tools.support.request_bodies import uuid7

NAMESPACE = ("db",)
TABLES = "/v1/lake/namespaces/db/tables"
MOST_TRIES = 40
SETTLED = (404, 409)
"""What a change of the realm is answered that was made before, by a sending whose answer was lost."""


class Servers:
    """Processes that serve one realm, `root`'s changes of it, and requests of its principals."""

    def __init__(self, world: World, *, spilled: bool = False, policy: ChangingPolicy | None = None) -> None:
        self.world = world
        self.policy = policy
        self._settings = replace(EAGER, spill=TINY) if spilled else EAGER
        self._entropy = Entropy()
        self._apps: dict[str, tuple[RealmApp, Asgi]] = {}
        self.setup = self._served(world.process("setup", skew_ms=0))

    async def start(self, *tables: str) -> "Servers":
        """A catalog with a namespace and these tables, before anything can go wrong."""
        await self.setup.start()
        await self.setup.catalog()
        realm = self.setup.realms()["r"]
        catalog = await catalog_of(realm, realm.lookups(), "lake", identity=None)
        self.judge = Judge(self.world, realm.registry.paths, catalog.paths, self.policy)
        manager = await self.setup.principal("manager", on_catalog("CATALOG_MANAGE_CONTENT"))
        assert (await manager.post("/v1/lake/namespaces", {"namespace": [*NAMESPACE]})).status == 200
        for name in tables:
            assert (await manager.post(TABLES, table_request(name))).status == 200
        return self

    def _served(self, process: Process) -> RealmApp:
        return RealmApp(
            clock=process.runtime,
            store=process.store,
            settings=self._settings,
            entropy=self._entropy,
            policy=None if self.policy is None else self.policy.agent(process.runtime.now_ms),
        )

    def _app(self, process: Process) -> tuple[RealmApp, Asgi]:
        if process.name not in self._apps:
            app = self._served(process)
            app.ids = self.setup.ids
            self._apps[process.name] = app, app.serve()
        return self._apps[process.name]

    def identity(self, principal: str) -> str:
        """The id that this name means now."""
        return self.setup.ids["r", principal]

    def _client(self, process: Process, identity: str) -> Client:
        return Client(self._app(process)[1], {"authorization": f"Bearer r/{identity}"})

    async def warm(self, process: str, principal: str, *tables: str) -> None:
        """Lets a process see tables, and what a principal may do with them, and remember it."""
        at = self.world.process(process)
        for name in tables:
            await at.run(self._client(at, self.identity(principal)).get(f"{TABLES}/{name}"))

    # What root does, until it is done.

    async def manage(self, process: str, method: str, path: str, body: JsonObject | None = None) -> Answer:
        """A change of the realm by its root, sent again until it was answered. These requests have no keys: one that
        was made by a sending without an answer is then found there already, or gone already."""
        headers = {"content-type": "application/json"} if body is not None else {}
        data = b"" if body is None else dumps(body)

        async def send(at: Process) -> Answer:
            return await self._client(at, self.identity("root")).send(method, f"{MANAGEMENT}/{path}", data, headers)

        answer = await self._until_answered(process, send)
        settled = answer.status in SETTLED or b"GRANT_NOT_FOUND" in answer.body
        assert answer.status < 300 or settled, (path, answer.status, answer.body)
        return answer

    async def grant(self, process: str, role: str, *grants: JsonObject) -> None:
        """Gives a catalog role grants."""
        for grant in grants:
            await self.manage(process, "PUT", f"catalogs/lake/catalog-roles/{role}/grants", {"grant": grant})

    async def revoke(self, process: str, role: str, *grants: JsonObject) -> None:
        """Takes them again: from the answer on nobody has them."""
        for grant in grants:
            await self.manage(process, "POST", f"catalogs/lake/catalog-roles/{role}/grants", {"grant": grant})
            self.judge.holds_no_longer(role, grant)

    async def remake(self, process: str, principal: str) -> None:
        """Makes a principal of this name, which is another one than was there before. Its role is not given to it."""
        await self.manage(process, "POST", "principals", {"principal": {"name": principal}})
        self.setup.ids["r", principal] = self.judge.principal_named(principal)

    async def remake_namespace(self, process: str, *tables: str) -> None:
        """Drops these tables and the namespace, and makes another one of its name. What fails in between is left."""
        namespaces = "/v1/lake/namespaces"
        dropped = [f"{TABLES}/{name}" for name in tables]
        for path in (*dropped, f"{namespaces}/{NAMESPACE[0]}"):

            async def drop(at: Process, path: str = path) -> Answer:
                return await self._client(at, self.identity("manager")).delete(path)

            await self._until_answered(process, drop)

        async def make(at: Process) -> Answer:
            manager = self._client(at, self.identity("manager"))
            return await manager.post(namespaces, {"namespace": [*NAMESPACE]})

        await self._until_answered(process, make)

    async def undrop(self, process: str, name: str) -> None:
        """What an operator does at the store."""

        async def send(at: Process) -> Answer:
            realm = self._app(at)[0].realms()["r"]
            try:
                catalog = await catalog_of(realm, realm.lookups(), "lake", identity=None)
                await undrop(catalog.session(_operator(self.world), ALLOW_ALL), NAMESPACE, name)
            except (CommitStateUnknown, Unavailable, StoreError):
                return Answer(500, {}, b"")
            except Refusal:
                return Answer(409, {}, b"")
            return Answer(200, {}, b"")

        await self._until_answered(process, send)

    async def _until_answered(self, process: str, send: Callable[[Process], Awaitable[Answer]]) -> Answer:
        name = process
        for tries in range(MOST_TRIES):
            at = self.world.process(name)
            answer = await at.run(_sent(send, at))
            if answer is DIED:
                name += "+"
            elif answer.status < 500:
                return answer
            await self._pause(tries)
        raise AssertionError("root never got an answer")

    async def _pause(self, tries: int) -> None:
        await self.world.runtime.sleep(min(30.0, 2.0**tries) * self.world.runtime.random())

    # What principals ask.

    async def ask(self, ask: Ask, *processes: str, key: bool = True, as_key: str | None = None) -> Ask:
        """A request, sent by each of these processes at once; under a key again, until it gets a definite answer."""
        self.judge.begins(ask)
        text = (as_key or self.key()) if key else None
        async with asyncio.TaskGroup() as group:
            for process in processes:
                group.create_task(self._send(ask, process, text))
        return ask

    def key(self) -> str:
        """A fresh idempotency key."""
        return uuid7(self.world.runtime.now_ms(), self.world.runtime)

    async def _send(self, ask: Ask, process: str, key: str | None) -> None:
        name = process
        for tries in range(MOST_TRIES):
            at = self.world.process(name)
            headers = {"user-agent": f"{ask.name}/1", **({} if key is None else {"idempotency-key": key})}
            if ask.body is not None:
                headers["content-type"] = "application/json"
            data = b"" if ask.body is None else dumps(ask.body)
            sending = self.judge.sends(ask, name)
            client = self._client(at, ask.principal)
            answer = await at.run(client.send(ask.method, ask.target, data, headers))
            if answer is DIED:
                name += "+"
            elif answer.status < 500:
                self.judge.answered(ask, sending, answer)
                return
            if key is None:
                ask.abandoned = True  # nobody asks again: any outcome is right, and stays unknown
                return
            await self._pause(tries)
        raise AssertionError(f"{ask.name} never got a definite answer")

    def commit(self, name: str, principal: str, table: str = "t", by: str | None = None) -> Ask:
        """A commit that leaves its name in a property."""
        body: JsonObject = {
            "requirements": [],
            "updates": [{"action": "set-properties", "updates": {"by": by or name}}],
        }
        needs = [Right("TABLE_SET_PROPERTIES", table)]
        return Ask(name, self.identity(principal), "POST", f"{TABLES}/{table}", body, needs)

    def transact(self, name: str, principal: str, *tables: str) -> Ask:
        """A transaction that does so to several tables."""
        changes: list[JsonObject] = [
            {"identifier": {"namespace": [*NAMESPACE], "name": table}, **(self.commit(name, principal).body or {})}
            for table in tables
        ]
        needs = [Right("TABLE_SET_PROPERTIES", table) for table in tables]
        body: JsonObject = {"table-changes": [*changes]}
        return Ask(name, self.identity(principal), "POST", "/v1/lake/transactions/commit", body, needs)

    def create(self, name: str, principal: str, table: str) -> Ask:
        """A create."""
        needs = [Right("TABLE_CREATE", None)]
        return Ask(name, self.identity(principal), "POST", TABLES, table_request(table), needs, makes=table)

    def drop(self, name: str, principal: str, table: str) -> Ask:
        """A drop."""
        return Ask(name, self.identity(principal), "DELETE", f"{TABLES}/{table}", None, [Right("TABLE_DROP", table)])

    def undrop_of(self, name: str, principal: str, table: str = "t") -> Ask:
        """An undrop."""
        needs = [Right("TABLE_CREATE", None), Right("TABLE_DROP", table, dropped=True)]
        return Ask(name, self.identity(principal), "POST", f"{TABLES}/{table}/undrop", {}, needs)

    def rename(self, name: str, principal: str, table: str, to: str) -> Ask:
        """A rename within the namespace."""
        body: JsonObject = {
            "source": {"namespace": [*NAMESPACE], "name": table},
            "destination": {"namespace": [*NAMESPACE], "name": to},
        }
        needs = [Right("TABLE_DROP", table), Right("TABLE_CREATE", None)]
        return Ask(name, self.identity(principal), "POST", "/v1/lake/tables/rename", body, needs)

    def load(self, name: str, principal: str, table: str = "t") -> Ask:
        """A load."""
        needs = [Right("TABLE_READ_PROPERTIES", table)]
        return Ask(name, self.identity(principal), "GET", f"{TABLES}/{table}", None, needs, reads=True)

    def list(self, name: str, principal: str) -> Ask:
        """A list of all tables."""
        return Ask(name, self.identity(principal), "GET", TABLES, None, [Right("TABLE_LIST", None)], reads=True)

    async def close(self) -> None:
        """Waits until nothing is on its way any more, and holds answers against what there is then."""
        await self.world.settle()
        self.judge.close()


async def _sent(send: Callable[[Process], Awaitable[Answer]], at: Process) -> Answer:
    return await send(at)


def _operator(world: World) -> OperationRequest:
    return OperationRequest("POST", "/undrop", "", None, "operator", {}, world.runtime.now_ms() + 90_000)
