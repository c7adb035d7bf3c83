"""Points at which long work checks the caller's deadline, without a clock in this package."""

from collections.abc import Callable
from typing import TypeAlias

Checkpoint: TypeAlias = Callable[[], None]
"""Called between the steps of work whose size a client chooses. Raises what the caller wants to see when time is over;
nothing has been changed then."""


def no_deadline() -> None:
    """The checkpoint of who waits as long as it takes."""
