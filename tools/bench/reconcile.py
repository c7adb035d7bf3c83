"""The reconciler's two drivers over catalogs of many tables: `make bench-reconcile`, `python -m tools.bench.reconcile`.

The catalogs lie in a folder, so that both drivers walk the same state. Their records are written as plain files, not
one by one through the store, which makes each of them last. Half of what is measured is the local store's: a LIST reads
the whole folder again for each thousand pointers, and each call is a hop to a thread.
"""

import argparse
import asyncio
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

from pyspark import Accumulator, SparkContext
from pyspark.accumulators import AccumulatorParam

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.reconcile_stats import ReconcileStats
from arco_catalog.state import receipt
from arco_catalog.state.entries import RelationEntry
from arco_catalog.state.index import relation_key
from arco_catalog.state.paths import Paths
from arco_catalog.state.pointer import MetadataFile, Pointer
from arco_catalog.state.registry import Operation, RegistryState
from arco_catalog.state.runtime import ulid_of
from arco_catalog.upkeep import reconcile as here
from reconciler import spark as there
from reconciler.catalog_config import CatalogConfig
from storage_backends import ObjectStore
from storage_backends.open import open_store
from storage_backends.wrappers.measuring import Measurement, MeasuringStore
from tools.support.local_spark import local_spark

SIZES = (1_000, 10_000, 100_000)
QUICK = SIZES[:2]
COMMITS = 2
"""Metadata files of each table, to begin with."""
LOST = 100
"""Of so many committed receipts one is missing, and of so many tables one changes."""
BEGAN_MS = 1_767_225_600_000
WAREHOUSE = "wh"
TIMEOUT_S = 600
"""How long one run may take."""

Calls: TypeAlias = Counter[str]


class ManyTables:
    """A catalog in a folder whose tables differ in nothing but their ids. It has pointers and receipts, which is all
    that a walk reads, and no metadata files."""

    def __init__(self, folder: Path, tables: int) -> None:
        self.folder = folder
        self.paths = Paths(WAREHOUSE)
        self.entities = [ulid_of(BEGAN_MS, number.to_bytes(10, "big")) for number in range(tables)]
        self.tips: dict[str, Pointer] = {}

    def make(self) -> None:
        """Writes the registry, and each table's create and first commits."""
        edits: dict[str, JsonObject | None] = {}
        for number, entity in enumerate(self.entities):
            entry = RelationEntry.new(kind="table", entity=entity, uuid=entity, locations=[])
            edits[relation_key(("db",), f"t{number}")] = entry.json
        made = Operation(ulid_of(BEGAN_MS, bytes(10)), "create-table", {}, None)
        head = RegistryState.empty().successor(commit=made.id, at_ms=BEGAN_MS, edits=edits, operations=[made])
        self.keep(self.paths.manifest, head.body)
        for number, entity in enumerate(self.entities):
            for _ in range(COMMITS):
                self.commit(entity, lose=False)
            show(f"making {len(self.entities):,} tables", number + 1, len(self.entities))

    def commit(self, entity: str, *, lose: bool) -> None:
        """One commit of a table, the first being its create; or one whose writer died before it wrote its receipt."""
        before = self.tips.get(entity)
        number = 0 if before is None else before.sequence
        location = f"file://{self.folder}/{WAREHOUSE}/warehouse/{entity}/metadata/{number:05d}.metadata.json"
        file = MetadataFile(location, BEGAN_MS + number)
        attempt = ulid_of(file.ms, bytes(10))
        after = (
            Pointer.first(entity=entity, kind="table", move=attempt, metadata=file, summary={})
            if before is None
            else before.successor(attempt=attempt, metadata=file, summary={})
        )
        details: JsonObject = {"attempt": attempt, "principal": "bench", "source": {"kind": "IcebergRest"}}
        pending = receipt.pending(
            entity=entity, metadata=file, base=None if before is None else before.metadata, details=details
        )
        self.keep(self._receipt(receipt.PENDING, pending), receipt.encode(pending))
        if not lose:
            self.keep(self._receipt(receipt.COMMITTED, pending), receipt.encode(receipt.committed(pending)))
        self.keep(self.paths.pointer(entity), after.body)
        self.tips[entity] = after

    def forget(self) -> None:
        """Loses what reconcilers remember, and some receipts."""
        shutil.rmtree((self.folder / self.paths.checkpoints(0)).parent, ignore_errors=True)
        for committed in sorted(self.folder.glob(f"{self.paths.state}/events/*/iceberg/committed/*"))[::LOST]:
            committed.unlink()

    def change(self) -> None:
        """A commit to some tables, their receipts missing."""
        for entity in self.entities[::LOST]:
            self.commit(entity, lose=True)

    def missing(self) -> int:
        """How many committed receipts are not there."""
        events = f"{self.paths.state}/events/*/iceberg"
        written = sum(1 for _ in self.folder.glob(f"{events}/committed/*"))
        return sum(1 for _ in self.folder.glob(f"{events}/pending/*")) - written

    def _receipt(self, stage: str, pending: JsonObject) -> str:
        key, ms = pending["commit_key"], pending["metadata_ms"]
        assert isinstance(key, str)
        assert isinstance(ms, int)
        return self.paths.receipt(stage, key, ms)

    def keep(self, key: str, body: bytes) -> None:
        path = self.folder / key
        try:
            path.write_bytes(body)
        except FileNotFoundError:
            path.parent.mkdir(parents=True)
            path.write_bytes(body)


class ReportingStore(MeasuringStore):
    """Counts its calls, and tells an accumulator when it is closed."""

    def __init__(self, inner: ObjectStore, calls: Accumulator[Calls]) -> None:
        self._measurement = Measurement()
        super().__init__(inner, self._measurement)
        self._calls = calls

    async def close(self) -> None:
        self._calls.add(Counter({str(kind): count for kind, count in self._measurement.by_kind.items()}))
        await super().close()


def opened_to_report(calls: Accumulator[Calls], url: str) -> ObjectStore:
    return ReportingStore(open_store(url, os.environ), calls)


class Sum(AccumulatorParam[Calls]):
    """Adds counters up. PySpark names the method."""

    def zero(self, value: Calls) -> Calls:
        return Counter()

    def addInPlace(self, value1: Calls, value2: Calls) -> Calls:  # noqa: N802
        value1.update(value2)
        return value1


@dataclass(frozen=True, slots=True)
class Figure:
    """One run."""

    stats: ReconcileStats
    seconds: float
    calls: Calls


async def by_asyncio(
    spark: SparkContext, config: CatalogConfig, progress: Callable[[ReconcileStats], None]
) -> ReconcileStats:
    async with config.session() as session:
        return await here.reconcile(session, progress=progress)


async def by_spark(
    spark: SparkContext, config: CatalogConfig, progress: Callable[[ReconcileStats], None]
) -> ReconcileStats:
    return await there.reconcile(spark, config, progress=progress)


Driver: TypeAlias = Callable[
    [SparkContext, CatalogConfig, Callable[[ReconcileStats], None]], Coroutine[None, None, ReconcileStats]
]
DRIVERS: dict[str, Driver] = {"asyncio": by_asyncio, "spark": by_spark}


def measure(spark: SparkContext, tables: ManyTables, name: str, run: str) -> Figure:
    """One run of a driver. Raises `RuntimeError` if a receipt is still missing after it, and `TimeoutError`."""
    calls = spark.accumulator(Counter(), Sum())
    config = CatalogConfig(f"file:{tables.folder}", WAREHOUSE, opens=partial(opened_to_report, calls))

    def progress(stats: ReconcileStats) -> None:
        show(f"{name}, {run}", stats.walked, stats.pointers - stats.unchanged)

    async def bounded() -> ReconcileStats:
        async with asyncio.timeout(TIMEOUT_S):
            return await DRIVERS[name](spark, config, progress)

    began = time.perf_counter()
    stats = asyncio.run(bounded())
    seconds = time.perf_counter() - began
    if stats.unreadable or (left := tables.missing()):
        raise RuntimeError(f"{name}, {run}: {stats.unreadable[:3]}, {left} receipts still missing")
    return Figure(stats, seconds, calls.value)


def runs(spark: SparkContext, tables: ManyTables) -> Iterator[str]:
    """Both drivers over one catalog: cold, and after some tables changed."""
    for name in DRIVERS:
        tables.forget()
        yield line(len(tables.entities), name, "cold", measure(spark, tables, name, "cold"))
        tables.change()
        yield line(len(tables.entities), name, "1 % changed", measure(spark, tables, name, "1 % changed"))


HEADER = (
    f"{'tables':>8}  {'driver':8} {'run':12}{'seconds':>8}{'tables/s':>10}{'walked':>9}{'written':>9}"
    f"{'LIST':>6}{'GET':>9}{'PUT':>9}"
)


def line(size: int, driver: str, run: str, figure: Figure) -> str:
    """One row."""
    stats, calls = figure.stats, figure.calls
    return (
        f"{size:8,}  {driver:8} {run:12}{figure.seconds:8.1f}{size / figure.seconds:10,.0f}{stats.walked:9,}"
        f"{stats.written:9,}{calls['list']:6,}{calls['get']:9,}{calls['put']:9,}"
    )


def show(what: str, done: int, total: int) -> None:
    """Progress, on a line that is written over."""
    if sys.stderr.isatty() and (done % 100 == 0 or done == total):
        sys.stderr.write(f"\r\x1b[K{what}: {done:,} of {total:,}" + ("\r\x1b[K" if done == total else ""))
        sys.stderr.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints a row as soon as it is known."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.reconcile", description=__doc__)
    parser.add_argument("--quick", action="store_true", help=f"leave out {SIZES[-1]:,} tables, which take minutes")
    sizes = QUICK if parser.parse_args(arguments).quick else SIZES
    print(
        f"The reconciler over local files, {COMMITS} commits a table; one receipt in {LOST} is missing; "
        f"Spark is local[2]. Tables/s counts tables that cost no walk.\n\n{HEADER}"
    )
    with tempfile.TemporaryDirectory(prefix="arco-bench-") as scratch, local_spark(Path(scratch)) as spark:
        spark.parallelize([0], 1).count()  # its first job starts its Python
        for size in sizes:
            tables = ManyTables(Path(scratch, str(size)), size)
            tables.make()
            for row in runs(spark, tables):
                print(row, flush=True)
            shutil.rmtree(tables.folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
