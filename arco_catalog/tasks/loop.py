"""Executes due tasks of several catalogs in a loop, in a process that also serves requests."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import NoReturn

from arco_catalog.iceberg.errors import CatalogError
from arco_catalog.state.runtime import Runtime
from arco_catalog.tasks.work_stats import WorkStats
from arco_catalog.tasks.worker import Worker
from storage_backends import StoreError
from storage_backends.backoff import poll_pause_s

_LOG = logging.getLogger(__name__)

PAUSE_SECONDS = 20.0
"""The average pause between two polls. A poll is one LIST for each catalog. Several processes poll at different
times."""
CATALOGS_A_SECOND = 1.0
"""The average rate of polled catalogs. With many catalogs it makes the pause longer."""
SOON_SECONDS = 1.5
"""The pause after a poll for a due task: times of stores are whole seconds, so it may be due there only then."""
AT_ONCE = 8
"""Maximum number of concurrent runs of workers."""
LOOKS_AT_ONCE = 2
"""Maximum number of runs in one catalog: while one executes a long task, the other finds tasks that are due since."""

Workers = Callable[[], Awaitable[Mapping[str, Worker]]]
"""Returns the worker of each catalog that exists now, by the catalog's root. A catalog has one worker in all calls.
Raises `StoreError`, and `CatalogError`."""
Report = Callable[[str, WorkStats], None]
"""Receives the name of a catalog and the statistics of its worker after each poll."""


class WakeUp:
    """Ends the pause of the loop that executes tasks as soon as a task is due, and names the roots of the catalogs that
    have one."""

    def __init__(self) -> None:
        self._roots: set[str] = set()
        self._event = asyncio.Event()

    async def task_due(self, root: str, in_ms: int) -> None:
        """Ends the pause of the loop that executes tasks if a task of the catalog with this root is due now: `in_ms` is
        the time until then in milliseconds. Does nothing for a task that is due later, which is for a poll."""
        if in_ms <= 0:
            self._roots.add(root)
            self._event.set()

    async def wait(self, seconds: float) -> set[str]:
        """Waits until `task_due` names a due task, for at most this many seconds; returns at once if it has named one
        since the last call. Returns the roots of the catalogs with such tasks, and forgets them; empty after a
        timeout."""
        try:
            async with asyncio.timeout(seconds):
                await self._event.wait()
        except TimeoutError:
            return set()
        roots, self._roots = self._roots, set()
        self._event.clear()
        return roots


async def keep_working(workers: Workers, runtime: Runtime, wake_up: WakeUp, report: Report) -> NoReturn:
    """Executes the due tasks of every catalog until it is cancelled; each worker then gives its tasks back to others.
    It polls after a pause, or as soon as `wake_up` names a due task. Calls `report` with a catalog's name and the
    statistics of its worker after each run, also of one that failed, which is logged. One long task delays no other,
    neither of its catalog nor of another, and at most `AT_ONCE` runs go on at once."""
    under_way: dict[str, set[asyncio.Task[None]]] = {}
    slots = asyncio.Semaphore(AT_ONCE)
    woken: set[str] = set()
    async with asyncio.TaskGroup() as group:
        while True:
            there = await _list_workers(workers)
            under_way = {root: {look for look in looks if not look.done()} for root, looks in under_way.items()}
            for root, worker in there.items():
                looks = under_way.setdefault(root, set())
                if len(looks) < LOOKS_AT_ONCE and (not woken or root in woken):
                    looks.add(group.create_task(_work(root, worker, slots, report)))
            pause = poll_pause_s(runtime.random(), max(PAUSE_SECONDS, len(there) / CATALOGS_A_SECOND))
            woken = await wake_up.wait(SOON_SECONDS if woken else pause)


async def _list_workers(workers: Workers) -> Mapping[str, Worker]:
    """Returns the workers of the catalogs that exist now, by root; none if these can't be listed, which is logged."""
    try:
        return await workers()
    except (StoreError, CatalogError) as error:
        _LOG.warning(
            "the catalogs can't be listed, so this poll looks for no due tasks, and the next one looks for them: %s",
            error,
        )
        return {}


async def _work(root: str, worker: Worker, slots: asyncio.Semaphore, report: Report) -> None:
    """Executes the due tasks of one catalog until none is left, once one of the `slots` is free, and then calls
    `report` with the worker's statistics. A failure is logged and reported in them, and not raised."""
    async with slots:
        try:
            await worker.run_until_idle()
        except (StoreError, CatalogError) as error:
            worker.stats.error = str(error)
            _LOG.warning(
                "the due tasks of %s can't be listed to the end, so this poll executes no more of them, and the next "
                "poll lists them: %s",
                root,
                error,
            )
        except Exception:  # an error in one catalog's tasks must not end those of others, nor the server
            worker.stats.error = "unexpected"
            _LOG.exception("the run of due tasks of %s failed unexpectedly, and the next poll starts another", root)
        report(worker.warehouse, worker.take_stats())
