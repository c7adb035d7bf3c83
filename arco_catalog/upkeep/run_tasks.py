"""Executes the due tasks of each catalog of a deployment, or one task, within a time limit
(docs/design/tasks.md#who-works)."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence

from arco_catalog.iceberg.errors import CatalogError
from arco_catalog.operations.catalogs import DeployedCatalog
from arco_catalog.state.runtime import Runtime
from arco_catalog.tasks.retry import TaskPolicies
from arco_catalog.tasks.work_stats import WorkStats
from arco_catalog.upkeep.delivery.sinks import Sinks
from arco_catalog.upkeep.purge.delegate import Delegate
from arco_catalog.upkeep.purge.worker import task_worker
from storage_backends import StoreError

_LOG = logging.getLogger(__name__)


async def run_tasks(
    catalogs: Sequence[DeployedCatalog],
    runtime: Runtime,
    end_ms: int,
    policies: TaskPolicies,
    task: str | None = None,
    *,
    delegate: Delegate | None = None,
    sinks: Sinks | None = None,
) -> AsyncGenerator[tuple[DeployedCatalog, WorkStats], None]:
    """Executes the due tasks of each catalog, or the one `task`, and yields the counts of each. Every catalog has an
    equal share of the time that is left until `end_ms`; then the leases of running tasks are released, and `stopped` is
    set. With `sinks` it delivers events to the receivers that `sinks` makes and, without `task`, also fills the event
    feed of each catalog. A catalog that can't be opened or read is logged, has `error` in its counts, and does
    not stop the others."""
    for place, catalog in enumerate(catalogs):
        share_ms = (end_ms - runtime.now_ms()) // (len(catalogs) - place)
        stats = WorkStats()
        try:
            worker = task_worker(catalog.open(), policies, delegate=delegate, sinks=sinks)
            stats = worker.stats
            async with asyncio.timeout(max(0, share_ms) / 1000) as timeout:
                await (worker.run_until_idle() if task is None else worker.run_task(task))
        except TimeoutError:
            if not timeout.expired():
                raise
            stats.stopped = True
        except (CatalogError, StoreError) as error:
            stats.error = f"catalog {catalog.name}: {error}"
            _LOG.error("one catalog's due tasks were not all executed, and other catalogs' go on: %s", stats.error)
        yield catalog, stats
