"""Starts Azurite, the emulator of Azure Blob Storage, which the Makefile installs with npm (`.tools/azurite`)."""

import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from storage_backends.azure.authorization import API_VERSION
from storage_backends.azure.config import DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY, AzureConfig
from storage_backends.azure.signature import date_stamp, decoded_key, signed
from storage_backends.clock import system_now_ms
from tools.support.environment import PROJECT
from tools.support.server_process import listening

PROGRAM = PROJECT / ".tools" / "azurite" / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"


@dataclass(frozen=True)
class AzuriteServer:
    """A running Azurite at `endpoint`, which names its one account."""

    endpoint: str

    @property
    def environment(self) -> dict[str, str]:
        """What a client needs to talk to it; PyIceberg's takes the connection string."""
        account = f"AccountName={DEVELOPMENT_ACCOUNT};AccountKey={DEVELOPMENT_KEY}"
        return {
            "AZURE_STORAGE_ACCOUNT": DEVELOPMENT_ACCOUNT,
            "AZURE_STORAGE_KEY": DEVELOPMENT_KEY,
            "AZURE_STORAGE_ENDPOINT": self.endpoint,
            "AZURE_STORAGE_CONNECTION_STRING": f"{account};BlobEndpoint={self.endpoint}",
        }

    @property
    def config(self) -> AzureConfig:
        """The same for a store of this process."""
        return AzureConfig.from_environment(self.environment)

    def make_container(self, name: str) -> None:
        """Makes a container. Raises `OSError` if the server does not let it be made."""
        query = {"restype": "container"}
        path = f"/{DEVELOPMENT_ACCOUNT}/{name}"
        headers = {"x-ms-date": date_stamp(system_now_ms()), "x-ms-version": API_VERSION, "content-type": "text/plain"}
        sent = signed(DEVELOPMENT_ACCOUNT, decoded_key(DEVELOPMENT_KEY), "PUT", path, query, headers, 0)
        request = urllib.request.Request(
            f"{self.endpoint}/{name}?restype=container", data=b"", headers=sent, method="PUT"
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            if answer.status != 201:
                raise RuntimeError(f"no container {name}: {answer.status}")


@contextmanager
def azurite(*, on_disk: bool = False) -> Iterator[AzuriteServer]:
    """An Azurite that keeps everything in memory, or on disk: in memory it collects garbage after ten minutes, and
    answers nothing while it does. Raises `LookupError` if it is not installed."""
    if not PROGRAM.exists():
        raise LookupError(".tools/azurite is not installed: run 'make .tools/azurite', which needs node and npm")

    def command(port: int, folder: Path) -> list[str | Path]:
        options = ["--blobHost", "127.0.0.1", "--blobPort", str(port), "--silent", "--skipApiVersionCheck"]
        kept = ["--location", folder] if on_disk else ["--inMemoryPersistence"]
        return ["node", PROGRAM, *options, *kept, "--disableTelemetry"]

    with listening(command) as url:
        yield AzuriteServer(f"{url}/{DEVELOPMENT_ACCOUNT}")
