import pytest

from tests.maintain.lake import Lake


@pytest.fixture
async def lake() -> Lake:
    """A catalog with a table in a bad state, to which policies apply by its namespace."""
    made = await Lake().made()
    await made.bad_table()
    await made.compacted_and_expired()
    return made
