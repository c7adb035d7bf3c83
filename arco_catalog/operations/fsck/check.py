"""A whole check of one catalog."""

from collections.abc import Callable

from arco_catalog.operations.fsck.examination import Examination, Findings
from arco_catalog.operations.fsck.records import examine_records
from arco_catalog.operations.fsck.registry import examine_registry
from arco_catalog.operations.fsck.relations import examine_relations


async def check(examination: Examination, progress: Callable[[int], None] | None = None) -> Findings:
    """All findings, as they are made. `progress` is told how many objects were looked at, now and then. Raises
    `StoreError` if the store stops answering."""
    if progress is not None:
        examination.progress = progress
    for part in (examine_registry, examine_relations, examine_records):
        async for finding in part(examination):
            yield finding
