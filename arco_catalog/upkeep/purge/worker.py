"""Makes the worker that executes the background tasks of a catalog."""

from collections.abc import Mapping

from arco_catalog.config.variables import PURGE_EXECUTOR
from arco_catalog.operations.lazy_vending import LazyVending
from arco_catalog.operations.tasks import submitted_purge
from arco_catalog.protocol.catalog import Catalog
from arco_catalog.state.runtime import Runtime
from arco_catalog.state.task import EVENT_DELIVERY, EXPIRY_SWEEP, TABLE_EXPIRY, TABLE_MAINTENANCE, TABLE_PURGE, Task
from arco_catalog.tasks.execution import Execution, Executor, TaskResult
from arco_catalog.tasks.retry import TaskPolicies
from arco_catalog.tasks.worker import Worker
from arco_catalog.upkeep.delivery.executor import Deliveries, DeliveryExecutor
from arco_catalog.upkeep.delivery.sinks import Sinks
from arco_catalog.upkeep.expiry.executor import ExpiryExecutor
from arco_catalog.upkeep.expiry.sweep import SweepExecutor, Sweeps
from arco_catalog.upkeep.purge.delegate import Delegate
from arco_catalog.upkeep.purge.executor import AntiJoin, PurgeExecutor


class LeftToThePipeline:
    """The executor for a type of task that only jobs of the pipeline execute (docs/maintenance.md): it takes no
    task."""

    def takes(self, task: Task) -> bool:
        """Returns False, for every task."""
        return False

    async def execute(self, execution: Execution) -> TaskResult:
        """Raises `NotImplementedError`: a worker does not call it, because `takes` refuses each task."""
        raise NotImplementedError

    async def abandon(self, execution: Execution, reason: str) -> None:
        """Raises `NotImplementedError`: a worker does not call it, because `takes` is False."""
        raise NotImplementedError


def task_worker(
    catalog: Catalog,
    policies: TaskPolicies | None = None,
    *,
    delegate: Delegate | None = None,
    anti_join: AntiJoin | None = None,
    sinks: Sinks | None = None,
    fills_feed: bool = True,
) -> Worker:
    """Makes a worker of this process for the tasks of a catalog. It hands purges over to the service of `delegate`, as
    far as they may be, or executes them by `anti_join`; with neither, it purges by itself. It expires snapshots where a
    policy requires it, and leaves maintenance tasks to the pipeline. With `sinks` it also fills the catalog's event
    feed, unless `fills_feed` is false, and delivers events to the receivers that `sinks` makes. `policies` has the
    leases and retries; None for the default ones."""
    executors: Mapping[str, Executor] = {
        TABLE_PURGE: PurgeExecutor(delegate, anti_join),
        TABLE_MAINTENANCE: LeftToThePipeline(),
        TABLE_EXPIRY: ExpiryExecutor(),
        EXPIRY_SWEEP: SweepExecutor(),
        EVENT_DELIVERY: DeliveryExecutor(sinks),
    }
    sweeps = Sweeps(catalog.runtime)
    feeding = None
    if sinks is not None and fills_feed:
        from arco_catalog.upkeep.feed.work import FeedWork

        feeding = FeedWork(catalog, Deliveries())
    return Worker(catalog, executors, submitted_purge, policies or TaskPolicies(), sweeps.submit_due, feeding)


def delegate_from_env(environment: Mapping[str, str], runtime: Runtime) -> Delegate | None:
    """Returns the client of the delegation service that the environment variables name, with the vending of
    credentials; None if they let workers purge by themselves. Raises `ValueError` for wrong variables."""
    if PURGE_EXECUTOR.read(environment) == "local":
        return None
    from arco_catalog.upkeep.purge.delegation_client import client_from_env

    return Delegate(client_from_env(environment, runtime.now_ms), LazyVending(environment, runtime))
