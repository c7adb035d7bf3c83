"""What the delegation service has at a store's root: tasks, markers, and nothing else
(docs/design/tasks.md#delegation)."""

from arco_catalog.upkeep.fsck.examination import Examination, Findings
from arco_catalog.upkeep.fsck.records import examine_records
from arco_catalog.upkeep.fsck.tasks import examine_tasks


async def check_service(examination: Examination) -> Findings:
    """All findings about the service. No registry names its tasks: what a hint leads to is known by their versions
    alone. Raises `StoreError`."""
    async for finding in examine_tasks(examination):
        yield finding
    async for finding in examine_records(examination):
        yield finding
