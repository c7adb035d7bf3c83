from collections.abc import Iterator

import pytest

from arco_catalog.embed import serving
from tests.compact.lake import ServedLake
from tests.support.filled_store import FilledStore
from tools.demo.server import WAREHOUSE


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> FilledStore:
    """Two tables with three commits each."""

    def fill(url: str) -> None:
        with serving(url, warehouse=WAREHOUSE) as server:
            made = ServedLake(server)
            made.append("t", "u")
            made.append("t")
            made.append("u")

    return FilledStore.of(tmp_path_factory.mktemp("filled"), fill)


@pytest.fixture
def lake(filled: FilledStore) -> Iterator[ServedLake]:
    """Two tables with three commits each, over a server in a thread of this process."""
    with serving(filled.restore(), warehouse=WAREHOUSE) as server:
        yield ServedLake(server)
