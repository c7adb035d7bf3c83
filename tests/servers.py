"""Servers that tests start and stop, all on 127.0.0.1."""

import os
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from storage_backends.clock import system_now_ms
from storage_backends.s3.config import S3Config
from storage_backends.s3.dates import signing_stamp
from storage_backends.s3.signature import Credentials, Scope, signed

PROJECT = Path(__file__).parent.parent


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
def exported(values: Mapping[str, str]) -> Iterator[None]:
    """What this process, and whatever it starts, finds in the environment as long as the context lasts."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def moto_server(*, ignore_conditions: bool = False) -> Iterator[S3Server]:
    """A moto of its own process, with atomic conditional writes, or with none that hold."""
    command = [sys.executable, "-m", "tests.moto_server", *(["--ignore-conditions"] if ignore_conditions else [])]
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
