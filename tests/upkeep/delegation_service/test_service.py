"""The delegation service: tables of another catalog, purged with what came with the request."""

import asyncio
import json
from collections.abc import Sequence

import pytest

from arco_catalog.iceberg.errors import BadRequest, TooManyRequests
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.task import Status
from arco_catalog.tasks.retry import RetryPolicy, TaskPolicies
from arco_catalog.upkeep.delegation_service.payload import DelegatedPurge
from arco_catalog.upkeep.delegation_service.service import DelegationService
from storage_backends import Deleted, Found, Missing, StoreDenied
from storage_backends.local.config import LocalConfig
from storage_backends.local.store import LocalStore
from storage_backends.memory import MemoryStore
from tests.support.foreign_tables import ForeignTable, foreign_table
from tests.upkeep.delegation_service.conftest import Services

HOUR_MS = 3_600_000
ONCE = TaskPolicies(default=RetryPolicy(max_attempts=1), by_type={})


def purge_of(table: ForeignTable) -> DelegatedPurge:
    return DelegatedPurge.parse(table.payload())


async def test_a_table_of_another_catalog_is_gone_to_the_last_byte(services: Services, table: ForeignTable) -> None:
    neighbour = foreign_table(services.folder, "neighbour")
    kept = neighbour.files()
    before = len(table.files())

    task = await services.purge(table)

    assert task.status is Status.SUCCESS, task.document
    assert table.files() == []
    assert neighbour.files() == kept
    assert task.summary == f"Purged {before} files"


async def test_what_went_with_its_process_needs_credentials_and_then_goes_on(services: Services) -> None:
    """The process dies when all data is deleted; another one finds the task, and has nothing to go on with."""
    table = foreign_table(services.folder, appends=4)
    count, stuck = len(table.files()), asyncio.Event()

    class Stopping(LocalStore):
        async def delete_many(self, keys: Sequence[str]) -> Deleted:
            if any(key.endswith(".avro") for key in keys):
                stuck.set()
                await asyncio.Event().wait()
            return await super().delete_many(keys)

    stops = lambda _: lambda _: Stopping(str(services.folder), config=LocalConfig())  # noqa: E731
    dying = DelegationService(services.service.state, services.access(opens=stops))
    task = await services.submit(table, service=dying)
    await asyncio.wait_for(stuck.wait(), timeout=60)
    await dying.close()
    left = table.files()
    assert left
    assert not [file for file in left if file.startswith("data/")]
    services.runtime.ms += HOUR_MS
    another = services.process()

    await another.sweep_once()

    found = await another.find(services.session(purge_of(table)), task.id, "them")
    assert (found.task.status, found.task.summary) == (
        Status.FAILURE,
        "credentials needed: the process that had those of this task has ended. Submit the task again",
    )
    assert table.files() == left
    await services.submit(table, service=another)
    ended = await another.ended(task.id)
    assert ended.status is Status.SUCCESS, ended.document
    assert table.files() == []
    assert json.loads(str(ended.document["result_extended"]))["files_deleted"] == count


async def test_a_sweep_leaves_what_a_live_process_is_at_or_will_be_at(services: Services, table: ForeignTable) -> None:
    task = await services.submit(table)
    another = services.process()

    await another.sweep_once()

    assert (await services.service.ended(task.id)).status is Status.SUCCESS


async def test_two_processes_take_one_task_from_one_caller(services: Services, table: ForeignTable) -> None:
    another = services.process()

    tasks = await asyncio.gather(
        services.submit(table),
        services.submit(table, service=another),
        services.submit(table, service=another, key=services.key()),
    )

    [task] = {each.id for each in tasks}
    ended = [await process.ended(task) for process in (services.service, another)]
    assert [each.status for each in ended] == [Status.SUCCESS] * 2
    assert table.files() == []


async def test_the_same_key_is_executed_again_only_for_lack_of_credentials(services: Services) -> None:
    table = foreign_table(services.folder, properties={"gc.enabled": "false"})
    key = services.key()
    task = await services.submit(table, key=key)
    failed = await services.service.ended(task.id)
    assert failed.status is Status.FAILURE

    same = await services.submit(table, key=key)
    other = await services.submit(table, key=services.key())

    assert (same.number, other.number) == (failed.number, failed.number + 1)
    await services.service.ended(task.id)


async def test_no_credentials_are_stored_or_logged(
    services: Services, table: ForeignTable, caplog: pytest.LogCaptureFixture
) -> None:
    secret = "a-secret-that-is-never-printed"

    class Telling(MemoryStore):
        async def get_range(self, key: str, start: int, length: int) -> Found | Missing:
            raise StoreDenied(f"GET {key}?sig={secret} was refused")

    config = {"s3.access-key-id": "AKIATHEIRS", "s3.secret-access-key": secret}
    place = "s3://b/t"
    metadata: JsonObject = {"location": place, "table-uuid": table.uuid, "format-version": 2}
    payload = table.payload(config, metadata=metadata, metadata_location=f"{place}/metadata/v1.metadata.json")
    access = services.access(allowed=["s3://b"], opens=lambda _: lambda _: Telling())
    service, purge = DelegationService(services.service.state, access, ONCE), DelegatedPurge.parse(payload)

    with caplog.at_level("DEBUG"):
        task = await service.submit(services.session(purge), purge, "them")
        ended = await service.ended(task.id)

    assert (ended.status, "was refused" in str(ended.summary)) == (Status.FAILURE, True), ended.summary
    assert secret not in str(ended.document)
    page = await services.store.list("")
    stored = [await services.store.get(each.key) for each in page.entries]
    assert len(stored) >= 3
    assert not [found for found in stored if not isinstance(found, Found) or secret.encode() in found.body]
    assert secret not in caplog.text
    assert secret not in repr(purge)


async def test_a_purge_whose_store_cannot_be_opened_is_no_task(services: Services, table: ForeignTable) -> None:
    def refuse(_: object) -> MemoryStore:
        raise ValueError("the region is missing")

    service = DelegationService(services.service.state, services.access(opens=lambda _: refuse))
    key, before = services.key(), services.store.keys("")

    with pytest.raises(BadRequest, match=r"cannot be opened.*the region is missing"):
        await services.submit(table, service=service, key=key)

    assert services.store.keys("") == before
    task = await services.submit(table, key=key)
    assert (await services.service.ended(task.id)).status is Status.SUCCESS


async def test_stores_that_no_execution_needs_are_closed(services: Services, table: ForeignTable) -> None:
    opened: list[str] = []

    class Closing(LocalStore):
        async def close(self) -> None:
            opened.remove("store")
            await super().close()

    def open_store(_: str) -> Closing:
        opened.append("store")
        return Closing(str(services.folder), config=LocalConfig())

    service = DelegationService(services.service.state, services.access(opens=lambda _: open_store))
    task = await services.submit(table, service=service)
    await services.submit(table, service=service)
    await service.ended(task.id)
    await services.submit(table, service=service)

    assert opened == []


async def test_a_process_takes_no_more_than_it_may(
    services: Services, table: ForeignTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arco_catalog.upkeep.delegation_service.service.MAX_RUNNING", 1)
    other = foreign_table(services.folder, "other")
    task = await services.submit(table)

    with pytest.raises(TooManyRequests):
        await services.submit(other)

    assert (await services.submit(table)).id == task.id
    assert (await services.service.ended(task.id)).status is Status.SUCCESS
    assert (await services.purge(other)).status is Status.SUCCESS
