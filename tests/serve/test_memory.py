"""What a server remembers is bounded in bytes (issue 3, item 8)."""

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest

from tests.serve.many_tables import NAMESPACE, make_tables
from tools.support.arco_server import WAREHOUSE, ArcoServer

TABLES = [f"t{number:05}" for number in range(10_000)]
CLIENTS = 8
LIMIT = 200 << 20
TIMEOUT_S = 300.0
FILES_KEPT = 48 << 20
"""Bytes of metadata files that a server keeps at most (`Catalog.files`)."""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Path]:
    """A folder that does not outlive the test: pytest would keep its 30,000 files for days."""
    folder = tmp_path / "store"
    yield folder
    shutil.rmtree(folder)


async def load(uri: str, names: list[str]) -> int:
    """Loads tables one after the other. Returns how many bytes came."""
    size = 0
    async with aiohttp.ClientSession(f"{uri}/v1/{WAREHOUSE}/namespaces/{NAMESPACE}/tables/") as session:
        for name in names:
            async with session.get(name) as answer:
                assert answer.status == 200, await answer.text()
                size += len(await answer.read())
    return size


@pytest.mark.slow
async def test_a_server_stays_under_200_mb_after_loading_10_000_tables(store: Path, tmp_path: Path) -> None:
    make_tables(store, TABLES)
    with ArcoServer(f"file:{store}", tmp_path / "log") as server:
        async with asyncio.timeout(TIMEOUT_S):
            sizes = await asyncio.gather(*(load(server.uri, TABLES[client::CLIENTS]) for client in range(CLIENTS)))

        assert sum(sizes) > FILES_KEPT, "these could all be kept"
        assert server.memory("VmHWM") < LIMIT
