"""Scans that the catalog plans, by requests to its app over a store on local files; every plan task is followed."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from arco_catalog.http.app import create_app
from arco_catalog.http.options import HttpOptions
from arco_catalog.iceberg.json import JsonValue
from arco_catalog.operations.open import build_catalog
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state.runtime import SystemRuntime
from storage_backends.local.store import LocalStore
from tests.engines.scans.tasks import ScanPlan, ScanTask
from tools.support.asgi_client import Answer, Client


@dataclass(frozen=True)
class ServedPlanner:
    """A process that serves a catalog in a folder. The tables are in one of its namespaces."""

    folder: Path
    client: Client
    warehouse: str = "wh"
    namespace: str = "db"

    @classmethod
    def of(cls, folder: Path, warehouse: str = "wh", namespace: str = "db") -> "ServedPlanner":
        """A new process, which remembers nothing."""
        store = LocalStore(folder)
        catalog = build_catalog(Settings(warehouse), store, f"file://{folder}", (), SystemRuntime())
        return cls(folder, Client(create_app({warehouse: catalog}, HttpOptions())), warehouse, namespace)

    @property
    def url(self) -> str:
        """The path of the namespace."""
        return f"/v1/{self.warehouse}/namespaces/{self.namespace}"

    @property
    def tables(self) -> Path:
        """The folder in which tables may have their files."""
        return self.folder / self.warehouse / "warehouse"

    async def make_namespace(self) -> None:
        made = await self.client.post(f"/v1/{self.warehouse}/namespaces", {"namespace": [self.namespace]})
        assert made.status == 200, made.body

    async def register(self, name: str, metadata_location: str) -> None:
        body = {"name": name, "metadata-location": metadata_location}
        made = await self.client.post(f"{self.url}/register", body)
        assert made.status == 200, made.body

    async def plan(self, name: str, request: Mapping[str, JsonValue]) -> ScanPlan | Answer:
        """The tasks of a plan, or the first answer that is no success."""
        answer = await self.client.post(f"{self.url}/tables/{name}/plan", request)
        if answer.status != 200:
            return answer
        assert answer.json["status"] == "completed", answer.json
        tasks: list[ScanTask] = []
        waiting: list[Any] = _read(answer.json, tasks)
        seen = set(waiting)
        while waiting:
            answer = await self.client.post(f"{self.url}/tables/{name}/tasks", {"plan-task": waiting.pop(0)})
            if answer.status != 200:
                return answer
            further = _read(answer.json, tasks)
            assert seen.isdisjoint(further), "a plan task that was listed before"
            seen.update(further)
            waiting += further
        return ScanPlan(tasks)


def _read(answer: Mapping[str, Any], tasks: list[ScanTask]) -> list[Any]:
    """Adds the scan tasks of an answer. Returns its plan tasks."""
    deletes = answer.get("delete-files", [])
    referenced = {
        place for task in answer.get("file-scan-tasks", []) for place in task.get("delete-file-references", [])
    }
    assert referenced == set(range(len(deletes))), "delete files that no task references, or no delete file"
    for task in answer.get("file-scan-tasks", []):
        mine = [deletes[place] for place in task.get("delete-file-references", [])]
        tasks.append(ScanTask(task["data-file"], mine, task["residual-filter"]))
    return [*answer.get("plan-tasks", [])]
