"""Prints one line for each step of the demo: its number, what it does, what came of it, and how long it took."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

WIDTH = 100


class Progress:
    """Prints the steps of a run of the demo as they go by."""

    def __init__(self, steps: int, out: TextIO = sys.stdout) -> None:
        self._steps = steps
        self._out = out
        self._number = 0
        self._began = time.perf_counter()

    @contextmanager
    def step(self, title: str) -> Iterator[list[str]]:
        """Times what happens inside. Whatever is put into the list yielded is printed as the step's result."""
        self._number += 1
        self._say(f"{self._number:>2}/{self._steps}  {title}")
        began = time.perf_counter()
        result: list[str] = []
        try:
            yield result
        except BaseException:
            self._say("  FAILED\n")
            raise
        shown = f": {', '.join(result)}" if result else ""
        dots = "." * max(3, WIDTH - len(f"00/00  {title}{shown}"))
        self._say(f"{shown} {dots} {time.perf_counter() - began:5.1f} s\n")

    def note(self, text: str) -> None:
        """A line of its own."""
        self._say(f"{text}\n")

    @property
    def seconds(self) -> float:
        """Since the first line."""
        return time.perf_counter() - self._began

    def _say(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()
