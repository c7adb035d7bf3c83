"""Runs the last steps of mutations in the background, so that answers do not wait for them, in a process that goes on
(docs/design/budgets.md)."""

import asyncio
import logging
from collections.abc import Coroutine

_LOG = logging.getLogger(__name__)

MAX_TASKS = 256


class BackgroundTasks:
    """Runs steps of mutations that a client need not wait for, and that a crash may lose: the reconciler, a collection
    or a later request makes up for them. At most `limit` run at once; the caller awaits any further step, so that
    writers slow down to what the store can take. For one event loop; call `drain` before it ends."""

    def __init__(self, limit: int = MAX_TASKS) -> None:
        self._limit = limit
        self._running: set[asyncio.Task[object]] = set()
        self.failed = 0
        """How many steps in the background raised an error; one that the caller awaits raises it there."""

    async def run(self, step: Coroutine[object, object, object]) -> None:
        """Starts a step of a mutation as a task and returns at once; an error of it is then logged, and added to
        `failed`. If `limit` steps are running, awaits the step instead, and raises what it raises."""
        if len(self._running) >= self._limit:
            await step
            return
        task = asyncio.create_task(step)
        self._running.add(task)
        task.add_done_callback(self._ended)

    async def drain(self) -> None:
        """Waits until every step that was started is over, and raises no error of a step. Each is over at the latest at
        its request's deadline."""
        while self._running:
            await asyncio.wait(self._running)

    def __len__(self) -> int:
        return len(self._running)

    def _ended(self, task: asyncio.Task[object]) -> None:
        """Forgets a background task that is over, and logs and counts the failure, if it failed."""
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.failed += 1
            _LOG.error(
                "a step after the answer to a request failed, and the reconciler, a collection or a later request "
                "makes up for it",
                exc_info=error,
            )
