"""S3 servers by name: moto, and two that check signatures, which the Makefile builds with Go (`.tools/versitygw`).

Each runs in a process of its own on 127.0.0.1, and ends with the context that started it.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from storage_backends.clock import system_now_ms
from storage_backends.s3.config import S3Config
from storage_backends.s3.signature import Credentials, Scope, signed, signing_stamp
from tools.support.environment import PROJECT
from tools.support.ports import free_port

BUILT = PROJECT / ".tools"
START_S = 60.0
ACCESS_KEY, SECRET_KEY = "arco-tests", "arco-tests-secret"
NO_TRAILING_CHECKSUM = {"AWS_REQUEST_CHECKSUM_CALCULATION": "when_required"}
"""PyArrow sends a part's checksum behind its body, and versitygw 1.8.0 at times takes that for the next request."""


@dataclass(frozen=True)
class S3Server:
    """A running S3 at `endpoint`, and the keys of its administrator."""

    endpoint: str
    access_key: str = "testing"
    secret_key: str = "testing"
    settings: Mapping[str, str] = field(default_factory=dict)
    """Variables that a client of this server needs besides."""

    @property
    def environment(self) -> dict[str, str]:
        """What a client needs to talk to it, and nothing of this machine's own AWS settings."""
        return {
            "AWS_ENDPOINT_URL_S3": self.endpoint,
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_REGION": "us-east-1",
            "AWS_CONFIG_FILE": "/dev/null",
            "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
            "AWS_EC2_METADATA_DISABLED": "true",
            **self.settings,
        }

    @property
    def config(self) -> S3Config:
        """The same for a store of this process."""
        return S3Config.from_environment(self.environment)

    def make_bucket(self, name: str) -> None:
        """Makes a bucket. Raises `OSError` if the server does not let it be made."""
        headers = signed(
            Credentials(self.access_key, self.secret_key),
            Scope("us-east-1"),
            signing_stamp(system_now_ms()),
            "PUT",
            f"/{name}",
            "",
            {"host": self.endpoint.partition("://")[2]},
            b"",
        )
        request = urllib.request.Request(f"{self.endpoint}/{name}", headers=headers, method="PUT")
        with urllib.request.urlopen(request, timeout=60) as answer:
            if answer.status != 200:
                raise RuntimeError(f"no bucket {name}: {answer.status}")


@contextmanager
def moto_server(*, ignore_conditions: bool = False) -> Iterator[S3Server]:
    """A moto of its own process, with atomic conditional writes, or with none that hold."""
    command = [
        sys.executable,
        "-m",
        "tools.support.moto_server",
        *(["--ignore-conditions"] if ignore_conditions else []),
    ]
    with (
        tempfile.TemporaryFile("w+") as log,  # a pipe that nobody reads would stop a moto that says much
        subprocess.Popen(
            command, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        ) as process,
    ):
        try:
            if process.stdout is None:
                raise RuntimeError("the pipe was asked for")
            port = process.stdout.readline().strip()
            if not port:
                log.seek(0)
                raise RuntimeError(f"moto did not start: {log.read()}")
            yield S3Server(f"http://127.0.0.1:{port}")
        finally:
            process.kill()


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
    port = free_port()
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


def _await_answer(server: S3Server, process: "subprocess.Popen[bytes]", log: Path) -> None:
    """Returns when the server answers anything but that it is not ready."""
    deadline = time.perf_counter() + START_S
    while time.perf_counter() < deadline:
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
