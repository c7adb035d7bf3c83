"""Where a benchmark sends its requests: an app in this process, or a server of its own."""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

import aiohttp

from arco_catalog.http.app import create_app
from arco_catalog.operations.open import build_catalog
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state.runtime import SystemRuntime
from storage_backends import ANY, Applied
from storage_backends.memory import MemoryStore
from tools.support.arco_server import WAREHOUSE, ArcoServer
from tools.support.asgi_client import Client


class Site(Protocol):
    """A catalog, and what its answers cost."""

    @property
    def root(self) -> str:
        """The location of the catalog's folder."""
        ...

    async def send(self, method: str, target: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, bytes]:
        """One request's status and body."""
        ...

    async def keep(self, location: str, body: bytes) -> None:
        """Puts a file where an engine would."""
        ...

    def cpu_seconds(self) -> float:
        """CPU time used by the server so far."""
        ...


class _InProcess:
    def __init__(self) -> None:
        self._store = MemoryStore()
        catalog = build_catalog(Settings(WAREHOUSE), self._store, "memory:///", (), SystemRuntime())
        self._client = Client(create_app({WAREHOUSE: catalog}))
        self.root = f"memory:///{WAREHOUSE}"

    async def send(self, method: str, target: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, bytes]:
        answer = await self._client.send(method, target, body, headers)
        return answer.status, answer.body

    async def keep(self, location: str, body: bytes) -> None:
        assert isinstance(await self._store.put(location.removeprefix("memory:///"), body, ANY), Applied)

    def cpu_seconds(self) -> float:
        return time.process_time()


class _OverHttp:
    def __init__(self, server: ArcoServer, folder: Path, session: aiohttp.ClientSession) -> None:
        self._server = server
        self._session = session
        self.root = f"file://{folder}/{WAREHOUSE}"

    async def send(self, method: str, target: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, bytes]:
        url = f"{self._server.uri}{target}"
        async with self._session.request(method, url, data=body or None, headers=headers) as answer:
            return answer.status, await answer.read()

    async def keep(self, location: str, body: bytes) -> None:
        await asyncio.to_thread(_write, Path(location.removeprefix("file://")), body)

    def cpu_seconds(self) -> float:
        return self._server.cpu_seconds()


def _write(path: Path, body: bytes) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(body)


@asynccontextmanager
async def in_process() -> AsyncIterator[Site]:
    """The app in this process, over a store in memory."""
    yield _InProcess()


@asynccontextmanager
async def over_http() -> AsyncIterator[Site]:
    """A real `arco serve` over a folder."""
    with tempfile.TemporaryDirectory(prefix="arco-bench-") as scratch:
        folder = Path(scratch)
        with ArcoServer(f"file:{folder}/store", folder / "log") as server:
            async with aiohttp.ClientSession() as session:
                yield _OverHttp(server, folder / "store", session)
