"""Programs on a machine that sleeps past their deadline, and wakes with its clock set back, write nothing more: what
they read is too old to act on (docs/design/commit.md#rule-5)."""

from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest

from arco_catalog.iceberg.errors import CatalogError
from arco_catalog.planning.upkeep_settings import DAY_MS
from arco_catalog.protocol.catalog import Session
from arco_catalog.state.paths import Paths
from arco_catalog.state.runtime import Deadline
from arco_catalog.tasks.execution import task_session
from arco_catalog.upkeep.fsck.check import check
from arco_catalog.upkeep.fsck.examination import Examination
from arco_catalog.upkeep.fsck.repairs import CopyHead
from arco_catalog.upkeep.reconcile import reconcile
from arco_catalog.upkeep.recovery.restore import Choices, restore
from storage_backends import ANY, StoreError
from tests.support.fake_runtime import FakeRuntime, WrongClock
from tests.support.scripted_store import Match, Rule, ScriptedStore, anything, get
from tools.support.catalog_fixture import NS, CatalogFixture

PATHS = Paths("wh")
Program = Callable[[Session], Awaitable[object]]


class Sleeper:
    """A catalog with a table of which objects are gone, and a machine that sleeps in the middle of a program."""

    def __init__(self) -> None:
        self.right = FakeRuntime()
        self.store = ScriptedStore(self.right.now_ms)
        self.fixture = CatalogFixture(self.store, self.right)

    async def make(self, *, pointer: bool) -> None:
        """Makes the table, and removes what is to be written again: its pointer, or receipts and HEAD's copy."""
        await self.fixture.namespace(*NS)
        await self.fixture.table("t")
        head = await self.fixture.another().session().state.head()
        receipts = [key for key in self.store.keys(PATHS.events) if "/committed/" in key]
        lost = [*self.store.keys(PATHS.pointers)] if pointer else [*receipts, PATHS.registry_commit(str(head.id))]
        for key in lost:
            await self.store.delete(key)
        self.right.ms += DAY_MS

    async def writes(self, program: Program, match: Match, *, sleeps: bool = True) -> int:
        """The writes of a program after the first call that matches, in which the machine sleeps."""
        machine = WrongClock(self.right)
        session = CatalogFixture(self.store, machine).session(deadline_ms=DAY_MS)

        async def sleep() -> None:
            if sleeps:
                self.right.ms += 2 * DAY_MS
                machine.ahead_ms = -2 * DAY_MS
            self.store.calls.clear()

        self.store.rules = [Rule(match, first=sleep, times=1)]
        with suppress(CatalogError, StoreError):
            await program(session)
        assert not self.store.rules[0].times, "the call was not made"
        self.store.rules = []
        return sum(call.method in ("put", "delete") for call in self.store.calls)


async def repair_receipts(session: Session) -> None:
    """Repairs what a check finds, in the session of the check."""
    found = [finding async for finding in check(Examination(session, settling_ms=0))]
    for finding in found:
        if finding.repair is not None:
            await finding.repair(session)


async def copy_head(session: Session) -> None:
    """Repairs the commit of HEAD."""
    head = await session.state.head()
    await CopyHead(str(head.id))(session)


async def write_as_a_task(session: Session) -> None:
    """What an executor of a task does in its lease: it reads, and deletes."""
    own = task_session(session.catalog, "t", session.runtime.now_ms() + 60_000)
    await own.state.store.get(PATHS.manifest)
    await own.state.store.put("wh/x", b"", ANY)


async def restore_all(session: Session) -> None:
    """Restores what was lost."""
    await restore(session, Choices(), dry=False)


@pytest.mark.parametrize(
    ("program", "match"),
    [
        (reconcile, get("/iceberg_pointers/")),
        (repair_receipts, anything("/events/")),
        (copy_head, get(PATHS.manifest)),
        (restore_all, anything("/events/")),
        (write_as_a_task, get(PATHS.manifest)),
    ],
)
async def test_a_program_that_wakes_past_its_deadline_writes_nothing(program: Program, match: Match) -> None:
    awake, asleep = Sleeper(), Sleeper()
    for each in (awake, asleep):
        await each.make(pointer=program is restore_all)
    assert await awake.writes(program, match, sleeps=False) > 0
    assert await asleep.writes(program, match) == 0


class Clocks(FakeRuntime):
    """Two clocks."""

    boot = 0

    def boot_ms(self) -> int:
        return self.boot


@pytest.mark.parametrize(("wall_ms", "boot_ms", "left_ms"), [(0, 0, 100), (30, 10, 70), (-50, 90, 10), (-500, 100, 0)])
def test_the_clock_that_shows_less_time_counts(wall_ms: int, boot_ms: int, left_ms: int) -> None:
    runtime = Clocks()
    deadline = Deadline.after(runtime, 100)
    runtime.ms += wall_ms
    runtime.boot += boot_ms
    assert deadline.left_ms() == left_ms
