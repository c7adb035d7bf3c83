"""The queue of the function that works beside requests: how it hears at once that a task is due."""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass

from arco_catalog.config.variables import WORK_QUEUE
from arco_catalog.state.runtime import Runtime
from storage_backends import StoreError

MAX_DELAY_MS = 900_000
"""The longest that SQS keeps a message back: what is due later is found by the schedule."""
CLOCK_MS = 1_000
"""Times of stores are whole seconds: a task that is due now is so for all by then."""
SEND_SECONDS = 3.0
TASKS = '{"version": 1, "work": "tasks"}'

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WorkQueue:
    """A queue of SQS, and the variables that name credentials for it."""

    url: str
    environment: Mapping[str, str]
    runtime: Runtime

    @classmethod
    def from_env(cls, environment: Mapping[str, str], runtime: Runtime) -> "WorkQueue | None":
        """The queue that the variables name, if they do."""
        url = environment.get(WORK_QUEUE.name)
        return cls(url, environment, runtime) if url else None

    async def send(self, body: str, delay_ms: int = 0) -> None:
        """Sends a message that is delivered after a delay. Raises `StoreError`, and `TimeoutError`."""
        from storage_backends.s3.queue import send_message  # here, so that a cold start does not pay for it

        async with asyncio.timeout(SEND_SECONDS):
            await send_message(self.url, body, -(-delay_ms // 1000), self.environment, self.runtime.now_ms)

    async def task_due(self, root: str, in_ms: int) -> None:
        """Sends the workers a message that arrives when a task is due. Best effort: if sending fails, or the time is
        beyond the longest delay of a message, the scheduled run finds the task."""
        if in_ms + CLOCK_MS > MAX_DELAY_MS:
            return
        try:
            await self.send(TASKS, in_ms + CLOCK_MS)
        except (StoreError, TimeoutError) as error:
            _LOG.warning(
                "Sending a message for a task of %s failed, and the scheduled run will find it: %s", root, error
            )
