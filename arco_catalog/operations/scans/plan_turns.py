"""The turns of plans: few plans of a process run at the same time, and the others wait.

Python runs one thread at a time, so more plans would end no earlier, and all would be late. The memory of requests has
room for all that these may take, so none waits for memory that another one keeps while it waits, too.
"""

from typing import Final

from arco_catalog.operations.scans.files_memory import FREE_BYTES, MAX_FILES_BYTES
from arco_catalog.operations.scans.manifest_source import WAIT_SECONDS
from arco_catalog.state.memory import Memory, MemoryOfLoops, limit_for_large

PLANS_AT_ONCE: Final = 4
"""The plans of a process that run at the same time: while some wait for the store, others work."""
ANSWER_MEMORY: Final = 16 << 20
"""Bytes of memory of an answer: its parts, the bytes that are sent, and files for which it takes no more."""
TURN_BYTES: Final = ANSWER_MEMORY + 2 * MAX_FILES_BYTES - FREE_BYTES
"""Bytes of memory that a plan may take of the memory of requests."""
SENT_WEIGHT: Final = 3
"""Bytes of memory for each byte of an answer that is planned: its parts, and the bytes that are sent."""

_TURNS: Final = MemoryOfLoops(limit_for_large(PLANS_AT_ONCE * TURN_BYTES), WAIT_SECONDS)


def plan_turns() -> Memory:
    """Returns the memory from which plans on this event loop take their turns: it has `PLANS_AT_ONCE` turns of
    `TURN_BYTES`, and one principal may have half of them at most."""
    return _TURNS.current()
