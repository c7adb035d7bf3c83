"""Fixtures for pytest: a real catalog for each test, on a free port of this machine.

Needs the extra `testing`: install the extra 'testing' of arco-catalog. In `conftest.py`:

    pytest_plugins = ["arco_catalog.testing"]

`arco_in_memory` keeps the catalog's state and its tables' metadata in memory: good for code that creates, changes,
lists and loads tables. `arco_on_files` keeps everything in the test's `tmp_path`, so that engines can write data as
well. Both are a `RunningCatalog`:

    def test_my_job(arco_on_files):
        catalog = load_catalog("arco", **arco_on_files.settings)
"""

from collections.abc import Iterator
from pathlib import Path

try:
    import pytest
except ModuleNotFoundError as error:
    message = "pytest is not installed: install the extra 'testing' of arco-catalog"
    raise ModuleNotFoundError(message, name=error.name) from error

from arco_catalog.embed import RunningCatalog, serving

__all__ = ["RunningCatalog", "arco_in_memory", "arco_on_files"]


@pytest.fixture
def arco_in_memory() -> Iterator[RunningCatalog]:
    """An empty catalog whose only state is this process's memory."""
    with serving("memory:") as server:
        yield server


@pytest.fixture
def arco_on_files(tmp_path: Path) -> Iterator[RunningCatalog]:
    """An empty catalog over files in the test's own folder."""
    with serving(f"file:{tmp_path}/arco") as server:
        yield server
