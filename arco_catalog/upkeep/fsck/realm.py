"""Examines a realm's registry for a check: catalogs, principals and principal roles; and folders of catalogs without a
name."""

from arco_catalog.upkeep.fsck.codes import Code
from arco_catalog.upkeep.fsck.examination import Examination, Findings
from arco_catalog.upkeep.fsck.findings import Finding
from arco_catalog.upkeep.fsck.records import examine_records
from arco_catalog.upkeep.fsck.registry import examine_registry


async def check_realm(examination: Examination) -> Findings:
    """Examines a realm's registry and records, without the state of its catalogs, and yields the findings. If all
    entries of the registry's index could be read, folders with the state of catalogs that the realm does not have are
    findings too, unless they were written a moment ago. Raises `StoreError`."""
    for part in (examine_registry, examine_records):
        async for finding in part(examination):
            yield finding
    if not examination.entries_read:
        return
    before_ms = examination.session.now_ms() - examination.settling_ms
    for folder, written_ms in sorted(examination.folders.items()):
        if folder not in examination.catalogs and written_ms < before_ms:
            yield Finding(
                Code.CATALOG_STRAY,
                folder,
                "no catalog of the realm has its state in this folder: the one that had was dropped, and needs it for "
                "an undrop, or a creation did not finish",
            )
