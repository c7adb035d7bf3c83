"""`arco tasks`: lists the background tasks of a catalog, such as purges, shows one and follows it, executes due ones,
and submits a failed one again."""

import subprocess
import sys
from collections.abc import Sequence
from contextlib import aclosing

from arco_catalog.cli.columns import as_json as json_text
from arco_catalog.cli.columns import format_text, format_time
from arco_catalog.cli.command import CatalogOptions
from arco_catalog.cli.errors import CliError
from arco_catalog.cli.finders import find_catalog, find_inventory
from arco_catalog.cli.output import failure_lines, table
from arco_catalog.cli.session import DAY_MS, another, carry_out, open_session, operator_request
from arco_catalog.config.variables import EVENTS, WAREHOUSE
from arco_catalog.iceberg.errors import CatalogError
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.operations.catalogs import DeployedCatalog
from arco_catalog.operations.environment import task_policies_from_env
from arco_catalog.operations.tasks import DamagedTask, ListedTask, find_task, require_task, retry_task, tasks
from arco_catalog.planning.names import dotted
from arco_catalog.protocol.access import ALLOW_ALL
from arco_catalog.protocol.operation_request import OperationRequest
from arco_catalog.state.characters import escaped
from arco_catalog.state.fields import optional_text, texts
from arco_catalog.state.runtime import SystemRuntime
from arco_catalog.state.subscription import list_subscriptions
from arco_catalog.state.task import ENDED, correlation_id, table_identity
from arco_catalog.tasks.work_stats import WorkStats
from arco_catalog.telemetry.tasks_line import tasks_line
from arco_catalog.upkeep.delivery.sinks import sinks_from_env
from arco_catalog.upkeep.purge.worker import delegate_from_env, task_worker
from arco_catalog.upkeep.run_tasks import run_tasks
from storage_backends import StoreError

FOLLOW_SECONDS = 2.0
UNDONE = "The drop was undone, or its purge cancelled: nothing will be deleted"
STUCK = "It holds the table's locations until it succeeds: arco tasks retry {}"
HEADINGS = ("TASK", "TYPE", "ABOUT", "STATUS", "ATTEMPTS", "NEXT (UTC)", "RESULT")


def run_list(
    options: CatalogOptions, status: str | None, correlation: str | None, *, stuck: bool, as_json: bool
) -> int:
    """Displays the tasks of a catalog that match all filters: `status` (None: any), the `correlation` id of the
    client's request (None: any), and with `stuck` only purges that failed half-way. Unfinished tasks come first, then
    ended ones, both by the time at which they are or were due. Tasks that can't be read are last, with the reason,
    whatever the filters. Returns 1 if a task can't be read, else 0. Raises `CliError`."""

    def matches(listed: ListedTask) -> bool:
        task = listed.task
        selected = status in (None, task.status.value) and correlation in (None, correlation_id(task.payload))
        return selected and (listed.is_stuck or not stuck)

    async def work() -> list[ListedTask | DamagedTask]:
        async with open_session(options, "tasks", find_catalog) as session:
            return [found async for found in tasks(session)]

    every = carry_out(work)
    found = [each for each in every if isinstance(each, ListedTask) and matches(each)]
    found.sort(key=lambda listed: (listed.task.status in ENDED, listed.task.next_run_ms))
    damaged = [each for each in every if isinstance(each, DamagedTask)]
    if as_json:
        documents: list[JsonValue] = [to_json(listed) for listed in found]
        documents += [{"task_id": each.id, "unreadable": each.reason} for each in damaged]
        print(json_text(documents))
    else:
        print(table(HEADINGS, [row(listed) for listed in found]) if found else "There are no such tasks.")
        reasons = [f"{each.id}: {each.reason}" for each in damaged]
        for line in failure_lines(f"Tasks that could not be read: {len(reasons)}", reasons, len(reasons)):
            print(line)
    return 1 if damaged else 0


def run_show(options: CatalogOptions, task: str, *, follow: bool, as_json: bool) -> int:
    """Displays one task; with `follow` again whenever it has changed, until it has ended. Returns 1 if it failed, else
    0. Raises `CliError`, also if there is no such task."""

    async def work() -> int:
        async with open_session(options, "tasks", find_catalog, DAY_MS) as session:
            shown = 0
            while True:
                listed = await require_task(another(session), task)
                if listed.task.number != shown:
                    shown = listed.task.number
                    print(json_text(to_json(listed)) if as_json else as_text(listed), flush=True)
                if not follow or listed.task.status in ENDED:
                    return 1 if listed.task.status.value == "FAILURE" else 0
                await session.runtime.sleep(FOLLOW_SECONDS)

    return carry_out(work)


def run_due(options: CatalogOptions, task: str | None, *, as_json: bool) -> int:
    """Executes the tasks of a catalog that are due, after filling the event feed if the environment turns it on, or
    only `task` if it is due and no worker has it, and displays how many executions there were. If there are
    subscriptions and the feed is not turned on, a line on stderr notes that no events are sent. Returns 0, also if a
    task failed. Raises `CliError`, also if the catalog has no such task."""

    async def work() -> int:
        policies = task_policies_from_env(options.environment)
        async with open_session(options, "tasks", find_catalog, DAY_MS, writes=True) as session:
            delegate = delegate_from_env(options.environment, session.runtime)
            sinks = sinks_from_env(options.environment, session.runtime)
            worker = task_worker(session.catalog, policies, delegate=delegate, sinks=sinks)
            if sinks is None and await list_subscriptions(session.state):
                print(
                    f"No events are sent to the catalog's subscriptions: {EVENTS.name}=true is not in the environment "
                    "of this command",
                    file=sys.stderr,
                )
            if task is None:
                await worker.feed()
                return await worker.run_due(lambda: False)
            await require_task(session, task)
            return int(await worker.run_task(task))

    executed = carry_out(work)
    print(json_text({"executed": executed}) if as_json else f"{executed} tasks were executed")
    return 0


def run_all(options: CatalogOptions, task: str | None, seconds: int | None, *, as_json: bool) -> int:
    """Executes the tasks that are due in every catalog of the realm, or one task, if it is due, in the catalog that has
    it, for at most `seconds` (None: a day); with ARCO_EVENTS, and without `task`, it also fills the event feeds.
    Displays a line for each catalog. Returns 1 if the tasks of some catalog could not be read, else 0, also if a task
    failed. Raises `CliError`, also if every catalog can be read and none has `task`."""
    runtime = SystemRuntime()
    end_ms = runtime.now_ms() + (DAY_MS if seconds is None else seconds * 1000)

    async def work() -> int:
        policies, failed = task_policies_from_env(options.environment), 0
        delegate, sinks = delegate_from_env(options.environment, runtime), sinks_from_env(options.environment, runtime)
        async with (
            open_session(options, "tasks", find_inventory, writes=True) as inventory,
            aclosing(
                run_tasks(inventory.catalogs, runtime, end_ms, policies, task, delegate=delegate, sinks=sinks)
            ) as worked,
        ):
            if task is not None:
                await _require_in_one(inventory.catalogs, task, operator_request(runtime, "tasks"))
            async for catalog, stats in worked:
                line = tasks_line(catalog.name, stats, at_ms=runtime.now_ms(), namespace=None)
                print(line if as_json else counts_as_text(catalog.name, stats), flush=True)
                failed += stats.error is not None
        return 1 if failed else 0

    return carry_out(work)


async def _require_in_one(catalogs: Sequence[DeployedCatalog], task: str, request: OperationRequest) -> None:
    """Raises `CliError` if none of the catalogs has a task, and all can be read: the run reports those that can't."""
    for catalog in catalogs:
        try:
            if await find_task(catalog.open().session(request, ALLOW_ALL), task) is not None:
                return
        except (CatalogError, StoreError):
            return
    raise CliError(f"Task does not exist in any catalog: {task}")


def run_on_spark(options: CatalogOptions, task: str | None, *, every: bool) -> int:
    """Executes the purges and expiries of snapshots that are due, or one task, even a failed one, on Spark in a child
    process, which prints its own lines: in the catalog of --warehouse, or with `every` in all catalogs. Spark's own
    settings choose where it runs. Returns the exit code of the process."""
    command = [sys.executable, "-m", "reconciler.purge", "--store", options.store]
    named = {"--task": task, "--realm": options.realm, "--warehouse": None if every else options.warehouse}
    command += [text for name, value in named.items() if value is not None for text in (name, value)]
    if options.allowed:
        command += ["--allowed-location", *options.allowed]
    environment = {"PYSPARK_PYTHON": sys.executable, **options.environment, WAREHOUSE.name: options.warehouse}
    return subprocess.run(command, env=environment, check=False).returncode


def counts_as_text(name: str, stats: WorkStats) -> str:
    """Formats the counts of the worker of the catalog with this name, and whether tasks are left because the time was
    over; or only the error that prevented the work."""
    if stats.error is not None:
        return escaped(stats.error)
    counts = f"{stats.executed} tasks were executed: {stats.completed} completed, {stats.failed} failed"
    stopped = "; stopped before the end" if stats.stopped else ""
    return escaped(f"{name}: {counts}{stopped}")


def run_retry(options: CatalogOptions, task: str, *, as_json: bool) -> int:
    """Submits a failed task again, and displays it. Returns 0. Raises `CliError`, also if there is no such task or it
    has not failed."""

    async def work() -> ListedTask:
        async with open_session(options, "tasks", find_catalog, writes=True) as session:
            return ListedTask(await retry_task(session, task, session.runtime), held=False)

    again = carry_out(work)
    print(json_text(to_json(again)) if as_json else f"Submitted task {task} again")
    return 0


def to_json(listed: ListedTask) -> JsonObject:
    """Returns a task as JSON: its record, and whether a worker holds it, its drop was undone, and it failed
    half-way."""
    return {
        **listed.task.document,
        "task_payload": listed.task.payload,
        "held": listed.held,
        "undone": listed.undone,
        "stuck": listed.is_stuck,
    }


def about(listed: ListedTask) -> str:
    """Returns the dotted name of the table that a task's payload names; empty text if it names none."""
    identity = table_identity(listed.task.payload)
    return dotted(texts(identity, "namespace_levels"), optional_text(identity, "table_name") or "")


def row(listed: ListedTask) -> Sequence[str]:
    """Returns the columns of a task in the list. The time of the next run is empty if the task is over or a worker has
    it."""
    task = listed.task
    waits = task.status not in ENDED and not listed.held
    return (
        task.id,
        task.kind,
        format_text(about(listed)),
        task.status.value,
        str(task.attempts),
        format_time(task.next_run_ms) if waits else "",
        format_text(_result(listed)),
    )


def _result(listed: ListedTask) -> str | None:
    """Returns the last result of a task, None without one, and behind it how to go on if the task is stuck. If the drop
    was undone, returns a sentence about that in place of the result."""
    if listed.undone:
        return UNDONE
    summary = listed.task.summary
    return f"{summary}. {STUCK.format(listed.task.id)}" if listed.is_stuck else summary


def as_text(listed: ListedTask) -> str:
    """Formats the facts of one task, one on a line; a fact without a value has no line, except that the progress of a
    task without any is `{}`."""
    task = listed.task
    lines = [
        ("task", task.id),
        ("type", task.kind),
        ("about", about(listed)),
        ("correlation", correlation_id(task.payload) or ""),
        ("status", task.status.value + (" (a worker is at it)" if listed.held else "")),
        ("version", str(task.number)),
        ("attempts", f"{task.attempts} failed"),
        ("begins", format_time(task.next_run_ms)),
        ("progress", json_text(task.checkpoint) if task.checkpoint else ""),
        ("result", _result(listed) or ""),
        ("details", optional_text(task.document, "result_extended") or ""),
    ]
    return "\n".join(f"{name:<12} {escaped(value)}" for name, value in lines if value)
