"""Runs the conformance checks on one store, and deletes what they wrote."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from storage_backends.base import Applied, ObjectStore, StoreError
from storage_backends.conformance.check import Check, Examination, Fault, Finding, Grade
from storage_backends.conformance.checks import CHECKS, CREATION
from storage_backends.lazy_dataclass import dataclass
from storage_backends.wrappers.measuring import Measurement
from storage_backends.wrappers.request import RequestStore

if TYPE_CHECKING:  # imports httptools, which local stores do not need
    from storage_backends.wire.http1 import Response

CHECK_S = 60.0
ALL_S = 300.0
CLEANING_S = 120.0
DELETED_AT_ONCE = 16
MAX_CALL_MS = 3_600_000
"""Longer than any check: what ends a call is the check's own time."""


@dataclass(frozen=True, slots=True)
class ExaminationReport:
    """The findings of all conformance checks of a store by their names, and the keys of objects that could not be
    deleted afterwards."""

    findings: dict[str, Finding]
    left_behind: Sequence[str]


async def examine(
    store: ObjectStore,
    folder: str,
    answers: "Sequence[Response] | None" = None,
    *,
    costly: bool = False,
    checks: Sequence[Check] = CHECKS,
) -> ExaminationReport:
    """Runs the checks one after the other, in a folder that nothing else uses, and returns the findings and the keys of
    objects that could not be deleted afterwards. `answers` is the list to which the store's client adds the HTTP
    responses, None without HTTP. A `costly` check runs only with `costly`.

    Ends within minutes, whatever the store does, and removes the objects that it wrote also if it is cancelled. Raises
    no error of the store: a failure is a finding.
    """
    calls = Measurement()
    recorded = RequestStore(store, lambda: MAX_CALL_MS, measurement=calls)
    findings: dict[str, Finding] = {}
    examination = Examination(recorded, folder, answers)
    async with _removing(store, calls) as left_behind:
        ends = asyncio.get_running_loop().time() + ALL_S
        for check in checks:
            reason = _skipped(check, findings, examination, costly=costly)
            findings[check.name] = reason or await _run(check, examination, ends)
    return ExaminationReport(findings, left_behind)


def _skipped(check: Check, findings: dict[str, Finding], examination: Examination, *, costly: bool) -> Finding | None:
    """Returns the finding `SKIPPED`, with the reason, for a check that must not be made; None for one that must."""
    created = findings.get(CREATION.name)
    if check.writes and created is not None and created.grade is Grade.FAILED:
        return Finding(Grade.SKIPPED, f"skipped: the check {CREATION.name!r} failed")
    if check.costly and not costly:
        return Finding(Grade.SKIPPED, "writes 1,001 objects: only with --pages")
    if check.needs_answers and examination.answers is None:
        return Finding(Grade.SKIPPED, "no HTTP")
    return None


async def _run(check: Check, examination: Examination, ends: float) -> Finding:
    """Makes one check, for 60 seconds at most and no longer than until `ends`, a time of the event loop; after that it
    is skipped. Returns the finding, also for a check that failed or did not end."""
    now = asyncio.get_running_loop().time()
    if now >= ends:
        return Finding(Grade.SKIPPED, "skipped: all checks together may take 5 minutes")
    try:
        async with asyncio.timeout_at(min(now + CHECK_S, ends)):
            return await check.examine(examination)
    except Fault as fault:
        return Finding(Grade.FAILED, str(fault))
    except StoreError as error:
        return Finding(Grade.FAILED, type(error).__name__, str(error))
    except TimeoutError:
        return Finding(Grade.FAILED, "the check did not end within a minute, or before the 5 minutes for all checks")


@asynccontextmanager
async def _removing(store: ObjectStore, calls: Measurement) -> AsyncIterator[list[str]]:
    """Yields an empty list. On exit deletes the objects that these calls have written, and adds to the list the keys of
    objects that could not be deleted."""
    left: list[str] = []
    try:
        yield left
    finally:
        left += await _remove(store, [key for kind, key in calls.log if kind == "put"])


async def _remove(store: ObjectStore, keys: Sequence[str]) -> list[str]:
    """Deletes objects, for 120 seconds at most. Returns the keys of objects that may still exist."""
    limit, left = asyncio.Semaphore(DELETED_AT_ONCE), dict.fromkeys(keys)

    async def remove(key: str) -> None:
        async with limit:
            try:
                outcome = await store.delete(key)
            except StoreError:
                return  # it stays in `left`, and is reported
        if isinstance(outcome, Applied):
            del left[key]

    try:
        async with asyncio.timeout(CLEANING_S):
            await asyncio.gather(*map(remove, [*left]))
    except TimeoutError:
        return [*left]
    return [*left]
