"""Old reports of scans and commits: nothing leads to them, and they go by their age
(docs/design/collection.md#how-it-works)."""

from contextlib import aclosing

from arco_catalog.operations.collection.run import Run
from arco_catalog.planning.collection import Kind


async def collect_reports(run: Run) -> None:
    """Collects reports that are older than receipts are kept."""
    async with aclosing(run.older(run.paths.reports, run.retention.receipts_ms)) as batches:
        async for batch in batches:
            await run.collect(Kind.REPORT, batch)
