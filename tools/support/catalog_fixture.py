"""A catalog over one store for tests and tools, with helpers that make its calls."""

from collections.abc import Awaitable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Self

from arco_catalog.iceberg.errors import NoSuchTable
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.operations.commit import commit_table
from arco_catalog.operations.create import create_table
from arco_catalog.operations.namespaces import create_namespace
from arco_catalog.operations.open import build_catalog
from arco_catalog.planning.answers import Answer, TableState
from arco_catalog.protocol.access import ALLOW_ALL
from arco_catalog.protocol.catalog import Catalog, Session, Settings
from arco_catalog.protocol.operation_request import IdempotencyKey, OperationRequest
from arco_catalog.state.key_settings import Dialect
from arco_catalog.state.runtime import Runtime, SystemRuntime
from storage_backends import ObjectStore
from storage_backends.memory import MemoryStore
from storage_backends.wrappers.measuring import Measurement
from tools.support.request_bodies import schema, uuid7
from tools.support.wrapped_stores import CountingStore

NS = ("db",)


@dataclass
class CatalogFixture:
    """One catalog as one process serves it, for tests and tools. `another()` is another process over the same store."""

    store: ObjectStore = field(default_factory=MemoryStore)
    runtime: Runtime = field(default_factory=SystemRuntime)
    settings: Settings = field(default_factory=lambda: Settings("wh"))
    allowed: tuple[str, ...] = ()
    url: str = "memory:///"

    def __post_init__(self) -> None:
        self.catalog: Catalog = build_catalog(self.settings, self.store, self.url, self.allowed, self.runtime)

    def another(self) -> Self:
        """A second process: nothing remembered."""
        return replace(self)

    def patient(self) -> Self:
        """A second process whose requests have a day: a worker's renewals move a clock that moves by sleeping."""
        return replace(self, settings=replace(self.settings, request_ms=86_400_000))

    def key(self, age_ms: int = 0) -> str:
        """A fresh idempotency key, made a while ago."""
        return uuid7(self.runtime.now_ms() - age_ms, self.runtime)

    def session(
        self,
        body: JsonValue = None,
        *,
        key: str | None = None,
        path: str = "/",
        principal: str = "tester",
        deadline_ms: int | None = None,
    ) -> Session:
        """One request."""
        parsed = None if key is None else IdempotencyKey.parse(key, Dialect.ICEBERG)
        deadline = self.runtime.now_ms() + (self.settings.request_ms if deadline_ms is None else deadline_ms)
        source: JsonObject = {"kind": "IcebergRest", "client_info": "tests"}
        return self.catalog.session(
            OperationRequest("POST", path, "", body, principal, source, deadline, parsed), ALLOW_ALL
        )

    async def namespace(self, *levels: str) -> None:
        """Makes a namespace."""
        await create_namespace(self.session(), levels or NS, {})

    async def table(self, name: str = "t", key: str | None = None, **more: JsonValue) -> TableState:
        """Makes a table in `db`."""
        body: JsonObject = {"name": name, "schema": schema("x"), **more}
        return state(await create_table(self.session(body, key=key, path=f"/create/{name}"), NS, body))

    async def commit(self, body: JsonObject, name: str = "t", key: str | None = None) -> TableState:
        """Commits to a table in `db`."""
        return state(await commit_table(self.session(body, key=key, path=f"/commit/{name}"), NS, name, body))


class CountingFixture(CatalogFixture):
    """A catalog fixture whose store counts calls."""

    store: CountingStore

    async def cost(self, operation: Awaitable[object]) -> Measurement:
        """What an operation costs; finding no table has its price too."""
        with self.store.measure() as measured, suppress(NoSuchTable):
            await operation
        return measured


def state(answer: Answer) -> TableState:
    """The answer, which must be a table's state."""
    assert isinstance(answer, TableState)
    return answer
