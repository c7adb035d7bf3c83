"""Rules of collections left out, one at a time: each must make a test of it fail (docs/design/collection.md)."""

from collections.abc import Awaitable, Callable

import pytest

from arco_catalog.state.checkpoints import WalkCheckpoint
from arco_catalog.state.floors import forget_floors, read_floors
from arco_catalog.state.runtime import Deadline
from arco_catalog.upkeep.collection import claims, collect, run
from arco_catalog.upkeep.collection.entities import Entities
from arco_catalog.upkeep.collection.run import Run
from storage_backends import Listed
from tests.upkeep.collection import test_lost_tries, test_receipts, test_rest
from tests.upkeep.collection.conftest import Collections

Mutation = Callable[[pytest.MonkeyPatch], None]
Finder = Callable[[Collections], Awaitable[None]]


def claims_on_files_that_are_there(patch: pytest.MonkeyPatch) -> None:
    async def over(_: Run, listed: Listed) -> bool:
        return True

    patch.setattr(claims, "_is_over", over)


def floors_of_entities_that_have_names(patch: pytest.MonkeyPatch) -> None:
    async def all_of_them(known: Run, entities: Entities) -> None:
        state = known.session.state
        await forget_floors(state, [*await read_floors(state)])

    patch.setattr(collect, "collect_checkpoints", all_of_them)


def objects_that_seem_to_come_from_the_future(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(run, "is_older", lambda written_ms, now_ms, limit_ms: abs(now_ms - written_ms) >= limit_ms)


def tables_that_cannot_be_walked_to_the_end(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(WalkCheckpoint, "complete", property(lambda self: True))


def deadlines_by_the_wall_clock_alone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Deadline, "left_ms", lambda self: self.wall_ms - self.runtime.now_ms())


CASES: list[tuple[Mutation, Finder]] = [
    (claims_on_files_that_are_there, test_rest.test_the_claim_on_a_file_that_is_there_stays),
    (
        deadlines_by_the_wall_clock_alone,
        test_lost_tries.test_a_metadata_file_stays_past_the_deadline_though_the_clock_was_set_back,
    ),
    (floors_of_entities_that_have_names, test_receipts.test_no_walk_writes_again_what_was_collected),
    (objects_that_seem_to_come_from_the_future, test_rest.test_an_object_from_the_future_stays),
    (tables_that_cannot_be_walked_to_the_end, test_lost_tries.test_a_table_that_cannot_be_walked_keeps_everything),
]


@pytest.mark.parametrize(("bug", "finder"), CASES, ids=[bug.__name__ for bug, _ in CASES])
async def test_a_rule_that_is_left_out_is_missed(
    bug: Mutation, finder: Finder, collections: Collections, monkeypatch: pytest.MonkeyPatch
) -> None:
    bug(monkeypatch)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        await finder(collections)
