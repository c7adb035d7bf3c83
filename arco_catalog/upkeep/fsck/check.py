"""Checks the objects of one catalog, and on request the files of tables; or the state of a delegation service: the
tasks and idempotency markers at the root of a store (docs/design/tasks.md#delegation)."""

from arco_catalog.iceberg.errors import NoSuchTable
from arco_catalog.upkeep.fsck.examination import Examination, Findings
from arco_catalog.upkeep.fsck.feed import examine_feed
from arco_catalog.upkeep.fsck.files import Scope, examine_files
from arco_catalog.upkeep.fsck.records import examine_records
from arco_catalog.upkeep.fsck.registry import examine_registry
from arco_catalog.upkeep.fsck.relations import examine_relations
from arco_catalog.upkeep.fsck.tasks import examine_tasks


async def check(examination: Examination, data: Scope | None = None) -> Findings:
    """Checks the objects of a catalog, and with `data` also the files of the tables in that scope, and yields the
    findings. If `data` selects only some tables, checks besides their files only the registry. Raises as `check_stored`
    does."""
    async for finding in check_stored(examination, data):
        yield finding
    if data is not None:
        async for finding in examine_files(examination, data):
            yield finding


async def check_stored(examination: Examination, data: Scope | None = None) -> Findings:
    """Checks the state of a catalog: the registry, the tables and views that it names, tasks, and other records. Yields
    the findings. If `data` selects only some tables, checks only the registry, by which the tables are found. Raises
    `NoSuchTable` after the findings if a name in `data.tables` is that of no Iceberg table or view in the registry,
    live or dropped, and the registry's index could be read completely; and `StoreError`."""
    parts = (examine_registry, examine_relations, examine_tasks, examine_records, examine_feed)
    for part in parts[:1] if data is not None and data.is_part else parts:
        async for finding in part(examination):
            yield finding
    if data is not None:
        _require_known(examination, data)


async def check_service(examination: Examination) -> Findings:
    """Examines the tasks and records of a delegation service, and yields the findings. No registry names its tasks, so
    their versions alone decide about hints. Raises `StoreError`."""
    for part in (examine_tasks, examine_records):
        async for finding in part(examination):
            yield finding


def _require_known(examination: Examination, data: Scope) -> None:
    """Raises `NoSuchTable` if a name in `data.tables` is that of no Iceberg table or view in the registry, live or
    dropped. Returns without a check if the registry's index could not be read completely."""
    unknown = data.tables - {relation.name for relation in examination.relations.values()}
    if unknown and examination.entries_read:
        raise NoSuchTable(
            f"Table does not exist: {min(unknown)} is the name of no Iceberg table or view, live or dropped, so no "
            "files were checked, and nothing was mended: correct --table, and run the check once more"
        )
