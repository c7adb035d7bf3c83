"""A gateway as a context: in this event loop, or in a process of its own for callers without one."""

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
"""Variables with these beginnings are the function's, too."""
LAST_ANSWER_S = 15.0


def default_stage(endpoint: Endpoint) -> str:
    """A REST API has no stage without a name."""
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
    """Yields the URI to call, and the processes behind it. With `caller`, the ARN of whoever is taken to have signed,
    each event says that the gateway verified it."""
    async with Pool(function, concurrency) as pool:
        gateway = Gateway(pool, endpoint, stage or default_stage(endpoint), limits, caller)
        try:
            async with listening(gateway, port) as address:
                yield f"http://{address}{gateway.base_path}", pool
        finally:
            await gateway.close()


@contextmanager
def unzipped(archive: Path) -> Iterator[Path]:
    """A folder with the contents of a zip."""
    with TemporaryDirectory(prefix="arco-zip-") as folder, zipfile.ZipFile(archive) as opened:
        opened.extractall(folder)
        yield Path(folder)


@contextmanager
def running(
    archive: Path, endpoint: Endpoint, log: Path, environment: Mapping[str, str], *options: str
) -> Iterator[str]:
    """Runs a gateway over the API of a zip in a process of its own. Yields the URI to call. Raises `RuntimeError` if
    it does not start or stop."""
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
