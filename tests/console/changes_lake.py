"""The catalog that the console shows, with a task that failed."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from arco_catalog.state.task import Status
from tests.console.lake import Lake, served_lake


@dataclass(frozen=True)
class ChangesLake:
    """The served catalog, and the id of a task that failed."""

    lake: Lake
    failed: str

    @property
    def settings(self) -> Mapping[str, str]:
        """What the programs in the browser are given."""
        return {**self.lake.settings, "ARCO_FAILED_TASK": self.failed}


@asynccontextmanager
async def served_changes(folder: Path) -> AsyncIterator[ChangesLake]:
    """Serves the catalog over files in a folder."""
    async with served_lake(folder) as lake:
        yield ChangesLake(lake, _fail_task(folder))


def _fail_task(folder: Path) -> str:
    """Adds a version to the one task in the folder, by which it failed, and returns its id."""
    (first,) = folder.glob("store/**/tasks/*/1.json")
    document = json.loads(first.read_bytes())
    failure = {"task_version": 2, "status": Status.FAILURE.value, "result_summary": "It broke", "id": "another"}
    first.with_name("2.json").write_text(json.dumps({**document, **failure}))
    return first.parent.name
