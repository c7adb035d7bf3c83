"""A delegation service, as one who has tables purged by it sees it."""

from dataclasses import dataclass, field
from typing import Protocol

from arco_catalog.iceberg.json import JsonObject


@dataclass(frozen=True, slots=True)
class Handed:
    """A task of a delegation service: its id, its status in the service's words, and what came of it. `result` has the
    counts of one that succeeded (`execution_result` in docs/delegation-service.openapi.yaml)."""

    task: str
    status: str
    code: str = ""
    summary: str = ""
    result: JsonObject = field(default_factory=dict)


class DelegationClient(Protocol):
    """One delegation service."""

    @property
    def url(self) -> str:
        """Where it is, for records."""
        ...

    async def submit(self, payload: JsonObject, key: str) -> Handed:
        """Hands a task over, under an idempotency key. Raises `StoreUnavailable` if that is not known to have been
        done, and may be tried again, and `StoreDenied` for a refusal."""
        ...

    async def status(self, task: str) -> Handed | None:
        """How far a task is; None if the service has no such task. Raises as `submit` does."""
        ...
