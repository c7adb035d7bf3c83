"""Conformance checks of the headers of a store's responses: its time, ids of requests, throttling; and measurements of
its latency."""

import time
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from statistics import median

from storage_backends.base import ABSENT, ANY
from storage_backends.conformance.check import Examination, Fault, Finding, lacking, ok

MAX_SKEW_MS = 30_000
"""Beyond this the catalog no longer corrects this machine's clock, and engines refuse metadata."""
REQUEST_IDS = ("x-amz-request-id", "x-guploader-uploadid", "x-ms-request-id")
THROTTLED = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)
TIMED = 10


async def store_time(examination: Examination) -> Finding:
    """Measures how far the store's clock is from this machine's. Raises `Fault` if it is 30 seconds or more, or if a
    response has no time."""
    before_ms = examination.now_ms()
    page = await examination.store.list(examination.key("time/"))
    ahead_ms = page.now_ms - (before_ms + examination.now_ms()) // 2
    if any("date" not in answer.headers for answer in examination.answers or ()):
        raise Fault("an answer of the store has no header Date, so that this machine's clock stands in for the store's")
    side = "ahead of" if ahead_ms >= 0 else "behind"
    measured = f"{abs(ahead_ms) / 1000:,.1f} s {side} this machine"
    if abs(ahead_ms) >= MAX_SKEW_MS:
        raise Fault(f"the store's clock is {measured}: set the one that is wrong (chrony, ntpd)")
    return ok("within 30 s", measured)


async def request_ids(examination: Examination) -> Finding:
    """Checks whether all responses of a store so far have an id of the request, in the same one of the headers
    `REQUEST_IDS`, which the vendor's support needs. A store without ids passes, with a finding that they are
    lacking."""
    await examination.store.list(examination.key("ids/"))
    answers = examination.answers or ()
    names = [name for name in REQUEST_IDS if all(name in answer.headers for answer in answers)]
    return ok(names[0]) if names and answers else lacking("answers have no id of the request")


async def throttling(examination: Examination) -> Finding:
    """Counts the responses of all calls of the examination so far with the status 429 or 503, by which a store requests
    to slow down. Always passes."""
    answers = examination.answers or ()
    slow = sum(answer.status in THROTTLED for answer in answers)
    return ok("counted", f"{slow} of {len(answers):,} answers")


async def write_latency(examination: Examination) -> Finding:
    """Measures how long `TIMED` writes of 1,000 bytes take, one after the other: the median and the maximum. Raises
    `Fault` if one is not applied."""

    async def write(number: int) -> None:
        await examination.write(examination.key(f"put/{number}"), b"x" * 1_000, ABSENT)

    return await _timed(write)


async def read_latency(examination: Examination) -> Finding:
    """Measures how long `TIMED` reads of one object of 1,000 bytes, which it writes first, take one after the other:
    the median and the maximum. Raises `Fault` if the write is not applied."""
    key = examination.key("get")
    await examination.write(key, b"x" * 1_000, ANY)

    async def read(number: int) -> None:
        await examination.store.get(key)

    return await _timed(read)


async def _timed(call: Callable[[int], Awaitable[None]]) -> Finding:
    """Calls `call` `TIMED` times, one after the other, with the numbers from 0. Returns a finding with the median and
    the maximum of the times in milliseconds."""
    took: list[float] = []
    for number in range(TIMED):
        began = time.perf_counter()
        await call(number)
        took.append(1_000 * (time.perf_counter() - began))
    return ok("measured", f"p50 {median(took):,.1f} ms, max {max(took):,.1f} ms")
