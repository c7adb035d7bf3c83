"""GCS servers by name: a protocol-level fake of ours, and fake-gcs-server, which the Makefile builds with Go.

Each runs in a process of its own on 127.0.0.1, and ends with the context that started it.
"""

import json
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from storage_backends.gcs.config import GcsClient, GcsConfig
from tools.support.environment import PROJECT
from tools.support.ports import free_port
from tools.support.s3_servers import START_S, built


@dataclass(frozen=True)
class GcsServer:
    """A running GCS at `endpoint`, which asks for no credentials."""

    endpoint: str

    @property
    def environment(self) -> dict[str, str]:
        """What a client needs to talk to it, and nothing of this machine's own settings."""
        return {
            "STORAGE_EMULATOR_HOST": self.endpoint,
            "GOOGLE_APPLICATION_CREDENTIALS": "",
            "GOOGLE_OAUTH_ACCESS_TOKEN": "",
            "GOOGLE_CLOUD_QUOTA_PROJECT": "",
        }

    def config(self, client: GcsClient = GcsClient.WIRE, **variables: str) -> GcsConfig:
        """The same for a store of this process."""
        return GcsConfig.from_environment({**self.environment, "ARCO_GCS_CLIENT": client, **variables})

    def make_bucket(self, name: str) -> None:
        """Makes a bucket. Raises `OSError` if the server does not let it be made."""
        body = json.dumps({"name": name}).encode()
        url = f"{self.endpoint}/storage/v1/b?project=tests"
        request = urllib.request.Request(url, body, {"Content-Type": "application/json"}, method="POST")
        with urllib.request.urlopen(request, timeout=60) as answer:
            if answer.status != 200:
                raise RuntimeError(f"no bucket {name}: {answer.status}")


@contextmanager
def gcs_protocol_fake() -> Iterator[GcsServer]:
    """The fake of ours."""
    command = [sys.executable, "-m", "tools.support.gcs_protocol_fake"]
    with (
        tempfile.TemporaryFile("w+") as log,
        subprocess.Popen(
            command, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        ) as process,
    ):
        try:
            port = process.stdout.readline().strip() if process.stdout else ""
            if not port:
                log.seek(0)
                raise RuntimeError(f"the fake of GCS did not start: {log.read()}")
            yield GcsServer(f"http://127.0.0.1:{port}")
        finally:
            process.kill()


@contextmanager
def fake_gcs_server() -> Iterator[GcsServer]:
    """fake-gcs-server with its objects in memory. Of its preconditions only those of uploads hold."""
    port = free_port()
    server = GcsServer(f"http://127.0.0.1:{port}")
    flags: Mapping[str, str] = {
        "backend": "memory",
        "scheme": "http",
        "host": "127.0.0.1",
        "port": str(port),
        "external-url": server.endpoint,
        "log-level": "error",
    }
    with tempfile.TemporaryDirectory(prefix="arco-gcs-") as scratch:
        log = Path(scratch, "log")
        command: list[str | Path] = [built("fake-gcs-server"), *(f"-{name}={value}" for name, value in flags.items())]
        with (
            log.open("wb") as out,
            subprocess.Popen(command, cwd=scratch, stdin=subprocess.DEVNULL, stdout=out, stderr=out) as process,
        ):
            try:
                _await_answer(server, process, log)
                yield server
            finally:
                process.kill()


def _await_answer(server: GcsServer, process: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.perf_counter() + START_S
    while time.perf_counter() < deadline:
        try:
            with urllib.request.urlopen(f"{server.endpoint}/storage/v1/b?project=tests", timeout=5):
                return
        except urllib.error.HTTPError:
            return
        except OSError:
            pass
        if process.poll() is not None:
            break
        time.sleep(0.05)
    raise RuntimeError(f"fake-gcs-server did not start: {log.read_text()[-4000:]}")
