"""A served catalog, what its files say happened in it, and what its system tables say."""

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pyarrow as pa  # type: ignore[import-untyped]
from pyiceberg.catalog import Catalog
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.update import TableRequirement, TableUpdate

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.runtime import SystemRuntime
from reconciler.catalog_config import CatalogConfig
from reconciler.compact.driver import compact
from reconciler.compact.stats import CompactStats
from reconciler.executors import LocalExecutor
from reconciler.system import tables
from reconciler.system.definition import SystemTable
from reconciler.system.opened import SystemTables
from reconciler.system.rest import KeyedRestCatalog
from tools.demo.engines import pyiceberg_catalog
from tools.demo.server import WAREHOUSE

PATIENCE_S = 60.0
ROW = pa.table({"a": pa.array([1], pa.int64())})


_IDS: Mapping[str, Sequence[str]] = {
    "commits": ("commit_key",),
    "catalog_events": ("event_id",),
    "tables": ("commit_key",),
    "views": ("commit_key",),
    "columns": ("commit_key", "position"),
    "refs": ("commit_key", "ref"),
    "snapshots": ("entity", "snapshot_id"),
    "files_health": ("commit_key",),
    "tasks": ("task_id", "task_version"),
    "lineage_events": ("event", "role", "dataset_namespace", "dataset_name"),
    "lineage": ("edge_id",),
    "reports": ("report_id",),
    "maintenance": ("task_id", "step"),
}
"""What tells a row of each table from all others."""


class Killed(BaseException):
    """The driver is gone: nothing handles this."""


class Mortal(KeyedRestCatalog):
    """Dies before or after one of its commits; or another does something just before each of them."""

    dies_at: int | None = None
    after: bool = False
    beforehand: Callable[[Table], None] | None = None
    after_commits: int = 0
    """How many of its commits go before what is done `beforehand`."""
    commits: int = 0

    def commit_table(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        self.commits += 1
        if self.beforehand is not None and self.after_commits <= 0:
            self.beforehand(table)
        self.after_commits -= 1
        if self.commits == self.dies_at and not self.after:
            raise Killed
        made = super().commit_table(table, requirements, updates)
        if self.commits == self.dies_at:
            raise Killed
        return made


class CatalogServer(Protocol):
    """A server, in this process or another: where it answers, and over which store."""

    @property
    def uri(self) -> str: ...
    @property
    def store(self) -> str: ...


@dataclass
class ServedLake:
    """A catalog in a folder, and a server over it."""

    server: CatalogServer

    def __post_init__(self) -> None:
        self.config = CatalogConfig(self.server.store, WAREHOUSE)
        self.folder = Path(self.server.store.removeprefix("file:")) / WAREHOUSE
        self.client: Catalog = pyiceberg_catalog(self.server.uri, WAREHOUSE, {})

    def append(self, *names: str) -> None:
        """A commit to each of these tables, which are made where they are missing."""
        self.client.create_namespace_if_not_exists("db")
        for name in names:
            self.client.create_table_if_not_exists(f"db.{name}", ROW.schema).append(ROW)

    def mortal(self) -> Mortal:
        """A connection of the pipeline's."""
        return Mortal({"uri": self.server.uri, "warehouse": WAREHOUSE}, SystemRuntime(), lambda seconds: None)

    async def compact(self, catalog: KeyedRestCatalog | None = None, batch_size: int = 1_000) -> CompactStats:
        """A run, in this process."""
        system = SystemTables(catalog or self.mortal(), WAREHOUSE)
        return await compact(system, self.config, LocalExecutor(), batch_size=batch_size)

    def rows(self, table: SystemTable) -> list[dict[str, object]]:
        """The rows of a system table, as PyIceberg reads them."""
        found: list[dict[str, object]] = self.client.load_table(("system", table.name)).scan().to_arrow().to_pylist()
        return found

    def snapshots(self) -> Mapping[str, int]:
        """How many snapshots each system table has."""
        return {
            table.name: len(self.client.load_table(("system", table.name)).metadata.snapshots) for table in tables.ALL
        }

    def everything(self) -> dict[str, bytes]:
        """All objects of the store."""
        files = (file for file in self.folder.parent.rglob("*") if file.is_file())
        return {str(file.relative_to(self.folder.parent)): file.read_bytes() for file in files}

    def put(self, key: str, body: bytes) -> None:
        """Writes an object of the store."""
        file = self.folder.parent / key
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(body)

    def there(self, key: str) -> bool:
        """Whether there is such an object."""
        return (self.folder.parent / key).exists()

    def unlink(self, location: str) -> None:
        """Deletes a file of a table."""
        Path(location.removeprefix("file://")).unlink()

    def receipts(self) -> list[JsonObject]:
        """The committed receipts, but for those of system tables."""
        files = (self.folder / "_catalog" / "events").glob("*/iceberg/committed/*.json")
        said = [json.loads(file.read_bytes()) for file in files]
        return [receipt for receipt in said if receipt.get("namespace") != ["system"]]

    def receipt_of(self, table: str) -> Path:
        """The committed receipt of a table's last commit, once it is written: that may be after the answer."""
        last = self.client.load_table(f"db.{table}").metadata_location
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            for file in (self.folder / "_catalog" / "events").glob("*/iceberg/committed/*.json"):
                if json.loads(file.read_bytes())["metadata_location"] == last:
                    return file
            time.sleep(0.01)
        raise AssertionError(f"nobody has written the receipt of {last}")

    def assert_each_event_once(self) -> None:
        """The tables hold what the receipts and the registry say, each once, and no table any row twice."""
        self.assert_told_once()
        self._assert_current(self.receipts())

    def assert_told_once(self) -> None:
        """The same, but for which rows are current."""
        for table in tables.ALL:
            ids = Counter(tuple(row[column] for column in _IDS[table.name]) for row in self.rows(table))
            assert not [each for each, count in ids.items() if count > 1], table.name
        receipts = self.receipts()
        commits = self.rows(tables.COMMITS)
        assert Counter(row["event_id"] for row in commits) == Counter(receipt["event_id"] for receipt in receipts)
        assert Counter(row["commit_key"] for row in self.rows(tables.TABLES)) == Counter(
            receipt["commit_key"] for receipt in receipts
        )
        added = Counter((receipt["entity"], each) for receipt in receipts for each in _longs(receipt))
        assert Counter((row["entity"], row["snapshot_id"]) for row in self.rows(tables.SNAPSHOTS)) == added
        events = Counter(row["event_id"] for row in self.rows(tables.CATALOG_EVENTS))
        assert set(events.values()) == {1}
        assert len(events) == 1 + sum(receipt["previous_metadata_location"] is None for receipt in receipts)

    def _assert_current(self, receipts: Sequence[JsonObject]) -> None:
        """The newest version of each entity is the current one; the newest that set a schema, of its columns."""
        newest: dict[object, str] = {}
        first: dict[object, str] = {}
        for receipt in sorted(receipts, key=lambda each: int(str(each["metadata_ms"]))):
            newest[receipt["entity"]] = str(receipt["commit_key"])
            first.setdefault(receipt["entity"], str(receipt["commit_key"]))
        assert self._current(tables.TABLES) == [*sorted(newest.values())]
        assert self._current(tables.REFS) == [*sorted(newest.values())]
        assert self._current(tables.COLUMNS) == [*sorted(first.values())]

    def _current(self, table: SystemTable) -> list[str]:
        return sorted(str(row["commit_key"]) for row in self.rows(table) if row["current"])


def in_another_thread(work: Callable[[], object]) -> None:
    """Does it, and waits: this thread has a loop of its own."""
    with ThreadPoolExecutor(1) as threads:
        threads.submit(work).result()


def _longs(receipt: JsonObject) -> list[object]:
    added = receipt["added_snapshot_ids"]
    assert isinstance(added, list)
    return [*added]
