"""Starts S3 servers by name: moto, and two that check signatures, which the Makefile builds with Go
(`.tools/versitygw`)."""

import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from storage_backends.clock import system_now_ms
from storage_backends.s3.config import S3Config
from storage_backends.s3.signature import Credentials, Scope, signed, signing_stamp
from tools.support.server_process import announcing, built, listening

ACCESS_KEY, SECRET_KEY = "arco-tests", "arco-tests-secret"
NO_TRAILING_CHECKSUM = {"AWS_REQUEST_CHECKSUM_CALCULATION": "when_required"}
"""PyArrow sends a part's checksum behind its body, and versitygw 1.8.0 at times takes that for the next request."""


@dataclass(frozen=True)
class S3Server:
    """A running server of S3 at `endpoint`, and the keys of its administrator."""

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
    with announcing("tools.support.moto_server", *(["--ignore-conditions"] if ignore_conditions else [])) as url:
        yield S3Server(url)


@contextmanager
def versitygw(*, users: bool = False) -> Iterator[S3Server]:
    """Versity's gateway over a folder; with `users`, others than its administrator can be made."""
    program = built("versitygw")
    environment = {"ROOT_ACCESS_KEY": ACCESS_KEY, "ROOT_SECRET_KEY": SECRET_KEY}

    def command(port: int, folder: Path) -> list[str | Path]:
        people = folder.with_name("users")
        people.mkdir()
        options: list[str | Path] = ["--iam-dir", people] if users else []
        return [program, "--quiet", "--keep-alive", "--port", f"127.0.0.1:{port}", *options, "posix", folder]

    with listening(command, environment) as url:
        yield S3Server(url, ACCESS_KEY, SECRET_KEY, NO_TRAILING_CHECKSUM)


@contextmanager
def minio() -> Iterator[S3Server]:
    """MinIO over a folder."""
    program = built("minio")
    environment = {"MINIO_ROOT_USER": ACCESS_KEY, "MINIO_ROOT_PASSWORD": SECRET_KEY, "MINIO_BROWSER": "off"}

    def command(port: int, folder: Path) -> list[str | Path]:
        return [program, "server", "--quiet", "--address", f"127.0.0.1:{port}", folder]

    with listening(command, environment) as url:
        yield S3Server(url, ACCESS_KEY, SECRET_KEY)


SERVERS: Mapping[str, Callable[[], AbstractContextManager[S3Server]]] = {
    "moto": moto_server,
    "versitygw": versitygw,
    "minio": minio,
}
