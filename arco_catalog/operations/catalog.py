"""One catalog as a process serves it, and one request's session with it."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from arco_catalog.operations.call import Call
from arco_catalog.state.access import Caches, State
from arco_catalog.state.cache import ByteCache
from arco_catalog.state.files import FileCache, Files, Space
from arco_catalog.state.locations import AllowedLocations, Location
from arco_catalog.state.marker_log import MarkerLog
from arco_catalog.state.paths import Paths
from arco_catalog.state.runtime import Runtime
from storage_backends import ObjectStore
from storage_backends.wrappers.deadline import DeadlineStore

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Settings:
    """What an operator may set.

    Times are milliseconds. `request_ms` is every request's deadline; `in_progress_ms` is how old an attempt must be to
    be taken over, the deadline and a margin; `patience_ms` is how long a duplicate waits for the answer.
    """

    warehouse: str
    allow_location_overlap: bool = False
    read_only_because: str | None = None
    request_ms: int = 20_000
    in_progress_ms: int = 25_000
    patience_ms: int = 3_000
    max_transaction_tables: int = 100


@dataclass(frozen=True, slots=True)
class Catalog:
    """A root in a store, and what this process remembers of it."""

    settings: Settings
    store: ObjectStore
    paths: Paths
    spaces: Sequence[Space]
    locations: AllowedLocations
    warehouse: Location
    runtime: Runtime
    caches: Caches = field(default_factory=Caches)
    files: FileCache = field(default_factory=lambda: ByteCache(48 << 20))

    def session(self, call: Call) -> "Session":
        """What one request works with."""
        return Session(self, call)


class Session:
    """One request's way to the store: every call carries its deadline."""

    def __init__(self, catalog: Catalog, call: Call) -> None:
        self.catalog = catalog
        self.call = call
        self.settings = catalog.settings
        self.runtime = catalog.runtime
        self.dropped_writes = 0

        def bounded(store: ObjectStore) -> ObjectStore:
            return DeadlineStore(store, call.deadline_ms, catalog.runtime.now_ms)

        self.state = State(bounded(catalog.store), catalog.paths, catalog.caches, catalog.runtime)
        spaces = [Space(space.root, bounded(space.store)) for space in catalog.spaces]
        self.files = Files(spaces, catalog.files, self.state)

    def marker(self) -> MarkerLog | None:
        """The marker of the request's idempotency key, None without a key."""
        if self.call.key is None:
            return None
        return MarkerLog(self.state, self.call.key_hash(), self.call.identity())

    def check_answer(self, metadata: bytes, name: str) -> None:
        """Raises `AnswerTooLarge` if the host could not carry back what a change is about to make current."""
        if self.call.answer_limit is not None:
            self.call.answer_limit.check_metadata(metadata, name)

    def late(self) -> bool:
        """Whether the deadline has passed, on the wall clock (design.md 6.2, rule 5)."""
        return self.runtime.now_ms() >= self.call.deadline_ms

    def drop_write(self, what: str, error: Exception) -> None:
        """Counts a write that was only a convenience and failed; the reconciler mends what it was for."""
        self.dropped_writes += 1
        _LOG.warning("dropped a best-effort write of %s: %s", what, error)
