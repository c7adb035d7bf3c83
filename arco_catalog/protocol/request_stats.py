"""Counts of what was done for one request: taken while it runs, exported when it is over (docs/observability.md).

Telemetry opens them around the request; its session finds those, or takes some that are not read. They hold ids, counts
and times: no names, nothing that a client sent, nothing of the state, except in `given` and `name`.
"""

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import field
from typing import Literal, NamedTuple

from arco_catalog.iceberg.errors import UnknownReason
from storage_backends.lazy_dataclass import dataclass
from storage_backends.wrappers.measuring import Measurement

Outcome = Literal["moved", "unchanged", "evidence", "replayed"]
"""How a mutation got its answer: by its own compare-and-swap, because nothing was to be changed, by evidence that an
attempt had committed before, or from the marker of the idempotency key."""

ScanCache = Literal["lists", "files", "manifests", "delete_index"]
"""What plans look up before they read or make it: in the memory of the process the entries of a manifest list, the
packed files of a manifest, and the bytes of a small one; in the store a part of an index of delete files."""

KEY_DIGITS = 16
"""Of the hash of an idempotency key, enough to find its marker in the store."""


@dataclass(frozen=True, slots=True)
class GivenAccess:
    """A credential or a signature that a request got: for the files of an entity in `location`, until `expires_ms`, in
    milliseconds since 1970, or for one request with `method`. It contains no secret."""

    event: Literal["vended", "signed"]
    entity: str
    location: str
    writes: bool
    expires_ms: int | None = None
    method: str | None = None


class ScanCounts(NamedTuple):
    """What one request of a plan did: tasks for data files in the answer, and manifests that were read, or left out
    because no file in them can match the filter. `hits` and `misses` are its lookups in each cache."""

    files: int
    manifests: int
    pruned: int
    hits: Mapping[ScanCache, int]
    misses: Mapping[ScanCache, int]


@dataclass(slots=True)
class RequestStats:
    """The statistics of one request, which telemetry exports. `store` is None without telemetry, and calls are then not
    measured.

    `entities` are the request's tables, views, generic tables and semantic models, with their uuids if known. `attempt`
    is the id of the last attempt, and `tries` their number; a conflict is a lost or throttled compare-and-swap, or an
    attempt that was given up, after which the request tried again. `session` is that of an assumed role, or the id of
    the principal that acts for this one. `ignored_claim`: the request named a source, but the principal may not.
    `denied` is the privilege that the principal lacks, and the securable. `vended` is the result of a call to a cloud
    for credentials. `stale_key`: the client sent an idempotency key that is more than a day old, or was made while the
    catalog read no keys. `unknown_outcome` is the reason why the outcome of the change is unknown. `dropped_writes`
    counts failed steps that the reconciler or a later request makes up for. `scan` is None unless the request planned a
    part of a scan. `given`, whose locations contain names, and `name`, the principal's in a realm, are for the audit
    log alone."""

    store: Measurement | None = None
    entities: dict[str, str | None] = field(default_factory=dict)
    principal: str | None = None
    name: str | None = None
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
    scan: ScanCounts | None = None
    given: list[GivenAccess] = field(default_factory=list)

    def about(self, entity: str, uuid: str | None = None) -> None:
        """Records in the statistics a table, view, generic table or semantic model that the request is about, with its
        uuid if known."""
        self.entities[entity] = uuid or self.entities.get(entity)

    def keyed(self, key_hash: str) -> None:
        """Records the request's idempotency key in the statistics: only the first digits of the key's hash."""
        self.key = key_hash[:KEY_DIGITS]

    def tried(self, attempt: str) -> None:
        """Records in the statistics of a request the id of the last attempt at it, and counts the attempt."""
        self.attempt = attempt
        self.tries += 1


_open: ContextVar[RequestStats | None] = ContextVar("_open", default=None)


class collect_stats:  # noqa: N801 - used as a function is
    """A context in which these statistics are those of the present request, in this task and in those that it
    starts."""

    __slots__ = ("_stats", "_token")

    def __init__(self, stats: RequestStats) -> None:
        self._stats = stats

    def __enter__(self) -> None:
        self._token = _open.set(self._stats)

    def __exit__(self, *raised: object) -> None:
        _open.reset(self._token)


def current_stats() -> RequestStats:
    """Returns the statistics of the present request, which the caller may change; outside of a request new, empty ones,
    which are not kept."""
    return _open.get() or RequestStats()


def note_vended(outcome: str) -> None:
    """Records in the present request's statistics the outcome of the catalog's call to a cloud for credentials."""
    current_stats().vended = outcome


def note_stale_key() -> None:
    """Records that the request's idempotency key is too old to be executed, or was made while the catalog read no keys.
    Its outcome is then unknown because the client waited, not because the catalog failed."""
    current_stats().stale_key = True
