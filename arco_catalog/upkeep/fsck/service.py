"""Checks the state of a delegation service: the tasks and idempotency markers at the root of a store
(docs/design/tasks.md#delegation)."""

from arco_catalog.upkeep.fsck.examination import Examination, Findings
from arco_catalog.upkeep.fsck.records import examine_records
from arco_catalog.upkeep.fsck.tasks import examine_tasks


async def check_service(examination: Examination) -> Findings:
    """Examines the tasks and records of a delegation service, and yields the findings. No registry names its tasks, so
    their versions alone decide about hints. Raises `StoreError`."""
    async for finding in examine_tasks(examination):
        yield finding
    async for finding in examine_records(examination):
        yield finding
