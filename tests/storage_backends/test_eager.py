"""A coroutine that runs at once behaves as one that is awaited."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

from storage_backends.eager import Waiting

T = TypeVar("T")


def run_until_it_waits(coroutine: Coroutine[Any, Any, T]) -> Waiting[T]:
    return Waiting(coroutine, coroutine.send(None))


async def answer(turns: int) -> int:
    """Gives way so many times."""
    for _ in range(turns):
        await asyncio.sleep(0)
    return turns


@pytest.mark.parametrize("turns", [1, 2, 5])
async def test_what_waits_goes_on_when_it_is_awaited(turns: int) -> None:
    begun = run_until_it_waits(answer(turns))

    assert isinstance(begun, Waiting)
    assert await begun == turns


async def test_the_result_of_a_future_arrives() -> None:
    future: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def wait() -> str:
        return await future

    begun = run_until_it_waits(wait())
    future.set_result("here")

    assert isinstance(begun, Waiting)
    assert await begun == "here"


async def test_what_fails_at_once_raises_at_once() -> None:
    async def fail() -> None:
        raise ValueError("x")

    with pytest.raises(ValueError, match="x"):
        run_until_it_waits(fail())


async def test_what_fails_later_raises_when_it_is_awaited() -> None:
    async def fail() -> None:
        await asyncio.sleep(0)
        raise ValueError("x")

    begun = run_until_it_waits(fail())

    assert isinstance(begun, Waiting)
    with pytest.raises(ValueError, match="x"):
        await begun


async def test_a_cancellation_is_the_coroutines_to_take() -> None:
    async def stubborn() -> str:
        for _ in range(2):
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                continue
        return "ended"

    begun = run_until_it_waits(stubborn())
    assert isinstance(begun, Waiting)

    async def rest() -> str:
        return await begun

    task = asyncio.create_task(rest())
    for _ in range(2):
        await asyncio.sleep(0)
        task.cancel()

    assert await task == "ended"


async def test_a_timeout_around_it_is_a_timeout() -> None:
    begun = run_until_it_waits(answer(1_000_000))

    assert isinstance(begun, Waiting)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.001):
            await begun


def test_closing_what_waits_closes_a_coroutine_that_is_closed_already() -> None:
    """As garbage collection does, in any order."""

    async def waits() -> None:
        await asyncio.sleep(0)

    async def rest() -> None:
        await waiting

    coroutine = waits()
    waiting = Waiting(coroutine, coroutine.send(None))
    outer = rest()
    outer.send(None)
    coroutine.close()
    outer.close()
