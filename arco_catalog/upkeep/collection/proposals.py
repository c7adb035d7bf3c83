"""Deletes old proposals of registry changes, left by processes that died. No record refers to them, so age is the only
criterion (docs/design/registry.md#proposals)."""

from functools import partial

from arco_catalog.planning.collection import Kind
from arco_catalog.upkeep.collection.batch_runner import BatchRunner, delete_all, run_older
from arco_catalog.upkeep.collection.entities import Entities
from arco_catalog.upkeep.collection.run import Run


async def collect_proposals(run: Run, entities: Entities, runner: BatchRunner) -> None:
    """Deletes proposals that are older than `retention.proposals_ms`, which is much longer than a request can last. A
    dry run only counts them."""
    work = partial(delete_all, kind=Kind.PROPOSAL)
    await run_older(runner, run, entities, run.paths.proposals, run.retention.proposals_ms, work)
