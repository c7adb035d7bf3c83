"""Tables in a bad state behind a real server, writers that go on, and `arco pipeline run maintain` with a Spark of its
own."""

import json
import os
import random
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException, ValidationException
from pyiceberg.expressions import EqualTo
from pyiceberg.table import Table

from arco_catalog.iceberg.json import JsonObject, JsonValue
from reconciler.maintain.progress import DONE, PARTLY
from reconciler.system import tables
from tests.compact.lake import ServedLake
from tools.demo.engines import jars, pyiceberg_catalog
from tools.demo.policies import set_policies
from tools.demo.server import ARCO, WAREHOUSE
from tools.support.environment import PROJECT
from tools.support.local_spark import environment

SCHEMA = pa.schema([("id", pa.int64()), ("part", pa.int64()), ("text", pa.string())])
BOUND_S = 3_000.0
DAY_S = 86_400


@dataclass(frozen=True)
class Maintained:
    """A served lake whose tables are maintained."""

    lake: ServedLake

    def policy(self, table: str, kind: str, content: Mapping[str, JsonValue]) -> None:
        """A policy of a predefined type for one table."""
        set_policies(self.lake.server.uri, "db", table, {kind: {**content}})

    def policies(self, table: str) -> None:
        """All four, which ask for as much as they can: of snapshots three are kept, of whatever age."""
        self.policy(table, "data-compaction", {})
        self.policy(table, "metadata-compaction", {})
        self.policy(table, "snapshot-expiry", {"config": {"max_snapshot_age_days": 0, "min_snapshot_to_keep": 3}})
        self.policy(table, "orphan-file-removal", {"max_orphan_file_age_in_days": 1})

    def command(self, *more: str) -> list[str]:
        """The job on this machine."""
        server = self.lake.server
        where = ["--uri", server.uri, "--store", server.store, "--warehouse", WAREHOUSE, "--master", "local[2]"]
        fetched = [] if "--dry-run" in more else ["--jars", ",".join(map(str, jars("")))]
        return [str(ARCO), "pipeline", "run", "maintain", *where, *fetched, *more]

    def environment(self, **more: str) -> Mapping[str, str]:
        """With Java, and what a test sets."""
        return {**os.environ, **environment(), **more}

    def run(self, *more: str, **variables: str) -> tuple[str, JsonObject]:
        """A run, to its end: what it prints, and its counts."""
        done = subprocess.run(
            self.command(*more),
            cwd=PROJECT.parent,
            env=self.environment(**variables),
            capture_output=True,
            text=True,
            timeout=BOUND_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        counts = json.loads(done.stdout.splitlines()[-1])
        assert isinstance(counts, dict)
        return done.stdout, counts

    def killed_when(self, line_start: str, runs: int, **variables: str) -> bool:
        """Start up to `runs` runs, and kill the first that prints a line beginning so, with its child processes.
        Returns whether one did."""
        for _ in range(runs):
            job = subprocess.Popen(
                self.command(),
                cwd=PROJECT.parent,
                env=self.environment(**variables),
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                start_new_session=True,
            )
            with job:
                assert job.stdout is not None
                if any(line.startswith(line_start) for line in job.stdout):
                    os.killpg(job.pid, signal.SIGKILL)
                    return True
            assert job.returncode == 0
        return False

    def old_files(self, table: str) -> int:
        """How many of the data files that `many_files` wrote are still live."""
        files = self.lake.client.load_table(f"db.{table}").scan().plan_files()
        return sum(Path(task.file.file_path).stem.isdecimal() for task in files)

    def fsck(self) -> int:
        """The exit status of `arco fsck`."""
        where = ["--store", self.lake.server.store, "--warehouse", WAREHOUSE]
        return subprocess.run([str(ARCO), "fsck", *where], timeout=BOUND_S, check=False).returncode

    def folder(self, table: str) -> Path:
        """Where a table's files lie."""
        return Path(self.lake.client.load_table(f"db.{table}").location().removeprefix("file://"))

    def files(self, table: str) -> dict[str, bytes]:
        """Every file of a table."""
        folder = self.folder(table)
        return {str(file): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}

    def outcomes(self, table: str) -> dict[str, dict[str, object]]:
        """The first row of `system.maintenance` for each procedure that was called for a table, by procedure."""
        return {str(row["procedure"]): row for row in reversed(self._rows(table))}

    def mended(self, table: str) -> set[str]:
        """The procedures that have done something for a table."""
        return {str(row["procedure"]) for row in self._rows(table) if row["outcome"] in {DONE, PARTLY}}

    def _rows(self, table: str) -> list[dict[str, object]]:
        """Of a table, in their order; each is told once. Nothing before the first row of all."""
        if not self.lake.client.table_exists(("system", tables.MAINTENANCE.name)):
            return []
        rows = [row for row in self.lake.rows(tables.MAINTENANCE) if row["name"] == table]
        keys = [(row["task_id"], row["step"]) for row in rows]
        assert len({*keys}) == len(keys)
        return sorted(rows, key=lambda row: str(row["ended_at"]))

    def ids(self, table: str) -> list[int]:
        """The ids in a table, sorted."""
        found = self.lake.client.load_table(f"db.{table}").scan(selected_fields=("id",)).to_arrow()
        return sorted(found["id"].to_pylist())

    def orphan(self, table: str, age_days: int) -> Path:
        """A file that no metadata names."""
        file = self.folder(table) / "data" / f"orphan-{age_days}.parquet"
        file.write_bytes(b"orphan")
        then = time.time() - age_days * DAY_S
        os.utime(file, (then, then))
        return file

    def make_old(self, table: str, days: int = 2) -> None:
        """Has all files of a table look as old."""
        then = time.time() - days * DAY_S
        for file in self.files(table):
            os.utime(file, (then, then))


def rows_of(ids: Sequence[int]) -> pa.Table:
    """A row for each id."""
    return pa.table([ids, [each % 4 for each in ids], [f"row {each}" for each in ids]], schema=SCHEMA)


@dataclass
class Writer:
    """Appends, and deletes some of what it appended, until it is stopped. What it was told is committed is in `ids`."""

    uri: str
    table: str
    first: int
    pause_s: float = 0.5
    ids: set[int] = field(default_factory=set)
    commits: int = 0
    conflicts: int = 0
    failure: Exception | None = None

    def run(self, stop: threading.Event) -> None:
        """Goes on until it is told to stop."""
        catalog, number = pyiceberg_catalog(self.uri, WAREHOUSE, {}), self.first
        chance = random.Random(self.first)
        try:
            while not stop.wait(self.pause_s):
                if self.ids and chance.random() < 0.25:
                    gone = max(self.ids)
                    self._commit(catalog, partial(_delete, gone))
                    self.ids.remove(gone)
                else:
                    some = [*range(number, number + 3)]
                    self._commit(catalog, partial(_append, some))
                    self.ids |= {*some}
                    number += 3
        except Exception as error:
            self.failure = error

    def _commit(self, catalog: Catalog, change: Callable[[Table], None]) -> None:
        """Commits, however often others are first."""
        for _ in range(200):
            try:
                change(catalog.load_table(self.table))
            except (CommitFailedException, ValidationException):  # the latter where a rewrite was first
                self.conflicts += 1
            else:
                self.commits += 1
                return
        raise TimeoutError(f"{self.table} took no commit")


def _append(ids: Sequence[int], table: Table) -> None:
    table.append(rows_of(ids))


def _delete(gone: int, table: Table) -> None:
    table.delete(EqualTo("id", gone))  # type: ignore[call-arg, arg-type]


@contextmanager
def writing(*writers: Writer) -> Iterator[None]:
    """Has writers go on beside. None of them may have failed."""
    stop = threading.Event()
    threads = [threading.Thread(target=writer.run, args=(stop,)) for writer in writers]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join(timeout=120)
    for writer in writers:
        if writer.failure is not None:
            raise writer.failure


@dataclass(frozen=True)
class Shape:
    """How many files, in how many commits."""

    files: int
    commits: int


def many_files(catalog: Catalog, name: str, rows: pa.Table, shape: Shape) -> Table:
    """Makes a table of so many files, by so many commits. All rows are in it."""
    table = catalog.create_table(name, rows.schema)
    folder = Path(table.location().removeprefix("file://")) / "data"
    folder.mkdir(parents=True, exist_ok=True)
    size, each = -(-rows.num_rows // shape.files), -(-shape.files // shape.commits)
    made: list[str] = []
    for number in range(shape.files):
        file = folder / f"{number:06}.parquet"
        pq.write_table(rows.slice(number * size, size), file)
        made.append(file.as_uri())
        if len(made) == each or number == shape.files - 1:
            table.add_files(made, check_duplicate_files=False)
            made = []
    return table
