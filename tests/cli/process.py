"""Real `arco` processes, on 127.0.0.1 and free ports."""

import asyncio
import json
import os
import signal
import sys
import urllib.error
import urllib.request
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

TIMEOUT_SECONDS = 30.0
"""Seconds after which a test gives up on a process."""


@dataclass
class CompletedProcess:
    """What a process left behind."""

    code: int
    out: str
    err: str


@dataclass
class Server:
    """A running `arco serve`. `printed` is its start-up message."""

    process: Process
    uri: str
    printed: str

    async def call(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Status and parsed body of one request."""
        return await asyncio.to_thread(_call, method, self.uri + path, body)

    async def stop(self, how: signal.Signals = signal.SIGINT) -> CompletedProcess:
        """Ends it, and waits for that."""
        self.process.send_signal(how)
        return await finished(self.process)


def _call(method: str, url: str, body: object) -> tuple[int, Any]:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:
            content = answer.read()
            return answer.status, json.loads(content) if content else None
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


def environment_of(settings: Mapping[str, str]) -> dict[str, str]:
    """The environment with these variables, and with none of this machine's own ARCO_ settings."""
    return {name: value for name, value in os.environ.items() if not name.startswith("ARCO_")} | dict(settings)


async def start(*arguments: str, **environment: str) -> Process:
    """Starts `arco`, with none of this machine's own ARCO_ settings."""
    command = [sys.executable, "-m", "arco_catalog.cli", *arguments]
    return await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=PIPE, env=environment_of(environment))


async def finished(process: Process) -> CompletedProcess:
    """Waits for the end of a process."""
    async with asyncio.timeout(TIMEOUT_SECONDS):
        out, err = await process.communicate()
    assert process.returncode is not None
    return CompletedProcess(process.returncode, out.decode(), err.decode())


async def arco(*arguments: str, **environment: str) -> CompletedProcess:
    """Runs `arco` to its end, as a process: `tests.cli.in_process` is faster."""
    return await finished(await start(*arguments, **environment))


@asynccontextmanager
async def serving(store: str, *options: str, **environment: str) -> AsyncIterator[Server]:
    """Runs `arco serve` on a free port for as long as it is needed."""
    async with running("serve", "--store", store, "--port", "0", *options, **environment) as server:
        yield server


@asynccontextmanager
async def running(*arguments: str, **environment: str) -> AsyncIterator[Server]:
    """Runs a server of `arco` for as long as it is needed: one process unless an option or a variable has more.
    A start of the usual number of workers takes three times as long."""
    process = await start(*arguments, **{"ARCO_WORKERS": "1", **environment})
    assert process.stdout is not None
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            first = (await process.stdout.readline()).decode()
            if not first:
                raise AssertionError((await finished(process)).err)
        yield Server(process, first.partition(" at ")[2].partition(" ")[0], first)
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()
