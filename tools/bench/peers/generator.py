"""The clients of the comparison, in a process of their own: `python -m tools.bench.peers.generator` reads an `Order`,
and prints a `Score`.

As little work for each request as asyncio allows: bytes made beforehand, one connection a client, the next request
written as soon as the answer to the last is complete.
"""

import asyncio
import json
import os
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import cast

import httptools
import uvloop

PLACE = "#" * 12
"""Stands in a request where a number is put, another each time and always as long."""
ANSWERS_IN_S = 30.0


@dataclass(frozen=True, slots=True)
class Order:
    """What the clients are to send to which port: one request for each client, over and over, for `warm` seconds that
    don't count and `seconds` that do. `pids` are the processes of the server, whose CPU time is measured."""

    port: int
    requests: list[str]
    warm: float
    seconds: float
    pids: list[int]


@dataclass(frozen=True, slots=True)
class Score:
    """What the clients measured at one server: answers by status, and how long those of 200 and 204 took, in
    milliseconds; `cpu` is what the clients cost, and `server_cpu` what the server cost, in seconds."""

    seconds: float
    cpu: float
    server_cpu: float
    statuses: dict[str, int]
    p50: float
    p99: float

    @property
    def good(self) -> int:
        """Requests that did what they asked for."""
        return self.statuses.get("200", 0) + self.statuses.get("204", 0)

    @property
    def rate(self) -> float:
        """Good answers a second."""
        return self.good / self.seconds

    @property
    def rate_of_cpu(self) -> float:
        """Good answers for each second of the server's CPU time."""
        return self.good / self.server_cpu if self.server_cpu else 0.0


@dataclass
class Tally:
    """The answers that the clients got since they began to count."""

    counting: bool = False
    ending: bool = False
    statuses: Counter[int] = field(default_factory=Counter)
    took: list[float] = field(default_factory=list)


class Client(asyncio.Protocol):
    """A client of the comparison: one connection that sends the same request again and again."""

    def __init__(self, request: str, number: int, tally: Tally, done: asyncio.Future[None]) -> None:
        self._first, placed, self._rest = (part.encode() for part in request.partition(PLACE))
        self._numbered = bool(placed)
        self._number = number * 100_000_000
        self._tally = tally
        self._done = done
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        self._sent = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are none by name
        self._send()

    def _send(self) -> None:
        assert self._transport is not None
        self._number += 1
        self._sent = time.perf_counter()
        place = b"%012d" % self._number if self._numbered else b""
        self._transport.write(self._first + place + self._rest)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        tally, status = self._tally, self._parser.get_status_code()
        if tally.counting:
            tally.statuses[status] += 1
            if status in (200, 204):
                tally.took.append(time.perf_counter() - self._sent)
        if not tally.ending:
            self._send()
        elif not self._done.done():
            self._done.set_result(None)

    def connection_lost(self, error: Exception | None) -> None:
        if not self._done.done():
            self._done.set_exception(RuntimeError(f"the server closed a connection: {error}"))


async def play(order: Order) -> Score:
    """Sends what was ordered. Raises `RuntimeError` if a connection is lost, `TimeoutError` if answers don't come."""
    loop, tally, ends = asyncio.get_running_loop(), Tally(), []
    for number, request in enumerate(order.requests, 1):
        done: asyncio.Future[None] = loop.create_future()
        ends.append(done)
        await loop.create_connection(partial(Client, request, number, tally, done), "127.0.0.1", order.port)
    await asyncio.sleep(order.warm)
    tally.counting = True
    cpu, began, server_cpu = time.process_time(), time.perf_counter(), cpu_seconds(order.pids)
    await asyncio.sleep(order.seconds)
    tally.counting, tally.ending = False, True
    server_cpu = cpu_seconds(order.pids) - server_cpu
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    async with asyncio.timeout(ANSWERS_IN_S):
        await asyncio.gather(*ends)
    took = sorted(tally.took) or [0.0]
    statuses = {str(status): count for status, count in sorted(tally.statuses.items())}
    p50, p99 = (1000 * took[int(part * (len(took) - 1))] for part in (0.5, 0.99))
    return Score(seconds, cpu, server_cpu, statuses, p50, p99)


def cpu_seconds(pids: list[int]) -> float:
    """The CPU time that these processes have taken since they began, with all their threads, in seconds."""
    ticks = 0
    for pid in pids:
        values = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(values[11]) + int(values[12])
    return ticks / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print(json.dumps(asdict(runner.run(play(Order(**json.load(sys.stdin)))))))
