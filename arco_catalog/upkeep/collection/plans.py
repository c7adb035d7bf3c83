"""Deletes old requests of scans, which plans name. No record refers to them, so age is the only criterion
(docs/design/scan-planning.md#requests-in-the-store)."""

from functools import partial

from arco_catalog.planning.collection import Kind
from arco_catalog.upkeep.collection.batch_runner import BatchRunner, delete_all, run_older
from arco_catalog.upkeep.collection.entities import Entities
from arco_catalog.upkeep.collection.run import Run


async def collect_plans(run: Run, entities: Entities, runner: BatchRunner) -> None:
    """Deletes the requests of scans that are older than `retention.plans_ms`, and so than all plans of them. A dry run
    only counts them."""
    work = partial(delete_all, kind=Kind.PLAN)
    await run_older(runner, run, entities, run.paths.plan_requests, run.retention.plans_ms, work)
