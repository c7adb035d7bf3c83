"""A drop that waits for its purge (docs/design/purge.md#rule-1)."""

import logging
from dataclasses import replace

import pytest

from arco_catalog.http.errors import error_response
from arco_catalog.iceberg.errors import NoSuchTable, PurgeFailed
from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.tasks import retry_task
from arco_catalog.planning.upkeep_settings import PurgeMode, PurgeSettings
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state.key_settings import Dialect
from arco_catalog.state.task import Status
from arco_catalog.state.tombstone import DROPPED, PURGED
from arco_catalog.tasks.loop import WakeUp
from storage_backends import Found, StoreUnavailable
from tests.support.scripted_store import Call, Rule
from tests.support.table_files import append, write
from tests.upkeep.purge.conftest import DAY_MS, Purges
from tools.support.catalog_fixture import NS
from tools.support.request_bodies import uuid7

LOGGER = "arco_catalog.operations.waiting_drop"


def looks_for_the_task(call: Call) -> bool:
    return call.method == "list" and "/tasks/" in call.key


async def made(mode: PurgeMode = PurgeMode.SYNC, window_ms: int = 0) -> Purges:
    purges = Purges(Settings("wh", purge=PurgeSettings(mode, window_ms)))
    await purges.fixture.namespace("db")
    await append(purges.fixture, await purges.table(), "a")
    return purges


async def test_a_drop_that_waits_is_answered_when_the_files_are_gone() -> None:
    purges = await made()
    purges.store.rules = [Rule(looks_for_the_task, first=purges.run, times=1)]
    await drop_table(purges.fixture.session(deadline_ms=DAY_MS), NS, "t", purge=True)
    assert purges.files() == []
    assert (await purges.tombstone()).state == PURGED


async def test_a_purge_that_takes_longer_goes_on_as_a_task_and_the_log_reports_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    purges = await made()
    began_ms = purges.runtime.ms
    with caplog.at_level(logging.WARNING, LOGGER):
        await purges.drop()
    waited_ms = purges.runtime.ms - began_ms
    assert 15_000 < waited_ms < purges.fixture.settings.request_ms
    task = str((await purges.tombstone()).task)
    [logged] = caplog.messages
    assert logged.startswith(f"db.t was dropped, and its purge goes on as task {task} (correlation id ")
    assert (await purges.tombstone()).state == DROPPED
    await purges.run()
    assert purges.files() == []


async def damaged() -> tuple[Purges, str, bytes]:
    """A catalog whose table can't be purged, and the file that has to be brought back."""
    purges = await made()
    [manifest] = [f"memory:///{key}" for key in purges.files() if key.endswith("-m0.avro")]
    found = await purges.store.get(manifest.removeprefix("memory:///"))
    assert isinstance(found, Found)
    await write(purges.store, manifest, b"damaged")
    purges.store.rules = [Rule(looks_for_the_task, first=purges.run, times=1)]
    return purges, manifest, found.body


async def test_a_drop_whose_purge_failed_is_answered_with_an_error_and_stands(caplog: pytest.LogCaptureFixture) -> None:
    purges, _, _ = await damaged()
    with caplog.at_level(logging.ERROR, LOGGER), pytest.raises(PurgeFailed) as raised:
        await drop_table(purges.fixture.session(deadline_ms=DAY_MS), NS, "t", purge=True)
    task = await purges.task(str((await purges.tombstone()).task))
    assert task.status is Status.FAILURE
    assert any(
        each.startswith(f"db.t was dropped, and its purge has failed: see task {task.id}") for each in caplog.messages
    )
    assert "db.t was dropped, but its purge has failed, so that files of it may remain" in raised.value.message
    assert f"arco tasks retry {task.id}" in raised.value.message
    answer = error_response(raised.value, commits=False, dialect=Dialect.ICEBERG)
    assert (answer.status, answer.error_type) == (500, "InternalServerError")


async def test_the_same_drop_with_its_key_is_answered_with_the_error_until_the_files_are_deleted() -> None:
    purges, manifest, body = await damaged()
    key = uuid7(purges.runtime.now_ms(), purges.runtime)

    async def drop() -> None:
        await drop_table(purges.fixture.session(key=key, path="/t", deadline_ms=DAY_MS), NS, "t", purge=True)

    for _ in range(2):
        with pytest.raises(PurgeFailed):
            await drop()
    await write(purges.store, manifest, body)
    await retry_task(purges.fixture.session(), str((await purges.tombstone()).task), purges.runtime)
    await purges.run()
    await drop()
    assert purges.files() == []


async def test_the_same_drop_with_its_key_is_not_answered_with_the_failure_of_another_drop() -> None:
    purges = await made()
    key = uuid7(purges.runtime.now_ms(), purges.runtime)

    async def drop() -> None:
        purges.store.rules = [Rule(looks_for_the_task, first=purges.run, times=1)]
        await drop_table(purges.fixture.session(key=key, path="/t", deadline_ms=DAY_MS), NS, "t", purge=True)

    await drop()
    await append(purges.fixture, await purges.table(), "b")
    [manifest] = [f"memory:///{key}" for key in purges.files() if key.endswith("-m0.avro")]
    await write(purges.store, manifest, b"damaged")
    purges.store.rules = [Rule(looks_for_the_task, first=purges.run, times=1)]
    with pytest.raises(PurgeFailed):
        await drop_table(purges.fixture.session(deadline_ms=DAY_MS), NS, "t", purge=True)

    await drop()


async def test_the_same_drop_without_a_key_finds_no_table_and_makes_no_other_task() -> None:
    purges, _, _ = await damaged()
    with pytest.raises(PurgeFailed):
        await drop_table(purges.fixture.session(deadline_ms=DAY_MS), NS, "t", purge=True)
    before = await purges.tombstone()
    with pytest.raises(NoSuchTable):
        await drop_table(purges.fixture.session(deadline_ms=DAY_MS), NS, "t", purge=True)
    assert (await purges.tombstone()).json == before.json


@pytest.mark.parametrize(("mode", "window_ms"), [(PurgeMode.ASYNC, 0), (PurgeMode.SYNC, 1_000), (PurgeMode.OFF, 0)])
async def test_any_other_drop_is_answered_at_once(mode: PurgeMode, window_ms: int) -> None:
    purges = await made(mode, window_ms)
    began_ms = purges.runtime.ms
    await purges.drop()
    assert purges.runtime.ms == began_ms


async def test_a_plain_drop_is_answered_at_once() -> None:
    purges = await made()
    began_ms = purges.runtime.ms
    await purges.drop(purge=False)
    assert purges.runtime.ms == began_ms


async def test_a_drop_is_committed_though_the_outcome_of_its_purge_is_unknown(caplog: pytest.LogCaptureFixture) -> None:
    purges = await made()

    purges.store.rules = [Rule(looks_for_the_task, fails=StoreUnavailable("the store is gone"))]
    with caplog.at_level(logging.WARNING, LOGGER):
        await drop_table(purges.fixture.session(), NS, "t", purge=True)
    assert caplog.messages == ["db.t was dropped, and whether its purge has ended can't be read: the store is gone"]
    assert (await purges.tombstone()).state == DROPPED


def hears(purges: Purges) -> WakeUp:
    """What ends the pause of the worker of the process that drops."""
    wake_up = WakeUp()
    purges.fixture.catalog = replace(purges.fixture.catalog, notify_workers=wake_up.task_due)
    return wake_up


@pytest.mark.parametrize("mode", [PurgeMode.ASYNC, PurgeMode.SYNC])
async def test_the_worker_of_the_process_hears_of_a_purge_that_is_due_at_once(mode: PurgeMode) -> None:
    purges = await made(mode)
    wake_up = hears(purges)
    await purges.drop()
    assert await wake_up.wait(60) == {"wh"}


async def test_it_hears_of_no_other_drop() -> None:
    purges = await made(PurgeMode.ASYNC, window_ms=1_000)
    wake_up = hears(purges)
    await purges.drop()
    assert await wake_up.wait(0.05) == set()
