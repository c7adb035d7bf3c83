import asyncio

import pytest

from tests.access.lake import Lake


@pytest.fixture(scope="session")
def first() -> Lake:
    """A lake that no test changes: each has a copy."""
    return asyncio.run(Lake().start())
