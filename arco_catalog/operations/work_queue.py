"""Sends messages to the SQS queue of the workers. A message arrives a second after a task is due; for a task that is
due after more than 14 minutes and 59 seconds none is sent, and the scheduled run finds it."""

import asyncio
import logging
from collections.abc import Mapping

from arco_catalog.config.variables import WORK_QUEUE
from arco_catalog.state.runtime import Runtime
from storage_backends import StoreError
from storage_backends.lazy_dataclass import dataclass

MAX_DELAY_MS = 900_000
"""The longest delay of a message in SQS. Tasks that are due later are for the scheduled run."""
CLOCK_MS = 1_000
"""Additional delay of a message: times of stores are whole seconds, so only then the task is due for every worker."""
SEND_SECONDS = 3.0
TASKS = '{"version": 1, "work": "tasks"}'

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WorkQueue:
    """A queue of SQS to which the catalog sends messages for workers, with the environment variables that configure the
    credentials for it."""

    url: str
    environment: Mapping[str, str]
    runtime: Runtime

    @classmethod
    def from_env(cls, environment: Mapping[str, str], runtime: Runtime) -> "WorkQueue | None":
        """Returns the queue of the workers of tasks that the environment variables name, or None if they name none."""
        url = environment.get(WORK_QUEUE.name)
        return cls(url, environment, runtime) if url else None

    async def send(self, body: str, delay_ms: int = 0) -> None:
        """Sends a message to the queue, which delivers it after a delay in milliseconds, rounded up to seconds. Raises
        `StoreError`, and `TimeoutError` after `SEND_SECONDS`."""
        from storage_backends.s3.queue import send_message  # here, so that a cold start does not pay for it

        async with asyncio.timeout(SEND_SECONDS):
            await send_message(self.url, body, -(-delay_ms // 1000), self.environment, self.runtime.now_ms)

    async def task_due(self, root: str, in_ms: int) -> None:
        """Sends a message that arrives `CLOCK_MS` after a task of the catalog with this root is due, which is `in_ms`
        from now. If that is beyond the longest delay of a message, it sends none; a failure is only logged. In both
        cases a scheduled run finds the task once it is due."""
        if in_ms + CLOCK_MS > MAX_DELAY_MS:
            return
        try:
            await self.send(TASKS, in_ms + CLOCK_MS)
        except (StoreError, TimeoutError) as error:
            _LOG.warning(
                "Sending the message that starts a worker for a task of catalog %s failed; the first scheduled run "
                "after the task is due will find it: %s",
                root,
                str(error) or type(error).__name__,
            )
