"""Runs a Lambda function in local processes as Lambda does: each process takes one event at a time from a Runtime API.

Each process has a Runtime API of its own, so that the event of a killed process is lost, and no other one. Python runs
without site packages, on the extracted zip and AWS's runtime client, so that a library that the zip lacks is missing.
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from importlib.metadata import distribution
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from arco_catalog.state.runtime import SystemRuntime
from tools.gateway.http1 import Request, Response, listening

MAX_PAYLOAD_BYTES = 6 << 20
"""The largest event and result (Lambda quotas)."""
MAX_STARTS = 100
"""How many processes a pool starts at most, which bounds the restarts of a function that always dies."""
_INVOCATION = "/2018-06-01/runtime/invocation/"
_RUNTIME = SystemRuntime()
_CLIENT = ("awslambdaric", "simplejson", "snapshot-restore-py")


class FunctionFailed(Exception):
    """An event has no result: the function raised, died, timed out or returned too much."""


@dataclass(frozen=True)
class Function:
    """A Lambda function to run on this machine: the folder of the extracted zip, a handler in it, the environment, the
    log file of its processes, and the timeout in seconds."""

    folder: Path
    handler: str
    environment: Mapping[str, str]
    log: Path
    seconds: float = 30.0


def make_runtime_client(folder: Path) -> Path:
    """Link AWS's runtime client and its dependencies into a folder for `PYTHONPATH`, and return the folder."""
    for name in _CLIENT:
        installed = distribution(name)
        for top in {file.parts[0] for file in installed.files or () if not file.parts[0].endswith(".dist-info")}:
            if top not in ("..", "__pycache__"):
                (folder / top).symlink_to(Path(str(installed.locate_file(top))))
    return folder


@dataclass(frozen=True)
class _Invocation:
    id: str
    event: bytes
    deadline_ms: int
    result: asyncio.Future[bytes]


@dataclass
class Sandbox:
    """One local process of a Lambda function, with its Runtime API."""

    function: Function
    client: Path
    _events: asyncio.Queue[_Invocation] = field(default_factory=asyncio.Queue)
    _running: _Invocation | None = None
    _spoilt: str = ""
    _process: asyncio.subprocess.Process | None = None

    @asynccontextmanager
    async def started(self) -> AsyncIterator["Sandbox"]:
        """Start the process, and kill it on exit."""
        async with listening(self._api) as address:
            with self.function.log.open("ab") as log:
                command = [sys.executable, "-S", "-B", "-m", "awslambdaric", self.function.handler]
                self._process = await asyncio.create_subprocess_exec(
                    *command, cwd=self.function.folder, env=self._environment(address), stdout=log, stderr=log
                )
            try:
                yield self
            finally:
                if self.alive:
                    self._process.kill()
                await self._process.wait()

    @property
    def pid(self) -> int:
        return self._started.pid

    @property
    def alive(self) -> bool:
        return self._started.returncode is None

    async def invoke(self, event: bytes) -> bytes:
        """Run the function with an event, and return the result. Raises `FunctionFailed`."""
        now_ms = _RUNTIME.now_ms()
        result: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        deadline_ms = now_ms + int(1000 * self.function.seconds)
        self._events.put_nowait(_Invocation(_RUNTIME.uuid(), event, deadline_ms, result))
        death = asyncio.ensure_future(self._started.wait())
        try:
            ends: list[asyncio.Future[Any]] = [result, death]
            await asyncio.wait(ends, timeout=self.function.seconds, return_when=asyncio.FIRST_COMPLETED)
            if result.done() and not self._spoilt:
                return result.result()
            if death.done() and not self._spoilt:
                raise FunctionFailed(f"the process ended with {death.result()}")
            self._started.kill()
            await death
            raise FunctionFailed(self._spoilt or f"timed out after {self.function.seconds:g} s")
        finally:
            death.cancel()
            if result.done() and not result.cancelled():
                result.exception()  # retrieved, so that asyncio does not log it if the process died as well

    @property
    def _started(self) -> asyncio.subprocess.Process:
        if self._process is None:
            raise RuntimeError("the sandbox was not started")
        return self._process

    def _environment(self, address: str) -> dict[str, str]:
        function = self.function
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "LANG": "C.UTF-8",
            "TZ": ":UTC",
            **function.environment,
            "PYTHONPATH": os.pathsep.join([str(function.folder), str(self.client)]),
            "LAMBDA_TASK_ROOT": str(function.folder),
            "_HANDLER": function.handler,
            "AWS_EXECUTION_ENV": "AWS_Lambda_python3.13",  # the runtime client then does not escape letters in JSON
            "AWS_LAMBDA_RUNTIME_API": address,
            "AWS_LAMBDA_FUNCTION_NAME": function.handler.replace(".", "-"),
            "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "1769",
            "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
        }

    async def _api(self, request: Request) -> Response:
        """Respond to a request of the Runtime API (Lambda developer guide, "Using the Lambda runtime API")."""
        path = request.target
        if path == f"{_INVOCATION}next":
            invocation = self._running = await self._events.get()
            return Response(
                HTTPStatus.OK,
                [
                    ("Content-Type", "application/json"),
                    ("Lambda-Runtime-Aws-Request-Id", invocation.id),
                    ("Lambda-Runtime-Deadline-Ms", str(invocation.deadline_ms)),
                    ("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:us-east-1:123456789012:function:local"),
                ],
                invocation.event,
            )
        running = self._running
        if running is not None and path.startswith(f"{_INVOCATION}{running.id}/") and not running.result.done():
            if path.endswith("/response") and len(request.body) > MAX_PAYLOAD_BYTES:
                self._spoilt = f"a result of {len(request.body)} bytes is too large"  # the client gives up, too
                running.result.set_result(b"")
                return _status(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            if path.endswith("/response"):
                running.result.set_result(request.body)
            else:
                running.result.set_exception(FunctionFailed(request.body.decode("utf-8", "replace")))
        return _status(HTTPStatus.ACCEPTED)  # an error during the start is accepted, too: the process ends after it


def _status(status: HTTPStatus) -> Response:
    return Response(status, [("Content-Type", "application/json")], json.dumps({"status": status.phrase}).encode())


class Pool:
    """The local processes of a Lambda function: one for each concurrent event, up to a limit."""

    def __init__(self, function: Function, concurrency: int) -> None:
        self.function = function
        self._free = asyncio.Semaphore(concurrency)
        self._idle: list[Sandbox] = []
        self._all: list[Sandbox] = []
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> "Pool":
        self._client = make_runtime_client(Path(self._stack.enter_context(TemporaryDirectory(prefix="arco-ric-"))))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    @property
    def pids(self) -> list[int]:
        """The ids of the running processes."""
        return [sandbox.pid for sandbox in self._all if sandbox.alive]

    async def invoke(self, event: bytes) -> bytes:
        """Run the function with an event in the process that became idle last, or in a new one, and return the result.
        Raises `FunctionFailed`."""
        async with self._free:
            sandbox = await self._take()
            try:
                return await sandbox.invoke(event)
            finally:
                self._idle.append(sandbox)

    async def _take(self) -> Sandbox:
        while self._idle:
            sandbox = self._idle.pop()
            if sandbox.alive:
                return sandbox
        if len(self._all) >= MAX_STARTS:
            raise FunctionFailed(f"started {MAX_STARTS} times already")
        sandbox = await self._stack.enter_async_context(Sandbox(self.function, self._client).started())
        self._all.append(sandbox)
        return sandbox
