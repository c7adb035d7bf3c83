"""Deletes of partitions whose values Java's library has lost, as it does where it rewrites the manifests of a partition
spec after the column of one of its fields was dropped."""

from pathlib import Path

from arco_catalog.iceberg.json import JsonObject, JsonValue
from tests.engines.scans.drawn_scans import DrawnScan
from tests.engines.scans.oracle import MadeTable, Oracle
from tests.engines.scans.served_planner import ServedPlanner
from tests.engines.scans.tasks import ScanPlan
from tools.support.asgi_client import Answer

SCHEMA: JsonObject = {
    "type": "struct",
    "schema-id": 0,
    "fields": [
        {"id": 1, "name": "a", "type": "int", "required": False},
        {"id": 2, "name": "b", "type": "int", "required": False},
    ],
}
OPTIONS: JsonObject = {"truncate": 16, "without": []}
BY_B: JsonObject = {
    "spec-id": 0,
    "fields": [{"source-id": 2, "field-id": 1000, "name": "b", "transform": "identity"}],
}
DROP: list[JsonValue] = [
    {"do": "spec", "changes": [["remove", "b"]]},
    {"do": "schema", "changes": [["drop", "b"]]},
    {"do": "rewrite"},
]
SCAN = DrawnScan({"filter": True, "case-sensitive": True}, {}, 0)


def made(oracle: Oracle, folder: Path, *steps: JsonValue) -> MadeTable:
    """A table of two files, of the partitions 1 and 2, after these steps and the drop of their column."""
    rows: list[JsonValue] = [{"a": 1, "b": 1}, {"a": 2, "b": 2}]
    append: JsonObject = {
        "do": "append",
        "merge": False,
        "groups": [{"rows": rows, "options": OPTIONS}],
    }
    description: JsonObject = {
        "op": "make",
        "schema": SCHEMA,
        "spec": BY_B,
        "properties": {"format-version": "2"},
        "steps": [append, *steps, *DROP],
    }
    return oracle.make(description, folder)


async def planned(folder: Path, table: MadeTable) -> ScanPlan | Answer:
    served = ServedPlanner.of(folder)
    await served.make_namespace()
    await served.register("t", table.metadata_location)
    return await served.plan("t", SCAN.request)


async def test_positions_are_found_that_java_does_not_find(oracle: Oracle, tmp_path: Path) -> None:
    """Java's own planner lets the rows come back."""
    table = made(oracle, ServedPlanner.of(tmp_path).tables / "t", {"do": "positions", "file": 0, "scope": "partition"})
    theirs = oracle.plan(table, SCAN)
    ours = await planned(tmp_path, table)
    assert isinstance(theirs, ScanPlan), theirs
    assert isinstance(ours, ScanPlan), ours
    assert [len(task.deletes) for task in theirs.tasks] == [0, 0]
    assert [len(task.deletes) for task in ours.tasks] == [1, 1]


async def test_equality_deletes_of_a_lost_partition_are_refused(oracle: Oracle, tmp_path: Path) -> None:
    rows: list[JsonValue] = [{"a": 1, "b": 1}]
    step: JsonObject = {"do": "equality", "columns": ["a"], "rows": rows, "options": OPTIONS, "global": False}
    table = made(oracle, ServedPlanner.of(tmp_path).tables / "t", step)
    theirs = oracle.plan(table, SCAN)
    ours = await planned(tmp_path, table)
    assert isinstance(theirs, ScanPlan), theirs
    assert [len(task.deletes) for task in theirs.tasks] == [0, 0]
    assert isinstance(ours, Answer)
    assert (ours.status, ours.error_type) == (406, "UnsupportedOperationException")
    assert "dropped column" in ours.message
