"""What was done for one request, noted while it runs and told when it is over (docs/observability.md).

Whoever listens opens a record around the request; its session finds that, or takes one that nobody reads. A record
holds ids, counts and times: no names, nothing that a client sent, nothing of what is stored.
"""

from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Literal

from storage_backends.wrappers.measuring import Measurement

Outcome = Literal["moved", "unchanged", "evidence", "replayed"]
"""How a mutation came to its answer: its own compare-and-swap; nothing was to be done; an attempt was found to have
committed before; the idempotency key's marker had the answer."""

KEY_DIGITS = 16
"""Of the hash of an idempotency key, enough to find its marker in the store."""


@dataclass(slots=True)
class Record:
    """One request's. `store` is None where nobody listens: then its calls are not measured.

    `entities` are the tables and views that it was about, with the table's uuid where that is known. `attempt` is the
    last attempt's id, `tries` their number; a conflict is a compare-and-swap that was lost, after which the change was
    planned anew. `session` is that of an assumed role. `ignored_claim`: the request named a source for which its
    principal may not speak.
    """

    store: Measurement | None = None
    entities: dict[str, str | None] = field(default_factory=dict)
    principal: str | None = None
    session: str | None = None
    ignored_claim: bool = False
    key: str | None = None
    attempt: str | None = None
    tries: int = 0
    conflicts: int = 0
    outcome: Outcome | None = None
    dropped_writes: int = 0

    def about(self, entity: str, uuid: str | None = None) -> None:
        """Notes what the request is about."""
        self.entities[entity] = uuid or self.entities.get(entity)

    def keyed(self, key_hash: str) -> None:
        """Notes its idempotency key, by the key's hash."""
        self.key = key_hash[:KEY_DIGITS]

    def tried(self, attempt: str) -> None:
        """Notes an attempt."""
        self.attempt = attempt
        self.tries += 1


_open: ContextVar[Record | None] = ContextVar("_open", default=None)


class recording:  # noqa: N801 - used as a function is
    """A context: whatever is done inside, in this task or in those that it starts, is noted in this record."""

    __slots__ = ("_record", "_token")

    def __init__(self, record: Record) -> None:
        self._record = record

    def __enter__(self) -> None:
        self._token = _open.set(self._record)

    def __exit__(self, *raised: object) -> None:
        _open.reset(self._token)


def open_record() -> Record:
    """The record of the request that is under way."""
    return _open.get() or Record()
