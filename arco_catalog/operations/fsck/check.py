"""A whole check of one catalog."""

from arco_catalog.operations.fsck.examination import Examination, Findings
from arco_catalog.operations.fsck.files import Scope, examine_files
from arco_catalog.operations.fsck.records import examine_records
from arco_catalog.operations.fsck.registry import examine_registry
from arco_catalog.operations.fsck.relations import examine_relations
from arco_catalog.operations.fsck.tasks import examine_tasks


async def check(examination: Examination, data: Scope | None = None) -> Findings:
    """All findings, as they are made: of all that the catalog itself has stored, and with `data` of the files of these
    tables. Raises `StoreError` if the store stops answering."""
    for part in (examine_registry, examine_relations, examine_tasks, examine_records):
        async for finding in part(examination):
            yield finding
    if data is not None:
        async for finding in examine_files(examination, data):
            yield finding


async def check_tables(examination: Examination, data: Scope) -> Findings:
    """Findings of the registry, and of the files of these tables, to which it leads. Raises as `check` does."""
    async for finding in examine_registry(examination):
        yield finding
    async for finding in examine_files(examination, data):
        yield finding
