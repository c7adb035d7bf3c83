"""Rows of `system.maintenance`, each once: a task's rows are one commit, made on the snapshot in which they were found
missing (docs/design/pipeline.md#rule-13)."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pyiceberg.exceptions import NoSuchTableError

from arco_catalog.state.runtime import Runtime
from arco_catalog.state.watermarks import NAMESPACE
from reconciler.maintain.calls import Procedure
from reconciler.maintain.progress import DONE, PARTLY
from reconciler.system.conditions import among, both, equal
from reconciler.system.definition import Row
from reconciler.system.opened import OpenTable, Superseded, SystemTables
from reconciler.system.tables import MAINTENANCE
from reconciler.system.writing import write_rows
from storage_backends.backoff import growing_pause_s

TRIES = 20
"""How often a commit that others were first with is tried."""
PAUSE_S = 0.5


class Rows(Protocol):
    """Where outcomes are told."""

    def last_task(self, entity: str) -> str:
        """The last task of which it tells for a table; empty if there is none."""
        ...

    def tell(self, task: str, rows: Sequence[Row]) -> None:
        """Tells what came of a task, unless that has been told. Raises `Superseded`, and what the catalog raises."""
        ...

    def orphans_removed(self) -> Mapping[str, int]:
        """When orphan files were last removed from each table, in milliseconds, by entity."""
        ...


@dataclass(slots=True)
class MaintenanceTable:
    """`system.maintenance` through the catalog's REST endpoint. It is made when there is something to tell."""

    system: SystemTables
    runtime: Runtime

    def last_task(self, entity: str) -> str:
        table = self._existing()
        if table is None:
            return ""
        rows = table.rows(equal("entity", entity), "task_id", "ended_at").to_pylist()
        newest = max(rows, key=lambda row: (row["ended_at"], row["task_id"]), default=None)
        return "" if newest is None else str(newest["task_id"])

    def orphans_removed(self) -> Mapping[str, int]:
        table = self._existing()
        if table is None:
            return {}
        removed = both(equal("procedure", Procedure.REMOVE_ORPHAN_FILES.value), among("outcome", (DONE, PARTLY)))
        found: dict[str, int] = {}
        for row in table.rows(removed, "entity", "ended_at").to_pylist():
            ended_ms = int(row["ended_at"].timestamp() * 1000)
            found[row["entity"]] = max(found.get(row["entity"], 0), ended_ms)
        return found

    def tell(self, task: str, rows: Sequence[Row]) -> None:
        for tried in range(1, TRIES + 1):
            table = self.system.open(MAINTENANCE)
            if table.rows(equal("task_id", task), "step").num_rows:
                return
            try:
                return table.commit(write_rows(table.target(), rows, self.runtime.uuid()), {})
            except Superseded:
                if tried == TRIES:
                    raise
                time.sleep(growing_pause_s(self.runtime.random(), tried, PAUSE_S))

    def _existing(self) -> OpenTable | None:
        try:
            return OpenTable(MAINTENANCE, self.system.catalog.load_table((NAMESPACE, MAINTENANCE.name)))
        except NoSuchTableError:
            return None
