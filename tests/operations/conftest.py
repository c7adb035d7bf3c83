import pytest

from tests.support.catalog_fixture import CatalogFixture


@pytest.fixture
async def fixture() -> CatalogFixture:
    """A catalog in memory, with the namespace `db`."""
    made = CatalogFixture()
    await made.namespace("db")
    return made
