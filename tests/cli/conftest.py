"""Fixtures that several tests of commands use."""

from pathlib import Path

import pytest


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder for a store, which is not there yet."""
    return tmp_path / "store"
