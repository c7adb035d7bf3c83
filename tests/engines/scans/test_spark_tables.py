"""Plans of the catalog beside those of Iceberg's own planner and PyIceberg's, for tables that Spark has written."""

from collections import Counter
from pathlib import Path
from random import Random

import pytest

from tests.engines.lake import Lake
from tests.engines.scans import planted
from tests.engines.scans.comparison import compare, notices
from tests.engines.scans.oracle import Case, MadeTable, Oracle, case_of
from tests.engines.scans.second_opinion import agrees, opinions
from tests.engines.scans.served_planner import ServedPlanner
from tests.engines.scans.spark_tables import NAMESPACE, SparkWriter
from tests.engines.shell import Sql
from tools.demo.server import WAREHOUSE

SCANS = 60
MANY_SCANS = 300
MANY_FILES = 300


@pytest.fixture(scope="module")
def writer(oracle: Oracle, spark: Sql, local_lake: Lake) -> SparkWriter:
    spark(f"CREATE NAMESPACE {local_lake.name}.{NAMESPACE}")
    return SparkWriter(spark, local_lake, oracle)


@pytest.fixture(scope="module")
def changed(writer: SparkWriter, oracle: Oracle) -> Case:
    """A table that began with version 2, after every change and delete."""
    return case_of(oracle, "changed", writer.table("changed", 2, seed=1), Random(1), SCANS)


def served(lake: Lake) -> ServedPlanner:
    return ServedPlanner.of(Path(lake.server.store.removeprefix("file:")), WAREHOUSE, NAMESPACE)


async def test_plans_of_a_table_that_spark_wrote_are_those_of_java(
    oracle: Oracle, changed: Case, local_lake: Lake
) -> None:
    found = await compare(oracle, served(local_lake), [changed])
    assert found.faults == []
    assert_all_outcomes(found.outcomes)
    assert found.outcomes["with deletes"] > 0


@pytest.mark.parametrize(
    "plant",
    [
        planted.bounds_without_effect,
        planted.columns_that_have_no_nulls,
        planted.delete_files_of_which_one_is_dropped,
        planted.a_partition_spec_that_never_changed,
        planted.residuals_that_are_left_out,
    ],
    ids=lambda plant: plant.__name__,
)
async def test_a_planner_with_a_bug_is_noticed(
    oracle: Oracle, changed: Case, local_lake: Lake, plant: planted.Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    assert await notices(oracle, served(local_lake), [changed])


@pytest.mark.slow
@pytest.mark.parametrize("version", [1, 2, 3])
async def test_plans_are_those_of_java_and_have_what_pyiceberg_finds(
    oracle: Oracle, writer: SparkWriter, local_lake: Lake, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"version_{version}"
    case = case_of(oracle, name, writer.table(name, version, seed=10 + version), Random(version), MANY_SCANS)
    planner = served(local_lake)
    found = await compare(oracle, planner, [case])
    assert found.faults == []
    print(f"{found.outcomes.total()} pairs of a table that Spark wrote: {dict(found.outcomes)}")
    assert_all_outcomes(found.outcomes)
    assert (found.outcomes["with deletes"] > 0) == (version > 1)
    counted, faults = await opinions(planner, case, reads_rows=True)
    print(f"files by PyIceberg: {dict(counted)}")
    assert faults == []
    assert agrees(counted)
    if version != 2:  # the table with equality deletes, of which PyIceberg reads few states
        planted.upper_bounds_that_are_taken_for_lower_ones(monkeypatch)
        assert (await opinions(planner, case, reads_rows=True))[1] != []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["empty", "emptied", "many"])
async def test_plans_of_no_rows_and_of_many_files_are_those_of_java(
    oracle: Oracle, writer: SparkWriter, local_lake: Lake, name: str
) -> None:
    case = case_of(oracle, name, made(writer, name), Random(1), MANY_SCANS // 4)
    found = await compare(oracle, served(local_lake), [case])
    assert found.faults == []
    print(f"{found.outcomes.total()} pairs of the table {name}: {dict(found.outcomes)}")


def made(writer: SparkWriter, name: str) -> MadeTable:
    if name == "many":
        return writer.many_files(name, MANY_FILES)
    table = writer.empty(name)
    if name == "emptied":
        writer.spark(f"INSERT INTO {writer.lake.name}.{NAMESPACE}.{name} VALUES (1, TIMESTAMP'2024-02-29T00:00:00Z')")
        writer.spark(f"DELETE FROM {writer.lake.name}.{NAMESPACE}.{name}")
        return writer.made(name)
    return table


def assert_all_outcomes(outcomes: Counter[str]) -> None:
    for outcome in ("without deletes", "empty", "ended early"):
        assert outcomes[outcome] > 0, outcomes
