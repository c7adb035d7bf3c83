"""Writers of one table in one process go one after the other, and nothing rests on it."""

import asyncio
from dataclasses import replace

from arco_catalog.iceberg.json import loads
from arco_catalog.operations.turns import Turns
from storage_backends.memory import MemoryStore
from storage_backends.wrappers.counting import CountingStore
from storage_backends.wrappers.delaying import DelayingStore
from tests.operations.desk import Desk, set_property

WRITERS = 8


async def busy_desk(turns: Turns | None) -> Desk:
    desk = Desk(CountingStore(DelayingStore(MemoryStore(), 0.001)))
    await desk.namespace()
    await desk.table()
    await desk.commit(set_property("warm", "1"))
    desk.catalog = replace(desk.catalog, turns=turns)
    return desk


async def calls_of_writers(desk: Desk) -> int:
    """Store calls of writers who all begin at once; all must commit."""
    assert isinstance(desk.store, CountingStore)
    with desk.store.measure() as measured:
        await asyncio.gather(*(desk.commit(set_property(f"p{number}", "1")) for number in range(WRITERS)))
    document = loads((await desk.commit(set_property("warm", "1"))).metadata)
    assert isinstance(document, dict)
    properties = document["properties"]
    assert isinstance(properties, dict)
    assert {f"p{number}" for number in range(WRITERS)} <= properties.keys()
    return measured.calls


async def test_writers_of_one_process_do_not_overtake_each_other() -> None:
    turns = Turns()

    assert await calls_of_writers(await busy_desk(turns)) == 5 * WRITERS  # as many as for each alone
    assert len(turns) == 0


async def test_without_turns_they_do_and_commit_all_the_same() -> None:
    assert await calls_of_writers(await busy_desk(None)) > 5 * WRITERS


async def test_tables_do_not_wait_for_each_other() -> None:
    turns = Turns()
    async with turns.turn("one"), asyncio.timeout(10), turns.turn("another"):
        assert len(turns) == 2


async def test_who_waits_too_long_goes_anyway() -> None:
    turns = Turns(patience_seconds=0.01)
    async with turns.turn("table"):
        async with asyncio.timeout(10), turns.turn("table"):
            assert len(turns) == 1
        async with asyncio.timeout(10), turns.turn("table"):
            assert len(turns) == 1
    assert len(turns) == 0


async def test_one_who_gives_up_does_not_stop_those_behind() -> None:
    turns, went = Turns(), []

    async def go(number: int) -> None:
        async with turns.turn("table"):
            went.append(number)

    async with turns.turn("table"):
        waiting = [asyncio.create_task(go(number)) for number in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
    await asyncio.wait(waiting)

    assert went == [1, 2]
    assert len(turns) == 0
