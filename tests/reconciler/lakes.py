"""Catalogs in folders, with receipts taken away; and stores that fail an executor."""

import asyncio
import os
import signal
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from arco_catalog.iceberg.json import JsonObject, loads
from arco_catalog.operations.open import build_catalog
from arco_catalog.operations.reconcile_stats import ReconcileStats
from arco_catalog.upkeep.reconcile import reconcile as reconcile_here
from reconciler.catalog_config import CatalogConfig
from storage_backends import Found, Missing, ObjectStore, Unchanged, Version
from storage_backends.local.store import LocalStore
from storage_backends.open import StoreOpener, open_store
from tools.support.catalog_fixture import CatalogFixture
from tools.support.request_bodies import set_property
from tools.support.wrapped_stores import CountingStore

WAREHOUSE = "wh"


@dataclass
class FolderFixture(CatalogFixture):
    """A catalog over a folder, whose locations are those of its files."""

    folder: Path = Path("/nowhere")

    def __post_init__(self) -> None:
        self.store = LocalStore(self.folder)
        self.catalog = build_catalog(self.settings, self.store, f"file:{self.folder}", (), self.runtime)


class FolderLake:
    """The lake in a folder, seen from outside: its files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config = CatalogConfig(f"file:{folder}", WAREHOUSE)
        self.state = folder / WAREHOUSE / "_catalog"

    def receipts(self, stage: str = "committed") -> dict[Path, bytes]:
        """Every receipt there is."""
        return {file: file.read_bytes() for file in sorted(self.state.glob(f"events/*/iceberg/{stage}/*.json"))}

    def lose(self, every: int) -> dict[Path, bytes]:
        """Deletes every so many-th committed receipt; returns all that there were."""
        there = self.receipts()
        for file in list(there)[::every]:
            file.unlink()
        return there

    def unlink(self, location: str) -> None:
        """Deletes a file of a table."""
        Path(location.removeprefix("file://")).unlink()

    def entities(self) -> list[str]:
        """Of every pointer, in the order of a LIST."""
        return sorted(file.stem for file in (self.state / "iceberg_pointers").iterdir())

    async def make(self, tables: int, commits: int) -> None:
        """Tables in `db`, each with so many commits after its create, by two principals."""
        fixture = FolderFixture(folder=self.folder)
        await fixture.namespace("db")

        async def table(name: str) -> None:
            for number in range(commits):
                await fixture.commit(set_property(f"p{number}", name), name)

        names = [f"t{number}" for number in range(tables)]
        for name in names:  # creates of one namespace race for one HEAD
            await fixture.table(name)
        await asyncio.gather(*map(table, names))
        await fixture.store.close()

    async def commit(self, name: str) -> None:
        """One more commit."""
        fixture = FolderFixture(folder=self.folder)
        await fixture.commit(set_property("later", "1"), name)
        await fixture.store.close()

    async def reconcile_here(self) -> ReconcileStats:
        """A run of the asyncio driver."""
        async with self.config.session() as session:
            return await reconcile_here(session)

    def failing(self, entity: str, how: str) -> CatalogConfig:
        """The same lake, whose executors fail when they come to an entity."""
        return failing(self.config, entity, how)


def failing(config: CatalogConfig, key: str, how: str) -> CatalogConfig:
    """The same catalog, whose executors fail when they come to an object whose key contains `key`."""
    return replace(config, opens=failing_at(key, how))


def failing_at(key: str, how: str) -> StoreOpener:
    """What opens a store for executors that fail when they come to such an object."""
    return partial(_opened_to_fail, os.getpid(), key, how)


def committed(pending: Path) -> Path:
    """Where the committed receipt of a pending one is."""
    return pending.parents[1] / "committed" / pending.name


def parsed(receipt: bytes) -> JsonObject:
    """A receipt's document."""
    document = loads(receipt)
    assert isinstance(document, dict)
    return document


class _Failing(CountingStore):
    def __init__(self, inner: ObjectStore, driver: int, entity: str, how: str) -> None:
        super().__init__(inner)
        self._armed, self._entity, self._how = os.getpid() != driver, entity, how

    async def get(self, key: str, if_changed_from: Version | None = None) -> Found | Unchanged | Missing:
        if self._armed and self._entity in key:
            if self._how == "killed":
                os.kill(os.getpid(), signal.SIGKILL)  # this Spark worker, which runs this line
            raise RuntimeError("planted")
        return await super().get(key, if_changed_from)


def _opened_to_fail(driver: int, entity: str, how: str, url: str) -> ObjectStore:
    return _Failing(open_store(url, os.environ), driver, entity, how)
