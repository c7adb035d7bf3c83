"""What may follow the answer, where a process lives on: the last step of a mutation (design.md, section 8)."""

import asyncio
import logging
from collections.abc import Coroutine

_LOG = logging.getLogger(__name__)

MOST_AT_ONCE = 256


class Afterwards:
    """Steps that a client need not wait for, and that a crash may lose: the reconciler, or the next duplicate, makes
    good for them. At most so many at once: those beyond are waited for, so that writers slow down to what the store
    can take. For one event loop; `drain` before it ends.
    """

    def __init__(self, most: int = MOST_AT_ONCE) -> None:
        self._most = most
        self._under_way: set[asyncio.Task[object]] = set()
        self.failed = 0
        """Steps that ended with an error of our own."""

    async def run(self, step: Coroutine[object, object, object]) -> None:
        """Starts a step and goes on; with too many under way, ends it first, and raises what it raises."""
        if len(self._under_way) >= self._most:
            await step
            return
        task = asyncio.create_task(step)
        self._under_way.add(task)
        task.add_done_callback(self._ended)

    async def drain(self) -> None:
        """Returns when everything that was started has ended: each step has its request's deadline."""
        while self._under_way:
            await asyncio.wait(self._under_way)

    def __len__(self) -> int:
        return len(self._under_way)

    def _ended(self, task: asyncio.Task[object]) -> None:
        self._under_way.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.failed += 1
            _LOG.error("background work after an answer failed", exc_info=error)
