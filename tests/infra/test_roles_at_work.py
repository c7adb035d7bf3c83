"""What functions do, under the policies that the plan gives them: each call is judged as S3 judges it."""

from collections.abc import Sequence

import pytest

from arco_catalog.iceberg.json import loads
from arco_catalog.operations.catalogs import Owner, take_inventory
from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.load import load_table
from arco_catalog.planning.collection import Kind
from arco_catalog.planning.upkeep_policy import SnapshotExpiry
from arco_catalog.planning.upkeep_settings import DAY_MS, PurgeSettings
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state.bell import Bell
from arco_catalog.state.paths import SERVICE
from arco_catalog.state.task import Status, Task
from arco_catalog.state.task_log import all_hints, list_tasks, read_task
from arco_catalog.upkeep.collection.collect import collect, collect_all
from arco_catalog.upkeep.expiry.executor import FILES_AGE_MS
from arco_catalog.upkeep.expiry.requests import request_expiry
from arco_catalog.upkeep.fsck.check import check
from arco_catalog.upkeep.fsck.codes import Code
from arco_catalog.upkeep.fsck.examination import Examination
from arco_catalog.upkeep.fsck.files import Scope
from arco_catalog.upkeep.purge.worker import task_worker
from arco_catalog.upkeep.reconcile import reconcile_one
from storage_backends import ABSENT, Missing, StoreDenied
from tests.infra.evaluation import Policies, Request
from tests.infra.judged_store import Allows, JudgedStore
from tests.infra.policies import Statement, of_bucket, statements
from tests.infra.terraform import Plan
from tests.support.fake_runtime import FakeRuntime
from tests.support.realm_service import RealmApp
from tests.support.table_files import append, key_of
from tests.upkeep.fsck.conftest import tell_lengths
from tools.support.catalog_fixture import NS, CatalogFixture

BUCKET = "lake-123456789012-us-east-1"
SETTINGS = Settings("main", purge=PurgeSettings(undrop_window_ms=0))
MINUTE_MS = 60_000
EVERYTHING = Statement("engine", "", "Allow", ("*",), ("*",), {})


class Bucket:
    """The bucket of a deployment, and who calls."""

    def __init__(self, plan: Plan, deployment: str) -> None:
        self.plan = plan
        self.deployment = deployment
        self.runtime = FakeRuntime()
        self.store = JudgedStore(self.runtime.now_ms)
        self.policy = of_bucket(plan.deployment(deployment))

    def acting_as(self, name: str) -> CatalogFixture:
        """The catalog, as a function finds it that was just started."""
        return self._acting_as(f'aws_iam_role_policy.function["{name}"]', name)

    def acting_as_job(self, name: str) -> CatalogFixture:
        """The catalog, as a job on Spark finds it that works on the store alone."""
        return self._acting_as(f"aws_iam_role_policy.spark_{name}[0]", f"pipeline-{name}")

    def maintaining(self) -> CatalogFixture:
        """The catalog, as the job `maintain` finds it."""
        return self._acting_as("aws_iam_role_policy.pipeline[0]", "pipeline")

    def _acting_as(self, address: str, role: str) -> CatalogFixture:
        found = next(each for each in self.plan.deployment(self.deployment) if each.address == address)
        own = statements(address, found.values["policy"])
        self.store.allows = self._judge(f"arn:aws:iam::123456789012:role/lake-{role}", own)
        return self._fixture()

    def as_an_engine(self) -> CatalogFixture:
        """Whoever writes data, by rights that are no matter of these tests."""
        self.store.allows = lambda action, key, prefix: True
        return self._fixture()

    def _fixture(self) -> CatalogFixture:
        return CatalogFixture(self.store, self.runtime, SETTINGS)

    def _judge(self, principal: str, own: Sequence[Statement]) -> Allows:
        policies = Policies(own, self.policy)

        def allows(action: str, key: str, prefix: str | None) -> bool:
            context = {} if prefix is None else {"s3:prefix": prefix}
            resource = f"arn:aws:s3:::{BUCKET}/{key}" if key else f"arn:aws:s3:::{BUCKET}"
            return policies.allow(Request(principal, action, resource, context))

        return allows

    async def dropped_table(self) -> None:
        """A table with two snapshots, made and dropped by the API, filled by an engine; and a neighbour that stays."""
        api = self.acting_as("api")
        await api.namespace("db")
        made = await api.table("t", None)
        await api.table("neighbour", None)
        engine = self.as_an_engine()
        for number in range(2):
            made = await append(engine, made, f"{number}-a.parquet", f"{number}-b.parquet")
        await drop_table(self.acting_as("api").session(), NS, "t", purge=True)

    def files(self) -> list[str]:
        """What lies in the table's folder."""
        return [key for key in self.store.keys("main/warehouse/") if "/t-" in key]

    async def task(self) -> Task:
        state = self.as_an_engine().session().state
        [task] = await list_tasks(state)
        stored = await read_task(state, task)
        assert stored is not None
        return stored.task


@pytest.fixture(params=["fresh", "signed"])
async def bucket(plan: Plan, request: pytest.FixtureRequest) -> Bucket:
    made = Bucket(plan, request.param)
    await made.dropped_table()
    assert len(made.files()) > 8
    return made


async def test_the_worker_purges_a_table_to_the_last_byte_and_removes_the_hint(bucket: Bucket) -> None:
    worker = bucket.acting_as("work")
    neighbours = [key for key in bucket.store.keys("main/warehouse/") if "/neighbour-" in key]

    assert await task_worker(worker.catalog).run_until_idle() == 1

    assert bucket.files() == []
    assert (await bucket.task()).status is Status.SUCCESS
    assert [hint async for hint in all_hints(bucket.as_an_engine().session().state)] == []
    assert [key for key in bucket.store.keys("main/warehouse/") if "/neighbour-" in key] == neighbours


@pytest.mark.parametrize("name", ["api", "reconcile", "collect"])
async def test_no_other_function_could_purge_it(bucket: Bucket, name: str) -> None:
    files = bucket.files()
    stranger = bucket.acting_as(name)

    assert await task_worker(stranger.catalog).run_due(lambda: False) == 1

    assert bucket.files() == files
    task = await bucket.task()
    assert task.status is Status.RETRY_SCHEDULED
    assert "not allowed: s3:" in str(task.summary)


async def test_the_worker_expires_snapshots_and_deletes_their_files_two_days_later(bucket: Bucket) -> None:
    engine = bucket.as_an_engine()
    table = await engine.table("u", None)
    document = loads(table.metadata)
    assert isinstance(document, dict)
    place = key_of(str(document["location"]))
    for number in range(2):
        table = await append(engine, table, f"{number}.parquet", name="u")
        bucket.runtime.ms += DAY_MS
    await request_expiry(bucket.acting_as("api").session(), NS, "u", SnapshotExpiry(max_age_ms=1, min_to_keep=1))

    await task_worker(bucket.acting_as("work").catalog).run_until_idle()
    assert data_files(bucket, place) == ["0.parquet", "1.parquet"]
    bucket.runtime.ms += FILES_AGE_MS + MINUTE_MS
    await task_worker(bucket.acting_as("work").catalog).run_until_idle()

    assert data_files(bucket, place) == ["1.parquet"]
    found = await load_table(bucket.as_an_engine().session(), NS, "u")
    assert found.metadata.count(b'"manifest-list"') == 1


def data_files(bucket: Bucket, place: str) -> list[str]:
    return sorted(key.rpartition("/")[2] for key in bucket.store.keys(f"{place}/data/"))


@pytest.mark.parametrize("deployment", ["fresh", "signed"])
async def test_the_api_replaces_the_bell_and_deletes_proposals(plan: Plan, deployment: str) -> None:
    state = Bucket(plan, deployment).acting_as("api").session().state
    proposal = state.paths.proposal("01J", 1)

    rung = await state.ring(Bell())
    again = await state.ring(rung)
    await state.create(proposal, b"{}")
    deleted = await state.store.delete_many([proposal])

    assert again.id not in (None, rung.id)
    assert deleted.left == {}
    assert isinstance(await state.store.get(proposal), Missing)


@pytest.mark.parametrize("job", [False, True], ids=["function", "job"])
async def test_collection_goes_over_realms_and_the_delegation_service(plan: Plan, *, job: bool) -> None:
    bucket = Bucket(plan, "signed")
    bucket.as_an_engine()
    realm = await RealmApp(store=bucket.store, clock=bucket.runtime).start()
    for name in ("ada", "grace"):
        await realm.principal(name)
    hint = SERVICE.open_task("00000000-0000-4000-8000-000000000001", 0)
    await bucket.store.put(hint, b"", ABSENT)
    bucket.runtime.ms += 100 * DAY_MS
    collector = bucket.acting_as_job("collect") if job else bucket.acting_as("collect")
    inventory = await take_inventory(collector.catalog, "memory:///")
    request = collector.session(deadline_ms=DAY_MS).request

    found = collect_all(inventory, request, bucket.runtime, lambda session: collect(session, delete=True))
    counts = {each.owner: {*stats.kinds} async for each, stats in found}

    assert counts == {Owner.REALM: {Kind.REGISTRY_COMMIT}, Owner.SERVICE: {Kind.HINT}}


async def test_the_job_that_checks_reads_all_that_there_is(plan: Plan) -> None:
    bucket = Bucket(plan, "signed")
    engine = bucket.as_an_engine()
    await engine.namespace("db")
    await append(engine, await engine.table("t", None), "a.parquet", "b.parquet")
    await tell_lengths(bucket.store, "main/warehouse/")
    lost = next(key for key in bucket.store.keys("main/warehouse/") if key.endswith("/a.parquet"))
    await bucket.store.delete(lost)
    bucket.runtime.ms += DAY_MS

    session = bucket.acting_as_job("fsck").session(deadline_ms=DAY_MS)
    found = [finding.code async for finding in check(Examination(session), Scope())]

    assert found == [Code.DATA_FILE_MISSING]


async def test_the_job_that_maintains_writes_missing_receipts_before_it_removes_orphan_files(plan: Plan) -> None:
    bucket = Bucket(plan, "signed")
    engine = bucket.as_an_engine()
    await engine.namespace("db")
    table = await append(engine, await engine.table("t", None), "a.parquet")
    receipts = [key for key in bucket.store.keys("main/_catalog/events/") if "/committed/" in key]
    for receipt in receipts:
        await bucket.store.delete(receipt)
    bucket.runtime.ms += DAY_MS

    walk = await reconcile_one(bucket.maintaining().session(), table.entity)

    assert (walk.unreadable, walk.incomplete, walk.written) == ([], 0, len(receipts))
    assert [key for key in bucket.store.keys("main/_catalog/events/") if "/committed/" in key] == receipts


async def test_a_worker_that_may_delete_nothing_fails_and_loses_nothing(bucket: Bucket) -> None:
    """So the store of these tests does judge deletes."""
    worker = bucket.acting_as("work")
    allows, files = bucket.store.allows, bucket.files()
    bucket.store.allows = lambda action, key, prefix: action != "s3:DeleteObject" and allows(action, key, prefix)

    await task_worker(worker.catalog).run_due(lambda: False)

    assert bucket.files() == files
    with pytest.raises(StoreDenied):
        await bucket.store.delete(files[0])
