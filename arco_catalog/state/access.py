"""Access to a catalog's records for one request, through what the process has cached. Before an answer depends on a
cached record that can change, the store confirms it. Writes create an object once, or swap or delete it. Except that of
the bell, they are sent again until the store's answer is definite (docs/design/commit.md#unknown-outcomes)."""

from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import field
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Generic, TypeVar

from arco_catalog.iceberg.errors import CommitStateUnknown, InternalError
from arco_catalog.iceberg.json import JsonObject, dumps
from arco_catalog.state.bell import Bell
from arco_catalog.state.cache import ByteCache, SelectiveCache
from arco_catalog.state.commit_record import CommitRecord
from arco_catalog.state.fields import mapping, parse_record, text
from arco_catalog.state.first_page import first_entries
from arco_catalog.state.index import Edits, SegmentLookup, no_segments
from arco_catalog.state.key_settings import KeyPolicy, KeySettings
from arco_catalog.state.lost_head import HeadLost, had_head
from arco_catalog.state.needs import Steps
from arco_catalog.state.paths import Paths
from arco_catalog.state.pointer import Pointer
from arco_catalog.state.registry import FIRST_VERSION, Operation, RegistryState
from arco_catalog.state.runtime import Runtime
from arco_catalog.state.segments import Segment
from arco_catalog.state.spilling import Limits, Spilling
from arco_catalog.state.store_clock import StoreClock
from arco_catalog.state.worker_threads import off_loop
from storage_backends import (
    ABSENT,
    ANY,
    Applied,
    DeadlinePassed,
    Found,
    Matches,
    Missing,
    ObjectStore,
    Outcome,
    PreconditionFailed,
    StoreError,
    StoreUnavailable,
    Unchanged,
    Unknown,
    Version,
    When,
)
from storage_backends.backoff import ATTEMPTS, limit_attempts, pause_s
from storage_backends.lazy_dataclass import dataclass

if TYPE_CHECKING:  # few processes read manifests
    from arco_catalog.state.compressed_manifests import ManifestList
    from arco_catalog.state.delete_parts import DeleteRows
    from arco_catalog.state.file_blocks import FileBlock

RESEND_SECONDS = 0.05
"""Mean wait before a write of unknown outcome is sent again."""

PARSED_SIZE = 8
"""Bytes of memory that a parsed document takes for each byte of its JSON, roughly."""

REF_SIZE = 64
"""Bytes of JSON that a branch or tag takes in a pointer, roughly; hardly anything else in it can be long."""

VALUE_FIELDS = ("version", "properties", "answer")
"""The fields of a namespace's value that this version writes."""


class SegmentGone(InternalError):
    """A segment of the registry's index that a commit refers to does not exist: a collection deleted it because the
    commit is old, or the stored state is faulty."""


class KeyConflict(InternalError):
    """A write that creates an object found another one under the key, with other content, although no other writer
    should use this key."""


Made = Callable[[bytes], bool]
"""Returns whether a stored object, given by its bytes, is a later state of the object that the caller has written."""


def nothing_is_made(there: bytes) -> bool:
    """Returns False for every object, given by the bytes in the store: an object of a kind that never changes is no
    later state of another one. It is the default of `create`."""
    return False


def commit_gone(commit_id: str) -> CommitStateUnknown:
    """Returns, for the caller to raise, the error `CommitStateUnknown` of the kind `evidence-lost` for a commit of the
    registry's history whose object does not exist."""
    message = (
        f"The registry's history no longer reaches back to commit {commit_id}: old commits are deleted (`arco fsck` "
        "reports one that was lost)"
    )
    return CommitStateUnknown(message, "evidence-lost")


T = TypeVar("T")

_instants = count(1)
"""Numbers the reads and writes of this process in their order. Sequence numbers of HEAD can't do this, because a
restore writes lower ones."""


POINTER_AGE_MS = 1_000
"""A swap may rely on a cached pointer of at most this age. In so short a time a pointer does not get more moves than it
lists."""
CLAIM_AGE_MS = 60_000
"""How old a cached pointer or HEAD may be whose sequence number an attempt declares: evidence of it is searched from
there, by each process that comes after it."""


@dataclass(frozen=True, slots=True)
class CallTime:
    """When a call to the store was sent: the number among the calls of this process, and the machine's wall clock."""

    order: int
    wall_ms: int


@dataclass(slots=True)
class CacheEntry(Generic[T]):
    """A cached record, and when the last call that returned or confirmed it was sent; for a write of this process, when
    it was acknowledged."""

    value: T
    at: CallTime


@dataclass
class Caches:
    """The records of one catalog that a process has cached. Values, segments and HEAD as of a commit never
    change, so they are used without a call of the store. HEAD and pointers are revalidated with the store before an
    answer depends on them."""

    segments: ByteCache[str, Segment]
    pointers: ByteCache[str, CacheEntry[Pointer]]
    values: ByteCache[str, JsonObject]
    heads_of: ByteCache[str, RegistryState]
    """HEAD as of commits, by the keys of these."""
    manifests: "ByteCache[str, ManifestList | bytes]"
    """Manifest lists, and the bytes of small manifests, by their locations."""
    file_blocks: "SelectiveCache[Hashable, FileBlock | DeleteRows]"
    """What plans read more than once: blocks of files of manifests, as `operations.scans.packing` names them, and rows
    of indexes of deletes, by the key of the index's part and the place of the block."""
    head: CacheEntry[RegistryState] | None = None
    bell: Bell = field(default_factory=Bell)
    """The bell as it was read or rung last."""
    write_interval_ms: int = 0
    """How long the store makes a writer of HEAD wait after another write."""
    logged_policy: KeyPolicy | None = None
    """The policy of keys for which the log has a warning that the server's differs."""

    @classmethod
    def of(cls, limit: int) -> "Caches":
        """Returns empty caches for segments, pointers, values, HEADs as of commits, manifests and file blocks, which
        take at most `limit` bytes together, by fixed parts of it: none uses another's. The limit does not include
        the cached HEAD: spilling bounds that."""
        unit = limit // 68
        return cls(
            ByteCache(16 * unit),  # segments of 60,000 tables, at 100 MB in all
            ByteCache(20 * unit),  # pointers of 4,000
            ByteCache(4 * unit),
            ByteCache(4 * unit),
            ByteCache(8 * unit),  # a list of 50,000 manifests has 6 MB
            SelectiveCache(16 * unit),
        )


class State:
    """Reads and writes the records of one catalog for one request. Calls of `store` end at the request's deadline.

    Methods that read raise `StoreError` if the store does not answer or denies the read, and `InternalError` for a
    corrupt record.
    """

    def __init__(
        self,
        store: ObjectStore,
        paths: Paths,
        caches: Caches,
        runtime: Runtime,
        limits: Limits | None = None,
        key_policy: KeyPolicy | None = None,
        allowed_locations: Sequence[str] = (),
        first_version: int = FIRST_VERSION,
        clock: StoreClock | None = None,
    ) -> None:
        """Makes the access of one request to the records of the catalog with these `paths`, through its `caches`.
        `limits` are those of the index's edits and segments, None for the defaults. A registry commit records
        `key_policy` if the catalog has no record of one; a catalog's first commit that does so records
        `allowed_locations` too. None, or an empty sequence, records nothing. The first commit of a registry has the
        version `first_version`. `clock` corrects the time of that record to the store's; None corrects nothing."""
        self.store = store
        self.paths = paths
        self._caches = caches
        self._runtime = runtime
        self._loaded: dict[str, Segment] = {}
        self.loaded_segment: SegmentLookup = partial(_loaded_segment, self._loaded, caches.segments)
        """Returns a segment that this request has loaded or the process has cached; None otherwise. What it returns
        stays loaded until the request ends, so that a small cache can't stop its progress."""
        self._not_done_until: dict[str, int] = {}
        """By operation, the sequence number up to which the registry's history is known not to contain it."""
        self._limits = limits
        self._key_policy = key_policy
        self._allowed_locations = allowed_locations
        self._first_version = first_version
        self._clock = clock
        self._viewed: tuple[RegistryState, RegistryState] | None = None
        """A HEAD, and the same HEAD with the segments that this request has loaded."""

    async def read(self, key: str) -> Found | None:
        """Reads the object at a key of the store, never from a cache; None if it does not exist."""
        found = await self.store.get(key)
        return found if isinstance(found, Found) else None

    async def has_any(self) -> bool:
        """Whether the state folder of the catalog has any object."""
        return bool(await first_entries(self.store, f"{self.paths.state}/"))

    def _call_time(self) -> CallTime:
        """Returns the number and the wall-clock time of a call to the store that starts now."""
        return CallTime(next(_instants), self._runtime.now_ms())

    # Registry

    def _is_young(self, cached: CacheEntry[T], max_age_ms: int) -> bool:
        """Whether a cached record was read, written or confirmed by the store less than `max_age_ms` ago. False if the
        clock was set back to before that."""
        return 0 <= self._runtime.now_ms() - cached.at.wall_ms < max_age_ms

    def cached_head(self, max_age_ms: int | None = None) -> RegistryState | None:
        """Returns the cached HEAD, of any age if `max_age_ms` is None; None if there is none, or none younger than
        that. It may be outdated: it is good to plan a compare-and-swap on, which fails then, but not to answer a
        client."""
        known = self._caches.head
        if known is None or (max_age_ms is not None and not self._is_young(known, max_age_ms)):
            return None
        return self._view(known.value)

    async def head(self) -> RegistryState:
        """Reads HEAD and puts it into the cache, or returns the cached one after the store confirmed it, which counts
        as read now. Returns an empty state, not cached, if the catalog has no registry yet. If HEAD is missing but
        commits show that it existed, it is read once more, and `HeadLost` is raised if it is still missing."""
        key, cached, sent = self.paths.manifest, self._caches.head, self._call_time()
        known = None if cached is None else cached.value
        found = await self.store.get(key, None if known is None else known.version)
        if isinstance(found, Missing) and await had_head(self.store, self.paths):
            sent = self._call_time()
            found = await self.store.get(
                key
            )  # another process may have written HEAD and the commits after the first read
            if isinstance(found, Missing):
                raise HeadLost(self.paths)
        match found:
            case Found(body, version):
                head = RegistryState.parse(body, version, key)
                self.cache_head(head, sent)
                return self._view(head)
            case Unchanged() if cached is not None:
                if sent.order > cached.at.order:
                    cached.at = sent
                return self._view(cached.value)
            case _:
                return RegistryState.empty(self._first_version)

    def _view(self, head: RegistryState) -> RegistryState:
        """Returns `head` with an index that finds the segments which this request has loaded or the process has cached;
        `head` itself if its index has no segments. Calls with one `head`, without another between them, return the same
        object."""
        if not head.index.directory.refs:
            return head
        if self._viewed is None or self._viewed[0] is not head:
            self._viewed = head, head.with_segments(self.loaded_segment)
        return self._viewed[1]

    def cache_head(self, head: RegistryState, at: CallTime | None = None) -> None:
        """Caches a HEAD that was read at `at` or written just now, unless a call that was sent later cached another.
        Sequence numbers don't decide, because a restore writes an earlier HEAD."""
        known, at = self._caches.head, at or self._call_time()
        if known is None or at.order >= known.at.order:
            self._caches.head = CacheEntry(head.with_segments(no_segments), at)

    def rest_ms(self, head: RegistryState) -> int:
        """Returns how many milliseconds from now `head` should stand before the next swap, in a store that limits how
        often an object is written. It goes by the clocks of two machines, so it is a hint. 0 if the store has no such
        limit, if `head` is not stored yet, or in a registry of a version without proposals."""
        interval_ms = self._caches.write_interval_ms
        if not interval_ms or head.version is None or not head.allows_cancellations:
            return 0
        return max(0, min(interval_ms, interval_ms - (self._runtime.now_ms() - head.at_ms)))

    async def move_head(self, successor: RegistryState, expected: Version | None) -> Applied | PreconditionFailed:
        """Commits to the registry by a swap of HEAD from the version `expected`, None for the first commit. Caches the
        new HEAD if the swap applied. Returns `PreconditionFailed` if HEAD has another version, perhaps that of this
        very commit, if an earlier sending of the swap got no answer. Raises as `swap` does."""
        outcome = await self.swap(self.paths.manifest, successor.body, expected)
        if isinstance(outcome, Applied):
            self.cache_head(RegistryState(successor.document, successor.index, outcome.version))
        return outcome

    def successor(self, head: RegistryState, edits: Edits, operations: Sequence[Operation]) -> Steps[RegistryState]:
        """Computes the registry commit that follows `head`, with these edits and operations, a fresh id and the present
        time; it is not written. It gets the server's key policy, if there is one, if no commit has recorded one yet; a
        first commit then also gets the server's allowed locations. If the commit spills, this needs the segments that
        it rewrites."""
        spilled = yield from head.index_after(edits, Spilling(self._limits or Limits(), self._runtime.ulid))
        commit, at_ms = self._runtime.ulid(), self._runtime.now_ms()
        if self._key_policy is not None and head.key_settings is None:
            recorded_ms = at_ms if self._clock is None else self._clock.now_ms(at_ms)
            settings = KeySettings.first(self._key_policy, recorded_ms, is_new=head.version is None)
            head = head.with_key_settings(settings)
            if self._allowed_locations and head.version is None:
                head = head.with_allowed_locations(self._allowed_locations)
        return head.successor(commit=commit, at_ms=at_ms, edits=edits, operations=operations, spilled=spilled)

    async def commit_of(self, head: RegistryState, operation: str, since: int) -> str | None:
        """Returns the id of the registry commit with an operation that was first tried when the sequence number was
        `since`; None if there is none up to `head`. It reads history backwards from `head`, up to 500 commits a GET
        (docs/design/registry.md#history). A second search by the same request covers only later commits, because
        history never changes. Raises `CommitStateUnknown` if the history no longer reaches back to `since`."""
        since, until = max(since, self._not_done_until.get(operation, 0)), head.sequence
        listing: CommitRecord = head
        while True:
            commit = listing.commit_of(operation)
            if commit is not None:
                return commit
            if listing.remembers(since) or listing.before is None:
                self._not_done_until[operation] = max(since, until)
                return None
            listing = await self.registry_commit(listing.before)

    async def registry_commit(self, commit_id: str) -> CommitRecord:
        """Reads one commit of the registry's history from the store, without its index. Raises `CommitStateUnknown` if
        its object does not exist: old ones are deleted."""
        return CommitRecord.read(await self.commit_object(commit_id), self.paths.registry_commit(commit_id))

    async def commit_object(self, commit_id: str) -> bytes:
        """Reads the bytes of the object of one commit of the registry's history. Raises `CommitStateUnknown` if it does
        not exist: old ones are deleted."""
        found = await self.store.get(self.paths.registry_commit(commit_id))
        if not isinstance(found, Found):
            raise commit_gone(commit_id)
        return found.body

    def cached_head_of(self, commit_id: str) -> RegistryState | None:
        """Returns the cached HEAD as of a commit, without a version, with the segments that this request has loaded or
        the process has cached; None if it is not cached. It never changes, so the store is not called."""
        known = self._caches.heads_of.get(self.paths.registry_commit(commit_id))
        return None if known is None else known.with_segments(self.loaded_segment)

    def cache_head_of(self, commit_id: str, head: RegistryState, size: int) -> RegistryState:
        """Caches HEAD as of a commit, and returns it with the segments that this request has loaded or the process has
        cached. `size` is about that of its JSON in bytes."""
        self._caches.heads_of.put(
            self.paths.registry_commit(commit_id), head.with_segments(no_segments), PARSED_SIZE * size
        )
        return head.with_segments(self.loaded_segment)

    async def bell(self) -> Bell:
        """Reads the bell of the registry, and caches it; returns the cached one if the store confirms it. A missing or
        damaged one counts as a bell that has not rung: it is only a hint."""
        known = self._caches.bell
        match await self.store.get(self.paths.bell, known.version):
            case Found(body, version):
                self._caches.bell = Bell.parse(body, version, self.paths.bell)
            case Unchanged():
                return known
            case _:
                self._caches.bell = Bell()
        return self._caches.bell

    async def ring(self, bell: Bell) -> Bell:
        """Swaps the bell from the version of `bell` to a fresh id, caches the result and returns it. The write is sent
        once: if another process has changed the bell, or the outcome is unknown, it returns the bell that it reads
        then."""
        when, ring_id = ABSENT if bell.version is None else Matches(bell.version), self._runtime.ulid()
        outcome = await self.store.put(self.paths.bell, dumps({"version": 1, "id": ring_id}), when)
        if not isinstance(outcome, Applied):
            return await self.bell()
        self._caches.bell = Bell(ring_id, outcome.version)
        return self._caches.bell

    async def fetch_segment(self, segment: str) -> None:
        """Loads a segment of the registry's index, from the process's cache or else from the store, for the rest of
        this request, and caches it for others. Raises `SegmentGone` if it does not exist."""
        self._loaded[segment] = await self.segment(segment)
        self._cache_segment(self._loaded[segment])

    @property
    def used_segments(self) -> int:
        """The number of segments of the index that this request has loaded by `fetch_segment`, or that an index has
        found for it in the process's cache. Those that only `segment` returned don't count."""
        return len(self._loaded)

    async def segment(self, segment: str) -> Segment:
        """Returns a segment of the registry's index: the one that this request has loaded, or the process has cached,
        or else the one that it reads from the store, which is neither kept nor cached. Raises `SegmentGone` if it does
        not exist."""
        known = self._loaded.get(segment) or self._caches.segments.get(segment)
        if known is not None:
            return known
        key = self.paths.index_segment(segment)
        found = await self.store.get(key)
        if not isinstance(found, Found):
            raise SegmentGone(
                f"The segment {key} of the registry's index is gone: try again, and if that does not help, run `arco "
                "fsck`"
            )
        return Segment.parse(segment, found.body, key)

    async def write_segment(self, segment: Segment) -> None:
        """Stores a new segment of the registry's index, and caches it. Raises as `create` does."""
        await self.create(self.paths.index_segment(segment.id), segment.body)
        self._cache_segment(segment)

    def _cache_segment(self, segment: Segment) -> None:
        """Puts a segment of the registry's index into the process's cache, with about the memory that it takes as its
        size."""
        self._caches.segments.put(segment.id, segment, segment.size * 5 // 4)

    async def namespace_properties(self, value: str) -> JsonObject:
        """Returns the properties of a namespace, which are saved as the value with the id `value`, as `namespace_value`
        finds it."""
        return mapping(await self.namespace_value(value), "properties")

    async def namespace_value(self, value: str) -> JsonObject:
        """Returns the value of a namespace, which has the properties, without the answer of the change that has written
        it. Values never change, so a cached one is returned without a read; one that is read is cached. Raises
        `InternalError` if it does not exist or is corrupt."""
        known = self._caches.values.get(value)
        if known is None:
            stored = await self.entity_value("namespace", value)
            known = {field: stored[field] for field in stored if field != "answer"}
            self._caches.values.put(value, known, PARSED_SIZE * len(dumps(known)))
        return known

    async def entity_value(self, kind: str, value: str) -> JsonObject:
        """Reads from the store, never from a cache, the whole value that a change of an entity has written, such as a
        namespace's properties, with the answer of the change if that is another document. Raises `InternalError` if it
        does not exist or is corrupt."""
        key = self.paths.entity_value(kind, value)
        found = await self.read(key)
        if found is None:
            raise InternalError(
                f"The record {key} with the properties or description of a {kind} is missing in the store, but the "
                "registry, or the answer to an earlier request that is sent again, names it: run `arco fsck`, which "
                "lists the missing ones that the registry names now"
            )
        return parse_record(found.body, key)

    async def description(self, kind: str, value: str) -> JsonObject:
        """Returns the description of a generic table, semantic model or policy. Descriptions never change, so a cached
        one is returned without a read; one that is read is cached. Raises `InternalError` if it does not exist or is
        corrupt."""
        known = self._caches.values.get(value)
        if known is None:
            known = await self.entity_value(kind, value)
            self._caches.values.put(value, known, PARSED_SIZE * len(dumps(known)))
        return known

    async def page_key(self) -> bytes:
        """Returns the secret that seals the page tokens of a realm, or of a catalog where no grants count and a policy
        hides names, from the cache or the store. If the store has none, it creates one; if another process was first,
        it returns the one of that process. It never changes."""
        path = self.paths.page_key
        known = self._caches.values.get(path)
        while known is None:
            match await self.store.get(path):
                case Found(body):
                    known = parse_record(body, path)
                    self._caches.values.put(path, known, PARSED_SIZE * len(body))
                case _:
                    made: JsonObject = {"version": 1, "key": f"{self._runtime.uuid()}{self._runtime.uuid()}"}
                    with suppress(KeyConflict):  # another process was first: the loop reads its key
                        await self.create(path, dumps(made))
        return text(known, "key").encode()

    # Pointers

    def cached_pointer(self, entity: str, max_age_ms: int | None = None) -> Pointer | None:
        """Returns the cached pointer of a table or view, of any age if `max_age_ms` is None; None if there is none, or
        none younger than that. It may be outdated: it is good to plan a compare-and-swap on, which fails then, but not
        to answer a client."""
        cached = self._caches.pointers.get(entity)
        if cached is None or (max_age_ms is not None and not self._is_young(cached, max_age_ms)):
            return None
        return cached.value

    async def pointer(self, entity: str) -> Pointer | None:
        """Reads the pointer of a table or view and puts it into the cache, or returns the cached one after the store
        confirmed it, which counts as read now. Returns None if it does not exist, and then drops it from the cache."""
        key, cached, sent = self.paths.pointer(entity), self._caches.pointers.get(entity), self._call_time()
        known = None if cached is None else cached.value
        match await self.store.get(key, None if known is None else known.version):
            case Found(body, version):
                pointer = await off_loop(len(body), partial(Pointer.parse, body, version, key))
                self.cache_pointer(pointer, len(body), sent)
                return pointer
            case Unchanged() if cached is not None:
                if sent.order > cached.at.order:
                    cached.at = sent
                return cached.value
            case _:
                self._caches.pointers.drop(entity)
                return None

    def cache_pointer(self, pointer: Pointer, size: int, at: CallTime | None = None) -> None:
        """Caches a pointer that was read at `at` or written just now, unless a call that was sent later cached another.
        `size` is that of its JSON in bytes."""
        known, at = self._caches.pointers.get(pointer.entity), at or self._call_time()
        if known is None or at.order >= known.at.order:
            self._caches.pointers.put(pointer.entity, CacheEntry(pointer, at), PARSED_SIZE * size)

    async def move_pointer(self, successor: Pointer, expected: Version | None) -> Applied | PreconditionFailed:
        """Moves a pointer by a swap from the version `expected`, None to create it, and caches the new one if the swap
        applied; returns `PreconditionFailed` if the pointer has another version, perhaps by an earlier sending of this
        very swap. For a table's commit this is the commit point. Raises as `swap` does."""
        body = await off_loop(REF_SIZE * len(mapping(successor.document, "refs")), lambda: successor.body)
        outcome = await self.swap(self.paths.pointer(successor.entity), body, expected)
        if isinstance(outcome, Applied):
            self.cache_pointer(Pointer(successor.document, outcome.version), len(body))
        return outcome

    # Writes

    async def create(
        self, key: str, body: bytes, store: ObjectStore | None = None, *, made_from_ours: Made = nothing_is_made
    ) -> Version | None:
        """Creates an object whose key contains an id of the writer, or whose bytes follow from the key, and sends the
        write until the outcome is definite; in `store`, or in that of the catalog if it is None. If the store rejects
        the write, the object there may be from a previous sending of it, so it is read and compared
        (docs/design/store.md#rule-1).

        Returns the version of the object with these bytes; None if the object there has other bytes that are a later
        state of it, which `made_from_ours` decides. Raises `KeyConflict` for any other object there, and `StoreError`
        if the store does not answer or denies access: the object may exist if the outcome of a previous sending was
        unknown.
        """
        where = store or self.store
        while True:
            match await where.put(key, body, ABSENT):
                case Applied(version):
                    return version
                case PreconditionFailed():
                    match await where.get(key):
                        case Found(there, version) if there == body:
                            return version
                        case Found(there) if made_from_ours(there):
                            return None
                        case Found():
                            raise KeyConflict(
                                f"Cannot create the object {key}: an object with other content is there already"
                            )
                case Unknown():
                    pass
            await self.pause()

    async def swap(self, key: str, body: bytes, expected: Version | None) -> Applied | PreconditionFailed:
        """Sends one compare-and-swap until its outcome is definite. `expected` None means that the object must not
        exist.

        `PreconditionFailed` may also mean that this write applied before: the caller must read the object and search it
        for its own id. Raises `CommitStateUnknown` if the deadline passes or the store denies access while the outcome
        is unknown, and `StoreError` if nothing was applied.
        """
        condition = ABSENT if expected is None else Matches(expected)
        outcome = await self.store.put(key, body, condition)
        while isinstance(outcome, Unknown):
            await self.pause()
            outcome = await self._resend(key, body, condition)
        return outcome

    async def delete(self, key: str, when: When = ANY) -> Applied | PreconditionFailed:
        """Deletes an object if `when` holds, and sends the deletion until its outcome is definite, from the second time
        on whatever the object's version is: the first sending may have applied. Returns `PreconditionFailed` only after
        the first sending. Raises `StoreError`; the object may be deleted then, if a previous outcome was unknown."""
        outcome = await self.store.delete(key, when)
        while isinstance(outcome, Unknown):
            await self.pause()
            outcome = await self.store.delete(key, ANY)
        return outcome

    async def _resend(self, key: str, body: bytes, condition: When) -> Outcome:
        """Sends a write of unknown outcome again, with all attempts of `ATTEMPTS` even if the caller has limited them.
        Returns `Unknown` if the store is not available. Raises `CommitStateUnknown` after the deadline, or if the store
        denies access."""
        try:
            with limit_attempts(ATTEMPTS):
                return await self.store.put(key, body, condition)
        except StoreError as error:  # this sending was not applied, but an earlier one may have been
            if isinstance(error, StoreUnavailable) and not isinstance(error, DeadlinePassed):
                return Unknown(str(error))
            raise CommitStateUnknown(
                "The store did not confirm a write before the request's deadline, or denied access, so it is "
                "unknown whether it was applied: read what it changes before you try again"
            ) from error

    async def rest(self, rest_ms: int) -> None:
        """Waits for `rest_ms` milliseconds."""
        await self._runtime.sleep(rest_ms / 1_000)

    async def pause(self) -> None:
        """Waits a short random time. Callers resend a write after it."""
        await self._runtime.sleep(pause_s(self._runtime.random(), 2 * RESEND_SECONDS))


def encode_value(properties: JsonObject, answer: JsonObject | None = None, replaced: JsonObject | None = None) -> bytes:
    """Returns the stored form of a namespace's properties, as JSON in bytes, with the answer to the request that
    changed them if that is another document (None if not). Fields of the value that it replaces (`replaced`) which this
    version of the program does not know are kept."""
    own: JsonObject = {} if answer is None else {"answer": answer}
    later = {field: value for field, value in (replaced or {}).items() if field not in VALUE_FIELDS}
    return dumps({**later, "version": 1, "properties": properties, **own}, sort_keys=True)


def _loaded_segment(loaded: dict[str, Segment], cached: ByteCache[str, Segment], segment: str) -> Segment | None:
    """Returns a segment from the dict of those that a request has loaded, or else a cached one, which it adds to that
    dict; None otherwise. No method of `State`: a HEAD with this lookup, which a `State` keeps, would keep the `State`
    in a cycle."""
    known = loaded.get(segment)
    if known is None:
        known = cached.get(segment)
        if known is not None:
            loaded[segment] = known
    return known
