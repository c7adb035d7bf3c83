"""What rewrites on Spark make of a table, and that what is foreseen is what they do: sorts, z-orders, and files of
which many rows are deleted."""

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from tests.compact.lake import ServedLake
from tests.reconciler.maintained import Maintained
from tests.reconciler.merge_on_read import ROWS, TABLES
from tools.demo.engines import ICEBERG
from tools.demo.server import WAREHOUSE, serving
from tools.support.environment import PROJECT
from tools.support.local_spark import environment

pytestmark = [pytest.mark.slow, pytest.mark.needs(f".jars/iceberg-spark-runtime-4.1_2.13-{ICEBERG}.jar")]
SIDE = 16
COMMITS = 8
BOUND_S = 300.0


@pytest.fixture
def maintained(tmp_path: Path) -> Iterator[Maintained]:
    with serving(f"file:{tmp_path / 'store'}", tmp_path / "server.log", "--workers", "1") as server:
        made = Maintained(ServedLake(server))
        made.lake.client.create_namespace("db")
        yield made


def points(maintained: Maintained, table: str) -> list[list[tuple[int, int]]]:
    """The rows of each data file of a table, in the order in which they lie there."""
    tasks = maintained.lake.client.load_table(f"db.{table}").scan().plan_files()
    files = [pq.read_table(task.file.file_path.removeprefix("file://")) for task in tasks]
    return [[*zip(file["x"].to_pylist(), file["y"].to_pylist(), strict=True)] for file in files]


def in_order(files: Sequence[Sequence[tuple[int, int]]], key: Callable[[tuple[int, int]], int]) -> bool:
    """Whether each file is sorted, and none overlaps with another."""
    keys = [*chain.from_iterable(sorted([key(point) for point in file] for file in files))]
    return keys == sorted(keys)


def descending(point: tuple[int, int]) -> int:
    x, y = point
    return -(SIDE * x + y)


def z_value(point: tuple[int, int]) -> int:
    """The bits of both, by turns, those of x first."""
    x, y = point
    return sum((x >> bit & 1) << 2 * bit + 1 | (y >> bit & 1) << 2 * bit for bit in range(SIDE.bit_length()))


def test_files_come_out_sorted_as_the_policy_asks(maintained: Maintained) -> None:
    every = [(x, y) for x in range(SIDE) for y in range(SIDE)]
    random.Random(7).shuffle(every)
    schema = pa.schema([("x", pa.int64()), ("y", pa.int64())])
    asked = {"sorted": ("sort", "x DESC NULLS LAST, y DESC"), "curved": ("z-order", "x, y")}
    for name, (strategy, order) in asked.items():
        table = maintained.lake.client.create_table(f"db.{name}", schema)
        for number in range(COMMITS):
            rows = every[number::COMMITS]
            table.append(pa.table([[x for x, _ in rows], [y for _, y in rows]], schema=schema))
        maintained.policy(name, "data-compaction", {"config": {"strategy": strategy, "sort_order": order}})
    assert not in_order(points(maintained, "sorted"), descending)
    assert not in_order(points(maintained, "curved"), z_value)

    _, counts = maintained.run()

    assert counts["outcomes"] == {"done": 2}
    for name, key in (("sorted", descending), ("curved", z_value)):
        assert maintained.outcomes(name)["rewrite_data_files"]["explanation"] is None
        files = points(maintained, name)
        assert in_order(files, key)
        assert sorted(chain.from_iterable(files)) == sorted(every)


def test_files_of_which_many_rows_are_deleted_are_rewritten_and_others_are_not(
    maintained: Maintained, tmp_path: Path
) -> None:
    written = subprocess.run(
        [sys.executable, "-m", "tests.reconciler.merge_on_read", maintained.lake.server.uri, WAREHOUSE, str(tmp_path)],
        cwd=PROJECT,
        env={**os.environ, **environment()},
        capture_output=True,
        text=True,
        timeout=BOUND_S,
        check=False,
    )
    assert written.returncode == 0, written.stdout + written.stderr
    for name, size in json.loads(written.stdout.splitlines()[-1]).items():
        maintained.policy(name, "data-compaction", {"config": {"target_file_size_bytes": size}})

    said, counts = maintained.run()

    assert counts["outcomes"] == {"done": 2}
    for name, (_, every) in TABLES.items():
        told = maintained.outcomes(name)
        if every == 10:
            assert told == {}
            continue
        row = told["rewrite_data_files"]
        assert str(row["reason"]).startswith("1 of 1 data files have 30 % of their rows deleted, or more"), said
        assert row["explanation"] is None
        assert json.loads(str(row["result"]))["rewritten_data_files_count"] == 1
        table = maintained.lake.client.load_table(f"db.{name}")
        [file] = table.inspect.data_files().to_pylist()
        assert file["record_count"] == ROWS - ROWS // every
    assert maintained.run("--dry-run")[1]["due"] == 0
