"""Requests together take no more memory than they may, wait in turn, and give everything back."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arco_catalog.state.memory import SMALL_BYTES, Hold, Memory, OutOfMemory

MB = 1 << 20
LIMIT = 64 * MB


async def rounds(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_what_is_not_there_is_waited_for() -> None:
    memory = Memory(LIMIT)
    first, second = memory.hold(), memory.hold()
    await first.take(30 * MB)
    waiting = asyncio.create_task(second.take(30 * MB))
    await rounds()
    assert not waiting.done()

    first.close()
    await waiting
    assert memory.used == 30 * MB


async def test_a_request_that_waited_too_long_fails_and_takes_nothing() -> None:
    memory = Memory(LIMIT, timeout_seconds=0)
    first = memory.hold()
    await first.take(30 * MB)
    with pytest.raises(OutOfMemory), memory.hold() as second:
        await second.take(30 * MB)

    first.close()
    assert memory.used == 0


async def test_who_came_first_is_served_first() -> None:
    memory = Memory(LIMIT)
    first = memory.hold()
    await first.take(40 * MB)
    served: list[int] = []

    async def take(size: int) -> None:
        with memory.hold() as hold:
            await hold.take(size)
            served.append(size)

    waiting = [asyncio.create_task(take(size)) for size in (45 * MB, 2 * MB, 3 * MB)]
    await rounds()
    assert served == []
    first.close()
    await asyncio.gather(*waiting)
    assert served == [45 * MB, 2 * MB, 3 * MB]


async def test_large_requests_leave_a_share_to_small_ones() -> None:
    memory = Memory(LIMIT, timeout_seconds=0)
    with memory.hold() as large, memory.hold() as small:
        await large.take(LIMIT)
        with pytest.raises(OutOfMemory):
            await small.take(2 * MB)
        for _ in range(16):
            await small.take(SMALL_BYTES)
        with pytest.raises(OutOfMemory), memory.hold() as another:
            await another.take(1)


async def test_one_that_wants_more_than_there_is_goes_alone() -> None:
    memory = Memory(LIMIT, timeout_seconds=0)
    with memory.hold() as large:
        await large.take(10 * LIMIT)
        await large.take(10 * LIMIT)
        with pytest.raises(OutOfMemory):
            await memory.hold().take(2 * MB)
    assert memory.used == 0


async def test_who_gives_up_waiting_stands_in_nobodys_way() -> None:
    memory = Memory(LIMIT)
    first = memory.hold()
    await first.take(40 * MB)
    impatient = asyncio.create_task(memory.hold().take(48 * MB))
    await rounds()
    patient = asyncio.create_task(memory.hold().take(8 * MB))
    await rounds()
    assert not patient.done()

    impatient.cancel()
    await rounds()
    assert patient.done()
    assert memory.used == 48 * MB


async def test_memory_that_comes_as_its_taker_is_cancelled_is_given_on() -> None:
    memory = Memory(LIMIT)
    first = memory.hold()
    await first.take(40 * MB)
    cancelled = asyncio.create_task(memory.hold().take(48 * MB))
    await rounds()
    first.close()
    cancelled.cancel()
    await rounds()
    assert cancelled.cancelled()
    assert memory.used == 0


async def test_a_request_that_is_over_takes_nothing_more() -> None:
    memory = Memory(LIMIT)
    hold = memory.hold()
    hold.close()
    await hold.take(MB)
    assert memory.used == 0


async def test_a_cancelled_wait_is_passed_over_by_what_is_given_back_in_the_same_round() -> None:
    memory = Memory(LIMIT)
    first = memory.hold()
    await first.take(40 * MB)
    cancelled = asyncio.create_task(memory.hold().take(48 * MB))
    await rounds()
    cancelled.cancel()
    first.close()
    await rounds()
    assert cancelled.cancelled()
    assert memory.used == 0


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2 * LIMIT), st.booleans()), max_size=30))
def test_never_more_is_taken_than_there_is_and_all_of_it_comes_back(steps: list[tuple[int, int, bool]]) -> None:
    async def play() -> None:
        memory = Memory(LIMIT)
        holds = [memory.hold() for _ in range(4)]
        tasks: list[asyncio.Task[object]] = []
        for who, size, ends in steps:
            if ends:
                holds[who].close()
                holds[who] = memory.hold()
            else:
                tasks.append(asyncio.create_task(holds[who].take(size)))
            await rounds(2)
            assert 0 <= memory.used <= LIMIT
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for hold in holds:
            hold.close()
        assert memory.used == 0

    asyncio.run(play())


async def test_without_a_memory_nothing_is_counted() -> None:
    with Hold() as hold:
        assert (await hold.take(1 << 60)).size == 0


async def test_one_principal_cannot_take_all_and_others_go_on() -> None:
    memory = Memory(LIMIT)
    busy = [memory.hold("a") for _ in range(3)]
    await busy[0].take(12 * MB)
    await busy[1].take(12 * MB)
    waiting = asyncio.create_task(busy[2].take(12 * MB))
    others = [memory.hold(owner) for owner in ("b", None)]
    await rounds()

    await asyncio.gather(*(other.take(12 * MB) for other in others))
    assert not waiting.done()

    busy[0].close()
    await waiting
    for hold in (*busy, *others):
        hold.close()
    assert memory.used == 0


async def test_a_request_that_waits_for_others_of_its_principal_names_the_reason() -> None:
    memory = Memory(LIMIT, timeout_seconds=0)
    await memory.hold("a").take(20 * MB)

    with pytest.raises(OutOfMemory, match="of the same principal"):
        await memory.hold("a").take(20 * MB)


async def test_a_request_of_a_principal_without_others_may_take_more_than_its_part() -> None:
    memory = Memory(LIMIT, timeout_seconds=0)
    hold = memory.hold("a")
    await hold.take(40 * MB)
    await hold.take(8 * MB)
    assert memory.used == 48 * MB


async def test_a_request_that_has_begun_is_not_stopped_by_others_of_its_principal() -> None:
    memory = Memory(LIMIT, timeout_seconds=0)
    first, second = memory.hold("a"), memory.hold("a")
    await first.take(12 * MB)
    await second.take(12 * MB)
    await first.take(12 * MB)
    assert memory.used == 36 * MB


async def test_principals_are_forgotten_with_their_requests() -> None:
    memory = Memory(LIMIT)
    for number in range(100):
        with memory.hold(f"p{number}") as hold:
            await hold.take(2 * MB)
            await hold.take(100)
    assert all(not share._of_owners for share in (memory.share_of(1), memory.share_of(2 * MB)))


async def test_a_request_that_has_all_memory_takes_more_though_another_waits_for_it() -> None:
    memory = Memory(64 << 20, timeout_seconds=10)
    first, second = memory.hold(), memory.hold()
    await first.take(1 << 40)
    waiting = asyncio.create_task(second.take(1 << 40))
    await asyncio.sleep(0)

    async with asyncio.timeout(1):
        await first.take(1 << 40)

    first.close()
    await waiting
    second.close()
    assert memory.used == 0
