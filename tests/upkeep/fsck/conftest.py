"""A catalog with something of everything, to be damaged."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from io import BytesIO

import fastavro
import pytest

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.create import create_view
from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.generic_tables import GenericTable, create_generic_table, drop_generic_table
from arco_catalog.operations.namespaces import update_properties
from arco_catalog.operations.policies.attachments import attach_policy
from arco_catalog.operations.policies.policies import PolicyText, create_policy
from arco_catalog.operations.register import register_table
from arco_catalog.operations.semantic_models import create_semantic_model
from arco_catalog.operations.transaction import commit_transaction
from arco_catalog.planning.access import Securable
from arco_catalog.planning.answers import TableState
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state.spilling import Limits
from arco_catalog.tasks.retry import TaskPolicies
from arco_catalog.upkeep.fsck.check import check
from arco_catalog.upkeep.fsck.codes import Code
from arco_catalog.upkeep.fsck.examination import Examination
from arco_catalog.upkeep.fsck.findings import Finding
from arco_catalog.upkeep.purge.worker import task_worker
from arco_catalog.upkeep.reconcile import reconcile
from storage_backends import ABSENT, ANY, Deleted, Found, Outcome, StoreUnavailable, When
from storage_backends.memory import MemoryStore
from tests.operations.test_undrop import appended
from tests.support.fake_runtime import FakeRuntime
from tests.support.followed import follow
from tests.support.table_files import append, key_of, write
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.manifests import LIST_SCHEMA, avro
from tools.support.request_bodies import set_property, view_request

HOUR_MS = 60 * 60_000
DAY_MS = 24 * HOUR_MS
STATE = "wh/_catalog/"
LIST = "wh/warehouse/lists/snap-1.avro"
MODEL: JsonObject = {"version": "0.1.1", "semantic_model": '{"datasets": [{"source": "db.t"}]}'}


@dataclass
class StoredCatalog:
    """A catalog with something of everything, an hour after its last request, and all bodies that its objects had."""

    fixture: CatalogFixture
    bodies: dict[str, list[bytes]]

    @property
    def store(self) -> MemoryStore:
        assert isinstance(self.fixture.store, MemoryStore)
        return self.fixture.store

    async def found(self) -> list[Finding]:
        """What a check by another process finds."""
        return [finding async for finding in check(Examination(self.fixture.another().session()))]

    async def mend(self) -> set[Code]:
        """Carries out the repairs of all findings. Returns what was mended."""
        mended = set()
        for finding in await self.found():
            if finding.repair is not None and await finding.repair(self.fixture.another().session()):
                mended.add(finding.code)
        return mended

    async def codes(self) -> set[Code]:
        """The codes of that."""
        return {finding.code for finding in await self.found()}

    def keys(self, folder: str) -> Sequence[str]:
        """The keys in a folder of the state, in order."""
        return self.store.keys(STATE + folder)

    async def body(self, key: str) -> bytes:
        """An object's bytes."""
        found = await self.store.get(key)
        assert isinstance(found, Found)
        return found.body

    async def put(self, key: str, body: bytes) -> None:
        """Overwrites an object, whatever it was."""
        await self.store.put(key, body, ANY)

    async def cut(self, key: str) -> None:
        """Leaves half of an object."""
        body = await self.body(key)
        await self.put(key, body[: len(body) // 2])

    async def swap(self, one: str, other: str) -> None:
        """Puts one object's bytes in another's place."""
        assert one != other
        await self.put(one, await self.body(other))


class Remembering(MemoryStore):
    """A store that keeps every body that it ever held. While it is `stuck` no file can be deleted."""

    def __init__(self, clock: FakeRuntime) -> None:
        super().__init__(now_ms=clock.now_ms)
        self.bodies: dict[str, list[bytes]] = {}
        self.stuck = False

    async def put(self, key: str, body: bytes, when: When) -> Outcome:
        outcome = await super().put(key, body, when)
        self.bodies.setdefault(key, []).append(body)
        return outcome

    async def delete(self, key: str, when: When = ANY) -> Outcome:
        if self.stuck and key.startswith("wh/warehouse/"):
            raise StoreUnavailable("stuck")
        return await super().delete(key, when)

    async def delete_many(self, keys: Sequence[str]) -> Deleted:
        if self.stuck:
            raise StoreUnavailable("stuck")
        return await super().delete_many(keys)


@pytest.fixture
async def stored() -> StoredCatalog:
    """Tables that were committed to under keys, and by a transaction; a view, a table that was registered, dropped
    ones; a spilled index, receipts and checkpoints."""
    clock = FakeRuntime()
    settings = replace(Settings("wh"), spill=Limits(embedded=2_000, segment=1_500, least=300))
    store = Remembering(clock)
    made = CatalogFixture(store, clock, settings)
    await made.namespace("db")
    await made.namespace("db", "inner")
    await update_properties(made.session(), NS, [], {"owner": "ada"})
    await store.put(LIST, b"list", ABSENT)
    for name in ("t", "u", "gone"):
        await made.table(name, key=made.key())
        for place in range(3):
            clock.ms += 1_000
            await made.commit(set_property("p", str(place)), name, key=made.key())
    await made.commit(appended(f"memory:///{LIST}"))
    changes = [(NS, name, set_property("q", name)) for name in ("t", "u")]
    await commit_transaction(made.session({}, key=made.key(), path="/transactions"), changes)
    await create_view(made.session(view_request(), path="/views"), NS, view_request())
    last = await made.commit(set_property("p", "last"), "u")
    await drop_table(made.session(path="/drop/u"), NS, "u", purge=False)
    await register_table(made.session(path="/register"), NS, "r", last.metadata_location, overwrite=False)
    await drop_table(made.session(path="/drop/gone"), NS, "gone", purge=False)
    for name, folder in (("generic", "one"), ("generic-gone", "two")):
        generic_table = GenericTable(name, "delta", f"memory:///wh/warehouse/generic/{folder}", "what it is", {})
        await create_generic_table(made.session(path=f"/generic/{name}"), NS, generic_table)
    await drop_generic_table(made.session(path="/drop/generic"), NS, "generic-gone")
    await follow(made, last)
    await follow(made, last, "followed-once", dropped=True)
    await create_semantic_model(made.session(path="/models"), NS, "model", MODEL)
    await create_policy(made.session(path="/policies"), NS, "p", "ours", PolicyText("why", "anything"))
    await attach_policy(made.session(path="/mappings"), NS, "p", Securable(NS), {})
    await made.table("newest", key=made.key())
    await made.table("unkeyed")
    await reconcile(made.session())
    clock.ms += HOUR_MS
    return StoredCatalog(made, store.bodies)


async def tell_lengths(store: MemoryStore, warehouse: str = "wh/warehouse/") -> None:
    """Makes each manifest list say how long its manifests are."""
    for key in [key for key in store.keys(warehouse) if "/snap-" in key]:
        found = await store.get(key)
        assert isinstance(found, Found)
        records = list(fastavro.reader(BytesIO(found.body)))
        for record in records:
            assert isinstance(record, dict)
            manifest = await store.get(key_of(str(record["manifest_path"])))
            record["manifest_length"] = len(manifest.body) if isinstance(manifest, Found) else 0
        await store.put(key, avro(LIST_SCHEMA, records), ANY)
        if isinstance(store, Remembering):
            del store.bodies[key][:-1]


@pytest.fixture
async def busy() -> StoredCatalog:
    """A little catalog in which all that there is has happened: tables with files and statistics, transactions,
    registrations, drops; purges that wait, that are half done, that failed and that succeeded; a walk; an index that is
    spilled. An hour after all of it."""
    clock = FakeRuntime()
    settings = replace(
        Settings("wh"), spill=Limits(embedded=2_000, segment=1_500, least=300), allow_location_overlap=True
    )
    store = Remembering(clock)
    made = CatalogFixture(store, clock, settings)
    policies = TaskPolicies.parse({"delegation.retry.TABLE_PURGE.max-attempts": "1000"})
    await made.namespace("db")
    await made.namespace("db", "inner")
    await update_properties(made.session(), NS, [], {"owner": "ada"})
    for name in ("purged", "half", "shared"):
        location = {"location": "memory:///wh/warehouse/place"} if name == "shared" else {}
        await append(made, await made.table(name, key=made.key(), **location), f"{name}.parquet", name=name)
    await made.table("holder", location="memory:///wh/warehouse/place/inner")
    for name in ("purged", "shared"):
        await drop_table(made.session(path=f"/drop/{name}"), NS, name, purge=True)
    clock.ms += DAY_MS + HOUR_MS
    await task_worker(made.another().catalog).run_due(lambda: False)
    await drop_table(made.session(path="/drop/half"), NS, "half", purge=True)
    clock.ms += DAY_MS + HOUR_MS
    store.stuck = True
    await task_worker(made.another().catalog, policies).run_due(lambda: False)
    store.stuck = False
    await append(made, await made.table("waiting", key=made.key()), "waiting.parquet", name="waiting")
    await drop_table(made.session(path="/drop/waiting", key=made.key()), NS, "waiting", purge=True)
    for name in ("t", "u"):
        state = await append(made, await made.table(name, key=made.key()), f"{name}-a", f"{name}-b", name=name)
        state = await append(made, state, f"{name}-c", name=name)
        await made.commit(statistics(await write_statistics(store, state)), name)
        await made.commit(set_property("p", "1"), name, key=made.key())
        clock.ms += 1_000
    await reconcile(made.session())
    for value in ("1", "2"):
        changes = [(NS, name, set_property("q", value)) for name in ("t", "u")]
        await commit_transaction(made.session({}, key=made.key(), path=f"/transactions/{value}"), changes)
    await create_view(made.session(view_request(), path="/views"), NS, view_request())
    for name in ("was", "old"):
        await made.table(name)
        last = await made.commit(set_property("p", "last"), name)
        await drop_table(made.session(path=f"/drop/{name}"), NS, name, purge=False)
        await register_table(
            made.session(path=f"/register/{name}"), NS, f"{name}-again", last.metadata_location, overwrite=False
        )
    await update_properties(made.another().session(), NS, [], {"owner": "grace"})
    await update_properties(
        made.session(), NS, [], {"owner": "joan"}
    )  # plans on the HEAD before that, in vain at first
    await tell_lengths(store)
    await reconcile(made.session())
    clock.ms += HOUR_MS
    return StoredCatalog(made, store.bodies)


async def write_statistics(store: MemoryStore, state: TableState) -> str:
    """A statistics file beside a table's metadata."""
    return await write(store, f"{state.metadata_location.rpartition('/')[0]}/stats.puffin")


def statistics(path: str) -> JsonObject:
    """A commit that adds a statistics file of ten bytes."""
    entry: JsonObject = {
        "snapshot-id": 2,
        "statistics-path": path,
        "file-size-in-bytes": 10,
        "file-footer-size-in-bytes": 4,
        "blob-metadata": [],
    }
    return {"requirements": [], "updates": [{"action": "set-statistics", "snapshot-id": 2, "statistics": entry}]}
