"""A catalog of a realm with something of every kind in it, for tests of what callers may do to it."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.catalogs import catalogs_of_realm
from arco_catalog.protocol.access import ALLOW_ALL
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.operation_request import OperationRequest
from tests.support.feeding import feed
from tests.support.realm_service import RealmApp, on_catalog, table_request
from tools.support.asgi_client import Answer, Client
from tools.support.request_bodies import view_request

NAMESPACES = "/v1/lake/namespaces"
DB = f"{NAMESPACES}/db"
T = f"{DB}/tables/t"

POLARIS_DB = "/polaris/v1/lake/namespaces/db"
ATTACHED: Sequence[JsonObject] = (
    {"type": "catalog"},
    {"type": "namespace", "path": ["db"]},
    {"type": "table-like", "path": ["db", "t"]},
)
"""What the policy `q` is attached to."""
MODEL: JsonObject = {"version": "0.1.1", "semantic_model": "{}"}

DENIALS = {
    "NotAuthorizedException",
    "NoSuchWarehouseException",
    "NoSuchNamespaceException",
    "NoSuchTableException",
    "NoSuchViewException",
    "NoSuchPolicyException",
    "NoSuchSemanticModelException",
}


@dataclass
class Lake:
    """`db` with the tables `t` and `u`, the view `v`, the generic table `g`, the semantic model `m` and the policies
    `p` and `q`, an empty namespace `other`, and two metadata files that no table or view has."""

    app: RealmApp = field(default_factory=RealmApp)
    table_file: str = ""
    view_file: str = ""
    model_version: str = ""

    async def start(self) -> "Lake":
        """Makes all of it, as a principal that may."""
        await self.app.start()
        await self.app.catalog()
        self.manager = await self.app.principal("manager", on_catalog("CATALOG_MANAGE_CONTENT"))
        for name in ("db", "other"):
            await self.ok(await self.manager.post(NAMESPACES, {"namespace": [name]}))
        for name in ("v", "gone"):
            made = await self.ok(await self.manager.post(f"{DB}/views", view_request(name)))
            self.view_file = str(made["metadata-location"])
        await self.ok(await self.manager.delete(f"{DB}/views/gone"))
        for name in ("t", "u", "gone"):
            made = await self.ok(await self.manager.post(f"{DB}/tables", table_request(name)))
            self.table_file = str(made["metadata-location"])
        await self.ok(await self.manager.post(f"{DB}/tables/gone/unregister", {}))
        await self.ok(await self.manager.post(f"{POLARIS_DB}/generic-tables", {"name": "g", "format": "delta"}))
        model: JsonObject = {"name": "m", "document": MODEL}
        made = await self.ok(await self.manager.post(f"{POLARIS_DB}/semantic-models", model))
        self.model_version = str(made["entity-version"])
        for name, kind in (("p", "system.data-compaction"), ("q", "ours")):
            policy: JsonObject = {"name": name, "type": kind, "content": '{"enable": true}'}
            await self.ok(await self.manager.post(f"{POLARIS_DB}/policies", policy))
        mappings = f"{POLARIS_DB}/policies/q/mappings"
        for target in ATTACHED:
            await self.ok(await self.manager.put(mappings, {"target": target}))
        await self.enter()
        return self

    async def enter(self) -> None:
        """Enters the changes of all catalogs into their event feeds, which begin with the first call."""
        for session in await self.sessions():
            await feed(session)

    async def sessions(self) -> Sequence[Session]:
        """A session of an operator with each catalog."""
        request = OperationRequest("POST", "", "", None, "operator", {}, self.app.clock.now_ms() + 20_000)
        return [
            deployed.open().session(request, ALLOW_ALL)
            for realm in self.app.realms().values()
            for deployed in await catalogs_of_realm(realm) or ()
        ]

    def copy(self) -> "Lake":
        """A copy in a store of its own, over a server with empty caches."""
        made = replace(self, app=self.app.copy())
        made.manager = made.app.client("manager")
        return made

    async def ok(self, answer: Answer) -> JsonObject:
        """What was answered, which must be a success."""
        assert answer.status < 300, answer.body
        return answer.json if answer.body else {}


def is_denied(answer: Answer) -> bool:
    """Whether the answer denies the request, or denies that the object exists."""
    if answer.status in (403, 404) and not answer.body:
        return True
    return answer.status in (403, 404) and answer.error_type in DENIALS


async def send(client: Client, method: str, target: str, body: JsonObject | None) -> Answer:
    """A request of any method."""
    match method:
        case "POST":
            return await client.post(target, body or {})
        case "GET":
            return await client.get(target)
        case "PUT":
            return await client.put(target, body or {})
        case "HEAD":
            return await client.head(target)
        case _:
            return await client.delete(target)
