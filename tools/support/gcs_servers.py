"""Starts fake-gcs-server, an emulator of Google Cloud Storage, which the Makefile builds with Go
(`.tools/fake-gcs-server`)."""

import json
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from storage_backends.gcs.config import GcsClient, GcsConfig
from tools.support.server_process import built, listening


@dataclass(frozen=True)
class GcsServer:
    """A running server of Google Cloud Storage at `endpoint`, which requires no credentials."""

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
def fake_gcs_server() -> Iterator[GcsServer]:
    """fake-gcs-server with its objects on disk, since in memory it searches all of them for each read. Of its
    preconditions only those of uploads hold."""
    program = built("fake-gcs-server")

    def command(port: int, folder: Path) -> list[str | Path]:
        flags: Mapping[str, str] = {
            "backend": "filesystem",
            "filesystem-root": str(folder / "objects"),
            "scheme": "http",
            "host": "127.0.0.1",
            "port": str(port),
            "external-url": f"http://127.0.0.1:{port}",
            "log-level": "error",
        }
        return [program, *(f"-{name}={value}" for name, value in flags.items())]

    with listening(command) as url:
        yield GcsServer(url)
