"""S3 servers by name: moto, and two that check signatures, which the Makefile builds with Go (`.tools/versitygw`).

Each runs in a process of its own on 127.0.0.1, over a folder, and ends with the context that started it.
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path

from tests.servers import PROJECT, S3Server, moto_server

BUILT = PROJECT / ".tools"
START_S = 60.0
ACCESS_KEY, SECRET_KEY = "arco-tests", "arco-tests-secret"
NO_TRAILING_CHECKSUM = {"AWS_REQUEST_CHECKSUM_CALCULATION": "when_required"}
"""PyArrow sends a part's checksum behind its body, and versitygw 1.8.0 at times takes that for the next request."""


def built(name: str) -> Path:
    """The program of a server. Raises `LookupError` if it is not there."""
    found = BUILT / name
    if not found.exists():
        place = found.relative_to(PROJECT)
        raise LookupError(f"{place} is not built: run 'make {place}', which needs Go")
    return found


@contextmanager
def versitygw() -> Iterator[S3Server]:
    """Versity's gateway over a folder."""
    program = built("versitygw")
    environment = {"ROOT_ACCESS_KEY": ACCESS_KEY, "ROOT_SECRET_KEY": SECRET_KEY}

    def command(port: int, folder: Path) -> list[str | Path]:
        return [program, "--quiet", "--keep-alive", "--port", f"127.0.0.1:{port}", "posix", folder]

    with _running(command, environment) as server:
        yield replace(server, settings=NO_TRAILING_CHECKSUM)


@contextmanager
def minio() -> Iterator[S3Server]:
    """MinIO over a folder."""
    program = built("minio")
    environment = {"MINIO_ROOT_USER": ACCESS_KEY, "MINIO_ROOT_PASSWORD": SECRET_KEY, "MINIO_BROWSER": "off"}

    def command(port: int, folder: Path) -> list[str | Path]:
        return [program, "server", "--quiet", "--address", f"127.0.0.1:{port}", folder]

    with _running(command, environment) as server:
        yield server


SERVERS: Mapping[str, Callable[[], AbstractContextManager[S3Server]]] = {
    "moto": moto_server,
    "versitygw": versitygw,
    "minio": minio,
}


@contextmanager
def _running(
    command: Callable[[int, Path], Sequence[str | Path]], environment: Mapping[str, str]
) -> Iterator[S3Server]:
    """The server that a command starts, once it answers."""
    scratch = Path(tempfile.mkdtemp(prefix="arco-s3-"))
    folder, log = scratch / "buckets", scratch / "log"
    folder.mkdir()
    port = _free_port()
    try:
        with (
            log.open("wb") as out,
            subprocess.Popen(
                command(port, folder),
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
            ) as process,
        ):
            try:
                server = S3Server(f"http://127.0.0.1:{port}", ACCESS_KEY, SECRET_KEY)
                _await_answer(server, process, log)
                yield server
            finally:
                process.kill()
    finally:
        shutil.rmtree(scratch, ignore_errors=sys.exc_info()[0] is not None)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def _await_answer(server: S3Server, process: "subprocess.Popen[bytes]", log: Path) -> None:
    """Returns when the server answers anything but that it is not ready."""
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(server.endpoint, timeout=5):
                return
        except urllib.error.HTTPError as error:
            if error.code != 503:
                return
        except OSError:
            pass
        if process.poll() is not None:
            break
        time.sleep(0.05)
    raise RuntimeError(f"the S3 server did not start: {log.read_text()[-4000:]}")
