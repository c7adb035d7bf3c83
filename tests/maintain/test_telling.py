"""Rows of `system.maintenance` at a real server: each once, whoever tells it (docs/design/pipeline.md#rule-13)."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from arco_catalog.state.runtime import SystemRuntime
from reconciler.maintain.calls import Procedure
from reconciler.maintain.looking import Named
from reconciler.maintain.progress import Begun, Progress
from reconciler.maintain.telling import MaintenanceTable
from reconciler.system import tables
from reconciler.system.definition import Row
from reconciler.system.opened import SystemTables
from tests.compact.lake import Killed, ServedLake
from tools.demo.server import WAREHOUSE, serving

AT_MS = 1_770_000_000_123
TABLE = Named(("a", "b"), "t", "01ENTITY")


@pytest.fixture
def served(tmp_path: Path) -> Iterator[ServedLake]:
    """A catalog with one table."""
    with serving(f"file:{tmp_path / 'store'}", tmp_path / "server.log") as server:
        made = ServedLake(server)
        made.append("t")
        yield made


def telling(served: ServedLake) -> MaintenanceTable:
    return MaintenanceTable(SystemTables(served.mortal(), WAREHOUSE), SystemRuntime())


def rows(task: str, table: Named = TABLE, procedure: Procedure = Procedure.REWRITE_DATA_FILES) -> list[Row]:
    begun = Begun(procedure, {"reason": "many small files", "before": {"data_files": 12}, "began_ms": AT_MS})
    done = begun.ended("done", None, {"data_files": 1}, {"rewritten_data_files_count": 12}, AT_MS + 5_000)
    return [*Progress().ending(done).ending(done).rows(task, table)]


def test_a_row_says_what_was_done_and_why(served: ServedLake) -> None:
    telling(served).tell("task-1", rows("task-1"))
    first, second = sorted(served.rows(tables.MAINTENANCE), key=lambda row: str(row["step"]))
    assert (first["task_id"], first["step"], second["step"]) == ("task-1", 1, 2)
    assert (first["namespace"], first["name"], first["entity"]) == ("a.b", "t", "01ENTITY")
    assert (first["data_files_before"], first["data_files_after"], first["bytes_after"]) == (12, 1, None)
    assert (first["reason"], first["result"]) == ("many small files", '{"rewritten_data_files_count":12}')


def test_what_was_told_is_not_told_again(served: ServedLake) -> None:
    for _ in range(2):
        telling(served).tell("task-1", rows("task-1"))
    assert len(served.rows(tables.MAINTENANCE)) == 2


def test_who_dies_behind_the_commit_finds_it_told(served: ServedLake) -> None:
    catalog = served.mortal()
    catalog.dies_at, catalog.after = 1, True
    with pytest.raises(Killed):
        MaintenanceTable(SystemTables(catalog, WAREHOUSE), SystemRuntime()).tell("task-1", rows("task-1"))
    telling(served).tell("task-1", rows("task-1"))
    assert len(served.rows(tables.MAINTENANCE)) == 2


def test_of_two_that_tell_the_same_at_once_one_finds_it_told(served: ServedLake) -> None:
    catalog = served.mortal()

    def be_first(table: object) -> None:
        catalog.beforehand = None
        with ThreadPoolExecutor(1) as threads:
            threads.submit(telling(served).tell, "task-1", rows("task-1")).result()

    telling(served).tell("task-0", rows("task-0"))
    catalog.beforehand = be_first
    MaintenanceTable(SystemTables(catalog, WAREHOUSE), SystemRuntime()).tell("task-1", rows("task-1"))
    assert [row["task_id"] for row in served.rows(tables.MAINTENANCE)].count("task-1") == 2


def test_the_last_task_of_a_table_and_its_last_removal_are_found(served: ServedLake) -> None:
    told = telling(served)
    assert (told.last_task("01ENTITY"), told.orphans_removed()) == ("", {})
    told.tell("task-1", rows("task-1"))
    told.tell("task-2", rows("task-2", Named(("a",), "u", "01OTHER"), Procedure.REMOVE_ORPHAN_FILES))
    assert (told.last_task("01ENTITY"), told.last_task("01OTHER")) == ("task-1", "task-2")
    assert told.orphans_removed() == {"01OTHER": AT_MS + 5_000}
