"""The worker for all tasks that a catalog has."""

from collections.abc import Mapping

from arco_catalog.config.variables import PURGE_EXECUTOR
from arco_catalog.operations.lazy_vending import LazyVending
from arco_catalog.operations.tasks import submitted_purge
from arco_catalog.protocol.catalog import Catalog
from arco_catalog.state.runtime import Runtime
from arco_catalog.state.task import TABLE_MAINTENANCE, TABLE_PURGE, Task
from arco_catalog.tasks.execution import Execution, Executor, Finished
from arco_catalog.tasks.retry import TaskPolicies
from arco_catalog.tasks.worker import Worker
from arco_catalog.upkeep.purge.delegate import Delegate
from arco_catalog.upkeep.purge.executor import AntiJoin, PurgeExecutor


class LeftToThePipeline:
    """Takes no task of a type that only a job of the pipeline does (docs/maintenance.md)."""

    def takes(self, task: Task) -> bool:
        return False

    async def execute(self, execution: Execution) -> Finished:
        raise NotImplementedError

    async def abandon(self, execution: Execution, reason: str) -> None:
        raise NotImplementedError


def task_worker(
    catalog: Catalog,
    policies: TaskPolicies | None = None,
    *,
    delegate: Delegate | None = None,
    anti_join: AntiJoin | None = None,
) -> Worker:
    """A worker of this process, which has purges done by `delegate` where that may be, or by an `anti_join`."""
    executors: Mapping[str, Executor] = {
        TABLE_PURGE: PurgeExecutor(delegate, anti_join),
        TABLE_MAINTENANCE: LeftToThePipeline(),
    }
    return Worker(catalog, executors, submitted_purge, policies or TaskPolicies())


def delegate_from_env(environment: Mapping[str, str], runtime: Runtime) -> Delegate | None:
    """The delegation service that variables name; None if purges are this process's own. Raises `ValueError`."""
    if PURGE_EXECUTOR.read(environment) == "local":
        return None
    from arco_catalog.upkeep.purge.delegation_client import client_from_env

    return Delegate(client_from_env(environment, runtime.now_ms), LazyVending(environment, runtime))
