"""An app over a catalog in memory, with a fake clock."""

from dataclasses import dataclass, field, replace

from arco_catalog.http.app import create_app
from arco_catalog.http.options import HttpOptions
from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps
from arco_catalog.operations.open import build_catalog
from arco_catalog.protocol.access import ALLOW_ALL
from arco_catalog.protocol.catalog import Catalog, Session, Settings
from arco_catalog.protocol.operation_request import OperationRequest
from arco_catalog.protocol.policy import Policy
from storage_backends import ABSENT
from storage_backends.memory import MemoryStore
from tests.support.fake_runtime import FakeRuntime
from tools.support.asgi_client import Answer, Client
from tools.support.request_bodies import schema, uuid7, view_request

POLARIS_DB = "/polaris/v1/wh/namespaces/db"


@dataclass
class HttpService:
    """An app with the warehouse `wh`, and helpers that make requests to it."""

    clock: FakeRuntime = field(default_factory=FakeRuntime)
    options: HttpOptions = field(default_factory=HttpOptions)
    settings: Settings = field(default_factory=lambda: Settings("wh"))
    model_version: str = ""
    """What tests remember of the semantic model that they replace."""

    def __post_init__(self) -> None:
        self.store = MemoryStore(now_ms=self.clock.now_ms)
        self.client = self.serve()

    def serve(self, **settings: object) -> Client:
        """Another app over the same store, with other settings if given."""
        return Client(create_app({"wh": self.catalog(**settings)}, self.options))

    def serve_with(self, policy: Policy) -> Client:
        """Another app over the same store, with a policy that must allow requests."""
        return Client(create_app({"wh": self.catalog()}, self.options, policy=policy))

    def catalog(self, **settings: object) -> Catalog:
        wanted = replace(self.settings, **settings)  # type: ignore[arg-type]  # whatever the test names
        return build_catalog(wanted, self.store, "memory:///", (), self.clock)

    def session(self, source: JsonObject | None = None) -> Session:
        """A session of an operator, whose requests are from this source."""
        request = OperationRequest("POST", "", "", None, "operator", source or {}, self.clock.now_ms() + 20_000)
        return self.catalog().session(request, ALLOW_ALL)

    def key(self, age_ms: int = 0) -> str:
        """A fresh idempotency key, made a while ago."""
        return uuid7(self.clock.now_ms() - age_ms, self.clock)

    async def namespace(self, encoded: str, *levels: str) -> None:
        """Makes a namespace, whose path segment must then be `encoded`."""
        made = await self.client.post("/v1/wh/namespaces", {"namespace": [*levels]})
        assert made.status == 200, made.body
        assert (await self.client.head(f"/v1/wh/namespaces/{encoded}")).status == 204

    async def table(self, name: str, namespace: str = "db") -> Answer:
        """Makes a table."""
        made = await self.client.post(f"/v1/wh/namespaces/{namespace}/tables", {"name": name, "schema": schema("x")})
        assert made.status == 200, made.body
        return made

    async def view(self, name: str) -> Answer:
        """Makes a view in `db`."""
        made = await self.client.post("/v1/wh/namespaces/db/views", view_request(name))
        assert made.status == 200, made.body
        return made

    async def generic_table(self, name: str) -> Answer:
        """Makes a generic table in `db`."""
        made = await self.client.post(f"{POLARIS_DB}/generic-tables", {"name": name, "format": "delta"})
        assert made.status == 200, made.body
        return made

    async def semantic_model(self, name: str) -> str:
        """Makes a semantic model in `db`, and returns its version."""
        body: JsonObject = {"name": name, "document": {"version": "0.1.1", "semantic_model": "{}"}}
        made = await self.client.post(f"{POLARIS_DB}/semantic-models", body)
        assert made.status == 200, made.body
        return str(made.json["entity-version"])

    async def policy(self, name: str, *targets: JsonObject, of: str = "ours") -> Answer:
        """Makes a policy in `db`, and attaches it to these."""
        body = {"name": name, "type": of, "content": '{"enable": true}'}
        made = await self.client.post(f"{POLARIS_DB}/policies", body)
        assert made.status == 200, made.body
        for target in targets:
            attached = await self.client.put(f"{POLARIS_DB}/policies/{name}/mappings", {"target": target})
            assert attached.status == 204, attached.body
        return made

    async def keep_metadata(self, folder: str, of: str = "tables/t", **fields: JsonValue) -> str:
        """Leaves a metadata file like that of something in `db`, to be registered."""
        document = (await self.client.get(f"/v1/wh/namespaces/db/{of}")).json["metadata"]
        assert isinstance(document, dict)
        body = dumps({**document, **fields, "location": f"memory:///wh/warehouse/{folder}"})
        await self.store.put(f"wh/warehouse/{folder}/1.metadata.json", body.replace(b",", b" ,\n "), ABSENT)
        return f"memory:///wh/warehouse/{folder}/1.metadata.json"
