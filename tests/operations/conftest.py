import pytest

from tests.operations.desk import Desk


@pytest.fixture
async def desk() -> Desk:
    """A catalog in memory, with the namespace `db`."""
    made = Desk()
    await made.namespace("db")
    return made
