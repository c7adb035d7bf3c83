"""A catalog as a process uses it, and the session of one request with it."""

import logging
from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import field
from functools import cached_property, partial
from typing import TYPE_CHECKING, TypeVar

from arco_catalog.iceberg.checkpoint import Checkpoint
from arco_catalog.iceberg.errors import Unavailable, Unsupported
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.planning.access import Securable
from arco_catalog.planning.attempt import Attempt
from arco_catalog.planning.privileges import Privilege
from arco_catalog.planning.upkeep_settings import PurgeSettings, Retention
from arco_catalog.protocol.access import Access
from arco_catalog.protocol.advisory_locks import AdvisoryLocks
from arco_catalog.protocol.background_tasks import BackgroundTasks
from arco_catalog.protocol.concurrency import gather
from arco_catalog.protocol.group_commit import GroupCommitter
from arco_catalog.protocol.mutation import Freshness
from arco_catalog.protocol.operation_request import OperationRequest
from arco_catalog.protocol.request_stats import current_stats
from arco_catalog.state.access import Caches, State
from arco_catalog.state.files import FileCache, Files, Mount
from arco_catalog.state.index import Namespace
from arco_catalog.state.key_settings import KeyPolicy, KeySettings
from arco_catalog.state.locations import AllowedLocations, Location
from arco_catalog.state.marker import RequestIdentity
from arco_catalog.state.marker_log import MarkerLog
from arco_catalog.state.memory import CACHE_MEMORY_BYTES, MAX_METADATA_BYTES
from arco_catalog.state.paths import DEFAULT_REALM, Paths
from arco_catalog.state.refused_files import RefusedFiles
from arco_catalog.state.registry import FIRST_VERSION, RegistryState
from arco_catalog.state.runtime import Deadline, Runtime
from arco_catalog.state.spilling import Limits
from arco_catalog.state.store_clock import StoreClock
from arco_catalog.state.worker_threads import off_loop
from storage_backends import ObjectStore, StoreUnavailable
from storage_backends.lazy_dataclass import dataclass
from storage_backends.wrappers.call_timer import CallTimer
from storage_backends.wrappers.request import ObservedClock, RequestStore

if TYPE_CHECKING:  # importing it takes time, which a cold start for a read saves
    from arco_catalog.planning.context import Context

T = TypeVar("T")

NotifyWorkers = Callable[[str, int], Awaitable[None]]
"""Notifies workers, at best effort, that a task of the catalog with this root is due in so many milliseconds."""

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one catalog, most of which an operator may choose. `warehouse` is the catalog's name. `spill`
    limits the size of the registry's index before parts of it are spilled. `read_only_because` is what the catalog
    needs and its store does not honour, so that the catalog is read-only; None if it honours all. `lacks` are the
    optional features that the store does not have. `scan_planning` is who should plan scans, a hint to clients:
    `client` or `server`; None leaves it to them. `has_grants` is whether its registry may hold roles and grants, as
    that of every catalog of a realm may; `external`, whether its tables are another catalog's, and follow that.
    Locations of tables may overlap by `allow_location_overlap`, locations of a realm's catalogs by
    `allow_catalog_overlap`. A transaction may have `max_transaction_tables` tables.

    Times are milliseconds. `request_ms` is every request's deadline; `in_progress_ms` is how old the last slot of a key
    must be before a duplicate of the request may take it over: the deadline and a margin; `duplicate_timeout_ms` is how
    long a duplicate waits for the answer. `file_confirmed_ms` is how long a load need not confirm the existence of a
    metadata file that the catalog wrote. `max_metadata_bytes` is how large a metadata file may be, unpacked;
    `cache_bytes` is what all caches together may remember.
    """

    warehouse: str
    has_grants: bool = False
    external: bool = False
    allow_location_overlap: bool = False
    allow_catalog_overlap: bool = False
    read_only_because: str | None = None
    lacks: Sequence[str] = ()
    scan_planning: str | None = None
    request_ms: int = 20_000
    in_progress_ms: int = 25_000
    duplicate_timeout_ms: int = 3_000
    file_confirmed_ms: int = 60_000
    max_transaction_tables: int = 100
    max_metadata_bytes: int = MAX_METADATA_BYTES
    cache_bytes: int = CACHE_MEMORY_BYTES
    spill: Limits = field(default_factory=Limits)
    purge: PurgeSettings = field(default_factory=PurgeSettings)
    retention: Retention = field(default_factory=Retention)


@dataclass(frozen=True, slots=True)
class Catalog:
    """The state of one catalog, realm or delegation service, as a process uses it: the root in a store, the settings,
    and what this process has cached. `background_tasks` are there in a process that outlives its answers, else None;
    `table_locks` are advisory locks among writers of one table, None without; `group_committer` makes one registry
    commit for several requests, None if each request makes its own."""

    settings: Settings
    store: ObjectStore
    paths: Paths
    mounts: Sequence[Mount]
    locations: AllowedLocations
    warehouse: Location
    runtime: Runtime
    caches: Caches
    files: FileCache
    group_committer: GroupCommitter | None = field(default_factory=GroupCommitter)
    clock: StoreClock = field(default_factory=StoreClock)
    call_timer: CallTimer = field(default_factory=CallTimer)
    background_tasks: BackgroundTasks | None = None
    table_locks: AdvisoryLocks | None = None
    notify_workers: NotifyWorkers | None = None
    """None if workers find tasks only by polling."""
    realm: str = DEFAULT_REALM
    """The name of its realm."""
    entry: tuple[str, int] | None = None
    """Its id and version in the realm's registry, if it is one of a realm."""
    storage: JsonObject = field(default_factory=dict)
    """How its storage is reached, as the realm's registry has it (vending/storage_config.py)."""
    given_locations: Sequence[str] = ()
    """The locations besides its folder with which this process opened it; HEAD may record others."""
    named_locations: dict[str, Sequence[str]] = field(default_factory=dict)
    """The locations that metadata files name, by the files' own; what a file names never changes."""
    planning_modes: dict[str, str | None] = field(default_factory=dict)
    """Who plans scans of tables by their own metadata, by the locations of the metadata files."""
    first_version: int = FIRST_VERSION
    """The version of its registry if this process makes the first commit there."""
    refused_files: RefusedFiles = field(default_factory=RefusedFiles)
    """Manifest lists and manifests that could not be read."""

    @property
    def vends(self) -> bool:
        """Whether clients may hold credentials that the catalog has vended for the files of tables: only a catalog
        of a realm vends any."""
        return self.entry is not None

    def key_settings(self, variables: KeyPolicy) -> KeySettings:
        """Returns the settings by which the catalog reads idempotency keys, from the cached HEAD; those of the server's
        `variables` if no HEAD is cached or it records none. Reads nothing."""
        known = None if self.caches.head is None else self.caches.head.value.key_settings
        return known or KeySettings(variables)

    def session(self, request: OperationRequest, access: Access) -> "Session":
        """Returns a new session of one request, whose rights `access` checks. Reads nothing."""
        return Session(self, request, access)

    async def close(self) -> None:
        """Closes the stores of all mounts, also that of the state."""
        for mount in self.mounts:
            await mount.store.close()


class Session:
    """The session of one request with a catalog: the calls to the store, each with the request's deadline, and the
    access by which the request is allowed."""

    def __init__(self, catalog: Catalog, request: OperationRequest, access: Access) -> None:
        self.catalog = catalog
        self.access = access
        self.is_restricted = access.is_restricted
        self.request = request
        self.settings = catalog.settings
        self.runtime = catalog.runtime
        self.stats = stats = current_stats()
        stats.principal = request.principal
        stats.name = request.name
        stats.session = request.role_session

        self.deadline = Deadline.at(catalog.runtime, request.deadline_ms)
        timed = partial(RequestStore, left_ms=self.deadline.left_ms, measurement=stats.store, timer=catalog.call_timer)
        records = timed(catalog.store, clock=ObservedClock(catalog.runtime.now_ms, catalog.clock.update))
        self.state = State(
            records,
            catalog.paths,
            catalog.caches,
            catalog.runtime,
            catalog.settings.spill,
            request.key_policy,
            catalog.given_locations,
            catalog.first_version,
            catalog.clock,
        )
        mounts = [Mount(mount.root, timed(mount.store)) for mount in catalog.mounts]
        self.hold = request.hold
        settings = catalog.settings
        self.files = Files(
            mounts,
            catalog.files,
            self.state,
            catalog.runtime,
            settings.max_metadata_bytes,
            request.hold,
            settings.file_confirmed_ms,
        )
        self._identity: RequestIdentity | None = None
        self.judged_on: RegistryState | None = None
        """The last HEAD that allowed the request; None before."""

    @cached_property
    def context(self) -> "Context":
        """The inputs of planning that were not read from the store: the caller, the allowed locations, limits of sizes,
        and the check of privileges, None if access is not restricted."""
        # Imported here, because a cold start for a read saves the time.
        from arco_catalog.planning.context import Caller, Context

        catalog, request, settings = self.catalog, self.request, self.settings
        return Context(
            caller=Caller(request.by, request.source, request.description),
            paths=catalog.paths,
            locations=catalog.locations,
            warehouse=catalog.warehouse,
            allow_location_overlap=settings.allow_location_overlap,
            max_metadata_bytes=settings.max_metadata_bytes,
            answer_limit=request.answer_limit,
            holds=self.access.holds if self.is_restricted else None,
        )

    async def head(self) -> RegistryState:
        """Reads the registry's HEAD and, if access is restricted, concurrently the caller's rights in the realm, and
        returns HEAD if it allows the request. Raises as `State.head`, `Access.read` and `Access.judge` do."""
        head = await self.with_rights(self.state.head())
        await self.judge(head)
        return head

    async def with_rights(self, reading: Coroutine[object, object, T]) -> T:
        """Awaits `reading` and returns the result. Unless access is not restricted, or the caller's rights in the realm
        were read from the store for this request before, reads them concurrently from there. Raises what `reading`
        raises, and as `Access.read` does."""
        if not self.is_restricted:
            return await reading
        result, _ = await gather(reading, self.access.read(Freshness.FRESH))
        return result

    async def judge(self, head: RegistryState) -> None:
        """Checks the request's access: returns if this HEAD and the caller's rights, as last read, allow it, or if
        access is not restricted, and records the HEAD in `judged_on`. Reads no HEAD. Raises as `Access.judge` does."""
        if self.is_restricted:
            await self.access.judge(self.state, head)
        self.judged_on = head

    async def held(self, head: RegistryState, privileges: Collection[Privilege], on: Securable) -> frozenset[Privilege]:
        """Returns those of these privileges that the caller has on a securable (a catalog, or something in it), by this
        HEAD. The caller's rights in the realm must have been read before."""
        return await self.access.held(self.state, head, privileges, on)

    async def identify(self) -> None:
        """Computes the identity of a request with a key, unless that is done, in a worker thread if the body is long.
        Without this call `marker` does it on the event loop. Does nothing without a key. Raises `BadRequest` if the
        body has no canonical form."""
        if self.request.key is not None and self._identity is None:
            self._identity = await off_loop(self.request.body_bytes, self.request.identity)

    def marker(self) -> MarkerLog | None:
        """Returns the marker of the request's idempotency key, with nothing read from it yet, and records the beginning
        of the key's hash, never the key, in the request's statistics; returns None without a key. Raises `BadRequest`
        if the body has no canonical form."""
        if self.request.key is None:
            return None
        key_hash = self.request.key_hash()
        self.stats.keyed(key_hash)
        identity = self._identity or self.request.identity()
        settings = 0 if self.request.key_settings is None else self.request.key_settings.number
        return MarkerLog(self.state, key_hash, identity, self.request.earlier_key_hash(), settings)

    async def parsed(self, parse: Callable[[JsonObject, Checkpoint], T], body: JsonObject) -> T:
        """Returns what `parse` returns for a request's body, in a worker thread if the body is long. `parse` gets the
        body and a function that checks the deadline. Raises what `parse` raises, such as `BadRequest`, and
        `Unavailable` if the deadline passes meanwhile, before anything was changed."""
        try:
            return await off_loop(self.request.body_bytes, partial(parse, body, self.check_deadline))
        except StoreUnavailable as error:
            raise Unavailable(
                f"Nothing was changed, because {error}: the request's body was still being parsed"
            ) from error

    def now_ms(self) -> int:
        """Returns the time for stored records: that of the machine's clock, corrected by the clock of the store."""
        return self.catalog.clock.now_ms(self.runtime.now_ms())

    def attempt(self, rank: str | None = None) -> Attempt:
        """Returns a fresh attempt at the request, with a fresh id, and a fresh entity and uuid for what it may create.
        The rank is that of an earlier attempt if it is given, else the id."""
        attempt = self.runtime.ulid()
        return Attempt(attempt, self.runtime.ulid(), rank or attempt, self.runtime.uuid())

    def check_deadline(self, ahead_ms: int = 0) -> None:
        """Returns if more than `ahead_ms` are left until the request's deadline; all long work of the request calls
        this repeatedly. Raises `StoreUnavailable` otherwise, as if the store had not answered."""
        left_ms = self.deadline.left_ms()
        if left_ms <= ahead_ms:
            raise StoreUnavailable(
                "the deadline of the request, command or task "
                f"{'has passed' if left_ms <= 0 else 'is too near for the next step'}"
            )

    def check_writable(self) -> None:
        """Raises `Unsupported` if the catalog is read-only."""
        if self.settings.read_only_because is not None:
            raise Unsupported(
                f"This catalog is read-only, since the store could lose commits: {self.settings.read_only_because}"
            )

    def late(self) -> bool:
        """Whether the request's deadline has passed (docs/design/commit.md#rule-5)."""
        return self.deadline.left_ms() <= 0

    def seconds_left(self) -> float:
        """Returns the seconds until the request's deadline; negative after it."""
        return self.deadline.left_ms() / 1000

    async def run_in_background(self, step: Coroutine[object, object, object]) -> None:
        """Runs a step that a crash may lose, and that no answer depends on: as a background task, which ends after the
        answer, and with an error that is only logged, if the process has `Catalog.background_tasks` and not too many
        are running; otherwise awaits it now, and raises what it raises."""
        await (step if self.catalog.background_tasks is None else self.catalog.background_tasks.run(step))

    def lock_table(
        self, namespace: Namespace, name: str, is_needed: Callable[[], bool]
    ) -> AbstractAsyncContextManager[None]:
        """Returns a context that holds the advisory lock of a table or view among the requests of this process, and
        goes on without it if it is not needed, or not free in time (`AdvisoryLocks.hold`). It locks nothing if the
        process has no such locks."""
        locks = self.catalog.table_locks
        return nullcontext() if locks is None else locks.hold((namespace, name), is_needed)

    def lock_registry(self) -> AbstractAsyncContextManager[None]:
        """Returns a context that holds the advisory lock of HEAD among the requests of this process. It goes on without
        the lock if one holder keeps it for too long, and locks nothing if the process has no group committer. The
        context raises `StoreUnavailable` if the request's deadline passes while it waits."""
        return (
            nullcontext()
            if self.catalog.group_committer is None
            else self.catalog.group_committer.lock(self.seconds_left)
        )

    def note_failed_write(self, what: str, error: Exception) -> None:
        """Counts in the request's statistics and logs a best-effort step that failed, such as a write or a deletion;
        `what` names it. The reconciler, a collection or a later request makes up for it."""
        self.stats.dropped_writes += 1
        _LOG.warning(
            "a best-effort step of a request failed, and the reconciler, a collection or a later request makes up for "
            "it, but an old metadata file may be left: %s: %s",
            what,
            error,
        )
