"""Looks for tasks of several catalogs again and again, in a process that serves requests beside."""

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
"""Between two looks, on average: a look is one LIST a catalog. Several processes take theirs at different times."""
CATALOGS_A_SECOND = 1.0
"""How many catalogs are looked into on average, where there are so many that a pause would not do for all."""
SOON_SECONDS = 1.5
"""After a look that was asked for: times of stores are whole seconds, so what is due now may look so only then."""
AT_ONCE = 8
"""How many looks are under way at the same time."""
LOOKS_AT_ONCE = 2
"""How many of them are into one catalog: while one executes a long task, the other finds what has become due since."""

Workers = Callable[[], Awaitable[Mapping[str, Worker]]]
"""The worker of each catalog that there is now, by the catalog's root: the same one each time. Raises `StoreError`, and
`CatalogError`."""
Report = Callable[[str, WorkStats], None]
"""Told what the worker of the catalog of a name met and did in a look."""


class WakeUp:
    """Ends the pause of a loop for the catalogs of some roots."""

    def __init__(self) -> None:
        self._roots: set[str] = set()
        self._event = asyncio.Event()

    async def task_due(self, root: str, in_ms: int) -> None:
        """A task of this catalog is due: see `NotifyWorkers`. What is due later is found by looking."""
        if in_ms <= 0:
            self._roots.add(root)
            self._event.set()

    async def wait(self, seconds: float) -> set[str]:
        """Waits until there is something to do, at most so long. Returns for which catalogs; none when time is over."""
        try:
            async with asyncio.timeout(seconds):
                await self._event.wait()
        except TimeoutError:
            return set()
        roots, self._roots = self._roots, set()
        self._event.clear()
        return roots


async def keep_working(workers: Workers, runtime: Runtime, wake_up: WakeUp, report: Report) -> NoReturn:
    """Does what is due in every catalog until it is cancelled: then each worker gives back what it is at. A long task
    holds up no other, of this catalog or of another."""
    under_way: dict[str, set[asyncio.Task[None]]] = {}
    slots = asyncio.Semaphore(AT_ONCE)
    woken: set[str] = set()
    async with asyncio.TaskGroup() as group:
        while True:
            there = await _there(workers)
            under_way = {root: {look for look in looks if not look.done()} for root, looks in under_way.items()}
            for root, worker in there.items():
                looks = under_way.setdefault(root, set())
                if len(looks) < LOOKS_AT_ONCE and (not woken or root in woken):
                    looks.add(group.create_task(_work(root, worker, slots, report)))
            pause = poll_pause_s(runtime.random(), max(PAUSE_SECONDS, len(there) / CATALOGS_A_SECOND))
            woken = await wake_up.wait(SOON_SECONDS if woken else pause)


async def _there(workers: Workers) -> Mapping[str, Worker]:
    try:
        return await workers()
    except (StoreError, CatalogError) as error:
        _LOG.warning("catalogs can't be looked for: %s", error)
        return {}


async def _work(root: str, worker: Worker, slots: asyncio.Semaphore, report: Report) -> None:
    async with slots:
        try:
            await worker.run_until_idle()
        except (StoreError, CatalogError) as error:
            worker.stats.error = str(error)
            _LOG.warning("tasks of %s can't be looked for: %s", root, error)
        except Exception:  # a bug in one catalog's work must not end that of the others, nor the server's
            worker.stats.error = "unexpected"
            _LOG.exception("the worker of %s failed", root)
        report(worker.warehouse, worker.take_stats())
