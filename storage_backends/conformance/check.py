"""The parts of which conformance checks of a store are made: the state that checks share, findings, and helpers."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

from storage_backends.base import Applied, Found, ObjectStore, Outcome, PreconditionFailed, Version, When
from storage_backends.clock import system_now_ms
from storage_backends.lazy_dataclass import dataclass

if TYPE_CHECKING:  # imports httptools, which local stores do not need
    from storage_backends.wire.http1 import Response


class Grade(StrEnum):
    """The result of a conformance check. `LACKING` is an optional capability that the store does not have, `SKIPPED` a
    check that was not made."""

    OK = "ok"
    LACKING = "lacking"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a conformance check of a store, with a text. `found` is the same wherever a store behaves the same,
    but may have figures in it if the check failed; `measured` is the part of the text that differs from run to run,
    such as figures, or the message of a `StoreError`."""

    grade: Grade
    found: str
    measured: str = ""


class Fault(Exception):
    """A conformance check failed: the store did something that it must not do, did not do something that it must, or
    did not answer whether it did."""


@dataclass(frozen=True, slots=True)
class Examination:
    """The state that the conformance checks of one store share: the store, and the prefix of everything that they
    write.

    `answers` are the HTTP responses seen so far, to which each call adds; None for a store without HTTP. `now_ms` is
    this machine's clock.
    """

    store: ObjectStore
    folder: str
    answers: "Sequence[Response] | None" = None
    now_ms: Callable[[], int] = system_now_ms

    def key(self, name: str) -> str:
        """Returns the key of a check's object: `name` in the folder of the examination."""
        return f"{self.folder}/{name}"

    async def write(self, key: str, body: bytes, when: When) -> Version:
        """Writes an object of a check to the examined store, and returns the version that this made. Raises `Fault` if
        the write is not applied."""
        return applied(await self.store.put(key, body, when), "a write whose condition held")

    async def require(self, key: str, body: bytes) -> Found:
        """Reads an object of a check from the examined store, and returns it. Raises `Fault` if it is missing or has
        another body than `body`."""
        found = await self.store.get(key)
        if not isinstance(found, Found):
            raise Fault("an object is missing after a write that was reported as applied, and no later deletion was")
        if found.body != body:
            raise Fault("an object has another body than that of the last write that was reported as applied")
        return found


@dataclass(frozen=True, slots=True)
class Check:
    """One conformance check of a store. The function `examine` returns the finding, and raises `Fault` or `StoreError`
    if the check fails.

    A check that `writes` is skipped where the store accepts no writes, by the check `CREATION`. A `costly` one runs
    only on request. One that `needs_answers` reads HTTP responses, and is skipped without HTTP. One that `measures`
    reports figures, and fails only if a call of the store does.
    """

    name: str
    examine: Callable[[Examination], Awaitable[Finding]]
    writes: bool = True
    costly: bool = False
    needs_answers: bool = False
    measures: bool = False


def ok(found: str, measured: str = "") -> Finding:
    """Returns the finding of a check of a store that passed; `found` is the finding in words, `measured` a figure."""
    return Finding(Grade.OK, found, measured)


def lacking(found: str, measured: str = "") -> Finding:
    """Returns the finding of a check that the store does not have an optional capability; `found` is the finding in
    words, `measured` a figure."""
    return Finding(Grade.LACKING, found, measured)


def applied(outcome: Outcome, what: str) -> Version:
    """Returns the version that a write made, or for a deletion that of the object deleted, which may be empty. Raises
    `Fault` if it was not applied, or that is unknown; `what` names it in the message."""
    if not isinstance(outcome, Applied):
        raise Fault(f"{what} was not reported as applied: {_describe(outcome)}")
    return outcome.version


def refused(outcome: Outcome, what: str) -> None:
    """Raises `Fault` unless the write was refused because its condition did not hold, also for an unknown outcome;
    `what` names the write in the message."""
    if not isinstance(outcome, PreconditionFailed):
        raise Fault(f"{what} was not reported as refused: {_describe(outcome)}")


async def together(works: Iterable[Coroutine[None, None, None]]) -> None:
    """Runs all coroutines concurrently. The first failure cancels the others, and is raised as it is, without a group
    around it."""
    try:
        async with asyncio.TaskGroup() as group:
            for work in works:
                group.create_task(work)
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None


def _describe(outcome: Outcome) -> str:
    """Returns the outcome of a write in words."""
    match outcome:
        case Applied():
            return "it was applied"
        case PreconditionFailed():
            return "it was refused"
    return f"it is unknown whether it was applied ({outcome.reason}): run the checks once more"
