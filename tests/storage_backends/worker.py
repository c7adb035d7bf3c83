"""A second process on the same store: `python -m tests.storage_backends.worker JOB STORE-URL ...`.

Prints "ready", begins at a line on standard input, and prints one line of JSON for each result.
"""

import asyncio
import hashlib
import json
import os
import random
import signal
import sys
from collections.abc import Callable

from storage_backends import ABSENT, ANY, Applied, ObjectStore
from storage_backends.open import open_store
from tests.storage_backends.counter import increment


def sealed(number: int, size: int) -> bytes:
    """A body that shows whether it is whole."""
    payload = b"%d:" % number + b"x" * size
    return hashlib.sha256(payload).hexdigest().encode() + payload


def unsealed(body: bytes) -> int:
    """The number in a whole body; raises ValueError for any other."""
    seal, payload = body[:64], body[64:]
    if hashlib.sha256(payload).hexdigest().encode() != seal:
        raise ValueError(f"{len(body)} bytes that are not whole")
    return int(payload.partition(b":")[0])


async def increments(store: ObjectStore, key: str, times: str) -> None:
    """Adds one, again and again."""
    for _ in range(int(times)):
        await increment(store, key)
    say(int(times))


async def creations(store: ObjectStore, prefix: str, keys: str) -> None:
    """Tries to create every key, and prints those that it created."""
    for number in range(int(keys)):
        outcome = await store.put(f"{prefix}/{number}", str(os.getpid()).encode(), ABSENT)
        if isinstance(outcome, Applied):
            say(number)


async def endless_writes(store: ObjectStore, key: str) -> None:
    """Writes its own numbers until it is killed, and prints each after its write was acknowledged."""
    first = os.getpid() * 1_000_000
    for number in range(first, first + 1_000_000):
        outcome = await store.put(key, sealed(number, random.randrange(50_000)), ANY)
        if isinstance(outcome, Applied):
            say(number)


async def fatal_write(store: ObjectStore, key: str, point: str, count: str) -> None:
    """Replaces an object, creates one and deletes it, and dies before the given call to the operating system."""
    await store.put(key, sealed(1, 10_000), ABSENT)
    say(1)
    die_at(point, int(count))
    await store.put(key, sealed(2, 20_000), ANY)
    await store.put(f"{key}.new", sealed(3, 30_000), ABSENT)
    await store.delete(f"{key}.new")
    say(2)


def die_at(point: str, count: int) -> None:
    """Plants a SIGKILL before the given call of a function of `os`."""
    call: Callable[..., object] = getattr(os, point)
    calls = 0

    def fatal(*arguments: object, **options: object) -> object:
        nonlocal calls
        calls += 1
        if calls == count:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*arguments, **options)

    setattr(os, point, fatal)


def say(result: int) -> None:
    """One line at a time, at once."""
    print(json.dumps(result), flush=True)


JOBS = {job.__name__: job for job in (increments, creations, endless_writes, fatal_write)}


async def main(job: str, url: str, *arguments: str) -> None:
    store = open_store(url, os.environ)
    await store.list("")  # connected, before the race begins
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    await JOBS[job](store, *arguments)
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
