from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from arco_catalog.operations.catalogs import deployed_catalogs
from arco_catalog.operations.delegation_service_state import service_state
from arco_catalog.operations.open import build_catalog, location_of
from arco_catalog.protocol.access import ALLOW_ALL
from arco_catalog.protocol.catalog import Session, Settings
from arco_catalog.protocol.operation_request import IdempotencyKey, OperationRequest
from arco_catalog.state.key_settings import Dialect
from arco_catalog.state.locations import Location
from arco_catalog.state.memory import MAX_METADATA_BYTES
from arco_catalog.state.task import Task
from arco_catalog.tasks.retry import RetryPolicy, TaskPolicies
from arco_catalog.upkeep.delegation_service.payload import DelegatedPurge
from arco_catalog.upkeep.delegation_service.places import Places
from arco_catalog.upkeep.delegation_service.service import Access, DelegationService
from arco_catalog.upkeep.delegation_service.storage import Opens
from storage_backends.memory import MemoryStore
from storage_backends.open import opener_in
from tests.support.fake_runtime import ShortSleeps
from tests.support.foreign_tables import ForeignTable, foreign_table
from tools.support.catalog_fixture import CatalogFixture
from tools.support.request_bodies import uuid7


@dataclass
class _WithFiles(CatalogFixture):
    """A catalog whose tables may lie on local files."""

    def __post_init__(self) -> None:
        self.catalog = build_catalog(self.settings, self.store, self.url, self.allowed, self.runtime, opener_in({}))


@dataclass
class Services:
    """Processes of one delegation service, whose store holds a catalog too, and the folder where others' tables may
    be."""

    folder: Path
    runtime: ShortSleeps = field(default_factory=ShortSleeps)
    allowed: Sequence[str] | None = None
    max_metadata: int = MAX_METADATA_BYTES
    """Bytes of a metadata file."""
    new_store: Callable[[Callable[[], int]], MemoryStore] = MemoryStore
    """Makes the service's store, with its clock."""

    def __post_init__(self) -> None:
        self.store = self.new_store(self.runtime.now_ms)
        settings = Settings("wh", max_metadata_bytes=self.max_metadata)
        self.ours = _WithFiles(self.store, self.runtime, settings, allowed=(f"file:{self.folder}",))
        self.service = self.process()

    def process(self) -> DelegationService:
        """Another process."""
        policies = TaskPolicies(default=RetryPolicy(2), by_type={})
        return DelegationService(service_state(self.ours.another().catalog), self.access(), policies)

    def access(self, allowed: Sequence[str] | None = None, opens: Opens = opener_in) -> Access:
        """What the operator lets it do."""
        catalog = self.ours.another().catalog
        usual = [f"file:{self.folder}"] if self.allowed is None else self.allowed
        places = Places(
            [Location.parse(each) for each in (usual if allowed is None else allowed)],
            location_of("memory:///"),
            lambda: deployed_catalogs(catalog, "memory:///"),
        )
        return Access(places, opens=opens)

    def session(self, purge: DelegatedPurge, key: str | None = None, principal: str = "them") -> Session:
        parsed = None if key is None else IdempotencyKey.parse(key, Dialect.ICEBERG)
        deadline_ms = self.runtime.now_ms() + 20_000
        request = OperationRequest("POST", "/tasks", "", purge.content, principal, {}, deadline_ms, parsed)
        return self.service.state.session(request, ALLOW_ALL)

    def key(self) -> str:
        return uuid7(self.runtime.now_ms(), self.runtime)

    async def submit(
        self,
        table: ForeignTable,
        *,
        service: DelegationService | None = None,
        key: str | None = None,
        caller: str = "them",
    ) -> Task:
        purge = DelegatedPurge.parse(table.payload())
        return await (service or self.service).submit(self.session(purge, key, caller), purge, caller)

    async def purge(self, table: ForeignTable) -> Task:
        """Submits a table, and waits for the end."""
        return await self.service.ended((await self.submit(table)).id)


@pytest.fixture
def services(tmp_path: Path) -> Services:
    return Services(tmp_path)


@pytest.fixture
def table(tmp_path: Path) -> ForeignTable:
    return foreign_table(tmp_path)
