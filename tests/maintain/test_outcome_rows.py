"""Rows of `system.maintenance` at a real server: each is written once, also by concurrent drivers
(docs/design/pipeline.md#rule-13)."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from arco_catalog.embed import serving
from arco_catalog.state.runtime import SystemRuntime
from reconciler.maintain.calls import Procedure
from reconciler.maintain.outcome_rows import MaintenanceTable
from reconciler.maintain.progress import Progress, StartedProcedure
from reconciler.maintain.table_plans import TableRef
from reconciler.system import tables
from reconciler.system.definition import Row
from reconciler.system.opened import SystemTables
from tests.compact.lake import Killed, ServedLake
from tools.demo.server import WAREHOUSE

AT_MS = 1_770_000_000_123
TABLE = TableRef(("a", "b"), "t", "01ENTITY")


@pytest.fixture
def served(tmp_path: Path) -> Iterator[ServedLake]:
    """A catalog with one table."""
    with serving(f"file:{tmp_path / 'store'}", warehouse=WAREHOUSE) as server:
        made = ServedLake(server)
        made.append("t")
        yield made


def maintenance_table(served: ServedLake) -> MaintenanceTable:
    return MaintenanceTable(SystemTables(served.mortal(), WAREHOUSE), SystemRuntime())


def rows(task: str, table: TableRef = TABLE, procedure: Procedure = Procedure.REWRITE_DATA_FILES) -> list[Row]:
    started = StartedProcedure(
        procedure, {"reason": "many small files", "before": {"data_files": 12}, "began_ms": AT_MS}
    )
    done = started.ended("done", None, {"data_files": 1}, {"rewritten_data_files_count": 12}, AT_MS + 5_000)
    return [*Progress().with_outcome(done).with_outcome(done).rows(task, table)]


def test_a_row_has_what_was_done_and_why(served: ServedLake) -> None:
    maintenance_table(served).write("task-1", rows("task-1"))
    first, second = sorted(served.rows(tables.MAINTENANCE), key=lambda row: str(row["step"]))
    assert (first["task_id"], first["step"], second["step"]) == ("task-1", 1, 2)
    assert (first["namespace"], first["name"], first["entity"]) == ("a.b", "t", "01ENTITY")
    assert (first["data_files_before"], first["data_files_after"], first["bytes_after"]) == (12, 1, None)
    assert (first["reason"], first["result"]) == ("many small files", '{"rewritten_data_files_count":12}')


def test_rows_of_a_task_are_not_written_again(served: ServedLake) -> None:
    for _ in range(2):
        maintenance_table(served).write("task-1", rows("task-1"))
    assert len(served.rows(tables.MAINTENANCE)) == 2


def test_a_driver_that_dies_after_its_commit_finds_the_rows(served: ServedLake) -> None:
    catalog = served.mortal()
    catalog.dies_at, catalog.after = 1, True
    with pytest.raises(Killed):
        MaintenanceTable(SystemTables(catalog, WAREHOUSE), SystemRuntime()).write("task-1", rows("task-1"))
    maintenance_table(served).write("task-1", rows("task-1"))
    assert len(served.rows(tables.MAINTENANCE)) == 2


def test_of_two_that_write_the_same_rows_at_once_one_finds_them(served: ServedLake) -> None:
    catalog = served.mortal()

    def be_first(table: object) -> None:
        catalog.beforehand = None
        with ThreadPoolExecutor(1) as threads:
            threads.submit(maintenance_table(served).write, "task-1", rows("task-1")).result()

    maintenance_table(served).write("task-0", rows("task-0"))
    catalog.beforehand = be_first
    MaintenanceTable(SystemTables(catalog, WAREHOUSE), SystemRuntime()).write("task-1", rows("task-1"))
    assert [row["task_id"] for row in served.rows(tables.MAINTENANCE)].count("task-1") == 2


def test_the_last_task_of_a_table_and_its_last_removal_are_found(served: ServedLake) -> None:
    table = maintenance_table(served)
    assert (table.last_task("01ENTITY"), table.last_orphan_removals()) == ("", {})
    table.write("task-1", rows("task-1"))
    table.write("task-2", rows("task-2", TableRef(("a",), "u", "01OTHER"), Procedure.REMOVE_ORPHAN_FILES))
    assert (table.last_task("01ENTITY"), table.last_task("01OTHER")) == ("task-1", "task-2")
    assert table.last_orphan_removals() == {"01OTHER": AT_MS + 5_000}
