"""Checks and repairs in the simulated world, beside clients and workers: what they tell must be so, and what they mend
must do no harm (docs/fsck.md#repair)."""

from collections.abc import Awaitable, Iterable

from arco_catalog.iceberg.errors import CatalogError, Refusal
from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.undrop import undrop
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state.task_log import all_hints
from arco_catalog.upkeep.fsck.check import check
from arco_catalog.upkeep.fsck.codes import Severity
from arco_catalog.upkeep.fsck.examination import Examination
from storage_backends import StoreError
from tests.simulation.clients import EAGER, SimulatedClients
from tests.simulation.purging import AT_ONCE, IN_A_MINUTE, MINUTE, Purging
from tests.simulation.purging import scenario as purge_scenario
from tests.simulation.scenarios import later, scenario
from tests.simulation.world import DIED, World
from tools.support.catalog_fixture import NS, CatalogFixture

HOUR_MS = 3_600_000


async def repairs(world: World, settings: Settings, name: str, *, rounds: int, pause_s: float) -> None:
    """Checks a catalog again and again, and mends what it can; where it dies, another goes on."""
    for _ in range(rounds):
        await world.runtime.sleep(pause_s * world.runtime.random())
        process = world.process(name)
        fixture = CatalogFixture(process.store, process.runtime, settings)
        try:
            if await process.run(_check_and_mend(fixture)) is DIED:
                name += "+"
        except (StoreError, CatalogError):
            pass


async def _check_and_mend(fixture: CatalogFixture) -> None:
    """Takes nothing for too young: repairs are to be safe at any age. Nobody has damaged anything, so no error may be
    told."""
    examination = Examination(fixture.session(deadline_ms=HOUR_MS), settling_ms=0)
    found = [finding async for finding in check(examination)]
    errors = [finding for finding in found if finding.code.severity is Severity.ERROR]
    assert not errors, f"nothing is wrong, and this was told: {errors}"
    for finding in found:
        if finding.repair is not None:
            await finding.repair(fixture.session(deadline_ms=HOUR_MS))


@scenario("t", "v")
def repairs_beside_commits_and_drops(clients: SimulatedClients) -> list[Awaitable[None]]:
    return [
        clients.commit("k", "p1", "p2"),
        later(
            clients,
            1.0,
            lambda: clients.rename("r", "p3"),
            lambda: clients.create("again", "p3"),
            lambda: clients.drop("d", "p3", name="u"),
        ),
        repairs(clients.world, EAGER, "f1", rounds=6, pause_s=1.0),
        repairs(clients.world, EAGER, "f2", rounds=6, pause_s=1.0),
    ]


@scenario("t", "v")
def repairs_beside_transactions(clients: SimulatedClients) -> list[Awaitable[None]]:
    return [
        clients.transact("one", "p1", tables=("t", "v"), creates=("made",)),
        clients.transact("two", "p2", tables=("v", "t"), creates=("made",)),
        clients.commit("k", "p3", needs=None),
        repairs(clients.world, EAGER, "f1", rounds=8, pause_s=1.0),
    ]


class Thief:
    """Takes away hints."""

    def __init__(self, purging: Purging) -> None:
        self._purging = purging

    async def steal(self, times: int, pause_s: float) -> None:
        """Takes all that there are, so many times."""
        for _ in range(times):
            await self._purging.world.runtime.sleep(pause_s * self._purging.world.runtime.random())
            process = self._purging.world.process("thief")
            fixture = CatalogFixture(process.store, process.runtime, self._purging.settings)
            try:
                state = fixture.session().state
                for key in [hint.key async for hint in all_hints(state)]:
                    await state.store.delete(key)
            except StoreError:
                continue


@purge_scenario(AT_ONCE)
def repairs_beside_a_purge_whose_hints_are_stolen(purging: Purging) -> Iterable[Awaitable[object]]:
    return [
        purging.worker("w1", busy_s=3_600),
        purging.worker("w2", 10 * MINUTE, busy_s=3_600),
        Thief(purging).steal(5, 20),
        repairs(purging.world, purging.settings, "f1", rounds=12, pause_s=60),
        _mended_at_last(purging),
    ]


@purge_scenario(IN_A_MINUTE)
def repairs_beside_drops_and_undrops(purging: Purging) -> Iterable[Awaitable[object]]:
    async def undo_and_drop_again(fixture: CatalogFixture) -> object:
        await undrop(fixture.session(), NS, "t")
        return await drop_table(fixture.session(), NS, "t", purge=True)

    return [
        purging.worker("w1"),
        purging.worker("w2", 10 * MINUTE),
        purging.client("c1", 100, undo_and_drop_again),
        Thief(purging).steal(3, 60),
        repairs(purging.world, purging.settings, "f1", rounds=12, pause_s=60),
        _mended_at_last(purging),
    ]


async def _mended_at_last(purging: Purging) -> None:
    """What an operator does when all is quiet: one repair to which nothing happens."""
    await purging.world.runtime.sleep(1_500)
    fixture = CatalogFixture(purging.world.process("last", skew_ms=0).store, purging.world.runtime, purging.settings)
    try:
        await _check_and_mend(fixture)
    except Refusal as refusal:
        raise AssertionError(f"the last repair was refused: {refusal}") from refusal


SCENARIOS = [repairs_beside_commits_and_drops, repairs_beside_transactions]
PURGES = [repairs_beside_a_purge_whose_hints_are_stolen, repairs_beside_drops_and_undrops]
