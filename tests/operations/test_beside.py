"""Steps side by side fail as one, and leave their task as it was."""

import asyncio
from contextlib import suppress

import pytest

from arco_catalog.operations.beside import Overtaken, beside


async def fail(error: Exception) -> None:
    await asyncio.sleep(0)
    raise error


async def wait() -> None:
    await asyncio.sleep(3600)


async def test_the_failure_that_decides_most_is_raised() -> None:
    with pytest.raises(Overtaken):
        await beside(fail(ValueError("x")), fail(Overtaken()), wait())


async def test_a_failure_leaves_no_cancellation_behind() -> None:
    task = asyncio.current_task()
    assert task is not None
    with pytest.raises(ValueError, match="x"):
        await beside(fail(ValueError("x")), wait())

    assert task.cancelling() == 0


async def fail_and_wait() -> None:
    with suppress(ValueError):
        await beside(fail(ValueError("x")), wait())
    await wait()


async def test_a_timeout_around_steps_that_failed_is_a_timeout() -> None:
    async def bounded() -> None:
        async with asyncio.timeout(0.01):
            await fail_and_wait()

    with pytest.raises(TimeoutError):
        await bounded()


async def test_who_is_cancelled_meanwhile_stays_cancelled() -> None:
    task = asyncio.create_task(beside(wait(), wait()))
    await asyncio.sleep(0)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
