"""Deletes old reports of scans and commits, which engines have sent. No record refers to them, so age is the only
criterion (docs/design/collection.md#how-it-works)."""

from functools import partial

from arco_catalog.planning.collection import Kind
from arco_catalog.upkeep.collection.batch_runner import BatchRunner, delete_all, run_older
from arco_catalog.upkeep.collection.entities import Entities
from arco_catalog.upkeep.collection.run import Run


async def collect_reports(run: Run, entities: Entities, runner: BatchRunner) -> None:
    """Deletes reports that are older than the retention of receipts. A dry run only counts them."""
    work = partial(delete_all, kind=Kind.REPORT)
    await run_older(runner, run, entities, run.paths.reports, run.retention.receipts_ms, work)
