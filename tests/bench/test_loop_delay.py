"""What the probe of the event loop reads, and what its readings leave alone."""

import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.bench.loop_delay import Clocks


@pytest.fixture
def held_lock() -> Iterator[None]:
    """Has a thread keep Python's lock until it releases the lock by itself."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1_000)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


@pytest.mark.usefixtures("held_lock")
def test_a_reading_of_the_clocks_gives_no_other_thread_the_lock() -> None:
    """A reading that did would wait for the lock itself, and measure that."""
    turns: list[None] = []
    began, end = threading.Event(), threading.Event()

    def take_turns() -> None:
        while not end.is_set():
            turns.append(None)
            began.set()
            time.sleep(1e-6)

    clocks = Clocks()
    thread = threading.Thread(target=take_turns)
    thread.start()
    try:
        began.wait()
        before = len(turns)
        for _ in range(1_000):
            clocks.read()
        after = len(turns)
    finally:
        end.set()
        thread.join()

    assert after == before


@pytest.mark.skipif(not Path("/proc/thread-self/schedstat").exists(), reason="Linux counts how long a thread waited")
def test_a_reading_has_the_time_that_the_thread_waited_for_a_core() -> None:
    def waited() -> float:
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9

    clocks = Clocks()
    least = waited()
    found = clocks.read().waited

    assert least <= found <= waited()
