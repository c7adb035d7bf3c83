"""Purges that are handed over to a delegation service (docs/design/tasks.md#rule-8)."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from arco_catalog.http.delegation_service.shapes import execution_result
from arco_catalog.iceberg.json import JsonObject, JsonValue, loads
from arco_catalog.operations.catalogs import deployed_catalogs
from arco_catalog.operations.delegation_service_state import service_state
from arco_catalog.operations.open import location_of
from arco_catalog.planning.delegation import may_be_handed_over
from arco_catalog.protocol.access import ALLOW_ALL
from arco_catalog.protocol.internal_commits import change_registry
from arco_catalog.protocol.operation_request import IdempotencyKey, OperationRequest
from arco_catalog.state.index import Index, relation_key, released_key
from arco_catalog.state.key_settings import Dialect
from arco_catalog.state.locations import Location
from arco_catalog.state.needs import Needs, Steps
from arco_catalog.state.paths import DEFAULT_REALM
from arco_catalog.state.runtime import SystemRuntime
from arco_catalog.state.task import Status, Task
from arco_catalog.state.tombstone import PURGED, PURGING, Tombstone
from arco_catalog.upkeep.delegation_service.payload import DelegatedPurge
from arco_catalog.upkeep.delegation_service.places import Places
from arco_catalog.upkeep.delegation_service.service import Access, DelegationService
from arco_catalog.upkeep.purge.delegate import Delegate, idempotency_key
from arco_catalog.upkeep.purge.delegation_service import DelegatedTask
from arco_catalog.upkeep.purge.worker import task_worker
from storage_backends import StoreDenied, StoreUnavailable
from tests.support.fake_runtime import ShortSleeps
from tests.support.table_files import append, write
from tests.upkeep.purge.conftest import Purges
from tools.support.catalog_fixture import NS

NEVER: Callable[[], Any] = lambda: pytest.fail("local files need no credentials")  # noqa: E731


@dataclass
class InProcess:
    """A delegation service beside the catalog, over the same store, called without a network. `lose` are calls that
    fail, by their numbers: before they arrive, or their answers."""

    purges: Purges
    fails: dict[int, str] = field(default_factory=dict)
    url: str = "http://127.0.0.1:8182"
    calls: list[str] = field(default_factory=list)
    payloads: list[JsonObject] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.service = self.process()

    def process(self) -> DelegationService:
        catalog = self.purges.fixture.another().catalog
        places = Places(
            [Location.parse("memory:///")], location_of("memory:///"), lambda: deployed_catalogs(catalog, "memory:///")
        )
        opens = lambda _: lambda _: self.purges.store  # noqa: E731
        return DelegationService(service_state(catalog), Access(places, opens=opens))

    async def submit(self, payload: JsonObject, key: str) -> DelegatedTask:
        self._fail("submit", "before")
        self.payloads.append(payload)
        purge, runtime = DelegatedPurge.parse(payload), self.purges.runtime
        parsed = IdempotencyKey.parse(key, Dialect.ICEBERG)
        request = OperationRequest("POST", "/tasks", "", purge.content, "arco", {}, runtime.ms + 20_000, parsed)
        task = await self.service.submit(self.service.state.session(request, ALLOW_ALL), purge, "arco")
        self._fail("submit", "after")
        return handed(task)

    async def status(self, task: str) -> DelegatedTask | None:
        self._fail("status", "before")
        ended = await self.service.ended(task)
        return handed(ended)

    def _fail(self, call: str, when: str) -> None:
        if when == "before":
            self.calls.append(call)
        if self.fails.get(len(self.calls)) == when:
            raise StoreUnavailable(f"{call} was lost {when} it was done")


def handed(task: Task) -> DelegatedTask:
    ended = {Status.SUCCESS: "COMPLETED_SUCCESS", Status.FAILURE: "FAILED_TERMINAL"}
    code = "CREDENTIALS_NEEDED" if "credentials needed" in (task.summary or "") else "TASK_FAILED"
    result = execution_result(task) if task.status is Status.SUCCESS else {}
    return DelegatedTask(task.id, ended.get(task.status, "RUNNING"), code, task.summary or "", result)


@pytest.fixture
async def purges() -> Purges:
    found = Purges(runtime=ShortSleeps())
    await found.fixture.namespace("db")
    return found


@pytest.fixture
def service(purges: Purges) -> InProcess:
    return InProcess(purges)


async def made(purges: Purges, **changes: JsonValue) -> str:
    """Makes a table with files at a location that the registry records as made for it alone. Returns the location."""
    table = await append(purges.fixture, await append(purges.fixture, await purges.table(), "a", "b"), "c")
    await marked(purges, **{"made": True, **changes})
    return str(table.metadata_location).partition("/metadata/")[0]


async def marked(purges: Purges, **changes: JsonValue) -> None:
    key = relation_key(NS, "t")

    def edit(head: Any) -> Steps[Any]:
        yield Needs(keys=[key])
        return {key: {**head.index.get(key), **changes}}

    await change_registry(purges.fixture.session(), "test", {}, edit)


async def run(purges: Purges, delegate: Delegate | None) -> None:
    """What a worker elsewhere does with what is due."""
    await task_worker(purges.fixture.another().catalog, delegate=delegate).run_due(lambda: False)


async def test_a_table_of_ours_is_purged_by_a_service_and_released_by_us(purges: Purges, service: InProcess) -> None:
    await made(purges)
    task = await purges.make_due()

    await run(purges, Delegate(service, NEVER))

    ended = await purges.task(task)
    assert ended.status is Status.SUCCESS, ended.document
    assert purges.files() == []
    assert (await purges.tombstone()).state == PURGED
    assert service.calls == ["submit", "status"]
    assert '"left_behind":0' in str(ended.document["result_extended"])
    assert '"gone":0' in str(ended.document["result_extended"])
    assert "delegated" not in ended.checkpoint


async def test_the_task_counts_what_the_service_deleted(purges: Purges, service: InProcess) -> None:
    await made(purges)
    before = len(purges.files())
    task = await purges.make_due()

    await run(purges, Delegate(service, NEVER))

    ended = await purges.task(task)
    details = loads(str(ended.document["result_extended"]).encode())
    assert isinstance(details, dict)
    assert ended.summary == f"Purged {before} files"
    assert details["files_deleted"] == before
    assert isinstance(details["bytes_deleted"], int)
    assert details["bytes_deleted"] > 0


async def test_the_task_repeats_why_the_service_failed(purges: Purges) -> None:
    await made(purges)
    task = await purges.make_due()

    class Failing(InProcess):
        async def submit(self, payload: JsonObject, key: str) -> DelegatedTask:
            return DelegatedTask("a-task", "FAILED_TERMINAL", "LOCATION_HELD", "db.other lies there, too")

    await run(purges, Delegate(Failing(purges), NEVER))

    summary = str((await purges.task(task)).summary)
    assert "task a-task" in summary
    assert "LOCATION_HELD db.other lies there, too" in summary


async def test_what_the_service_can_not_know_of_is_deleted_here(purges: Purges, service: InProcess) -> None:
    """Metadata files that left the table's log lead to nothing that the newest does."""
    place = await made(purges)
    stray = await write(purges.store, f"{place}/data/stray")
    task = await purges.make_due()

    await run(purges, Delegate(service, NEVER))

    assert (await purges.task(task)).status is Status.SUCCESS
    assert purges.files() == [stray.removeprefix("memory:///")]


@pytest.mark.parametrize(
    "settings",
    [
        {"made": False},
        {"made": "yes"},
        {"shared": True},
        {"borrowed": ["memory:///elsewhere"]},
    ],
)
async def test_what_may_not_be_handed_over_is_purged_here(
    purges: Purges, service: InProcess, settings: dict[str, JsonValue]
) -> None:
    await made(purges, **settings)
    task = await purges.make_due()

    await run(purges, Delegate(service, NEVER))

    assert (await purges.task(task)).status is Status.SUCCESS
    assert (service.calls, purges.files()) == ([], [])


async def test_the_predicate_needs_one_unclaimed_place() -> None:
    place = "memory:///wh/t"
    tombstone: JsonObject = {"entity": "E", "locations": [place], "made": True}
    index = Index({})
    shared = Index({released_key(place, "E"): {"entity": "E", "shared": True}})

    def judged(index: Index, **changes: JsonValue) -> bool:
        steps = may_be_handed_over(index, Tombstone({**tombstone, **changes}))
        try:
            while True:
                next(steps)
        except StopIteration as end:
            return bool(end.value)

    assert judged(index)
    assert not judged(shared)
    assert not judged(index, locations=[place, "memory:///elsewhere"])
    assert not judged(index, made=None)
    assert not judged(index, locations=[])


@pytest.mark.parametrize("fails", [{1: "before"}, {1: "after"}, {2: "before"}, {2: "before", 3: "before"}])
async def test_a_call_that_is_lost_is_made_again(purges: Purges, service: InProcess, fails: dict[int, str]) -> None:
    await made(purges)
    task = await purges.make_due()
    service.fails = fails

    for _ in range(3):
        await run(purges, Delegate(service, NEVER))
        purges.runtime.ms += 3_600_000

    ended = await purges.task(task)
    assert (ended.status, purges.files()) == (Status.SUCCESS, [])
    identities = {str(payload["operation_parameters"]["table_identity"]) for payload in service.payloads}  # type: ignore[index, call-overload]
    assert len(identities) == 1


async def test_nothing_is_released_before_the_end_of_a_service_is_known(purges: Purges, service: InProcess) -> None:
    """A worker that can't ask the service does not go on in its place."""
    await made(purges)
    task = await purges.make_due()
    service.fails = {1: "after"}
    await run(purges, Delegate(service, NEVER))
    left = purges.files()
    purges.runtime.ms += 3_600_000

    await run(purges, None)

    ended = await purges.task(task)
    assert (ended.status, "was handed over" in str(ended.summary)) == (Status.FAILURE, True), ended.document
    assert (await purges.tombstone()).state == PURGING
    assert set(purges.files()) <= set(left)


async def test_a_service_that_refuses_is_retried_and_then_given_up(purges: Purges, service: InProcess) -> None:
    await made(purges)
    task = await purges.make_due()
    before = purges.files()

    class Refusing(InProcess):
        async def submit(self, payload: JsonObject, key: str) -> DelegatedTask:
            raise StoreDenied("the delegation service answered status 403: FORBIDDEN")

    for _ in range(12):
        await run(purges, Delegate(Refusing(purges), NEVER))
        purges.runtime.ms += 3_600_000

    ended = await purges.task(task)
    assert (ended.status, "403" in str(ended.summary)) == (Status.FAILURE, True)
    assert purges.files() == before
    assert (await purges.tombstone()).state == PURGING


@pytest.mark.parametrize("code", ["TASK_FAILED", "CREDENTIALS_NEEDED"])
async def test_a_service_that_fails_each_time_is_left_in_the_end(purges: Purges, service: InProcess, code: str) -> None:
    """Each call of the service is recorded, which is no progress of the purge (docs/design/tasks.md#rule-6)."""
    await made(purges)
    task = await purges.make_due()
    before = purges.files()

    class Failing(InProcess):
        async def submit(self, payload: JsonObject, key: str) -> DelegatedTask:
            return DelegatedTask("a-task", "FAILED_TERMINAL", code, "its disk is on fire")

    for _ in range(12):
        await run(purges, Delegate(Failing(purges), NEVER))
        purges.runtime.ms += 3_600_000

    ended = await purges.task(task)
    assert (ended.status, purges.files()) == (Status.FAILURE, before)
    assert (await purges.tombstone()).state == PURGING


def test_keys_are_version_7_uuids_of_now() -> None:
    runtime = SystemRuntime()
    keys = {idempotency_key(runtime) for _ in range(100)}

    assert len(keys) == 100
    for key in keys:
        parsed = IdempotencyKey.parse(key, Dialect.ICEBERG)
        assert parsed.refusal(runtime.now_ms()) is None


async def test_the_service_learns_the_name_of_the_realm(purges: Purges, service: InProcess) -> None:
    await made(purges)
    await purges.make_due()
    await run(purges, Delegate(service, NEVER))
    [payload] = service.payloads
    common = payload["common_payload"]
    assert isinstance(common, dict)
    assert common["realm_identifier"] == DEFAULT_REALM
