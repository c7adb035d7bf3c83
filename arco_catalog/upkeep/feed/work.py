"""Runs the sequencer of the event feed in the worker of a catalog (docs/design/events.md)."""

import asyncio
import logging

from arco_catalog.iceberg.errors import CatalogError
from arco_catalog.protocol.catalog import Catalog
from arco_catalog.tasks.execution import task_session
from arco_catalog.tasks.feed_stats import FeedStats
from arco_catalog.upkeep.delivery.executor import Deliveries
from arco_catalog.upkeep.feed.sequencer import Sequencer
from storage_backends import StoreError

_LOG = logging.getLogger(__name__)

RUN_MS = 10 * 60_000
"""The maximum time of one run; the next one goes on."""


class FeedWork:
    """Enters the changes of a catalog into its event feed, whenever its worker looks for tasks. One run goes on at a
    time; what another process enters is not entered again. Then it makes the tasks of `deliveries` that send events to
    subscriptions."""

    def __init__(self, catalog: Catalog, deliveries: Deliveries) -> None:
        self._catalog = catalog
        self._deliveries = deliveries
        self._sequencer = Sequencer()
        self._running = asyncio.Lock()

    async def __call__(self, stats: FeedStats) -> int:
        """Makes steps until all changes are in the feed, another process makes a segment first, or half of the time of
        a run is over, and then the tasks of deliveries; adds the counts to `stats`. Does nothing while a run of this
        process goes on. Returns the number of tasks that it created or found. An error of the store or the catalog is
        logged, counted and not raised, and tables that can't be read are logged: the next run goes on from the stored
        feed."""
        if self._running.locked():
            return 0
        before, warehouse = self._deliveries.created, self._catalog.settings.warehouse
        async with self._running:
            session = task_session(self._catalog, "events", self._catalog.runtime.now_ms() + RUN_MS)
            try:
                await self._sequencer.run(session, stats)
                stats.waiting += await self._deliveries.submit_due(session)
            except (StoreError, CatalogError) as error:
                stats.errors += 1
                _LOG.warning("the work on the event feed of %s failed, and the next run goes on: %s", warehouse, error)
        for reason in stats.reasons:
            _LOG.warning(
                "commits could not enter the event feed of %s, and the next run tries again: %s", warehouse, reason
            )
        return self._deliveries.created - before
