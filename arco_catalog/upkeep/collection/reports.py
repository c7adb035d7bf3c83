"""Deletes old reports of scans and commits, which engines have sent. No record refers to them, so their age decides
(docs/design/collection.md#how-it-works)."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from arco_catalog.planning.collection import Kind
from arco_catalog.upkeep.collection.batch_runner import Batch, BatchRunner, all_of, run_all
from arco_catalog.upkeep.collection.entities import Entities
from arco_catalog.upkeep.collection.run import Run
from storage_backends import Listed


async def collect_reports(run: Run, entities: Entities, runner: BatchRunner) -> None:
    """Deletes reports that are older than the retention of receipts."""
    await run_all(runner, run, entities, _batches(run))


async def _batches(run: Run) -> AsyncGenerator[Batch[Listed, None], None]:
    async with aclosing(run.older(run.paths.reports, run.retention.receipts_ms)) as batches:
        async for batch in batches:
            yield all_of(Kind.REPORT, batch)
