"""Runs of `maintain` over a store in memory, with the clock of a test: who does what, how often, and what is told
(docs/design/pipeline.md#maintenance)."""

import asyncio
import logging
from collections.abc import Mapping

import pytest

from arco_catalog.iceberg.json import JsonObject, dumps
from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.policies.attachments import attach_policy, detach_policy
from arco_catalog.operations.policies.policies import PolicyText, create_policy
from arco_catalog.planning.access import Securable
from arco_catalog.protocol.copies import CatalogIsCopy
from arco_catalog.protocol.internal_commits import internal_commit
from arco_catalog.state.restoration import Restoration
from arco_catalog.state.task import ENDED, TABLE_MAINTENANCE, Status
from arco_catalog.state.task_log import all_hints, list_tasks, read_task
from arco_catalog.tasks.new_task import store_new_task
from arco_catalog.upkeep.purge.worker import task_worker
from reconciler.maintain.budget import Budget
from reconciler.maintain.calls import Call, Procedure
from reconciler.maintain.procedures import ProcedureFailed
from reconciler.maintain.table_plans import TableRef
from reconciler.maintain.tasks import open_task
from storage_backends import ANY
from tests.maintain.lake import Killed, Lake, Procedures
from tools.support.catalog_fixture import NS

DATA, _, _, EXPIRE, ORPHANS = Procedure
WELL = [("t", "rewrite_data_files", "done"), ("t", "expire_snapshots", "done")]


async def test_a_run_does_what_is_due_and_tells_it_with_the_figures_before_and_after(lake: Lake) -> None:
    stats = await lake.run()
    assert (stats.tables, stats.with_policies, stats.due, stats.outcomes) == (1, 1, 1, {"done": 2})
    assert lake.reported() == WELL
    rewrite, expiry = lake.rows.rows
    assert (rewrite["data_files_before"], rewrite["data_files_after"]) == (8, 1)
    assert (expiry["snapshots_before"], expiry["snapshots_after"]) == (5, 1)
    assert rewrite["policy"] == "db.data-compaction"
    assert str(rewrite["reason"]).startswith("8 of 8 data files are smaller than 384 MiB")


async def test_what_has_been_done_is_not_due_again(lake: Lake) -> None:
    await lake.run()
    procedures = Procedures(lake)
    stats = await lake.run(procedures)
    assert (stats.due, procedures.calls, lake.reported()) == (0, [], WELL)


async def test_a_dry_run_writes_nothing_and_says_what_is_due(lake: Lake) -> None:
    calls = len(lake.store.calls)
    await lake.maintenance().plan()
    [looked] = lake.seen.table_plans
    assert [step.call.procedure for step in looked.plan.steps] == [DATA, EXPIRE]
    assert {call.method for call in lake.store.calls[calls:]} <= {"get", "list"}


async def test_a_run_on_a_copy_is_refused_and_a_dry_run_is_not(lake: Lake) -> None:
    session = lake.fixture.another().session()
    head = await session.state.head()
    marked = head.with_restoration(Restoration(0, "memory:///elsewhere"))
    prepared = await internal_commit(session, "restore", {}, marked, {})
    await prepared.put()
    await prepared.swap()
    procedures = Procedures(lake)
    with pytest.raises(CatalogIsCopy, match="arco adopt"):
        await lake.run(procedures)
    assert procedures.calls == []
    assert len(await lake.maintenance().plan()) == 1


async def test_a_table_to_which_no_policy_applies_is_not_touched() -> None:
    lake = await Lake().made()
    await lake.bad_table("t")
    await lake.bad_table("other")
    await lake.compacted_and_expired(Securable(NS, "t"))
    procedures, before = Procedures(lake), await lake.figures("other")
    await lake.run(procedures)
    assert {call.split()[0] for call in procedures.calls} == {"t"}
    assert await lake.figures("other") == before


async def test_a_table_is_left_out_by_a_policy_of_its_own(lake: Lake) -> None:
    await lake.policy("data-compaction", Securable(NS, "t"), name="never", enable=False)
    await lake.run()
    assert lake.reported() == WELL[1:]


async def test_policies_of_other_types_are_their_owners_own_and_not_read(lake: Lake) -> None:
    create, mask = lake.fixture.session(path="/policies/mask"), PolicyText(None, "everything but the year")
    await create_policy(create, NS, "mask", "acme.masking", mask)
    await attach_policy(lake.fixture.session(path="/mappings/mask"), NS, "mask", Securable(NS, "t"), {})
    stats = await lake.run()
    assert (stats.unreadable, lake.reported()) == ([], WELL)


async def test_the_worst_table_comes_first() -> None:
    lake = await Lake().made()
    for name, files in (("a", 6), ("b", 20), ("c", 10)):
        await lake.bad_table(name, files, snapshots=1)
    await lake.policy("data-compaction")
    procedures = Procedures(lake)
    await lake.run(procedures)
    assert procedures.calls == ["b rewrite_data_files", "c rewrite_data_files", "a rewrite_data_files"]


async def test_a_task_is_due_at_once_by_a_store_that_tells_its_time_late(lake: Lake) -> None:
    """Servers keep a `Date` for a second or more (versitygw), and it is rounded down to a whole one."""
    session = lake.fixture.session()
    table = TableRef(("db",), "t", "entity")
    stored = await open_task(session, table, "")
    assert stored.task.next_run_ms < session.now_ms() - 2_500


async def test_of_two_runs_at_once_one_does_the_table(lake: Lake) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def wait(call: Call) -> None:
        begun.set()
        await go_on.wait()

    slow, other = Procedures(lake, before=wait), Procedures(lake)
    async with asyncio.TaskGroup() as group:
        group.create_task(lake.run(slow))
        await begun.wait()
        await lake.run(other)
        assert "leased by another run" in lake.seen.left_tables["t"]
        go_on.set()
    assert other.calls == []
    assert lake.reported() == WELL


@pytest.mark.parametrize("procedure", [DATA, EXPIRE])
@pytest.mark.parametrize("when", ["before", "after"])
async def test_what_a_killed_run_had_begun_the_next_one_ends(lake: Lake, procedure: Procedure, when: str) -> None:
    async def die(call: Call) -> None:
        if call.procedure is procedure:
            raise Killed

    killed = Procedures(lake, before=die) if when == "before" else Procedures(lake, after=die)
    with pytest.raises(Killed):
        await lake.run(killed)
    assert lake.reported() == []

    patient = Procedures(lake)
    await lake.run(patient)  # the lease still holds
    assert patient.calls == []
    lake.lease_runs_out()
    await lake.run(patient)
    assert [call.split()[1] for call in (*killed.calls, *patient.calls)].count(procedure) == (
        2 if when == "before" else 1
    )
    assert lake.reported() == WELL
    figures = await lake.figures()
    assert (figures.data_files, len(figures.snapshots)) == (1, 1)


async def test_orphan_files_that_a_resumed_task_removed_are_not_removed_twice_in_the_run(lake: Lake) -> None:
    async def die(call: Call) -> None:
        if call.procedure is ORPHANS:
            raise Killed

    async def write(call: Call) -> None:
        if call.procedure is ORPHANS:
            await lake.append("t")
            await lake.append("t")

    await lake.policy("orphan-file-removal")
    with pytest.raises(Killed):
        await lake.run(Procedures(lake, before=die))
    lake.lease_runs_out()
    procedures = Procedures(lake, after=write)
    await lake.run(procedures)
    assert procedures.of("t") == [ORPHANS, DATA]


async def test_orphan_files_that_another_run_removed_since_the_plan_are_not_removed_again(lake: Lake) -> None:
    await lake.policy("orphan-file-removal")
    await lake.bad_table("z", files=6)
    other = Procedures(lake)

    async def run_another(call: Call) -> None:
        if call.procedure is DATA and not other.calls:
            await lake.run(other)
            await lake.append("z")
            await lake.append("z")

    procedures = Procedures(lake, before=run_another)
    await lake.run(procedures)
    assert other.of("z") == [DATA, EXPIRE, ORPHANS]
    assert procedures.of("z") == [DATA]


async def test_a_table_for_which_no_task_can_be_made_does_not_end_the_run(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reconciler.maintain.tasks.MAX_TASKS_WITHOUT_ROWS", 1)
    await lake.bad_table("z", files=6)
    await lake.run()
    lake.rows.rows = [row for row in lake.rows.rows if row["name"] == "z"]
    for name in ("t", "z"):
        await lake.append(name)
        await lake.append(name)
    procedures = Procedures(lake)
    stats = await lake.run(procedures)
    assert procedures.of("t") == []
    assert DATA in procedures.of("z")
    [unreadable] = stats.unreadable
    assert unreadable.startswith("db.t: ")
    assert "1 maintenance task" in unreadable


async def test_a_task_that_cannot_be_read_is_reported_and_does_not_end_the_run(lake: Lake) -> None:
    session = lake.fixture.session()
    unread, strange, kindless = (lake.runtime.uuid() for _ in range(3))
    for task in (unread, strange, kindless):
        await store_new_task(session, task, TABLE_MAINTENANCE, {})
    stored = await read_task(session.state, strange)
    assert stored is not None
    paths = session.state.paths
    store = session.state.store
    await store.put(paths.task_version(unread, 1), b"{", ANY)
    body = dumps({**stored.task.document, "task_payload": "[]"})
    await store.put(paths.task_version(strange, 1), body, ANY)
    without = {name: value for name, value in stored.task.document.items() if name != "task_type"}
    await store.put(paths.task_version(kindless, 1), dumps({**without, "task_id": kindless}), ANY)
    procedures = Procedures(lake)

    stats = await lake.run(procedures)

    assert sorted(each.partition(":")[0] for each in stats.unreadable) == sorted(
        f"task {each}" for each in (unread, strange, kindless)
    )
    assert DATA in procedures.of("t")


async def test_a_task_without_a_table_is_reported_by_one_run_which_ends_it_as_failed(lake: Lake) -> None:
    session, task = lake.fixture.session(), lake.runtime.uuid()
    await store_new_task(session, task, TABLE_MAINTENANCE, {})

    first, second = await lake.run(), await lake.run()

    [unreadable] = first.unreadable
    assert unreadable.startswith(f"task {task}: the payload of the maintenance task has no table_entity_id")
    assert second.unreadable == []
    stored = await read_task(session.state, task)
    assert stored is not None
    assert stored.task.status is Status.FAILURE
    assert lake.reported() == WELL


@pytest.mark.parametrize("when", ["before", "after"])
async def test_what_a_run_did_is_told_once_though_it_dies_as_it_tells(lake: Lake, when: str) -> None:
    lake.rows.dies = when
    with pytest.raises(Killed):
        await lake.run()
    lake.rows.dies = None
    lake.lease_runs_out()
    procedures = Procedures(lake)
    await lake.run(procedures)
    assert procedures.calls == []
    assert lake.reported() == WELL


async def test_a_procedure_that_a_writer_beat_is_called_again_on_what_the_writer_left(lake: Lake) -> None:
    beaten = [ProcedureFailed("CommitFailedException", conflict=True)]

    async def lose(call: Call) -> None:
        if beaten:
            raise beaten.pop()

    procedures = Procedures(lake, before=lose)
    await lake.run(procedures)
    assert procedures.calls == ["t rewrite_data_files", "t rewrite_data_files", "t expire_snapshots"]
    assert lake.reported() == WELL


async def test_a_rewrite_that_lost_files_to_a_writer_is_tried_again_in_parts(lake: Lake) -> None:
    await lake.bad_table("many", files=40)
    groups: list[object] = []

    async def look(call: Call) -> None:
        if call.procedure is DATA:
            options = call.arguments["options"]
            assert isinstance(options, Mapping)
            groups.append((options.get("max-file-group-size-bytes"), options.get("min-input-files")))
            if len(groups) == 1:
                await lake.append("many")

    await lake.run(Procedures(lake, before=look, answers=[{"rewritten_data_files_count": 0}]))
    assert groups[:2] == [(None, None), ("53", "2")]  # eight parts of 430 bytes: of five files each
    assert ("many", "rewrite_data_files", "done") in lake.reported()


async def test_what_a_rewrite_lost_in_every_try_is_told(lake: Lake) -> None:
    lost: list[JsonObject] = [{"rewritten_data_files_count": count} for count in (0, 5, 0)]

    async def append(call: Call) -> None:
        if call.procedure is DATA:
            await lake.append("t")

    await lake.run(Procedures(lake, before=append, answers=lost))
    assert lake.reported()[0] == ("t", "rewrite_data_files", "partly")
    explanation = (
        "14 of 14 files were not rewritten in attempt 3, and other writers committed 1 snapshot during the call"
    )
    assert lake.rows.rows[0]["explanation"] == explanation


async def test_a_row_tells_what_all_calls_cost(lake: Lake) -> None:
    lost: list[JsonObject] = [
        {"rewritten_data_files_count": count, "rewritten_bytes_count": 10 * count, "failed_data_files_count": 8 - count}
        for count in (2, 0, 8)
    ]

    async def take_long(call: Call) -> None:
        lake.runtime.ms += 90_000 if call.procedure is DATA else 0

    await lake.run(Procedures(lake, before=take_long, answers=lost))
    row = lake.rows.rows[0]
    assert (row["outcome"], row["rewritten_bytes"]) == ("done", 100)
    assert int(str(row["took_ms"])) >= 3 * 90_000
    assert lake.rows.rows[1]["rewritten_bytes"] is None


async def test_files_that_iceberg_could_not_rewrite_are_tried_again_and_no_writer_is_named(lake: Lake) -> None:
    failed: JsonObject = {"rewritten_data_files_count": 0, "failed_data_files_count": 8}
    procedures = Procedures(lake, answers=[failed] * 3)
    await lake.run(procedures)
    assert procedures.calls.count("t rewrite_data_files") == 3
    assert lake.reported()[0] == ("t", "rewrite_data_files", "failed")
    assert lake.rows.rows[0]["explanation"] == "8 of 8 files were not rewritten in attempt 3, and Iceberg failed with 8"


async def test_without_a_sign_of_a_writer_fewer_files_than_expected_are_reported_and_not_tried_again(
    lake: Lake,
) -> None:
    procedures = Procedures(lake, answers=[{"rewritten_data_files_count": 5, "failed_data_files_count": 0}])
    await lake.run(procedures)
    assert procedures.calls.count("t rewrite_data_files") == 1
    assert lake.reported()[0] == ("t", "rewrite_data_files", "done")
    assert lake.rows.rows[0]["explanation"] == "fewer files than expected: 5 of 8 were rewritten"


async def test_snapshots_of_other_rewrites_are_no_sign_of_a_writer(lake: Lake) -> None:
    async def rewrite(call: Call) -> None:
        if call.procedure is DATA:
            await lake.append("t", operation="replace")

    procedures = Procedures(lake, before=rewrite, answers=[{"rewritten_data_files_count": 0}])
    await lake.run(procedures)
    assert procedures.calls.count("t rewrite_data_files") == 1


async def test_a_procedure_that_writers_beat_again_and_again_gives_way(lake: Lake) -> None:
    async def lose(call: Call) -> None:
        if call.procedure is DATA:
            raise ProcedureFailed("ValidationException", conflict=True)

    procedures = Procedures(lake, before=lose)
    await lake.run(procedures)
    assert procedures.calls.count("t rewrite_data_files") == 3
    assert lake.reported() == [("t", "rewrite_data_files", "conflict"), ("t", "expire_snapshots", "done")]
    assert "a concurrent writer committed first in attempt 3" in str(lake.rows.rows[0]["explanation"])


async def test_a_procedure_that_fails_is_told_and_the_next_one_is_called(lake: Lake) -> None:
    async def fail(call: Call) -> None:
        if call.procedure is DATA:
            raise ProcedureFailed("Cannot find field a", conflict=False)

    stats = await lake.run(Procedures(lake, before=fail))
    assert stats.outcomes == {"failed": 1, "done": 1}
    assert lake.reported() == [("t", "rewrite_data_files", "failed"), ("t", "expire_snapshots", "done")]


async def test_a_policy_that_is_detached_during_a_run_asks_for_nothing_more(lake: Lake) -> None:
    await lake.bad_table("z", files=6)

    async def detach(call: Call) -> None:
        if call.procedure is DATA:
            for kind in ("data-compaction", "snapshot-expiry"):
                await detach_policy(lake.fixture.session(path=f"/{kind}"), NS, kind, Securable(NS))

    procedures = Procedures(lake, after=detach)
    await lake.run(procedures)
    assert procedures.calls == ["t rewrite_data_files"]


async def test_when_its_time_is_over_a_run_begins_nothing_more(lake: Lake) -> None:
    async def take_long(call: Call) -> None:
        lake.runtime.ms += 2 * 60_000 if call.procedure is DATA else 0

    await lake.bad_table("z", files=6)
    procedures = Procedures(lake, before=take_long)
    await lake.run(procedures, Budget.of(lake.runtime, None, minutes=1))
    assert procedures.calls == ["t rewrite_data_files"]
    assert "time" in lake.seen.left_tables["z"]


async def test_bytes_are_rewritten_as_far_as_the_budget_goes(lake: Lake) -> None:
    await lake.bad_table("z", files=6)
    limits: list[object] = []

    async def look(call: Call) -> None:
        if call.procedure is DATA:
            limits.append(call.arguments["options"].get("max-files-to-rewrite"))  # type: ignore[union-attr]

    await lake.run(Procedures(lake, before=look), Budget(lake.runtime, max_bytes=100))
    assert limits == [None, "2"]  # 80 bytes of one table, and 20 of the other: a file has ten


async def test_a_task_whose_table_is_gone_ends(lake: Lake) -> None:
    async def die(call: Call) -> None:
        raise Killed

    with pytest.raises(Killed):
        await lake.run(Procedures(lake, before=die))
    await drop_table(lake.fixture.session(), NS, "t", purge=False)
    lake.lease_runs_out()
    await lake.run()
    assert lake.reported() == [("t", "rewrite_data_files", "failed")]
    state = lake.fixture.session().state
    assert [hint.task async for hint in all_hints(state)] == []
    for task in await list_tasks(state):
        stored = await read_task(state, task)
        assert stored is not None
        assert stored.task.status in ENDED


async def test_workers_of_servers_leave_such_tasks_alone(lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
    async def die(call: Call) -> None:
        raise Killed

    with pytest.raises(Killed):
        await lake.run(Procedures(lake, before=die))
    lake.lease_runs_out()
    with caplog.at_level(logging.WARNING):
        assert await task_worker(lake.fixture.another().catalog).run_due(lambda: False) == 0
    assert caplog.messages == []
    await lake.run()
    assert lake.reported() == WELL
