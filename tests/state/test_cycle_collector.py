"""Python's collector of cyclic garbage beside large documents."""

import gc
import weakref
from collections.abc import Iterator
from weakref import WeakSet

import pytest

from arco_catalog.state import cycle_collector, memory, worker_threads
from arco_catalog.state.cycle_collector import CYCLE_COLLECTOR, MAX_YOUNG, SERVER_OLDER, SERVER_YOUNG, CycleCollector
from arco_catalog.state.memory import Memory
from arco_catalog.state.worker_threads import LARGE_BYTES, off_loop


@pytest.fixture(autouse=True)
def unfrozen(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No object is frozen, nor was before, and no other test has memory. No thread frees the document of another test:
    Python counts fewer young objects then."""
    worker_threads._threads().shutdown()
    worker_threads._threads.cache_clear()
    monkeypatch.setattr(memory, "_LARGE_SHARES", WeakSet())
    CYCLE_COLLECTOR.unfreeze()
    yield
    CYCLE_COLLECTOR.unfreeze()


def document(values: int = 2 * MAX_YOUNG) -> list[list[int]]:
    return [[] for _ in range(values)]


class Cycle:
    """An object that only a collection of cycles frees."""

    def __init__(self) -> None:
        self.itself = self


async def test_no_collection_traverses_a_large_document_while_its_request_has_memory() -> None:
    hold = Memory(64 << 20).hold()
    await hold.take(16 << 20)

    made = await off_loop(LARGE_BYTES, document)
    assert len(gc.get_objects()) < len(made) <= gc.get_freeze_count()

    hold.close()
    assert gc.get_freeze_count() == 0


async def test_small_amounts_of_memory_keep_no_object_from_collections() -> None:
    account = Memory(64 << 20)
    large, small = account.hold(), account.hold()
    await small.take(1_000)
    await large.take(16 << 20)
    await off_loop(LARGE_BYTES, document)

    large.close()

    assert gc.get_freeze_count() == 0
    small.close()


async def test_a_request_that_ends_beside_a_large_document_of_another_does_not_bring_it_back() -> None:
    requests, tasks = Memory(64 << 20), Memory(64 << 20)
    request, task = requests.hold(), tasks.hold()
    await request.take(16 << 20)
    await task.take(16 << 20)
    made = await off_loop(LARGE_BYTES, document)

    request.close()
    assert gc.get_freeze_count() >= len(made)

    task.close()
    assert gc.get_freeze_count() == 0


async def test_a_small_document_is_traversed_as_all_objects_are() -> None:
    await off_loop(LARGE_BYTES, lambda: document(10))

    assert gc.get_freeze_count() == 0


def test_cycles_are_freed_at_last_beside_endless_large_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cycle_collector, "MAX_FREEZES", 5)
    collector = CycleCollector()
    cycle = Cycle()
    freed = weakref.ref(cycle)
    del cycle

    def freeze() -> None:
        with collector.pause():
            made = document(MAX_YOUNG + 1_000)
        del made  # its end makes up for the next document in the count of young objects

    for _ in range(5):
        freeze()
    gc.collect()
    assert freed() is not None

    freeze()
    gc.collect()
    assert freed() is None


def test_a_server_excludes_the_objects_of_its_start_and_collects_less_often() -> None:
    before = gc.get_threshold()
    frozen = gc.get_freeze_count()
    made = document(1_000)
    try:
        CycleCollector().tune_for_server()

        assert gc.get_freeze_count() >= frozen + 1_000
        assert gc.get_threshold() == (SERVER_YOUNG, SERVER_OLDER, SERVER_OLDER)
    finally:
        gc.set_threshold(*before)
    assert len(made) == 1_000
