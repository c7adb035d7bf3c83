"""The interface through which a purge uses a delegation service."""

from dataclasses import dataclass, field
from typing import Protocol

from arco_catalog.iceberg.json import JsonObject


@dataclass(frozen=True, slots=True)
class DelegatedTask:
    """A task of a delegation service: its id, its status as the service names it, and, if it failed, the error code and
    summary. `result` has the counts of a task that succeeded (`execution_result` in
    docs/delegation-service.openapi.yaml)."""

    task: str
    status: str
    code: str = ""
    summary: str = ""
    result: JsonObject = field(default_factory=dict)


class DelegationClient(Protocol):
    """The interface of a client of one delegation service: submits purges, and reads the status of tasks."""

    @property
    def url(self) -> str:
        """The URL of the service, as checkpoints and messages name it."""
        ...

    async def submit(self, payload: JsonObject, key: str) -> DelegatedTask:
        """Submits a purge to the service under an idempotency key, and returns its task. Raises `StoreDenied` for a
        refusal, and `StoreUnavailable` if the service is busy or fails, or the outcome is unknown: the caller may
        resubmit the purge."""
        ...

    async def status(self, task: str) -> DelegatedTask | None:
        """Reads the task with this id; None if the service has no such task. Raises `StoreError`: `StoreUnavailable` if
        the service can't be reached or has failed, and another one for a refusal."""
        ...
