"""The type of functions that long computations call between their steps to check the caller's deadline, so that this
package needs no clock."""

from collections.abc import Callable
from typing import TypeAlias

Checkpoint: TypeAlias = Callable[[], None]
"""Is called between the steps of work whose size a client chooses. Raises the caller's error when its time is over;
nothing has been changed then."""


def no_deadline() -> None:
    """Does nothing: the checkpoint of a caller without a deadline."""
