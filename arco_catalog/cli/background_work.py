"""Executes the background tasks of the served catalogs in the process of `arco serve`, besides its requests."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial

from arco_catalog.cli.errors import CliError
from arco_catalog.iceberg.errors import CatalogError
from arco_catalog.operations.catalogs import DeployedCatalog, catalogs_of_realm
from arco_catalog.operations.realms import Realm
from arco_catalog.protocol.catalog import Catalog
from arco_catalog.tasks.loop import Report, WakeUp, keep_working
from arco_catalog.tasks.retry import TaskPolicies
from arco_catalog.tasks.worker import Worker
from arco_catalog.upkeep.delivery.sinks import Sinks
from arco_catalog.upkeep.purge.delegate import Delegate
from arco_catalog.upkeep.purge.worker import task_worker

Catalogs = Callable[[], Awaitable[Sequence[DeployedCatalog]]]


@asynccontextmanager
async def working(
    catalog: Catalog,
    realms: Mapping[str, Realm] | None,
    policies: TaskPolicies,
    delegate: Delegate | None,
    wake_up: WakeUp,
    report: Report,
    *,
    sinks: Sinks | None = None,
    fills_feed: bool = True,
) -> AsyncIterator[None]:
    """Returns a context that executes due tasks for as long as it lasts: of all catalogs of the realms, or of `catalog`
    if `realms` is None. `delegate` sends purges to a delegation service, if not None; `wake_up` ends a pause between
    polls; `report` gets the counts of each poll. With `sinks` each poll also fills the event feed of its catalog
    unless `fills_feed` is false, and delivers events to the receivers that `sinks` makes. At the end of the context a
    task under way is cancelled, and another worker may continue it."""

    async def served() -> Sequence[DeployedCatalog]:
        if realms is None:
            return [DeployedCatalog(catalog.settings.warehouse, lambda: catalog)]
        return [each for realm in realms.values() for each in await catalogs_of_realm(realm) or ()]

    workers = ServedWorkers(served, policies, delegate, sinks=sinks, fills_feed=fills_feed)
    work = asyncio.create_task(keep_working(workers.now, catalog.runtime, wake_up, report))
    try:
        yield
    finally:
        work.cancel()
        with suppress(asyncio.CancelledError):
            await work


def policies_of(properties: Sequence[str]) -> TaskPolicies:
    """Returns the policies in the values of --task-property, which set leases and retries of tasks. Raises `CliError`
    for an invalid one."""
    try:
        return TaskPolicies.of_pairs(properties)
    except ValueError as error:
        raise CliError(f"--task-property: {error}") from error


class ServedWorkers:
    """The workers of the served catalogs, one for each catalog that can be opened. A catalog has the same worker for as
    long as it has the same `Catalog`: after a change of the catalog it is opened anew, and gets a new worker."""

    def __init__(
        self,
        catalogs: Catalogs,
        policies: TaskPolicies,
        delegate: Delegate | None,
        *,
        sinks: Sinks | None = None,
        fills_feed: bool = True,
    ) -> None:
        self._catalogs = catalogs
        self._make = partial(task_worker, policies=policies, delegate=delegate, sinks=sinks, fills_feed=fills_feed)
        self._workers: dict[str, tuple[Catalog, Worker]] = {}

    async def now(self) -> Mapping[str, Worker]:
        """Returns the workers of the catalogs that there are now, by the root of the catalog's state in the store: new
        ones for catalogs that were opened anew. A catalog that can't be opened has no worker; requests for it report
        the error. Raises `StoreError`, and `CatalogError` if the catalogs can't be read."""
        there: dict[str, tuple[Catalog, Worker]] = {}
        for deployed in await self._catalogs():
            with suppress(CatalogError):
                catalog = deployed.open()
                root = catalog.paths.root
                known = self._workers.get(root)
                if known is None or known[0] is not catalog:
                    known = catalog, self._make(catalog)
                there[root] = known
        self._workers = there
        return {root: worker for root, (_, worker) in there.items()}
