"""A realm with very many grants, built as objects as that many requests would have left it. Run as a program, it prints
what requests cost there: `python -m tests.access.many_grants 100000`."""

import asyncio
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass

from arco_catalog.http.realms import catalog_of
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.realms import Realm
from arco_catalog.protocol.access import ALLOW_ALL
from arco_catalog.protocol.catalog import Catalog, Settings
from arco_catalog.protocol.lookup import load
from arco_catalog.protocol.operation_request import OperationRequest
from arco_catalog.state.index import relation_key
from arco_catalog.state.needs import Needs, Scan
from arco_catalog.state.realm import PrincipalEntry, membership_edits, principal_key, principal_role_key
from arco_catalog.state.roles import GrantEntry, RoleEntry, catalog_role_key, grant_edits, usage_edits
from arco_catalog.state.spilling import Limits
from storage_backends import ANY, Found
from storage_backends.memory import MemoryStore
from storage_backends.wrappers.measuring import Totals
from tests.support.realm_service import RealmApp, on_catalog, on_table
from tests.support.registry_builder import Entries, RegistryBuilder
from tools.support.asgi_client import Answer, Client
from tools.support.request_bodies import schema
from tools.support.wrapped_stores import CountingStore

TABLES = "/v1/lake/namespaces/db/tables"
GRANTS = "catalogs/lake/catalog-roles/reader-in-lake/grants"
HARMLESS = on_catalog("VIEW_LIST")
"""A grant that allows nothing to be done with tables."""
SET: JsonObject = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]}


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one request: its answer, its calls of the store, and its time on the processor in milliseconds."""

    answer: Answer
    store: Totals
    ms: float


class ManyGrants:
    """A catalog with `tables`, each of which `reader` may read by a grant of its own; and the principal `many`, who has
    so many `roles`, each with a catalog role that may read one table."""

    def __init__(self, tables: int, roles: int, limits: Limits | None = None) -> None:
        self.tables, self.roles = tables, roles
        self.limits = limits or Limits()
        self.app = RealmApp(settings=Settings("-", spill=self.limits))
        self.memory = MemoryStore(now_ms=self.app.clock.now_ms)
        self.app.store = self.memory
        self.store = CountingStore(self.memory)

    async def build(self) -> "ManyGrants":
        """Stores it."""
        await self.app.start()
        await self.app.catalog()
        manager = await self.app.principal("manager", on_catalog("CATALOG_MANAGE_CONTENT"))
        assert (await manager.post("/v1/lake/namespaces", {"namespace": ["db"]})).status == 200
        for name in ("reader", "many"):
            await self.app.principal(name, HARMLESS)
        realm = self.app.realms()["r"]
        catalog = await catalog_of(realm, realm.lookups(), "lake", identity=None)
        await self._fill_catalog(realm, catalog)
        self.app.store = self.store
        return self

    async def _fill_catalog(self, realm: Realm, catalog: Catalog) -> None:
        of_realm, of_catalog = await _all(realm.registry), await _all(catalog)
        root, runtime = catalog.mounts[0].root, self.app.clock
        builder = RegistryBuilder(root, catalog.paths, runtime, self.limits)
        builder.entries |= of_catalog
        reader = RoleEntry(of_catalog[catalog_role_key("reader-in-lake")])
        for number in range(self.tables):
            name = f"t{number:06d}"
            if number == self.tables // 2:
                await self._keep(dict(builder.whole_table("db", name, {"schema": schema("x")})))
                entity = str(builder.entries[relation_key(("db",), name)]["entity"])
            else:
                entity, _ = builder.table("db", name)
            _edit(builder.entries, grant_edits(reader.entity, _grant(entity, name)))
        many = PrincipalEntry(of_realm[principal_key("many")])
        for number in range(self.roles):
            role = _role(runtime.ulid(), f"role{number:06d}")
            used = _role(runtime.ulid(), f"used{number:06d}")
            of_realm[principal_role_key(role.name)] = role.json
            _edit(of_realm, membership_edits(many, role))
            builder.entries[catalog_role_key(used.name)] = used.json
            _edit(builder.entries, usage_edits(role, used))
            name = f"t{(number * self.tables) // self.roles:06d}"
            entity = str(builder.entries[relation_key(("db",), name)]["entity"])
            _edit(builder.entries, grant_edits(used.entity, _grant(entity, name)))
        await self._keep(dict(builder.registry()))
        of_the_realm = RegistryBuilder(root, realm.registry.paths, runtime, self.limits)
        of_the_realm.entries |= of_realm
        await self._keep(dict(of_the_realm.registry()))

    async def _keep(self, objects: Mapping[str, bytes]) -> None:
        for key, body in objects.items():
            await self.memory.put(key, body, ANY)

    @property
    def table(self) -> str:
        """The one table that can be loaded."""
        return f"t{self.tables // 2:06d}"

    def client(self, name: str) -> Client:
        """Of a server that has nothing in memory."""
        return self.app.client(name, app=self.app.serve())

    async def cost(self, client: Client, method: str, target: str, body: JsonObject | None = None) -> Cost:
        """What a request costs; a `target` without a slash in front is one of the management API."""
        began = time.process_time()
        with self.store.measure() as measured:
            if not target.startswith("/"):
                answer = await self.app.manage(method, target, body, client)
            elif method == "POST":
                answer = await client.post(target, body or {})
            else:
                answer = await client.send(method, target)
        return Cost(answer, measured.totals(), 1_000 * (time.process_time() - began))

    async def manifest_bytes(self) -> int:
        """How long the catalog's HEAD is."""
        realm = self.app.realms()["r"]
        catalog = await catalog_of(realm, realm.lookups(), "lake", identity=None)
        found = await self.memory.get(catalog.paths.manifest)
        assert isinstance(found, Found)
        return len(found.body)


def _role(entity: str, name: str) -> RoleEntry:
    return RoleEntry.new(entity=entity, name=name, properties={}, at_ms=1)


def _grant(entity: str, name: str) -> GrantEntry:
    return GrantEntry.new(securable=entity, kind="table", namespace=("db",), name=name, privileges=["TABLE_READ_DATA"])


def _edit(entries: Entries, edits: Mapping[str, JsonObject | None]) -> None:
    entries |= {key: entry for key, entry in edits.items() if entry is not None}


async def _all(catalog: Catalog) -> Entries:
    deadline = catalog.runtime.now_ms() + 60_000
    session = catalog.session(OperationRequest("GET", "", "", None, "operator", {}, deadline), ALLOW_ALL)
    head = await session.head()
    await load(session.state, head.index, Needs(scans=[Scan("")]))
    return dict(head.index.scan(""))


async def _print(tables: int, roles: int) -> None:
    began = time.perf_counter()
    realm = await ManyGrants(tables, roles).build()
    print(f"{tables:,} tables with a grant each, a principal with {roles:,} roles, {time.perf_counter() - began:.0f} s")
    print(f"the catalog's manifest has {await realm.manifest_bytes():,} bytes")
    print(f"{'':40}{'status':>8}{'calls':>8}{'depth':>8}{'read':>12}{'answer':>12}{'CPU ms':>10}")
    new: JsonObject = {"grant": on_table("TABLE_WRITE_DATA", "db", realm.table)}
    wide: JsonObject = {"grant": on_catalog("TABLE_READ_DATA")}
    for what, name, method, target, body in (
        ("load of a table that was granted", "reader", "GET", f"{TABLES}/{realm.table}", None),
        ("the same refused: a commit", "reader", "POST", f"{TABLES}/{realm.table}", SET),
        ("load, by one role of very many", "many", "GET", f"{TABLES}/{realm.table}", None),
        ("grant", "root", "PUT", GRANTS, new),
        ("revoke", "root", "POST", GRANTS, new),
        ("list of the role's grants", "root", "GET", GRANTS, None),
        ("grant on the catalog", "root", "PUT", GRANTS, wide),
        ("revoke with cascade of all", "root", "POST", f"{GRANTS}?cascade=true", wide),
        ("drop of the role", "root", "DELETE", "catalogs/lake/catalog-roles/reader-in-lake", None),
    ):
        client = realm.client(name)
        for how in ("cold", "warm") if method == "GET" or name == "reader" else ("cold",):
            cost = await realm.cost(client, method, target, body)
            line = f"{what + ', ' + how:40}{cost.answer.status:8}{cost.store.calls:8}{cost.store.depth:8}"
            print(f"{line}{cost.store.bytes_read:12,}{len(cost.answer.body):12,}{cost.ms:10.1f}")
    print(f"the catalog's manifest has {await realm.manifest_bytes():,} bytes then")


if __name__ == "__main__":
    asyncio.run(_print(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 2_000))
