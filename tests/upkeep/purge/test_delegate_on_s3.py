"""Purges on S3 that are handed over: with credentials for the table's location alone, which expire
(docs/design/tasks.md#rule-9)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.catalogs import deployed_catalogs
from arco_catalog.operations.delegation_service_state import service_state
from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.lazy_vending import LazyVending
from arco_catalog.operations.open import build_catalog, location_of
from arco_catalog.protocol.catalog import Catalog, Settings
from arco_catalog.protocol.lookup import entries_in
from arco_catalog.state.fields import mapping
from arco_catalog.state.locations import Location
from arco_catalog.state.runtime import SystemRuntime
from arco_catalog.state.task import Status, Task
from arco_catalog.state.task_log import read_task
from arco_catalog.state.tombstone import PURGED, Tombstone
from arco_catalog.upkeep.delegation_service.places import Places
from arco_catalog.upkeep.delegation_service.service import Access, DelegationService
from arco_catalog.upkeep.purge.delegate import MARGIN_MS, Delegate
from arco_catalog.upkeep.purge.delegation_service import DelegatedTask
from arco_catalog.upkeep.purge.worker import task_worker
from storage_backends import StoreUnavailable
from storage_backends.memory import MemoryStore
from storage_backends.open import opener_in
from tests.support.fake_runtime import ShortSleeps
from tests.upkeep.purge.test_delegate import InProcess
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.s3_servers import S3Server

HOUR_MS = 3_600_000


@dataclass
class OnS3(CatalogFixture):
    """A catalog whose tables lie on S3; its storage configuration names the role for credentials. Its state is in
    memory, where the test sets the time."""

    server: S3Server | None = None
    storage: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        assert self.server is not None
        opener = opener_in(self.server.environment)
        catalog = build_catalog(self.settings, self.store, self.url, self.allowed, self.runtime, opener)
        place = Location.parse(self.allowed[0])
        self.catalog = replace(catalog, storage=dict(self.storage or {}), warehouse=place)


@dataclass
class Elsewhere(InProcess):
    """A delegation service in a store of its own, which may ask this S3. `lost`: its answers do not arrive."""

    purges: Any
    server: S3Server | None = None
    bucket: str = ""
    lost: bool = False

    def process(self) -> DelegationService:
        assert self.server is not None
        runtime = self.purges.runtime
        own = CatalogFixture(MemoryStore(now_ms=runtime.now_ms), runtime).catalog
        places = Places(
            [Location.parse(f"s3://{self.bucket}")],
            location_of("memory:///"),
            lambda: deployed_catalogs(own, "memory:///"),
        )
        ways = {"AWS_ENDPOINT_URL_S3": self.server.endpoint, "AWS_REGION": "us-east-1"}
        return DelegationService(service_state(own), Access(places, ways))

    async def submit(self, payload: JsonObject, key: str) -> DelegatedTask:
        handed = await super().submit(payload, key)
        if self.lost:
            raise StoreUnavailable("the answer was lost")
        return handed


def storage_of(server: S3Server, **more: Any) -> Mapping[str, Any]:
    return {
        "storageType": "S3",
        "roleArn": "arn:aws:iam::123456789012:role/arco",
        "region": "us-east-1",
        "endpoint": server.endpoint,
        "stsEndpoint": server.endpoint,
        "pathStyleAccess": True,
        **more,
    }


@dataclass
class World:
    ours: OnS3
    service: Elsewhere
    vending: LazyVending
    task: str

    async def run(self, *, delegate: bool = True) -> Task:
        """What a worker elsewhere does with the task."""
        catalog: Catalog = self.ours.another().catalog
        handing = Delegate(self.service, self.vending) if delegate else None
        await task_worker(catalog, delegate=handing).run_due(lambda: False)
        stored = await read_task(self.ours.session().state, self.task)
        assert stored is not None
        return stored.task

    async def files(self) -> list[str]:
        [tables] = [mount.store for mount in self.ours.catalog.mounts if mount.root.scheme == "s3"]
        return [each.key for each in (await tables.list("")).entries]

    async def tombstone(self) -> Tombstone:
        state = self.ours.another().session().state
        index = (await state.head()).index
        [found] = [Tombstone(entry) async for _, entry in entries_in(state, index, "tombstone\n")]
        return found


async def world(server: S3Server, bucket: str, **storage: Any) -> World:
    """A table that was dropped with purge, whose time to be restored has passed."""
    runtime = ShortSleeps()
    runtime.ms = SystemRuntime().now_ms() - 24 * HOUR_MS  # at the purge it is what it is to S3
    store = MemoryStore(now_ms=runtime.now_ms)
    places = (f"s3://{bucket}/wh",)
    ours = OnS3(store, runtime, Settings("wh"), places, server=server, storage=storage_of(server, **storage))
    await ours.namespace()
    await ours.table()
    await drop_table(ours.session(), NS, "t", purge=True)
    allowed = {"ARCO_VENDING_ENDPOINTS": server.endpoint}
    vending = LazyVending({**server.environment, **allowed}, runtime)
    service = Elsewhere(ours, server=server, bucket=bucket)
    made = World(ours, service, vending, "")
    made.task = str((await made.tombstone()).task)
    runtime.ms += 24 * HOUR_MS
    return made


async def test_the_service_gets_credentials_for_the_table_alone_and_they_are_not_kept(
    s3_server: S3Server, s3_bucket: str
) -> None:
    purge = await world(s3_server, s3_bucket)
    assert await purge.files()

    task = await purge.run()

    assert task.status is Status.SUCCESS, task.document
    assert await purge.files() == []
    [sent] = purge.service.payloads
    config = mapping(mapping(sent, "operation_parameters"), "config")
    assert {"s3.access-key-id", "s3.secret-access-key", "s3.session-token", "s3.endpoint"} <= set(config)
    assert config["s3.access-key-id"] != s3_server.access_key
    secret = str(config["s3.secret-access-key"])
    page = await purge.ours.store.list("")
    bodies = [await purge.ours.store.get(each.key) for each in page.entries]
    assert not [found for found in bodies if secret.encode() in getattr(found, "body", b"")]
    await purge.vending.close()


async def test_a_worker_without_the_service_waits_until_its_credentials_have_expired(
    s3_server: S3Server, s3_bucket: str
) -> None:
    purge = await world(s3_server, s3_bucket)
    purge.service.lost = True
    waits = await purge.run()
    assert waits.status is Status.RETRY_SCHEDULED
    expires_ms = mapping(waits.checkpoint, "delegated")["expires_ms"]
    assert isinstance(expires_ms, int)
    runtime = purge.service.purges.runtime
    runtime.ms += 600_000

    early = await purge.run(delegate=False)

    assert (early.status, early.next_run_ms) == (Status.RETRY_SCHEDULED, expires_ms + MARGIN_MS)
    assert (await purge.tombstone()).state != PURGED
    runtime.ms += expires_ms + 2 * MARGIN_MS - runtime.now_ms()
    assert (await purge.run(delegate=False)).status is Status.SUCCESS
    assert (await purge.tombstone()).state == PURGED
    await purge.vending.close()


@pytest.mark.parametrize("storage", [{"stsUnavailable": True}, {"roleArn": None}])
async def test_keys_that_do_not_expire_are_not_handed_over(
    s3_server: S3Server, s3_bucket: str, storage: dict[str, Any]
) -> None:
    purge = await world(s3_server, s3_bucket, **storage)
    before = await purge.files()

    task = await purge.run()

    assert (task.status, "no credentials that expire" in str(task.summary)) == (Status.FAILURE, True), task.summary
    assert (purge.service.calls, await purge.files()) == ([], before)
    assert (await purge.tombstone()).state == "dropped"
    await purge.vending.close()
