"""What the delegation service reports of its tasks: each beginning, and how each ended."""

import asyncio
from collections.abc import Sequence

from arco_catalog.upkeep.delegation_service.observer import TaskEnd
from arco_catalog.upkeep.delegation_service.service import DelegationService
from arco_catalog.upkeep.delegation_service.storage import Opens
from storage_backends import Deleted
from storage_backends.local.config import LocalConfig
from storage_backends.local.store import LocalStore
from storage_backends.open import opener_in
from tests.support.foreign_tables import ForeignTable, foreign_table
from tests.upkeep.delegation_service.conftest import Services

HOUR_MS = 3_600_000


class Recorder:
    """The reports, in their order."""

    def __init__(self) -> None:
        self.reports: list[tuple[str, float]] = []

    def started(self) -> None:
        self.reports.append(("started", 0.0))

    def ended(self, end: TaskEnd, seconds: float) -> None:
        self.reports.append((end, seconds))

    def lost(self, count: int) -> None:
        if count:
            self.reports.append(("lost", float(count)))


def observed(services: Services, opens: Opens = opener_in) -> tuple[DelegationService, Recorder]:
    recorded = Recorder()
    return DelegationService(services.service.state, services.access(opens=opens), observer=recorded), recorded


async def test_success_and_failure_are_reported_with_their_durations(services: Services, table: ForeignTable) -> None:
    service, recorded = observed(services)
    kept = foreign_table(services.folder, "kept", properties={"gc.enabled": "false"})

    for each in (table, kept):
        await service.ended((await services.submit(each, service=service)).id)

    assert [name for name, _ in recorded.reports] == ["started", "succeeded", "started", "failed"]
    assert all(0 <= seconds < HOUR_MS for _, seconds in recorded.reports)


async def test_a_stop_is_reported_and_what_it_lost_by_the_process_that_finds_it(
    services: Services, table: ForeignTable
) -> None:
    stuck = asyncio.Event()

    class Stopping(LocalStore):
        async def delete_many(self, keys: Sequence[str]) -> Deleted:
            stuck.set()
            await asyncio.Event().wait()
            raise AssertionError

    dying, recorded = observed(services, opens=lambda _: lambda _: Stopping(str(services.folder), config=LocalConfig()))
    await services.submit(table, service=dying)
    await asyncio.wait_for(stuck.wait(), timeout=60)
    services.runtime.ms += 5_000
    await dying.close()
    services.runtime.ms += HOUR_MS
    another, found = observed(services)

    await another.sweep_once()

    [(_, _), (end, seconds)] = recorded.reports
    assert (end, seconds >= 5.0) == ("stopped", True)
    assert found.reports == [("lost", 1.0)]
