"""Async tests of this folder run on the simulated loop."""

import asyncio
from collections.abc import Callable, Iterator, Mapping

import pytest

from tests.simulation.explore import REPLAY
from tests.simulation.garbage import collecting_new_garbage_alone
from tests.simulation.loop import SimulatedLoop


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """See pytest-asyncio."""
    return {"simulated": SimulatedLoop}


@pytest.fixture(scope="package", autouse=True)
def infrequent_collection() -> Iterator[None]:
    """Runs are many, and each leaves thousands of objects in cycles."""
    with collecting_new_garbage_alone():
        yield


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Plants bugs. A replay that the environment names is left out, since it is one of another test."""
    monkeypatch.delenv(REPLAY, raising=False)
    return monkeypatch
