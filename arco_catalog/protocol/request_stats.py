"""Counts of what was done for one request: taken while it runs, exported when it is over (docs/observability.md).

Telemetry opens them around the request; its session finds those, or takes some that are not read. They hold ids, counts
and times: no names, nothing that a client sent, nothing of what is stored.
"""

from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Literal

from arco_catalog.iceberg.errors import UnknownReason
from storage_backends.wrappers.measuring import Measurement

Outcome = Literal["moved", "unchanged", "evidence", "replayed"]
"""How a mutation came to its answer: its own compare-and-swap; nothing was to be done; an attempt was found to have
committed before; the idempotency key's marker had the answer."""

KEY_DIGITS = 16
"""Of the hash of an idempotency key, enough to find its marker in the store."""


@dataclass(slots=True)
class RequestStats:
    """One request's. `store` is None without telemetry: then its calls are not measured.

    `entities` are the tables and views that it was about, with the table's uuid where that is known. `attempt` is the
    last attempt's id, `tries` their number; a conflict is a compare-and-swap that was lost, after which the change was
    planned anew. `session` is that of an assumed role. `ignored_claim`: the request named a source for which its
    principal may not speak. `denied` is the privilege that its principal lacks, and on what. `vended` is what a cloud
    answered that was asked for credentials. `stale_key`: the client sent its idempotency key more than a day after it
    had made it. `unknown_outcome` is why it is open whether the change was made.
    """

    store: Measurement | None = None
    entities: dict[str, str | None] = field(default_factory=dict)
    principal: str | None = None
    session: str | None = None
    ignored_claim: bool = False
    denied: tuple[str, str] | None = None
    key: str | None = None
    stale_key: bool = False
    attempt: str | None = None
    tries: int = 0
    conflicts: int = 0
    outcome: Outcome | None = None
    unknown_outcome: UnknownReason | None = None
    dropped_writes: int = 0
    vended: str | None = None

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


_open: ContextVar[RequestStats | None] = ContextVar("_open", default=None)


class collect_stats:  # noqa: N801 - used as a function is
    """A context: whatever is done inside, in this task or in those that it starts, is counted in these stats."""

    __slots__ = ("_stats", "_token")

    def __init__(self, stats: RequestStats) -> None:
        self._stats = stats

    def __enter__(self) -> None:
        self._token = _open.set(self._stats)

    def __exit__(self, *raised: object) -> None:
        _open.reset(self._token)


def current_stats() -> RequestStats:
    """The stats of the request that is under way."""
    return _open.get() or RequestStats()


def note_vended(outcome: str) -> None:
    """Notes what a cloud answered that the request asked for credentials."""
    current_stats().vended = outcome


def note_stale_key() -> None:
    """Notes that the idempotency key of the request is too old to be executed: its outcome is unknown by the client's
    own delay, and by no failure of the catalog."""
    current_stats().stale_key = True
