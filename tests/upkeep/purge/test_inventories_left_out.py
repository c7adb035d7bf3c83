"""The rules of inventories left out, one at a time: each must make a test fail (docs/design/purge.md#rule-29)."""

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace

import pytest

from arco_catalog.state.pointer import Pointer
from arco_catalog.state.purge_chunks import Chunk, Position, Stage, read_chunk
from arco_catalog.state.purge_progress import Phase, Progress
from arco_catalog.tasks.execution import Execution
from arco_catalog.upkeep.purge import take_inventory as taking
from arco_catalog.upkeep.purge.deletion import Deletion
from arco_catalog.upkeep.purge.inventory import Inventory
from arco_catalog.upkeep.purge.reach import ReachedFile
from arco_catalog.upkeep.purge.take_inventory import InventoryWalk
from tests.upkeep.purge import test_inventory as inventories
from tests.upkeep.purge.conftest import Purges

Mutation = Callable[[pytest.MonkeyPatch], None]
Test = Callable[[Purges], Awaitable[None]]


def a_chunk_that_is_believed_after_a_later_commit(patch: pytest.MonkeyPatch) -> None:
    async def last_chunk(execution: Execution, pointer: Pointer) -> Chunk | None:
        chunk = Progress.parse(execution.checkpoint).inventory
        return await read_chunk(execution.session().state, execution.task.id, chunk) if chunk else None

    patch.setattr(taking, "_last_chunk", last_chunk)


def an_inventory_that_every_lease_takes_anew(patch: pytest.MonkeyPatch) -> None:
    async def last_chunk(execution: Execution, pointer: Pointer) -> Chunk | None:
        return None

    patch.setattr(taking, "_last_chunk", last_chunk)


def an_inventory_that_ends_with_its_first_chunk(patch: pytest.MonkeyPatch) -> None:
    write = InventoryWalk._write

    async def done(self: InventoryWalk) -> None:
        self._position = Position(Stage.DONE)
        await write(self)

    patch.setattr(InventoryWalk, "_write_if_due", done)


def a_place_in_a_chunk_that_counts_for_the_next(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Deletion, "_done_of", lambda self, chunk: self.progress.chunk_done)


def a_place_in_a_lost_inventory_that_counts_in_the_next(patch: pytest.MonkeyPatch) -> None:
    def without(self: Progress) -> Progress:
        return replace(self, inventory="")

    patch.setattr(Progress, "without_inventory", without)


def metadata_deleted_before_what_it_leads_to(patch: pytest.MonkeyPatch) -> None:
    run = Deletion.run

    async def metadata_first(self: Deletion, inventory: Inventory) -> None:
        if self.progress.phase is Phase.DATA:
            await self._save(replace(self.progress, deleting=True))
            async with aclosing(inventory.chunks()) as chunks:
                async for chunk in chunks:
                    await self._all([ReachedFile(file) for file in reversed(chunk.files)])
        await run(self, inventory)

    patch.setattr(Deletion, "run", metadata_first)


LEFT_OUT: list[tuple[Mutation, Test]] = [
    (
        a_chunk_that_is_believed_after_a_later_commit,
        inventories.test_an_inventory_from_an_earlier_metadata_file_on_is_not_believed,
    ),
    (an_inventory_that_every_lease_takes_anew, inventories.test_a_walk_that_is_cut_goes_on_where_it_was),
    (an_inventory_that_ends_with_its_first_chunk, inventories.test_all_names_are_in_some_chunk_and_none_is_in_many),
    (a_place_in_a_chunk_that_counts_for_the_next, inventories.test_a_walk_that_is_cut_goes_on_where_it_was),
    (
        a_place_in_a_lost_inventory_that_counts_in_the_next,
        inventories.test_an_inventory_that_is_lost_among_the_metadata_files_is_taken_again,
    ),
    (
        metadata_deleted_before_what_it_leads_to,
        inventories.test_an_inventory_that_is_lost_among_the_data_files_is_taken_again,
    ),
]


@pytest.mark.parametrize(("left_out", "test"), LEFT_OUT, ids=[left_out.__name__ for left_out, _ in LEFT_OUT])
async def test_a_rule_that_is_left_out_is_found(
    purges: Purges, left_out: Mutation, test: Test, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(taking, "MAX_NAMES", 8)
    monkeypatch.setattr(taking, "AT_ONCE", 2)
    left_out(monkeypatch)
    with pytest.raises(AssertionError):
        await test(purges)
