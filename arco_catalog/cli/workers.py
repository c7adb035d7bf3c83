"""`arco serve` with several workers: processes that serve one address, and a supervisor that replaces each that dies,
until too many do.

Each worker is an `arco serve` over the same store with a cache of its own. A worker revalidates cached records with the
store, so any worker may get any request. Each has its own listening socket, which the supervisor keeps open: the
connections of a worker that died wait for its replacement.
"""

import argparse
import asyncio
import json
import os
import signal
import socket
import sys
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

from arco_catalog.cli.capacity import PROCESS_BYTES
from arco_catalog.cli.errors import CliError
from arco_catalog.cli.listening import AddressError, StoreReport, announce, listen_together
from arco_catalog.cli.server_options import ServerOptions

if TYPE_CHECKING:
    from arco_catalog.cli.worker_metrics import WorkerMetrics

MAX_DEATHS = 5
"""Workers that are replaced within `DEATHS_WITHIN_SECONDS`; if one more dies in that time, the server ends."""
DEATHS_WITHIN_SECONDS = 60.0
ENDS_WITHIN_SECONDS = 60.0
"""Time for workers to answer the requests under way before they are killed; their own limit is shorter."""


def run(parsed: argparse.Namespace, arguments: Sequence[str]) -> int:
    """Serves with several workers until SIGINT or SIGTERM. `arguments` are the command line of which `parsed` is the
    result; workers get it again. Returns the exit code: 0; that of the first worker if it failed to start, or of a
    worker that failed to end well; or 1 if too many died. Raises `CliError` if the server can't start: an address in
    use is reported only if nothing else is wrong."""
    if parsed.store.startswith("memory:"):
        raise CliError(
            "--workers above 1 is not supported with a store in memory: each process would have a store of its own; "
            "leave --workers and ARCO_WORKERS out"
        )
    try:
        return asyncio.run(_supervise(parsed, arguments))
    except AddressError:
        from arco_catalog.cli import serve
        from arco_catalog.cli.serve_options import ServeOptions

        serve.check(ServeOptions.of(parsed))  # an address in use must not hide another mistake
        raise


async def _supervise(parsed: argparse.Namespace, arguments: Sequence[str]) -> int:
    """Runs a supervisor, with the metrics of its workers if the options have a port for them, and returns its exit
    code. Raises `AddressError` if an address can't be listened at, and `CliError` if there is no space for metrics."""
    if parsed.metrics_port is None:
        return await Supervisor(parsed, arguments).run()
    from arco_catalog.cli.metrics_server import answering_scrapes
    from arco_catalog.cli.worker_metrics import WorkerMetrics, metrics_directory

    with metrics_directory(parsed.workers) as directory:
        metrics = WorkerMetrics(directory)
        async with answering_scrapes(parsed.metrics_host, parsed.metrics_port, metrics.page) as uri:
            return await Supervisor(parsed, arguments, metrics, uri).run()


class Supervisor:
    """Starts the worker processes of one `arco serve`, replaces a worker that dies, and passes signals on to all. It
    stops the server if more than `MAX_DEATHS` workers die within `DEATHS_WITHIN_SECONDS`. `metrics` are those of the
    workers, at the URI `metrics_uri`; None without a port for them."""

    def __init__(
        self,
        parsed: argparse.Namespace,
        arguments: Sequence[str],
        metrics: "WorkerMetrics | None" = None,
        metrics_uri: str | None = None,
    ) -> None:
        self._parsed = parsed
        self._arguments = arguments
        self._metrics = metrics
        self._metrics_uri = metrics_uri
        self._output = os.dup(1)
        """The supervisor's standard output, for the audit lines of workers, whose own goes to the supervisor."""
        self._workers: dict[int, Process] = {}
        self._not_serving: set[Process] = set()
        """Workers that have not reported yet that they serve. They have no request to finish, so when the server ends
        their exit codes do not count."""
        self._deaths: deque[float] = deque(maxlen=MAX_DEATHS + 1)
        self._feeding = 0
        """The socket of the worker that fills the event feed: one is enough, and it is replaced when it dies."""
        self._ending = False
        self._code = 0

    async def run(self) -> int:
        """Starts the workers, runs the server until it ends, and returns the exit code. One worker starts before the
        others, so that an error of the store is reported once; if it ends before it serves, the others are not started.
        Raises `AddressError` if the address can't be listened at, and `CliError` if there is no room for metrics."""
        listeners = listen_together(self._parsed.host, self._parsed.port, self._parsed.workers)
        self._feeding = listeners[0].fileno()
        loop = asyncio.get_running_loop()
        for signum in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(signum, self._pass_on, signum)
        try:
            if self._metrics is not None:
                self._metrics.reserve(listener.fileno() for listener in listeners)
            first = await self._start(listeners[0])
            if first is None:
                return 0 if self._ending else self._workers[listeners[0].fileno()].returncode or 1
            others = await asyncio.gather(*(self._start(listener) for listener in listeners[1:]))
            if not self._ending and None not in others:
                options, workers = ServerOptions.of(self._parsed), _describe_workers(self._parsed)
                announce(
                    options,
                    listeners[0],
                    first,
                    quiet=self._parsed.quiet,
                    console=not self._parsed.no_console,
                    workers=workers,
                    metrics=self._metrics_uri,
                )
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
        """Starts a worker on a socket and waits until it serves. Returns the worker's report on the store, or None if
        the process is over before that."""
        number = listener.fileno()
        command = (sys.executable, "-m", "arco_catalog.cli", *self._arguments)
        process = await asyncio.create_subprocess_exec(
            *command,
            *("--workers", "1", "--listener", str(number), "--audit-descriptor", str(self._output)),
            *(() if number == self._feeding else ("--no-feed",)),
            stdin=PIPE,  # never written to; at its end the worker knows that the supervisor has died
            stdout=PIPE,
            pass_fds=(number, self._output),
            start_new_session=True,  # a terminal's Ctrl-C reaches only the supervisor, which passes it on
            env=None if self._metrics is None else {**self._parsed.environment, **self._metrics.environment},
        )
        self._workers[number] = process
        self._not_serving.add(process)
        if self._ending:  # the signal arrived while the worker was being started
            process.terminate()
        assert process.stdout is not None
        line = await process.stdout.readline()
        if not line:
            await process.wait()
            return None
        self._not_serving.discard(process)
        if self._metrics is not None:
            self._metrics.began()
        return StoreReport(**json.loads(line))

    async def _keep_alive(self, listener: socket.socket) -> None:
        """Replaces the worker of a socket whenever it dies, and prints that on stderr, until the server ends. Ends the
        server if more than `MAX_DEATHS` workers die within `DEATHS_WITHIN_SECONDS`."""
        while True:
            process = self._workers[listener.fileno()]
            code = await process.wait()
            if self._ending:
                if process not in self._not_serving:
                    self._code = self._code or code
                return
            if self._metrics is not None:
                served = process not in self._not_serving
                await asyncio.to_thread(self._metrics.died, listener.fileno(), served=served)
            stops = self._too_many_deaths()
            then = "" if stops else ": another one is started"
            print(f"arco: worker process {process.pid} ended with exit code {code}{then}", file=sys.stderr, flush=True)
            if stops:
                print(
                    f"arco: more than {MAX_DEATHS} workers have died within {DEATHS_WITHIN_SECONDS:g} s: the server "
                    "stops",
                    file=sys.stderr,
                    flush=True,
                )
                self._code = 1
                self._pass_on(signal.SIGTERM)
                return
            await self._start(listener)

    def _too_many_deaths(self) -> bool:
        """Notes that a worker has ended, and returns whether so many did in a short time that the supervisor gives
        up."""
        now = asyncio.get_running_loop().time()
        self._deaths.append(now)
        return len(self._deaths) > MAX_DEATHS and now - self._deaths[0] < DEATHS_WITHIN_SECONDS

    def _pass_on(self, signum: signal.Signals) -> None:
        """Sends a signal to all workers. After the first they finish the requests under way; after another SIGINT
        they do not; a worker that does not serve yet gets SIGTERM instead. Those that still live after
        `ENDS_WITHIN_SECONDS` are killed."""
        if not self._ending:
            self._ending = True
            asyncio.get_running_loop().call_later(ENDS_WITHIN_SECONDS, self._kill)
        for process in self._workers.values():
            if process.returncode is None:
                # SIGINT during a worker's imports would print a traceback on the user's terminal.
                process.send_signal(signal.SIGTERM if process in self._not_serving else signum)

    def _kill(self) -> None:
        """Kills all workers that still run (SIGKILL)."""
        for process in self._workers.values():
            if process.returncode is None:
                process.kill()


def _describe_workers(parsed: argparse.Namespace) -> str:
    """Returns the number of workers, and the memory that each may use."""
    total = PROCESS_BYTES + parsed.request_memory + parsed.cache_memory
    return (
        f"{parsed.workers} workers, each with up to {total >> 20} MB: {parsed.request_memory >> 20} MB for requests, "
        f"{parsed.cache_memory >> 20} MB for caches, {PROCESS_BYTES >> 20} MB for itself (--workers)"
    )
