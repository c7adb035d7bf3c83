"""A network that loses, delays and repeats requests, as a program has drawn it."""

import asyncio
import json
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass

import aiohttp

from arco_catalog.prove.answers import Answer
from arco_catalog.prove.program import Fault
from arco_catalog.prove.requests import Request

TIMEOUT_S = 60.0
MAX_ANSWER_BYTES = 16 << 20
NEVER_SENT = Answer(0)
"""What a client gets if no connection could be made."""


class _Truncation(Exception):
    """Ends the body of a request in its middle."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """The end of a request: the client's `answer`, None if it got none, `NEVER_SENT` if the request surely did not
    leave; and later those of the server which the client did not get (`unseen`), when they are there."""

    answer: Answer | None
    unseen: Sequence["asyncio.Task[Answer | None]"] = ()


class Network:
    """Sends requests to servers over HTTP, and plays the faults of a network on the way: lost answers, delays,
    duplicates. `servers` are their URIs; `tasks` has the sendings that outlive their client's request."""

    def __init__(self, session: aiohttp.ClientSession, servers: Sequence[str], tasks: asyncio.TaskGroup) -> None:
        self._session = session
        self._servers = servers
        self._tasks = tasks
        self._pending: set[asyncio.Task[Answer | None]] = set()

    async def send(self, request: Request, server: int, fault: Fault = Fault.NONE, delay_ms: int = 0) -> Delivery:
        """Sends a request to the server of this number, modulo how many there are, through a fault. The delay is that
        of the request; of the second for `DUPLICATED`; how long the client waits for `ABANDONED`; none for `TRUNCATED`
        and `LOST_ANSWER`. Returns the client's answer, None without one and always for `ABANDONED`, `NEVER_SENT` if no
        connection was possible for `NONE`, `DELAYED` or `LOST_ANSWER`; and tasks with further answers, which may still
        be sent."""
        delay_s = delay_ms / 1000
        match fault:
            case Fault.TRUNCATED:
                await self._truncate(request, server)
                return Delivery(None)
            case Fault.LOST_ANSWER:
                answer = await self._exchange(request, server)
                return Delivery(NEVER_SENT if answer is NEVER_SENT else None, (self._begin(_value(answer)),))
            case Fault.ABANDONED:
                task = asyncio.create_task(self._exchange(request, server))
                await asyncio.wait([task], timeout=delay_s)
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
                return Delivery(None)
            case Fault.LATE:
                return Delivery(None, (self._begin(self._later(request, server, delay_s)),))
            case Fault.DUPLICATED:
                second = self._begin(self._later(request, server, delay_s))
                answer = await self._exchange(request, server)
                return Delivery(None if answer is NEVER_SENT else answer, (second,))  # the second may be sent
            case _:
                await asyncio.sleep(delay_s)
                return Delivery(await self._exchange(request, server))

    async def settle(self) -> None:
        """Waits until all requests have ended that outlive the delivery to their client."""
        while self._pending:
            await asyncio.wait(self._pending)

    def _begin(self, work: Coroutine[object, object, Answer | None]) -> "asyncio.Task[Answer | None]":
        """Starts work that outlives its request, and remembers it until it ends."""
        task = self._tasks.create_task(work)
        self._pending.add(task)
        task.add_done_callback(self._pending.discard)
        return task

    async def _later(self, request: Request, server: int, delay_s: float) -> Answer | None:
        """Sends a request after a delay, and returns the answer as `_exchange` does."""
        await asyncio.sleep(delay_s)
        return await self._exchange(request, server)

    async def _exchange(self, request: Request, server: int) -> Answer | None:
        """Sends a request, and returns the answer: `NEVER_SENT` if no connection could be made, None if the connection
        broke or there was no answer in time."""
        try:
            async with self._session.request(
                request.method,
                self._servers[server % len(self._servers)] + request.path,
                data=None if request.body is None else json.dumps(request.body).encode(),
                headers=_headers(request),
                timeout=aiohttp.ClientTimeout(total=TIMEOUT_S),
            ) as response:
                return Answer(response.status, await _document(response), response.headers.get("ETag", ""))
        except aiohttp.ClientConnectorError:
            return NEVER_SENT
        except (aiohttp.ClientError, TimeoutError, ConnectionError):
            return None

    async def _truncate(self, request: Request, server: int) -> None:
        """Sends half of the body of a request and closes the connection; sends nothing for a request without a body.
        Ignores the answer, and errors of the connection."""
        if request.body is None:
            return
        body = json.dumps(request.body).encode()

        async def half() -> AsyncIterator[bytes]:
            yield body[: len(body) // 2]
            raise _Truncation

        headers = {**_headers(request), "Content-Length": str(len(body))}
        uri = self._servers[server % len(self._servers)] + request.path
        with suppress(_Truncation, aiohttp.ClientError, TimeoutError, ConnectionError):
            timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
            async with self._session.request(request.method, uri, data=half(), headers=headers, timeout=timeout):
                pass


async def _value(answer: Answer | None) -> Answer | None:
    """Returns the value, as an awaitable."""
    return answer


def _headers(request: Request) -> dict[str, str]:
    """Returns the headers of a request, with the type of the body if there is one."""
    return {**request.headers, **({} if request.body is None else {"Content-Type": "application/json"})}


async def _document(response: aiohttp.ClientResponse) -> object:
    """Returns the JSON of a response; None if it has no body, one that is no JSON, or more than `MAX_ANSWER_BYTES`."""
    raw = bytearray()
    async for chunk in response.content.iter_any():
        raw += chunk
        if len(raw) > MAX_ANSWER_BYTES:
            return None
    try:
        return json.loads(raw) if raw else None
    except (ValueError, RecursionError):
        return None
