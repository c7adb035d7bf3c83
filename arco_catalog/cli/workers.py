"""`arco serve` with several workers: processes that serve one address, and this one, which sees to it that they live.

Each worker is an `arco serve` of its own over the same store, with caches of its own: nothing that a process remembers
is believed without asking the store, so it does not matter which of them a request comes to. Each has a listening
socket that is kept open here, so that connections to a worker that died wait for the one in its place.
"""

import argparse
import asyncio
import json
import signal
import socket
import sys
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import Sequence

from arco_catalog.cli.capacity import PROCESS_BYTES
from arco_catalog.cli.errors import CliError
from arco_catalog.cli.listening import AddressError, StoreReport, announce, listen_together

MOST_DEATHS = 5
"""Workers that may die within `DEATHS_WITHIN_SECONDS` and are replaced; one more, and the server ends."""
DEATHS_WITHIN_SECONDS = 60.0
ENDS_WITHIN_SECONDS = 60.0
"""How long workers get to answer the requests under way; their own limit is shorter."""


def run(parsed: argparse.Namespace, arguments: Sequence[str]) -> int:
    """Serves until a signal says stop; `arguments` are those that were `parsed`. Returns the exit code. Raises
    `CliError` if it can't start."""
    if parsed.store.startswith("memory:"):
        raise CliError("--workers is not supported with memory: each process would have a store of its own")
    try:
        return asyncio.run(Supervisor(parsed, arguments).run())
    except AddressError:
        from arco_catalog.cli import serve

        serve.check(serve.ServeOptions.of(parsed))  # an address in use must not hide another mistake
        raise


class Supervisor:
    """The workers of one server."""

    def __init__(self, parsed: argparse.Namespace, arguments: Sequence[str]) -> None:
        self._parsed = parsed
        self._arguments = arguments
        self._workers: dict[int, Process] = {}
        self._not_serving: set[Process] = set()
        """Workers that have not said yet that they serve: they have no request to finish, and no exit code that counts
        when the server ends."""
        self._deaths: deque[float] = deque(maxlen=MOST_DEATHS + 1)
        self._ending = False
        self._code = 0

    async def run(self) -> int:
        """Starts them, one first: what is wrong with the store is then told once."""
        listeners = listen_together(self._parsed.host, self._parsed.port, self._parsed.workers)
        loop = asyncio.get_running_loop()
        for signum in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(signum, self._pass_on, signum)
        try:
            first = await self._start(listeners[0])
            if first is None:
                return 0 if self._ending else self._workers[listeners[0].fileno()].returncode or 1
            others = await asyncio.gather(*(self._start(listener) for listener in listeners[1:]))
            if not self._ending and None not in others:
                announce(self._parsed, listeners[0], first, _told(self._parsed))
            async with asyncio.TaskGroup() as group:
                for listener in listeners:
                    group.create_task(self._keep_alive(listener))
        finally:
            for process in self._workers.values():
                if process.returncode is None:
                    process.kill()
            for listener in listeners:
                listener.close()
        return self._code

    async def _start(self, listener: socket.socket) -> StoreReport | None:
        """Starts a worker, and returns what it says of the store when it serves; None if it ends before."""
        number = listener.fileno()
        command = (sys.executable, "-m", "arco_catalog.cli", *self._arguments)
        process = await asyncio.create_subprocess_exec(
            *command,
            *("--workers", "1", "--listener", str(number)),
            stdin=PIPE,  # never written to; its end tells the worker that the supervisor is gone
            stdout=PIPE,
            pass_fds=(number,),
            start_new_session=True,  # a terminal's Ctrl-C comes to us, and from us to them
        )
        self._workers[number] = process
        self._not_serving.add(process)
        if self._ending:  # since the signal came while it was being started
            process.terminate()
        assert process.stdout is not None
        line = await process.stdout.readline()
        if not line:
            await process.wait()
            return None
        self._not_serving.discard(process)
        return StoreReport(**json.loads(line))

    async def _keep_alive(self, listener: socket.socket) -> None:
        """Replaces a worker that dies, until the server ends or too many have died."""
        while True:
            process = self._workers[listener.fileno()]
            code = await process.wait()
            if self._ending:
                if process not in self._not_serving:
                    self._code = self._code or code
                return
            print(f"arco: worker process {process.pid} ended with exit code {code}", file=sys.stderr, flush=True)
            if self._too_many_deaths():
                print("arco: too many workers have died within a minute: stopping", file=sys.stderr, flush=True)
                self._code = 1
                self._pass_on(signal.SIGTERM)
                return
            await self._start(listener)

    def _too_many_deaths(self) -> bool:
        now = asyncio.get_running_loop().time()
        self._deaths.append(now)
        return len(self._deaths) > MOST_DEATHS and now - self._deaths[0] < DEATHS_WITHIN_SECONDS

    def _pass_on(self, signum: signal.Signals) -> None:
        """The first lets requests under way finish, a second interrupt does not; and there is a last moment."""
        if not self._ending:
            self._ending = True
            asyncio.get_running_loop().call_later(ENDS_WITHIN_SECONDS, self._kill)
        for process in self._workers.values():
            if process.returncode is None:
                # An interrupt in the middle of its imports would be a traceback on the user's terminal.
                process.send_signal(signal.SIGTERM if process in self._not_serving else signum)

    def _kill(self) -> None:
        for process in self._workers.values():
            if process.returncode is None:
                process.kill()


def _told(parsed: argparse.Namespace) -> str:
    most = PROCESS_BYTES + parsed.request_memory + parsed.cache_memory
    return (
        f"{parsed.workers} workers, each with up to {most >> 20} MB: {parsed.request_memory >> 20} MB for requests, "
        f"{parsed.cache_memory >> 20} MB for caches, {PROCESS_BYTES >> 20} MB for itself (--workers)"
    )
