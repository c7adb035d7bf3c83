"""Access to a catalog's durable records, for one request: read through caches that are always revalidated, create
once, and move by compare-and-swap until the store's answer is definite (docs/design/commit.md#unknown-outcomes)."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Generic, TypeVar

from arco_catalog.iceberg.errors import CommitStateUnknown, InternalError
from arco_catalog.iceberg.json import JsonObject, dumps
from arco_catalog.state.cache import ByteCache
from arco_catalog.state.fields import mapping, parse_record, text
from arco_catalog.state.index import Edits, no_segments
from arco_catalog.state.key_settings import KeyPolicy, KeySettings
from arco_catalog.state.lost_head import HeadLost, had_head
from arco_catalog.state.needs import Steps
from arco_catalog.state.paths import Paths
from arco_catalog.state.pointer import Pointer
from arco_catalog.state.registry import Operation, RegistryState
from arco_catalog.state.runtime import Runtime
from arco_catalog.state.segments import Segment
from arco_catalog.state.spilling import Limits, Spilling
from arco_catalog.state.worker_threads import off_loop
from storage_backends import (
    ABSENT,
    Applied,
    Found,
    Matches,
    Missing,
    ObjectStore,
    PreconditionFailed,
    StoreError,
    Unchanged,
    Unknown,
    Version,
)
from storage_backends.backoff import pause_s

RESEND_SECONDS = 0.05
"""Mean wait before a write of unknown outcome is sent again."""

PARSED_SIZE = 8
"""Bytes of memory that a parsed document takes for each byte of its JSON, roughly."""

REF_SIZE = 64
"""Bytes of JSON that a branch or tag takes in a pointer, roughly; hardly anything else in it can be long."""

VALUE_FIELDS = ("version", "properties", "answer")
"""The fields of a namespace's value that this version writes."""


class SegmentGone(InternalError):
    """A segment that a commit names is not there: so old a commit was collected, or our state is at fault."""


class Occupied(InternalError):
    """An object with other content exists under a key that only its writer should use."""


Made = Callable[[bytes], bool]
"""Whether the object found was made from the one that we wrote."""


def nothing_is_made(there: bytes) -> bool:
    """For objects that never change."""
    return False


T = TypeVar("T")

_instants = count(1)
"""Orders the reads and writes of this process. Sequence numbers do not: a restore puts lower ones."""


POINTER_AGE_MS = 1_000
"""How old a pointer may be that a swap names without another read: too young for more moves than it remembers."""
CLAIM_AGE_MS = 60_000
"""How old a cached pointer or HEAD may be whose sequence number an attempt declares: evidence of it is searched from
there, by each process that comes after it."""


@dataclass(frozen=True, slots=True)
class CallTime:
    """When a call was sent: the place among the calls of this process, and the machine's time."""

    order: int
    wall_ms: int


@dataclass(slots=True)
class CacheEntry(Generic[T]):
    """A value, and when the last call that showed it was sent; for a write of our own, when it was acknowledged."""

    value: T
    at: CallTime


@dataclass
class Caches:
    """What one process remembers of one catalog. Nothing in it is believed without asking the store, but for what never
    changes: values and segments."""

    segments: ByteCache[str, Segment]
    pointers: ByteCache[str, CacheEntry[Pointer]]
    values: ByteCache[str, JsonObject]
    head: CacheEntry[RegistryState] | None = None
    logged_policy: KeyPolicy | None = None
    """The policy of keys for which the log has a warning that the server's differs."""

    @classmethod
    def of(cls, limit: int) -> "Caches":
        """Empty ones that take no more than so many bytes together, beside HEAD, which is bounded by its spilling."""
        return cls(ByteCache(limit * 32 // 52), ByteCache(limit * 16 // 52), ByteCache(limit * 4 // 52))


class State:
    """The records of one catalog as one request reaches them; `store` carries the request's deadline.

    Every method raises `StoreUnavailable` if a read got no answer, and `InternalError` if a record can't be read.
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
    ) -> None:
        """`key_policy` is what a registry commit records where the catalog has no record yet, and `allowed_locations`
        those of a new catalog; None records nothing."""
        self.store = store
        self.paths = paths
        self._caches = caches
        self._runtime = runtime
        self._loaded: dict[str, Segment] = {}
        self._not_done_until: dict[str, int] = {}
        """Sequence numbers of the registry up to which its history was seen not to hold an operation."""
        self._limits = limits
        self._key_policy = key_policy
        self._allowed_locations = allowed_locations
        self._viewed: tuple[RegistryState, RegistryState] | None = None
        """A HEAD, and the view of it that this request has."""

    async def has_any(self) -> bool:
        """Whether anything is stored here."""
        return bool((await self.store.list(f"{self.paths.state}/")).entries)

    def _call_time(self) -> CallTime:
        return CallTime(next(_instants), self._runtime.now_ms())

    # Registry

    def _is_young(self, cached: CacheEntry[T], max_age_ms: int) -> bool:
        """Whether a value was read, or made here, within this time. A clock that was set back makes it old."""
        return 0 <= self._runtime.now_ms() - cached.at.wall_ms < max_age_ms

    def cached_head(self, max_age_ms: int | None = None) -> RegistryState | None:
        """HEAD as this process saw it last, if that is not longer ago than `max_age_ms`: good enough to plan a
        compare-and-swap, never to answer a client from."""
        known = self._caches.head
        if known is None or (max_age_ms is not None and not self._is_young(known, max_age_ms)):
            return None
        return self._view(known.value)

    async def head(self) -> RegistryState:
        """HEAD as it is now. Raises `HeadLost`."""
        key, cached, sent = self.paths.manifest, self._caches.head, self._call_time()
        known = None if cached is None else cached.value
        found = await self.store.get(key, None if known is None else known.version)
        if isinstance(found, Missing) and await had_head(self.store, self.paths):
            sent = self._call_time()
            found = await self.store.get(key)  # the commits that were listed may be later than the first look
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
                return RegistryState.empty()

    def _view(self, head: RegistryState) -> RegistryState:
        """A HEAD that reads those segments which this request has loaded."""
        if self._viewed is None or self._viewed[0] is not head:
            self._viewed = head, head.with_segments(self.loaded_segment)
        return self._viewed[1]

    def cache_head(self, head: RegistryState, at: CallTime | None = None) -> None:
        """Caches a HEAD that was read, or made just now. The read that was sent last counts, whatever the sequence
        numbers: answers overtake each other, and a restore puts an earlier HEAD."""
        known, at = self._caches.head, at or self._call_time()
        if known is None or at.order >= known.at.order:
            self._caches.head = CacheEntry(head.with_segments(no_segments), at)

    async def move_head(self, successor: RegistryState, expected: Version | None) -> Applied | PreconditionFailed:
        """The registry's commit point. `expected` is None for its first commit."""
        outcome = await self.swap(self.paths.manifest, successor.body, expected)
        if isinstance(outcome, Applied):
            self.cache_head(RegistryState(successor.document, successor.index, outcome.version))
        return outcome

    def successor(self, head: RegistryState, edits: Edits, operations: Sequence[Operation]) -> Steps[RegistryState]:
        """A new commit on a HEAD, made now. It needs the segments that it rewrites where it spills."""
        spilled = yield from head.index_after(edits, Spilling(self._limits or Limits(), self._runtime.ulid))
        commit, at_ms = self._runtime.ulid(), self._runtime.now_ms()
        if self._key_policy is not None and head.key_settings is None:
            settings = KeySettings.first(self._key_policy, at_ms, is_new=head.version is None)
            head = head.with_key_settings(settings)
            if self._allowed_locations and head.version is None:
                head = head.with_allowed_locations(self._allowed_locations)
        return head.successor(commit=commit, at_ms=at_ms, edits=edits, operations=operations, spilled=spilled)

    async def commit_of(self, head: RegistryState, operation: str, since: int) -> str | None:
        """The registry commit that did an operation which was tried when the sequence number was `since`; None if there
        is none. Walks back up to 500 commits a GET (docs/design/registry.md#history), once: history never changes, so
        the same request looks again only at what came since. Others may wait for that look (shared_commits.py). Raises
        `CommitStateUnknown` where history ends."""
        since, until = max(since, self._not_done_until.get(operation, 0)), head.sequence
        while True:
            commit = head.commit_of(operation)
            if commit is not None:
                return commit
            if head.remembers(since) or head.before is None:
                self._not_done_until[operation] = max(since, until)
                return None
            head = await self.registry_commit(head.before)

    async def registry_commit(self, commit_id: str) -> RegistryState:
        """One commit of the registry's history."""
        key = self.paths.registry_commit(commit_id)
        found = await self.store.get(key)
        if not isinstance(found, Found):
            message = f"The registry's history no longer reaches back to commit {commit_id}"
            raise CommitStateUnknown(message, "evidence-lost")
        return RegistryState.parse(found.body, None, key).with_segments(self.loaded_segment)

    def loaded_segment(self, segment: str) -> Segment | None:
        """A segment that this request or this process has loaded. What a request has loaded stays so until it ends, so
        that it makes progress however small the cache is."""
        known = self._loaded.get(segment)
        if known is None:
            known = self._caches.segments.get(segment)
            if known is not None:
                self._loaded[segment] = known
        return known

    async def fetch_segment(self, segment: str) -> None:
        """Loads a segment."""
        self._loaded[segment] = await self.segment(segment)
        self._cache_segment(self._loaded[segment])

    async def segment(self, segment: str) -> Segment:
        """A segment, for one look. Immutable, so what was read once is good. Raises `SegmentGone`."""
        known = self._loaded.get(segment) or self._caches.segments.get(segment)
        if known is not None:
            return known
        key = self.paths.index_segment(segment)
        found = await self.store.get(key)
        if not isinstance(found, Found):
            raise SegmentGone(f"{key} is gone")
        return Segment.parse(segment, found.body, key)

    async def write_segment(self, segment: Segment) -> None:
        """Writes a new segment."""
        await self.create(self.paths.index_segment(segment.id), segment.body)
        self._cache_segment(segment)

    def _cache_segment(self, segment: Segment) -> None:
        self._caches.segments.put(segment.id, segment, segment.size * 5 // 4)

    async def namespace_properties(self, value: str) -> JsonObject:
        """The properties that an entry names."""
        return mapping(await self.namespace_value(value), "properties")

    async def namespace_value(self, value: str) -> JsonObject:
        """The properties that an entry names, and what else their value has, without the answer to the change that made
        it. Immutable, so what was read once is good."""
        known = self._caches.values.get(value)
        if known is None:
            stored = await self.entity_value("namespace", value)
            known = {field: stored[field] for field in stored if field != "answer"}
            self._caches.values.put(value, known, PARSED_SIZE * len(dumps(known)))
        return known

    async def entity_value(self, kind: str, value: str) -> JsonObject:
        """All that a change of an entity wrote of it: a namespace's properties, say, and the answer where they are not
        the answer. Raises `InternalError` where it is gone."""
        key = self.paths.entity_value(kind, value)
        found = await self.store.get(key)
        if not isinstance(found, Found):
            raise InternalError(f"{key} is gone")
        return parse_record(found.body, key)

    async def description(self, kind: str, value: str) -> JsonObject:
        """What describes a generic table or a policy. Immutable, so what was read once is good."""
        known = self._caches.values.get(value)
        if known is None:
            known = await self.entity_value(kind, value)
            self._caches.values.put(value, known, PARSED_SIZE * len(dumps(known)))
        return known

    async def page_key(self) -> bytes:
        """What a realm seals page tokens with: made once, by whichever process needs it first, and never changed."""
        path = self.paths.page_key
        known = self._caches.values.get(path)
        while known is None:
            match await self.store.get(path):
                case Found(body):
                    known = parse_record(body, path)
                    self._caches.values.put(path, known, PARSED_SIZE * len(body))
                case _:
                    made: JsonObject = {"version": 1, "key": f"{self._runtime.uuid()}{self._runtime.uuid()}"}
                    with suppress(Occupied):  # another process was first: its key is read
                        await self.create(path, dumps(made))
        return text(known, "key").encode()

    # Pointers

    def cached_pointer(self, entity: str, max_age_ms: int | None = None) -> Pointer | None:
        """The pointer as this process saw it last, if that is not longer ago than `max_age_ms`: good enough to plan a
        compare-and-swap, never to answer a client from."""
        cached = self._caches.pointers.get(entity)
        if cached is None or (max_age_ms is not None and not self._is_young(cached, max_age_ms)):
            return None
        return cached.value

    async def pointer(self, entity: str) -> Pointer | None:
        """The pointer as it is now; None if there is none."""
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
        """Caches a pointer that was read, or made just now, as `cache_head` does; `size` is that of its JSON."""
        known, at = self._caches.pointers.get(pointer.entity), at or self._call_time()
        if known is None or at.order >= known.at.order:
            self._caches.pointers.put(pointer.entity, CacheEntry(pointer, at), PARSED_SIZE * size)

    async def move_pointer(self, successor: Pointer, expected: Version | None) -> Applied | PreconditionFailed:
        """A table's commit point, or any other move of its pointer."""
        body = await off_loop(REF_SIZE * len(mapping(successor.document, "refs")), lambda: successor.body)
        outcome = await self.swap(self.paths.pointer(successor.entity), body, expected)
        if isinstance(outcome, Applied):
            self.cache_pointer(Pointer(successor.document, outcome.version), len(body))
        return outcome

    # Writes

    async def create(
        self, key: str, body: bytes, store: ObjectStore | None = None, *, made_from_ours: Made = nothing_is_made
    ) -> Version | None:
        """Writes an object whose key holds an id of its writer's, or whose bytes follow from its key, once. A refusal
        may be our own echo, so what is there is read and compared, always (docs/design/store.md#rule-1).

        Returns its version; None if it has changed since, which `made_from_ours` tells of what is there. Raises
        `Occupied` if something else is there, and `StoreError` if the write did not land.
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
                            raise Occupied(f"{key} already exists with other content")
                case Unknown():
                    pass
            await self.pause()

    async def swap(self, key: str, body: bytes, expected: Version | None) -> Applied | PreconditionFailed:
        """Sends one compare-and-swap until its answer is definite; `expected` None is the absence of the object.

        `PreconditionFailed` may be the echo of our own write: whoever gets it reads the object and looks for their id.
        Raises `CommitStateUnknown` if time runs out, or the store denies us, while the outcome is unknown, `StoreError`
        if nothing was sent.
        """
        sent = False
        while True:
            try:
                outcome = await self.store.put(key, body, ABSENT if expected is None else Matches(expected))
            except StoreError as error:  # this sending did not land; an earlier one may have
                if sent:
                    raise CommitStateUnknown(
                        "The store did not answer in time, so it is unknown whether the change was made"
                    ) from error
                raise
            if not isinstance(outcome, Unknown):
                return outcome
            sent = True
            await self.pause()

    async def pause(self) -> None:
        """A short wait, jittered, before the same write is sent again."""
        await self._runtime.sleep(pause_s(self._runtime.random(), 2 * RESEND_SECONDS))


def encode_value(properties: JsonObject, answer: JsonObject | None = None, replaced: JsonObject | None = None) -> bytes:
    """The stored form of a namespace's properties, with the answer to their change where that is another document.
    Fields that a later version added to the `replaced` value are kept."""
    own: JsonObject = {} if answer is None else {"answer": answer}
    later = {field: value for field, value in (replaced or {}).items() if field not in VALUE_FIELDS}
    return dumps({**later, "version": 1, "properties": properties, **own}, sort_keys=True)
