"""`arco tasks`: what operators see of a purge, and what they do with one that failed."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from arco_catalog.cli import tasks
from arco_catalog.cli.columns import as_json, format_iso
from arco_catalog.cli.command import CatalogOptions
from arco_catalog.cli.errors import CommandStopped
from arco_catalog.cli.session import carry_out
from arco_catalog.iceberg.json import JsonObject, dumps
from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.open import build_catalog
from arco_catalog.operations.undrop import undrop
from arco_catalog.planning.upkeep_settings import PurgeSettings
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state.task_log import list_tasks
from arco_catalog.upkeep.purge.worker import task_worker
from storage_backends.local.store import LocalStore
from tests.cli.in_process import arco
from tests.cli.process import CompletedProcess, finished, start
from tools.support.catalog_fixture import NS, CatalogFixture

SETTINGS = Settings("arco", purge=PurgeSettings(undrop_window_ms=0))


class PurgeFixture:
    """A folder with a table that was dropped with purge, and `arco` over it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = f"file:{folder}"
        self.fixture = CatalogFixture(LocalStore(folder), settings=SETTINGS)
        runtime = self.fixture.runtime
        self.fixture.catalog = build_catalog(SETTINGS, self.fixture.store, self.url, (), runtime)
        self.task = ""

    async def drop(self) -> None:
        """Makes a table, and drops it."""
        await self.fixture.namespace("db")
        await self.fixture.table("t")
        await drop_table(self.fixture.session(), NS, "t", purge=True)
        [self.task] = await list_tasks(self.fixture.session().state)

    async def work(self) -> int:
        """What a worker of another process does with it."""
        return await task_worker(self.fixture.catalog).run_due(lambda: False)

    async def arco(self, *arguments: str) -> CompletedProcess:
        return await arco("tasks", *arguments, "--store", self.url)

    async def shown(self) -> JsonObject:
        report = json.loads((await self.arco("show", self.task, "--json")).out)
        assert isinstance(report, dict)
        return report

    def hide_pointer(self) -> None:
        """Takes away what leads to the table's files, or gives it back."""
        [there] = [path for path in self.folder.rglob("*") if path.parent.name.startswith("iceberg_pointers")]
        there.rename(there.with_name(there.name + ".hidden"))

    def restore_pointer(self) -> None:
        [hidden] = self.folder.rglob("*.hidden")
        hidden.rename(hidden.with_name(hidden.name.removesuffix(".hidden")))


@pytest.fixture
async def purged(tmp_path: Path) -> PurgeFixture:
    made = PurgeFixture(tmp_path / "store")
    await made.drop()
    return made


async def test_show_has_what_a_task_is_about_and_how_far_it_is(purged: PurgeFixture) -> None:
    before = await purged.arco("show", purged.task)
    assert before.code == 0
    assert f"task         {purged.task}\n" in before.out
    assert "about        db.t\n" in before.out
    assert "status       SUBMITTED\n" in before.out
    assert await purged.work() == 1
    after = await purged.shown()
    assert (after["status"], after["result_summary"], after["held"]) == ("SUCCESS", "Purged 1 files", False)
    created_ms = after["created_ts"]
    assert isinstance(created_ms, int)
    assert after["created_time"] == format_iso(created_ms)
    assert "lease_time" not in after  # a duration
    assert "quiet_time" not in json.loads(as_json({"quiet_ms": 1_000}))
    assert (await purged.arco("show", "nothing")).err == "arco: Task does not exist: nothing\n"


@pytest.mark.parametrize("as_json", [(), ("--json",)])
async def test_follow_shows_every_change_until_the_task_ends(purged: PurgeFixture, as_json: tuple[str, ...]) -> None:
    following = await start("tasks", "show", purged.task, "--follow", *as_json, "--store", purged.url)
    assert following.stdout is not None
    first = await following.stdout.readline()
    assert await purged.work() == 1
    ended = await finished(following)
    assert ended.code == 0
    report = first.decode() + ended.out
    assert 0 < report.index("SUBMITTED") < report.index("SUCCESS")
    assert "Purged 1 files" in report


async def test_a_command_that_has_to_stop_reports_it(purged: PurgeFixture) -> None:
    following = await start("tasks", "show", purged.task, "--follow", "--store", purged.url)
    assert following.stdout is not None
    assert await following.stdout.readline()

    following.send_signal(signal.SIGTERM)

    ended = await finished(following)
    stopped = "arco: stopped by SIGTERM before the end; what the command had written until then is kept\n"
    assert (ended.code, ended.err) == (143, stopped)


def test_what_a_stopped_command_holds_is_given_back() -> None:
    """A worker that a container's host stops has its lease for others at once."""
    held = ["lease"]

    async def work() -> None:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)
            held.clear()

    with pytest.raises(CommandStopped):
        carry_out(work)

    assert held == []


async def test_a_task_that_failed_is_reported_and_submitted_again(purged: PurgeFixture) -> None:
    purged.hide_pointer()
    assert await purged.work() == 1
    failed = await purged.arco("show", purged.task, "--follow")
    assert failed.code == 1
    assert "status       FAILURE\n" in failed.out
    assert "is gone, and the table's files can't be found without it" in failed.out
    listed = json.loads((await purged.arco("--json")).out)
    assert [(each["task_id"], each["status"]) for each in listed] == [(purged.task, "FAILURE")]
    assert json.loads((await purged.arco("run", "--json")).out) == {"executed": 0}

    purged.restore_pointer()
    again = await purged.arco("retry", purged.task)
    assert (again.code, again.out) == (0, f"Submitted task {purged.task} again\n")
    report = await purged.shown()
    assert (report["status"], report["attempt_count"]) == ("SUBMITTED", 0)
    assert json.loads((await purged.arco("run", "--json")).out) == {"executed": 1}

    # It goes on once nothing of the failed attempt can be on its way any more: upkeep/purge/test_lost_pointer.py.
    report = await purged.shown()
    assert (report["status"], report["attempt_count"]) == ("RETRY_SCHEDULED", 0)
    assert report["result_summary"] == "the rest of the task waits for the end of the leases of earlier workers"


async def test_a_task_that_succeeded_is_not_submitted_again(purged: PurgeFixture) -> None:
    assert await purged.work() == 1
    refused = await purged.arco("retry", purged.task)
    assert refused.code != 0
    assert refused.err == f"arco: Task {purged.task} is SUCCESS: only a failed task can be submitted again\n"


async def test_the_list_finds_tasks_by_the_correlation_id_of_their_request(purged: PurgeFixture) -> None:
    payload = (await purged.shown())["task_payload"]
    assert isinstance(payload, dict)
    found = str(payload["common_payload"]["correlation_id"])  # type: ignore[index, call-overload]
    for wanted, ids in ((found, [purged.task]), ("another", [])):
        listed = await purged.arco("list", "--correlation-id", wanted, "--json")
        assert [each["task_id"] for each in json.loads(listed.out)] == ids
    assert f"correlation  {found}\n" in (await purged.arco("show", purged.task)).out


@pytest.mark.parametrize(
    ("field", "value"),
    [("status", "LOST"), ("task_type", None), ("attempt_count", None), ("next_run_ts", None), ("task_payload", "{")],
)
async def test_a_task_that_cannot_be_read_does_not_hide_the_others(
    purged: PurgeFixture, field: str, value: str | None
) -> None:
    assert await purged.work() == 1
    [version] = sorted(purged.folder.rglob(f"{purged.task}/*.json"))[-1:]
    damaged = version.parents[1] / "01DAMAGED" / version.name
    damaged.parent.mkdir()
    damaged.write_bytes(dumps({**json.loads(version.read_bytes()), "task_id": "01DAMAGED", field: value}))

    text, listed = await purged.arco("list"), await purged.arco("list", "--status", "success", "--json")

    assert (text.code, listed.code) == (1, 1)
    assert "Purged 1 files" in text.out
    assert "\nTasks that could not be read: 1\n  01DAMAGED: " in text.out
    sound, unreadable = json.loads(listed.out)
    assert sound["task_id"] == purged.task
    assert unreadable == {"task_id": "01DAMAGED", "unreadable": unreadable["unreadable"]}


async def test_the_task_of_a_drop_that_was_undone_reports_it(purged: PurgeFixture) -> None:
    assert (await purged.shown())["undone"] is False
    await undrop(purged.fixture.session(), NS, "t")
    assert (await purged.shown())["undone"] is True
    for command in ([], ["show", purged.task]):
        report = (await purged.arco(*command)).out
        assert "The drop was undone, or its purge cancelled: nothing will be deleted" in report
    assert await purged.work() == 1
    ended = await purged.shown()
    assert (ended["status"], ended["undone"]) == ("SUCCESS", False)
    assert str(ended["result_summary"]).startswith("Nothing was deleted")


async def test_retry_shows_programs_what_the_task_is_now(purged: PurgeFixture) -> None:
    purged.hide_pointer()
    await purged.work()
    again = json.loads((await purged.arco("retry", purged.task, "--json")).out)
    assert (again["task_id"], again["status"], again["held"]) == (purged.task, "SUBMITTED", False)


async def test_spark_is_started_for_the_catalog_and_the_task(
    purged: PurgeFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[list[str]] = []
    warehouses: list[str] = []

    def run(command: list[str], env: Mapping[str, str], **_: object) -> subprocess.CompletedProcess[str]:
        started.append(command)
        warehouses.append(env["ARCO_WAREHOUSE"])
        return subprocess.CompletedProcess(command, 3)

    monkeypatch.setattr(subprocess, "run", run)
    options = CatalogOptions(purged.url, "arco", ("s3://bucket/tables",), "north", {})
    assert tasks.run_on_spark(options, purged.task, every=False) == 3
    assert tasks.run_on_spark(CatalogOptions(purged.url, "lake"), None, every=True) == 3
    here = [sys.executable, "-m", "reconciler.purge", "--store", purged.url]
    one = ["--task", purged.task, "--realm", "north", "--warehouse", "arco"]
    assert started == [[*here, *one, "--allowed-location", "s3://bucket/tables"], here]
    assert warehouses == ["arco", "lake"], "a store without a realm has a catalog of this name"
    assert "--spark is for arco tasks run" in (await purged.arco("retry", purged.task, "--spark")).err


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ("list 01TASK", "arco tasks list takes no TASK"),
        ("run --follow", "--follow is for arco tasks show"),
        ("run --status failure", "--status is for arco tasks list"),
        ("show 01TASK --stuck", "--stuck is for arco tasks list"),
        ("retry 01TASK --correlation-id x", "--correlation-id is for arco tasks list"),
        ("list --all", "--all is for arco tasks run"),
        ("run --spark --json", "leave out --seconds and --json with --spark"),
    ],
)
async def test_an_option_of_another_action_is_wrong_usage(purged: PurgeFixture, arguments: str, why: str) -> None:
    ended = await purged.arco(*arguments.split())
    assert ended.code == 2
    assert why in ended.err
