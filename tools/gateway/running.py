"""Runs a local gateway as a context: in this event loop, or in another process for callers without an event loop."""

import os
import signal
import subprocess
import sys
import zipfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from arco_catalog.http.lambda_adapter import Endpoint
from tools.gateway.events import DEFAULT_STAGE
from tools.gateway.gateway import Gateway, Limits
from tools.gateway.http1 import listening
from tools.gateway.sandbox import Function, Pool

API = "lambda.api.handler"
PASSED_ON = ("ARCO_", "AWS_", "OTEL_")
"""The prefixes of the variables that a function gets from this process."""
LAST_ANSWER_S = 15.0


def default_stage(endpoint: Endpoint) -> str:
    """The stage of an endpoint if none is named. A REST API must have a named one."""
    return "live" if endpoint is Endpoint.REST_API else DEFAULT_STAGE


@asynccontextmanager
async def open_gateway(
    function: Function,
    endpoint: Endpoint,
    *,
    stage: str | None = None,
    limits: Limits | None = None,
    concurrency: int = 4,
    port: int = 0,
    caller: str | None = None,
) -> AsyncIterator[tuple[str, Pool]]:
    """Open a gateway to a function, and yield its URI and the pool of processes. With `caller`, an ARN, each event has
    it as the caller whose signature the gateway has verified."""
    async with Pool(function, concurrency) as pool:
        gateway = Gateway(pool, endpoint, stage or default_stage(endpoint), limits, caller)
        try:
            async with listening(gateway, port) as address:
                yield f"http://{address}{gateway.base_path}", pool
        finally:
            await gateway.close()


@contextmanager
def unzipped(archive: Path) -> Iterator[Path]:
    """Extract a zip to a temporary folder, and yield the folder. It is deleted on exit. A folder is one that was
    extracted before, which is yielded as it is."""
    if archive.is_dir():
        yield archive
        return
    with TemporaryDirectory(prefix="arco-zip-") as folder, zipfile.ZipFile(archive) as opened:
        opened.extractall(folder)
        yield Path(folder)


@contextmanager
def running(
    archive: Path, endpoint: Endpoint, log: Path, environment: Mapping[str, str], *options: str
) -> Iterator[str]:
    """Run a gateway to the API of a zip, or of its folder, in another process, and yield its URI. Raises `RuntimeError`
    if the process does not start, or does not stop with exit status 0."""
    command: list[str | Path] = [
        sys.executable,
        "-m",
        "tools.gateway",
        "--zip",
        archive,
        "--endpoint",
        endpoint,
        "--log",
        log,
        *options,
    ]
    project = Path(__file__).resolve().parents[2]
    with subprocess.Popen(
        command, cwd=project, env={**os.environ, **environment}, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            uri = process.stdout.readline().strip() if process.stdout else ""
            if not uri:
                raise RuntimeError("the gateway did not start")
            yield uri
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                code = process.wait(LAST_ANSWER_S)
            except subprocess.TimeoutExpired:
                process.kill()
                code = process.wait()
        if code != 0:
            raise RuntimeError(f"the gateway ended with {code}")
