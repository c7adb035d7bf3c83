"""What both judges accept of a transaction whose decision was collected, and what they do not."""

from collections.abc import Sequence

import pytest

from arco_catalog.state.marker import Slot, WriteSet
from arco_catalog.state.transaction import Decision, encode
from storage_backends import ANY
from tests.simulation.auditor import PATHS
from tests.simulation.collecting import CollectionAuditor
from tests.simulation.explore import trace
from tests.simulation.programs.recorder import Recorder
from tests.simulation.world import World

COLLECTED = "collected"
NAMED = "named by a marker"
SLOT = f"{PATHS.markers}00/key/0.json"
KEY = PATHS.transaction("T")
PENDING = Decision.pending(transaction="T", rank="T", move="m", members=[])


async def write(world: World, steps: Sequence[str]) -> None:
    """Puts each status of the transaction in turn, a marker that names it, or deletes its object."""
    process = world.process("p1")

    async def work() -> None:
        for number, step in enumerate(steps):
            if step == COLLECTED:
                await process.store.delete(KEY, ANY)
            elif step == NAMED:
                await process.store.put(SLOT, Slot("T", WriteSet(), {}, None).body, ANY)
            else:
                await process.store.put(KEY, encode({**PENDING.document, "status": step, "id": f"m{number}"}), ANY)

    await process.run(work())


def problems(steps: Sequence[str]) -> Sequence[str]:
    """What the recorder of drawn programs finds wrong."""
    found: list[str] = []

    async def scenario(world: World) -> None:
        recorder = Recorder(world)
        await write(world, steps)
        found.extend(recorder.history.problems)

    trace(scenario)
    return found


def audit(steps: Sequence[str]) -> None:
    """Raises what the auditor of collections finds wrong."""

    async def scenario(world: World) -> None:
        CollectionAuditor(world)
        await write(world, steps)

    trace(scenario)


LAWFUL = [
    ("pending", "aborted", COLLECTED, "pending"),
    ("pending", "aborted", COLLECTED, "pending", "aborted"),
    ("pending", "aborted", COLLECTED, "aborted"),
    ("pending", "committed", COLLECTED, "aborted"),
    ("pending", "committed", COLLECTED, "aborted", COLLECTED, "aborted"),
]
LIES = [
    ("pending", "committed", "aborted"),
    ("pending", "aborted", "committed"),
    ("pending", "committed", "pending"),
    ("pending", "aborted", COLLECTED, "committed"),
    ("pending", "committed", COLLECTED, "committed"),
    ("pending", "aborted", COLLECTED, "pending", "committed"),
    ("pending", "committed", COLLECTED, "aborted", "aborted"),
    (NAMED, "pending", "committed", COLLECTED, "aborted"),
    (NAMED, "pending", "aborted", COLLECTED, "aborted"),
]


@pytest.mark.parametrize("steps", LAWFUL)
def test_a_collected_transaction_may_be_closed_once(steps: Sequence[str]) -> None:
    assert problems(steps) == []
    audit(steps)


@pytest.mark.parametrize("steps", LIES)
def test_a_transaction_is_decided_once_and_commits_never_again(steps: Sequence[str]) -> None:
    assert any("decided twice" in problem for problem in problems(steps))
    with pytest.raises(AssertionError, match="decided twice"):
        audit(steps)
