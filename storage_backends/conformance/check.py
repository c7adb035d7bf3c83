"""What a check is, what it may use, and what it finds."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from storage_backends.base import Applied, Found, ObjectStore, Outcome, PreconditionFailed, Version, When
from storage_backends.clock import system_now_ms

if TYPE_CHECKING:  # imports httptools, which local stores do not need
    from storage_backends.wire.http1 import Response


class Grade(StrEnum):
    """How a check came out. `LACKING` is a capability that the catalog does without."""

    OK = "ok"
    LACKING = "lacking"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Finding:
    """`found` is the same wherever a store behaves the same. `measured` is what differs from run to run."""

    grade: Grade
    found: str
    measured: str = ""


class Fault(Exception):
    """The store did what it must not do."""


@dataclass(frozen=True, slots=True)
class Examination:
    """What checks of one store share: the folder that all they write is in, and the answers that were seen.

    `answers` is None for stores that are not reached by HTTP, and otherwise grows with each. `now_ms` is this machine's
    clock.
    """

    store: ObjectStore
    folder: str
    answers: "Sequence[Response] | None" = None
    now_ms: Callable[[], int] = system_now_ms

    def key(self, name: str) -> str:
        """Returns the key of an object in the examination's folder."""
        return f"{self.folder}/{name}"

    async def write(self, key: str, body: bytes, when: When) -> Version:
        """Writes an object, and returns its version. Raises `Fault` if the write is not applied."""
        return applied(await self.store.put(key, body, when), "a write whose condition held")

    async def require(self, key: str, body: bytes) -> Found:
        """Returns the object. Raises `Fault` if it is missing or has another body."""
        found = await self.store.get(key)
        if not isinstance(found, Found):
            raise Fault("an object that was written is missing")
        if found.body != body:
            raise Fault("an object has another body than was written last")
        return found


@dataclass(frozen=True, slots=True)
class Check:
    """One check of a store. `examine` raises `Fault` or `StoreError` if it fails.

    A check that `writes` is skipped where the store accepts no writes. One that is `costly` runs only on request. One
    that `needs_answers` reads HTTP answers. One that `measures` reports figures and never fails.
    """

    name: str
    examine: Callable[[Examination], Awaitable[Finding]]
    writes: bool = True
    costly: bool = False
    needs_answers: bool = False
    measures: bool = False


def ok(found: str, measured: str = "") -> Finding:
    """Returns the finding of a check that passed."""
    return Finding(Grade.OK, found, measured)


def lacking(found: str, measured: str = "") -> Finding:
    """Returns the finding of a capability that the store does not have."""
    return Finding(Grade.LACKING, found, measured)


def applied(outcome: Outcome, what: str) -> Version:
    """Returns the version that a write made. Raises `Fault` if the write was not applied."""
    if not isinstance(outcome, Applied):
        raise Fault(f"{what} was not applied: {_describe(outcome)}")
    return outcome.version


def refused(outcome: Outcome, what: str) -> None:
    """Raises `Fault` unless the write was refused."""
    if not isinstance(outcome, PreconditionFailed):
        raise Fault(f"{what} was not refused: {_describe(outcome)}")


async def together(works: Iterable[Coroutine[None, None, None]]) -> None:
    """Runs all coroutines concurrently. The first failure cancels the others, and is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            for work in works:
                group.create_task(work)
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None


def _describe(outcome: Outcome) -> str:
    match outcome:
        case Applied():
            return "it was applied"
        case PreconditionFailed():
            return "it was refused"
    return f"its outcome is unknown ({outcome.reason})"
