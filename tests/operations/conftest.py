import pytest

from tests.support.scripted_store import ScriptedStore
from tools.support.catalog_fixture import CatalogFixture


@pytest.fixture
async def fixture() -> CatalogFixture:
    """A catalog in memory, with the namespace `db`."""
    made = CatalogFixture(ScriptedStore())
    await made.namespace("db")
    return made
