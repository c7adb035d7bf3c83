"""An earlier lease of a purge's task changes nothing once a later lease has written the tombstone, whether the purge
runs or was given up (docs/design/purge.md)."""

from collections.abc import Callable

import pytest

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.planning.purge import LeaseFenced, begin, give_up
from arco_catalog.state.index import Edits, Index
from arco_catalog.state.needs import Steps
from arco_catalog.state.tombstone import DROPPED, PURGING, Tombstone, task_key
from tests.support.steps import result

LATER, EARLIER = 5, 3
Step = Callable[[Index, Tombstone, int], Steps[Edits | None]]
STEPS: dict[str, Step] = {
    "begin": lambda index, stone, fence: begin(index, stone, fence, stone.purge_after_ms),
    "begin by the anti-join": lambda index, stone, fence: begin(
        index, stone, fence, stone.purge_after_ms, anti_join=True
    ),
    "give up": give_up,
    "give up and fence": lambda index, stone, fence: give_up(index, stone, fence, must_fence=True),
}


def written_by_a_later_lease(state: str) -> tuple[Index, Tombstone]:
    """An index with a tombstone in this state."""
    tombstone: JsonObject = {
        "namespace": ["db"],
        "name": "t",
        "entity": "E",
        "operation": "01DROP",
        "locations": [],
        "task": "task",
        "purge_after": 1,
        "state": state,
        "task_version": LATER,
    }
    stone = Tombstone(tombstone)
    named: JsonObject = {"namespace": ["db"], "name": "t", "entity": "E"}
    return Index({stone.key: tombstone, task_key("task"): named}), stone


@pytest.mark.parametrize("state", [DROPPED, PURGING])
@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_an_earlier_lease_is_refused(step: Step, state: str) -> None:
    index, stone = written_by_a_later_lease(state)
    with pytest.raises(LeaseFenced, match="a later lease, of version 5"):
        result(step(index, stone, EARLIER))


@pytest.mark.parametrize("fence", [LATER, LATER + 1])
def test_this_lease_and_later_ones_begin_a_purge_that_was_given_up(fence: int) -> None:
    index, stone = written_by_a_later_lease(DROPPED)
    edits = result(begin(index, stone, fence, stone.purge_after_ms))
    assert edits is not None
    assert edits[stone.key] == {**stone.json, "state": PURGING, "task_version": fence, "begun_version": fence}


def test_the_first_lease_begins_a_purge() -> None:
    """No lease has written the tombstone."""
    index, stone = written_by_a_later_lease(DROPPED)
    first = Tombstone({name: value for name, value in stone.json.items() if name != "task_version"})
    edits = result(begin(Index({**index.edits, stone.key: first.json}), first, EARLIER, stone.purge_after_ms))
    assert edits is not None
    assert edits[stone.key] == {**stone.json, "state": PURGING, "task_version": EARLIER, "begun_version": EARLIER}
