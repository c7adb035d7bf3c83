"""Sends requests to a store, by any transport, and retries those that are safe to retry."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator

from storage_backends.backoff import full_jitter
from storage_backends.base import StoreError, StoreUnavailable, Unknown
from storage_backends.clock import system_now_ms
from storage_backends.lazy_dataclass import dataclass
from storage_backends.wire.exchange import (
    Ambiguous,
    Answer,
    Dialect,
    OversizedAnswer,
    Request,
    Transport,
    date_ms,
    retry_after_s,
)
from storage_backends.wire.http1 import Response

PATIENCE_S = 20.0
"""The most that the pauses of one call may be in all, those that the store requests included. Instead of a pause that
would exceed it, the call fails at once: its caller has a deadline, and can report it."""


_RANDOM = random.SystemRandom().random
"""Uniform on [0, 1). The default generator's state is shared by processes restored from one snapshot."""


@dataclass(frozen=True, slots=True)
class Pauses:
    """How long a client pauses between attempts, and how. `sleep` takes seconds, `random` is uniform on [0, 1)."""

    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    random: Callable[[], float] = _RANDOM


PAUSES = Pauses()
"""The pauses of every client but that of a test."""


@dataclass(frozen=True, slots=True)
class _Open:
    """An open transport, and the event loop to which it belongs."""

    loop: asyncio.AbstractEventLoop
    transport: Transport


class Client:
    """Sends requests about one bucket to a store, and retries the ones that are safe to retry: up to 12 attempts, or
    fewer in a `limit_attempts`, with pauses of 20 s in all at most. The transport opens with the first call in an event
    loop.

    `open_transport` raises `StoreError` for a configuration that can't be followed. `pauses` are made between attempts.
    """

    def __init__(
        self, open_transport: Callable[[], Awaitable[Transport]], dialect: Dialect, pauses: Pauses = PAUSES
    ) -> None:
        self._open_transport = open_transport
        self._dialect = dialect
        self._pauses = pauses
        self._open: _Open | None = None
        self._observe: Callable[[Response], None] | None = None
        self._clock_skew_ms = 0  # how far the store's clock is ahead of this machine's

    async def read(self, request: Request) -> Answer:
        """Sends a read, retries transient failures, and returns the answer. Raises `StoreError` for any other failure,
        also for an answer that is too large, and when the attempts or `PATIENCE_S` are used up."""
        try:
            return await self._repeat(request, ambiguous_too=True)
        except OversizedAnswer as error:
            raise StoreError(str(error)) from error

    async def write(self, request: Request) -> Answer | Unknown:
        """Sends a write, retries it only if it was not sent or its answer means that it was not applied, and returns
        the answer, or `Unknown` if it may have been applied. Raises `StoreError` only if it was not."""
        try:
            return await self._repeat(request, ambiguous_too=False)
        except Ambiguous as error:
            return Unknown(str(error))

    def pauses(self) -> Iterator[float]:
        """Iterates over the random pauses in seconds before each of 12 attempts, or fewer in a `limit_attempts`; the
        one before the first is 0."""
        return full_jitter(self._pauses.random)

    async def pause(self, seconds: float) -> None:
        """Sleeps for so many seconds before an attempt; returns at once for 0."""
        if seconds:
            await self._pauses.sleep(seconds)

    def observe(self, see: Callable[[Response], None]) -> None:
        """Sets the function that is called with each response of the store from now on, also with failures that are
        retried, but not with a 401 after which the transport sends the request a second time."""
        self._observe = see

    async def close(self) -> None:
        """Closes the transport if it belongs to this event loop, and forgets it in any case; another call opens a new
        one."""
        transport, self._open = self._opened(asyncio.get_running_loop()), None
        if transport is not None:
            await transport.close()

    async def _repeat(self, request: Request, *, ambiguous_too: bool) -> Answer:
        """Sends a request until there is a definite answer, and returns it. Repeats it after
        `StoreUnavailable`; with `ambiguous_too`, also if it may have been applied, but not for an answer that is too
        large. Raises any other failure at once, and the last one when the attempts or `PATIENCE_S` are used up."""
        failure = StoreUnavailable("no attempt was made")
        waited_s = 0.0
        for jitter_s in full_jitter(self._pauses.random):
            pause_s = max(jitter_s, failure.retry_after_s)
            waited_s += pause_s
            if waited_s > PATIENCE_S:
                break
            try:
                return await self._attempt(request, pause_s)
            except OversizedAnswer:
                raise
            except Ambiguous as error:
                if not ambiguous_too:
                    raise
                failure = error
            except StoreUnavailable as error:
                failure = error
        raise failure

    async def _attempt(self, request: Request, pause: float) -> Answer:
        """Sends a request after a `pause` in seconds, and a second time if the store refused the time in the first.
        Opens the transport if there is none. Returns the answer, with the store's time, or this machine's if the
        response has no date. Raises a failure as the dialect classifies it, and as `Transport.send` does."""
        if pause:
            await self.pause(pause)
        loop = asyncio.get_running_loop()
        transport = self._opened(loop)
        if transport is None:
            transport = await self._open_in(loop)
        skew_ms = self._clock_skew_ms  # another call may change it meanwhile
        response = self._observed(await transport.send(request, skew_ms))
        if not self._dialect.is_answer(response, request.method):
            response = await self._send_by_store_clock(transport, request, response, skew_ms)
        now_ms = date_ms(response)
        return Answer(response.status, response, system_now_ms() if now_ms is None else now_ms)

    async def _send_by_store_clock(
        self, transport: Transport, request: Request, response: Response, skew_ms: int
    ) -> Response:
        """Given the `response` with which the store did not accept a request, sent by this machine's clock and
        `skew_ms`: if the time in it was at fault, sends the request again by the store's clock, which later requests
        then use too, and returns the answer. Raises any other failure as the dialect classifies it, with the pause that
        the store requests."""
        if self._dialect.is_skewed(response, skew_ms) and (store_ms := date_ms(response)) is not None:
            self._clock_skew_ms = store_ms - system_now_ms()
            # Safe: a refused request was not applied.
            response = self._observed(await transport.send(request, self._clock_skew_ms))
            if self._dialect.is_answer(response, request.method):
                return response
        failure = self._dialect.failure_of(response)
        if isinstance(failure, StoreUnavailable):
            failure.retry_after_s = retry_after_s(response)
        raise failure

    def _observed(self, response: Response) -> Response:
        """Returns the response, after the observer was called with it."""
        if self._observe is not None:
            self._observe(response)
        return response

    def _opened(self, loop: asyncio.AbstractEventLoop) -> Transport | None:
        """Returns the open transport of this event loop; None if there is none."""
        known = self._open
        return known.transport if known is not None and known.loop is loop else None

    async def _open_in(self, loop: asyncio.AbstractEventLoop) -> Transport:
        """Opens a transport of this event loop, and returns it, or the one that another call has opened meanwhile; then
        drops the new one, which has no connection yet, without closing it."""
        transport = await self._open_transport()  # opens no connection yet
        first = self._opened(loop)
        if first is not None:
            return first
        self._open = _Open(loop, transport)
        return transport
