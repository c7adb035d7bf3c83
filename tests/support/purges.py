"""Purges from outside: `arco tasks`, and what lies in a store before and after (the leak audit)."""

import asyncio
import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.paths import Paths
from storage_backends import Cursor
from storage_backends.open import open_store
from tests.cli.in_process import run

BOUND_S = 300.0


@dataclass(frozen=True)
class Purges:
    """The purges of one catalog, by its store's URL and its warehouse. The environment leads to the store."""

    store: str
    warehouse: str
    environment: Mapping[str, str] = field(default_factory=dict)

    def files(self) -> frozenset[str]:
        """All keys of the store but those of the catalog's own state."""
        return asyncio.run(self._files())

    async def _files(self) -> frozenset[str]:
        store = open_store(self.store, {**os.environ, **self.environment})
        own, keys, after = (f"{Paths(self.warehouse).state}/", "_probe/"), set[str](), Cursor("")
        try:
            while True:
                page = await store.list("", after or None)
                keys |= {entry.key for entry in page.entries if not entry.key.startswith(own)}
                if page.after is None:
                    return frozenset(keys)
                after = page.after
        finally:
            await store.close()

    def last_task(self, table: str) -> JsonObject:
        """The task of a table's last drop with purge."""
        namespace, _, name = table.rpartition(".")
        named = {"namespace_levels": namespace.split("."), "table_name": name}
        listed: list[JsonObject] = json.loads(self.arco("tasks", "--json"))
        return max((task for task in listed if _table_of(task) == named), key=lambda task: int(str(task["created_ts"])))

    def finish(self, table: str) -> JsonObject:
        """Run workers until the last purge of a table has ended, and return its task."""
        task, until = self.last_task(table), time.monotonic() + BOUND_S
        while task["status"] not in ("SUCCESS", "FAILURE"):
            assert time.monotonic() < until, f"the purge of {table} did not end: {task}"
            self.arco("tasks", "run", str(task["task_id"]))
            task = self.last_task(table)
        return task

    def purged(self, table: str) -> JsonObject:
        """Run workers until the last purge of a table has succeeded, and return its result."""
        task = self.finish(table)
        assert task["status"] == "SUCCESS", task
        result = json.loads(str(task["result_extended"]))
        assert isinstance(result, dict)
        assert result["left_behind"] == 0, result
        return result

    def undrop(self, table: str) -> None:
        """Brings a table back."""
        self.arco("undrop", table)

    def arco(self, *arguments: str) -> str:
        """What `arco` prints."""
        command = [*arguments, "--store", self.store, "--warehouse", self.warehouse]
        ended = run(command, {**os.environ, **self.environment})
        assert ended.code == 0, f"{command}: {ended.err}"
        return ended.out


def _table_of(task: JsonObject) -> object:
    payload = task["task_payload"]
    assert isinstance(payload, dict)
    parameters = payload["operation_parameters"]
    assert isinstance(parameters, dict)
    identity = parameters["table_identity"]
    assert isinstance(identity, dict)
    return {name: identity[name] for name in ("namespace_levels", "table_name")}
