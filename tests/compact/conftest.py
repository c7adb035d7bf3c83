from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compact.lake import ServedLake
from tools.demo.server import serving


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[ServedLake]:
    """Two tables with three commits each, over a real server."""
    with serving(f"file:{tmp_path / 'store'}", tmp_path / "server.log") as server:
        made = ServedLake(server)
        made.append("t", "u")
        made.append("t")
        made.append("u")
        yield made
