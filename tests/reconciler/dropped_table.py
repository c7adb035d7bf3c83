"""A table of synthetic files in a folder, dropped with purge, beside one that shares half of them."""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.drop import drop_table
from arco_catalog.planning.upkeep_settings import PurgeSettings
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state.task_log import all_hints
from storage_backends.open import open_store
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.synthetic_table import Shape, key_prefix, location_of

WAREHOUSE = "wh"


@dataclass(frozen=True)
class PurgedLake:
    """A catalog in a folder, in which a drop with purge can't be undone."""

    url: str
    environment: Mapping[str, str]

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[CatalogFixture]:
        """The catalog."""
        store = open_store(self.url, self.environment)
        settings = Settings(WAREHOUSE, purge=PurgeSettings(undrop_window_ms=0))
        try:
            yield CatalogFixture(store, settings=settings, url=self.url)
        finally:
            await store.close()


async def drop_shared_table(lake: PurgedLake, shape: Shape) -> str:
    """Makes a table, and another whose one snapshot is an early one of it, and drops the first. Returns the purge's
    task."""
    async with lake.opened() as fixture:
        await fixture.namespace(*NS)
        await fixture.table("t")
        location = await location_of(fixture, "t")
        prefix = key_prefix(fixture, location)
        files = ((prefix + file, body) for file, body in shape.objects(location))
        _write_files(Path(lake.url.removeprefix("file:")), files)
        await shape.commit(fixture, "t")
        await _share_half(fixture, location, shape)
        session = fixture.session()
        await drop_table(session, NS, "t", purge=True)
        [task] = [hint.task async for hint in all_hints(session.state)]
        return task


async def _share_half(fixture: CatalogFixture, location: str, shape: Shape) -> None:
    await fixture.table("neighbour")
    snapshot: JsonObject = {
        "snapshot-id": 1,
        "sequence-number": 1,
        "timestamp-ms": fixture.runtime.now_ms(),
        "manifest-list": f"{location}/metadata/snap-{shape.snapshots // 2}.avro",
        "summary": {"operation": "append"},
        "schema-id": 0,
    }
    added: JsonObject = {"action": "add-snapshot", "snapshot": snapshot}
    await fixture.commit({"requirements": [], "updates": [added]}, "neighbour")


def _write_files(root: Path, objects: Iterator[tuple[str, bytes]]) -> None:
    """Writes plain files: the store would sync each of them to the disk."""
    for key, body in objects:
        file = root / key
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(body)
