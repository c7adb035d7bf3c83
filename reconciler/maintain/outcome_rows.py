"""Writes rows of `system.maintenance`, one for every outcome of a procedure, and no row twice: all rows of a task are
one commit, on the snapshot in which they were found missing (docs/design/pipeline.md#rule-13)."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pyiceberg.exceptions import NoSuchTableError

from arco_catalog.state.runtime import Runtime
from arco_catalog.state.watermarks import NAMESPACE
from reconciler.maintain.calls import Procedure
from reconciler.maintain.progress import DONE, PARTLY
from reconciler.system.conditions import both, equal, one_of
from reconciler.system.definition import Row
from reconciler.system.opened import CommitSuperseded, OpenTable, SystemTables
from reconciler.system.tables import MAINTENANCE
from reconciler.system.writing import write_rows
from storage_backends.backoff import growing_pause_s

MAX_ATTEMPTS = 20
"""How often a commit is tried that concurrent commits supersede."""
PAUSE_S = 0.5


class OutcomeRows(Protocol):
    """The interface of what reads and writes the rows of `system.maintenance`, which are the outcomes of procedures."""

    def last_task(self, entity: str) -> str:
        """Returns the id of the last maintenance task with rows of a table, given by the entity; empty if the table has
        no rows."""
        ...

    def write(self, task: str, rows: Sequence[Row]) -> None:
        """Writes the rows of a maintenance task, given by its id, to `system.maintenance`, unless that has rows of the
        task. Raises `CommitSuperseded` if concurrent commits were first `MAX_ATTEMPTS` times, and the errors of
        PyIceberg."""
        ...

    def last_orphan_removals(self) -> Mapping[str, int]:
        """Returns the time at which the last successful removal of orphan files (`done` or `partly`) was over, in
        milliseconds since 1970, by the table's entity. Tables without one are absent."""
        ...


@dataclass(slots=True)
class MaintenanceTable:
    """The table `system.maintenance`, reached through the catalog's REST endpoint. `write` creates it if it does not
    exist; without it, there are no rows."""

    system: SystemTables
    runtime: Runtime

    def last_task(self, entity: str) -> str:
        """Returns the id of the maintenance task of an entity whose rows ended last; empty without rows or without the
        table."""
        table = self._existing()
        if table is None:
            return ""
        rows = table.rows(equal("entity", entity), "task_id", "ended_at").to_pylist()
        newest = max(rows, key=lambda row: (row["ended_at"], row["task_id"]), default=None)
        return "" if newest is None else str(newest["task_id"])

    def last_orphan_removals(self) -> Mapping[str, int]:
        """Returns by entity when a removal of orphan files was last over that was done at least partly, in milliseconds
        since 1970; empty without the table."""
        table = self._existing()
        if table is None:
            return {}
        removed = both(equal("procedure", Procedure.REMOVE_ORPHAN_FILES.value), one_of("outcome", (DONE, PARTLY)))
        found: dict[str, int] = {}
        for row in table.rows(removed, "entity", "ended_at").to_pylist():
            ended_ms = int(row["ended_at"].timestamp() * 1000)
            found[row["entity"]] = max(found.get(row["entity"], 0), ended_ms)
        return found

    def write(self, task: str, rows: Sequence[Row]) -> None:
        """Adds the rows of a task to the table, which is made if it is missing, unless it has rows of the task. After a
        superseded commit it looks again, up to `MAX_ATTEMPTS` times, then raises `CommitSuperseded`."""
        for attempt in range(1, MAX_ATTEMPTS + 1):
            table = self.system.open(MAINTENANCE)
            if table.rows(equal("task_id", task), "step").num_rows:
                return
            try:
                return table.commit(write_rows(table.target(), rows, self.runtime.uuid()), {})
            except CommitSuperseded:
                if attempt == MAX_ATTEMPTS:
                    raise
                time.sleep(growing_pause_s(self.runtime.random(), attempt, PAUSE_S))

    def _existing(self) -> OpenTable | None:
        """Returns the table; None if it does not exist."""
        try:
            return OpenTable(MAINTENANCE, self.system.catalog.load_table((NAMESPACE, MAINTENANCE.name)))
        except NoSuchTableError:
            return None
