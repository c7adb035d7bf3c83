"""Async tests of this folder run on the simulated loop."""

import asyncio
from collections.abc import Callable, Mapping

from tests.simulation.loop import SimulatedLoop


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """See pytest-asyncio."""
    return {"simulated": SimulatedLoop}
