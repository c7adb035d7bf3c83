"""Old reports of scans and commits: nothing leads to them, and they go by their age
(docs/design/collection.md#how-it-works)."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from arco_catalog.planning.collection import Kind
from arco_catalog.upkeep.collection.dealing import Batch, Dealer, all_of, deal_out
from arco_catalog.upkeep.collection.entities import Entities
from arco_catalog.upkeep.collection.run import Run
from storage_backends import Listed


async def collect_reports(run: Run, entities: Entities, dealer: Dealer) -> None:
    """Collects reports that are older than receipts are kept."""
    await deal_out(dealer, run, entities, _batches(run))


async def _batches(run: Run) -> AsyncGenerator[Batch[Listed, None], None]:
    async with aclosing(run.older(run.paths.reports, run.retention.receipts_ms)) as batches:
        async for batch in batches:
            yield all_of(Kind.REPORT, batch)
