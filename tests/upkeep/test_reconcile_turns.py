"""Whatever time a run has, all receipts come to be in a bounded number of runs, and nothing holds up anything else."""

import asyncio
import json
from collections.abc import Iterator, Mapping

import pytest

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.reconcile_stats import MAX_EXAMPLES, ReconcileStats
from arco_catalog.state import receipt
from arco_catalog.state.paths import Paths
from arco_catalog.state.pointer import MetadataFile, Pointer
from arco_catalog.upkeep import reconcile as driver
from arco_catalog.upkeep.reconcile import reconcile, reconcile_one
from storage_backends import ANY, Found, StoreUnavailable
from tests.support.fake_runtime import FakeRuntime
from tests.support.scripted_store import Rule, ScriptedStore, anything, get
from tools.support.catalog_fixture import CatalogFixture

CALL_MS = 20
"""What each call takes."""
RUN_MS = 4_000
"""What a run has: two hundred calls."""
LAMBDA_ANSWER = 6 << 20
NO_ANSWER = StoreUnavailable("no answer")


class BacklogScenario:
    """A catalog with tables of many commits, of which only the pending receipts were written."""

    def __init__(self) -> None:
        self.clock = FakeRuntime()
        self.store = ScriptedStore(self.clock.now_ms)
        self.fixture = CatalogFixture(self.store, self.clock)
        self.paths = Paths("wh")
        self.entities: dict[str, str] = {}

    async def table(self, name: str, commits: int) -> str:
        """A table; its pointer and pending receipts are put there as its writers would have."""
        made = await self.fixture.table(name)
        self.entities[name] = made.entity
        await self.commit(name, commits)
        return made.entity

    async def commit(self, name: str, commits: int) -> None:
        """More commits, whose writers died after their compare-and-swap."""
        entity = self.entities[name]
        key = self.paths.pointer(entity)
        found = await self.store.get(key)
        assert isinstance(found, Found)
        pointer = Pointer.parse(found.body, found.version, key)
        for _ in range(commits):
            before = pointer.metadata
            number = pointer.sequence
            file = MetadataFile(f"{before.location.rpartition('/')[0]}/{number:05d}-x.metadata.json", before.ms + 1)
            record_ = receipt.pending(entity=entity, metadata=file, base=before, details={"entity_type": "table"})
            await self.store.put(self._receipt(receipt.PENDING, record_), receipt.encode(record_), ANY)
            pointer = pointer.successor(attempt=self.clock.ulid(), metadata=file, summary={})
        await self.store.put(key, pointer.body, ANY)

    def _receipt(self, stage: receipt.Stage, record_: JsonObject) -> str:
        ms = record_["metadata_ms"]
        assert isinstance(ms, int)
        return self.paths.receipt(stage, str(record_["commit_key"]), ms)

    def keys(self, stage: str) -> list[str]:
        return [key for key in self.store.keys("wh/_catalog/events/") if f"/iceberg/{stage}/" in key]

    def owed(self) -> int:
        return len(self.keys("pending")) - len(self.keys("committed"))

    async def _a_call_takes_time(self) -> None:
        self.clock.ms += CALL_MS

    async def run(self, budget_ms: int = RUN_MS, concurrency: int = 4) -> ReconcileStats:
        """One run of a process that remembers nothing, with so much time."""
        began = self.clock.ms
        self.store.rules.insert(0, Rule(anything(), first=self._a_call_takes_time))
        try:
            return await reconcile(self.fixture.another().session(deadline_ms=budget_ms), concurrency=concurrency)
        finally:
            del self.store.rules[0]
            assert self.clock.ms - began <= budget_ms, "a run ends in its time"

    async def until_done(self, runs: int, budget_ms: int = RUN_MS) -> list[ReconcileStats]:
        """Runs until nothing is owed and nothing is left, at most so often."""
        stats_of_runs: list[ReconcileStats] = []
        for _ in range(runs):
            stats_of_runs.append(await self.run(budget_ms))
            if not stats_of_runs[-1].stopped and not stats_of_runs[-1].incomplete:
                return stats_of_runs
        raise AssertionError(f"not done after {runs} runs: {self.owed()} receipts owed")


@pytest.fixture
def scenario() -> BacklogScenario:
    return BacklogScenario()


async def made(scenario: BacklogScenario, commits: Mapping[str, int]) -> BacklogScenario:
    await scenario.fixture.namespace("db")
    for name, count in commits.items():
        await scenario.table(name, count)
    return scenario


async def test_thousands_of_commits_get_their_receipts_in_runs_of_a_few_seconds(scenario: BacklogScenario) -> None:
    await made(scenario, {"a": 1, "big": 3_000, "z": 1})
    assert scenario.owed() == 3_002

    stats_of_runs = await scenario.until_done(runs=100)

    assert scenario.owed() == 0
    assert sum(stats.written for stats in stats_of_runs) == 3_002
    assert all(stats.written for stats in stats_of_runs[:-1]), "every run gets on"
    assert (await scenario.run()).unchanged == 3


async def test_no_file_is_walked_twice_because_a_run_was_cut(scenario: BacklogScenario) -> None:
    await made(scenario, {"big": 500})

    stats_of_runs = await scenario.until_done(runs=20)

    assert len(stats_of_runs) > 5
    assert sum(stats.files for stats in stats_of_runs) == 501


async def test_a_long_table_does_not_stop_the_others(
    scenario: BacklogScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "TURN", 10)
    await made(scenario, {"big": 2_000} | {f"t{number}": 2 for number in range(5)})
    owed_of_big = len(scenario.keys("pending")) - 15

    await scenario.run()

    assert len(scenario.keys("committed")) >= 16 + 5
    assert 0 < scenario.owed() < owed_of_big


async def test_every_table_gets_its_turn_though_all_change_before_each_run(scenario: BacklogScenario) -> None:
    """Each run has time for a few of them only, and always the first would have had it."""
    names = [f"t{number:02}" for number in range(24)]
    await made(scenario, dict.fromkeys(names, 1))
    served: set[str] = set()
    for _ in range(12):
        before = set(scenario.keys("committed"))
        stats = await scenario.run(budget_ms=1_400, concurrency=2)
        assert stats.stopped
        new = {scenario.store._objects[key].body for key in set(scenario.keys("committed")) - before}
        served |= {name for name in names if any(scenario.entities[name].encode() in body for body in new)}
        for name in names:
            await scenario.commit(name, 1)
    assert served == set(names)


async def test_what_is_new_is_walked_once_what_is_old_is_done(scenario: BacklogScenario) -> None:
    await made(scenario, {"big": 400})
    runs = 0
    while scenario.owed() and runs < 60:
        await scenario.run()
        runs += 1
        if runs < 10:
            await scenario.commit("big", 5)
    assert scenario.owed() == 0
    await scenario.until_done(runs=2)
    assert (await scenario.run()).unchanged == 1


async def test_an_unreadable_receipt_does_not_block_the_others(
    scenario: BacklogScenario,
) -> None:
    await made(scenario, {"a": 3, "big": 300, "z": 3})
    broken = next(key for key in scenario.keys("pending") if b"/00150-x" in scenario.store._objects[key].body)
    kept = scenario.store._objects[broken].body
    await scenario.store.put(broken, b"{", ANY)

    stats_of_runs = [await scenario.run() for _ in range(6)]
    assert stats_of_runs[-1].unreadable_count == 1
    assert (stats_of_runs[-1].walked, stats_of_runs[-1].incomplete, stats_of_runs[-1].unchanged) == (1, 1, 2)
    assert stats_of_runs[-1].files == 1, "what is known to be done is not walked again"
    assert scenario.owed() == 150, "that file's, and those before it"

    await scenario.commit("big", 20)
    await scenario.run()
    assert scenario.owed() == 150, "newer commits get theirs all the same"

    await scenario.store.put(broken, kept, ANY)
    await scenario.until_done(runs=6)
    assert scenario.owed() == 0


@pytest.mark.parametrize("what", ["pointer", "pending", "committed"])
async def test_a_store_that_does_not_answer_for_one_table_costs_only_that_one(
    scenario: BacklogScenario, what: str
) -> None:
    await made(scenario, {"a": 2, "b": 2, "c": 2})
    entity = scenario.entities["b"]
    lost = (
        scenario.paths.pointer(entity)
        if what == "pointer"
        else next(key for key in scenario.keys("pending") if entity.encode() in scenario.store._objects[key].body)
    ).replace("/pending/", f"/{what}/")
    scenario.store.rules = [Rule(anything(lost), fails=NO_ANSWER)]

    stats = await scenario.run(concurrency=1)

    assert (stats.unreadable_count, stats.incomplete, stats.walked) == (1, 1, 3)
    assert stats.unreadable == [f"{entity}: no answer"]
    scenario.store.rules = []
    assert (await scenario.run()).unchanged == 2
    assert scenario.owed() == 0


async def test_a_store_that_answers_for_no_table_ends_the_run_and_the_next_begins_behind_them(
    scenario: BacklogScenario,
) -> None:
    await made(scenario, {f"t{number:02}": 1 for number in range(20)})
    scenario.store.rules = [Rule(anything("/iceberg_pointers/0"), fails=NO_ANSWER)]

    first = await scenario.run(concurrency=2)
    scenario.store.rules = []
    second = await scenario.run(concurrency=2)

    assert (first.stopped, first.walked, first.unreadable_count) == (True, 2 * driver.MAX_UNANSWERED, 6)
    assert (second.walked, second.incomplete) == (20, 0)


async def test_a_table_whose_walk_hangs_is_left_in_time_to_remember_the_others(scenario: BacklogScenario) -> None:
    await made(scenario, {"a": 1, "b": 1, "c": 1})
    never = asyncio.Event()
    scenario.store.rules = [Rule(get(scenario.paths.pointer(scenario.entities["b"])), first=never.wait)]

    stats = await scenario.run(budget_ms=2_000)

    assert (stats.walked, stats.incomplete, stats.stopped) == (3, 1, False)
    assert stats.unreadable == [
        f"{scenario.entities['b']}: the walk did not end within the time of this run, and the next run continues it"
    ]
    scenario.store.rules = []
    again = await scenario.run()
    assert (again.unchanged, again.walked, again.incomplete) == (2, 1, 0)


async def test_a_table_whose_walk_fails_unexpectedly_is_reported_and_the_others_go_on(
    scenario: BacklogScenario, caplog: pytest.LogCaptureFixture
) -> None:
    await made(scenario, {"a": 1, "b": 1})
    key = scenario.paths.pointer(scenario.entities["a"])
    beyond_all_calendars = scenario.store._objects[key].body.replace(b'"metadata_ms":1', b'"metadata_ms":999999999999')
    await scenario.store.put(key, beyond_all_calendars, ANY)

    stats = await scenario.run()

    [reason] = stats.unreadable
    assert reason.startswith(scenario.entities["a"])
    assert (stats.walked, stats.incomplete, stats.written) == (2, 1, 1)
    assert "failed unexpectedly" in caplog.text


async def test_progress_is_kept_though_the_run_is_killed(
    scenario: BacklogScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "TURN", 20)
    monkeypatch.setattr(driver, "WRITE_AFTER", 20)
    await made(scenario, {"big": 200})

    class WorkerKilled(BaseException):
        pass

    def tell(stats: ReconcileStats) -> None:
        if stats.files >= 100:
            raise WorkerKilled

    with pytest.raises(WorkerKilled):
        await reconcile(scenario.fixture.another().session(), progress=tell)
    stats = await reconcile(scenario.fixture.another().session())

    assert scenario.owed() == 0
    assert stats.files <= 201 - 80


async def test_an_entity_counts_once_however_many_turns_it_takes(
    scenario: BacklogScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "TURN", 7)
    await made(scenario, {"a": 1, "big": 50})
    report: list[tuple[int, int]] = []

    stats = await reconcile(
        scenario.fixture.another().session(), progress=lambda so_far: report.append((so_far.walked, so_far.incomplete))
    )

    assert (stats.walked, stats.incomplete, stats.files, stats.stopped) == (2, 0, 53, False)
    assert report[0] == (2, 1)
    assert {walked for walked, _ in report} == {2}


async def test_one_entity_is_walked_where_a_name_leads_to_it_and_nowhere_else(scenario: BacklogScenario) -> None:
    await made(scenario, {"a": 5, "b": 1})
    orphan = "01KAN0Y7Q2M3C4D5E6F7G8H9JK"
    body = scenario.store._objects[scenario.paths.pointer(scenario.entities["a"])].body
    await scenario.store.put(
        scenario.paths.pointer(orphan), body.replace(scenario.entities["a"].encode(), orphan.encode()), ANY
    )

    stats = await reconcile_one(scenario.fixture.another().session(), scenario.entities["a"])
    assert (stats.files, stats.incomplete, stats.stopped) == (6, 0, False)
    assert (await reconcile_one(scenario.fixture.another().session(), scenario.entities["a"])).files == 0
    before = scenario.keys("committed")
    with pytest.raises(BadRequest, match=f"no table or view has the entity id {orphan}"):
        await reconcile_one(scenario.fixture.another().session(), orphan)
    assert scenario.keys("committed") == before


async def test_a_receipt_with_another_content_is_reported_and_left_as_it_is(scenario: BacklogScenario) -> None:
    await made(scenario, {"a": 1})
    [theirs] = {key.replace("/pending/", "/committed/") for key in scenario.keys("pending")} - {
        *scenario.keys("committed")
    }
    await scenario.store.put(theirs, b"{}", ANY)

    stats = await scenario.run()

    [reason] = stats.unreadable
    assert reason == f"{scenario.entities['a']}: {theirs} differs from the pending receipt"
    assert scenario.store._objects[theirs].body == b"{}"


def large(number: int) -> Iterator[JsonObject]:
    """Missing receipts whose names and principals are as long as clients can make them."""
    for place in range(number):
        named: JsonObject = {"table": "\U0001f9ca" * 30_000, "principal": "\U0001f9ca" * 30_000}
        yield {**named, "metadata_location": f"{place:900}", "told_by": "t" * 900}


def test_the_answer_is_small_enough_for_a_function_however_much_was_found() -> None:
    total = ReconcileStats()
    for record_ in large(400):
        one = ReconcileStats(files=1)
        one.lacks(record_)
        one.fails("\U0001f9ca" * 10_000)
        total.add(one)

    answer = total.to_json()

    assert (answer["missing_count"], answer["unreadable_count"], answer["files"]) == (400, 400, 400)
    assert len(total.missing) == len(total.unreadable) == MAX_EXAMPLES
    assert len(json.dumps(answer)) < LAMBDA_ANSWER, "however it is spelled"
