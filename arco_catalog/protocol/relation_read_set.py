"""Reads the state of one table or view: the name's entry, the pointer, the metadata."""

from arco_catalog.iceberg.errors import CommitFailed, Refusal, Unavailable
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import gather
from arco_catalog.protocol.decisions import read_outcome, resolve_for_read, resolve_for_write
from arco_catalog.protocol.evidence import moved_pointer
from arco_catalog.protocol.lookup import load
from arco_catalog.protocol.mutation import Freshness, ReadSet
from arco_catalog.state.access import CLAIM_AGE_MS, State
from arco_catalog.state.entries import RelationEntry, find_kind, has_pointer
from arco_catalog.state.followed import FollowedTable
from arco_catalog.state.index import Namespace, relation_key
from arco_catalog.state.marker import WriteSet
from arco_catalog.state.needs import Needs
from arco_catalog.state.pointer import Pointer, missing_pointer
from arco_catalog.state.registry import RegistryState
from storage_backends.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class RelationLookup:
    """A request to find the table, view or other relation that has a name. For writing, an intent on the pointer is
    decided first; a reader takes the state before it, or after it if the transaction committed. An intent on the name
    counts, for both, only once the transaction has committed.

    `rank` is that of a transaction, which may abort another of larger rank.
    """

    namespace: Namespace
    name: str
    kind: str
    writing: bool
    rank: str | None = None


@dataclass
class RelationReadSet(ReadSet):
    """What a request has read of one table or view: the entry of the name and the pointer of the entity. `head_fresh`
    and `pointer_fresh` are whether HEAD and the pointer were read for this request, rather than taken from a cache.
    `base` are the bytes of the metadata file, None if they were not read, and planning raises the error `refusal` of
    the read. `pointer` is None without an entry, and with an intent that was not decided in time, which is the
    `refusal` then.

    The base's bytes need no freshness of their own: a metadata file never changes.
    """

    head: RegistryState
    entry: RelationEntry | None
    pointer: Pointer | None
    head_fresh: bool
    pointer_fresh: bool
    base: bytes | None = None
    refusal: Refusal | None = None

    @property
    def is_fresh(self) -> bool:
        """Whether HEAD was read from the store for this request, and the pointer, too, if the name has an entry. For a
        table that follows another catalog's, which has no stored pointer, only HEAD counts."""
        return self.head_fresh and (self.pointer_fresh or self.entry is None)

    def covers(self, write_set: WriteSet) -> bool:
        """Whether the write set names no registry, no transaction, and no pointer except the one that was read."""
        return (
            write_set.registry is None
            and write_set.transaction is None
            and all(self.pointer is not None and entity == self.pointer.entity for entity in write_set.pointers)
        )

    async def has_committed(self, attempt: str, write_set: WriteSet) -> bool:
        """Whether the pointer that was read proves that the attempt has committed to it. Reads nothing. False without a
        pointer. Raises `CommitStateUnknown` if it does not list the attempt, and no longer lists all moves since
        then."""
        return self.pointer is not None and moved_pointer(self.pointer, attempt, write_set)


async def read_relation(session: Session, lookup: RelationLookup, freshness: Freshness) -> RelationReadSet:
    """Reads the table or view that has a name, and returns the read set: HEAD, then the pointer, unless
    `freshness` allows cached ones.

    A fresh read of a cached name reads both concurrently. They show one state of the name if HEAD is the cached one,
    because the name has not changed meanwhile. Otherwise the pointer is read again, after HEAD, because the entity may
    have got the name only after the first read.
    """
    state = session.state
    known = state.cached_head()
    if known is not None and freshness is not Freshness.FRESH:
        return await read_relation_under(session, lookup, known, freshness, head_fresh=False)
    cached = None if known is None else cached_relation(known, lookup)
    if known is None or cached is None or not has_pointer(cached.json):
        return await read_relation_under(session, lookup, await state.head(), freshness, head_fresh=True)
    head, pointer = await gather(state.head(), state.pointer(cached.entity))
    return await relation_as_read(session, lookup, known, cached, head, pointer)


async def relation_as_read(
    session: Session,
    lookup: RelationLookup,
    known: RegistryState,
    cached: RelationEntry,
    head: RegistryState,
    pointer: Pointer | None,
) -> RelationReadSet:
    """Returns the read set of a name under `head`, which was read concurrently with `pointer`, the pointer of the
    entity that has the name (`cached`) under the cached HEAD `known`. If HEAD has moved, the pointer is read once
    more."""
    if head.version == known.version:
        read = {cached.entity: pointer}
        return await read_relation_under(
            session, lookup, head, Freshness.FRESH, head_fresh=True, read=read, entry=cached
        )
    return await _read_relation_again(session, lookup, head, pointer)


async def _read_relation_again(
    session: Session, lookup: RelationLookup, head: RegistryState, seen: Pointer | None
) -> RelationReadSet:
    """Returns the read set of a name under a HEAD, with its pointer read now. The metadata file of the pointer that was
    `seen` before is read concurrently, because the pointer has rarely moved meanwhile."""
    location = None if seen is None else seen.metadata.location

    async def read_base() -> bytes | None:
        if location is None or session.files.cached(location) is not None:
            return None
        try:
            return await session.files.read_current(location)
        except Refusal:  # the step that needs it reads it again and raises the error
            return None

    by_name = read_relation_under(session, lookup, head, Freshness.FRESH, head_fresh=True)
    read_set, base = await gather(by_name, read_base())
    if read_set.pointer is not None and read_set.pointer.metadata.location == location:
        read_set.base = base
    return read_set


async def read_relation_under(
    session: Session,
    lookup: RelationLookup,
    head: RegistryState,
    freshness: Freshness,
    *,
    head_fresh: bool,
    read: dict[str, Pointer | None] | None = None,
    entry: RelationEntry | None = None,
) -> RelationReadSet:
    """Returns the read set of a name under a HEAD, or under a later one if that must be read to resolve the name.
    `head_fresh` is whether `head` was read for this request. The pointer is the cached one if `freshness` allows it,
    the one in `read` (by entity) if it is there, else it is read now. `entry` is the entry of the name if it is known.
    If the entry's pointer is missing, reads HEAD and the name once more if `head` was cached, and raises
    `InternalError` if it was read."""
    now, entry = await _resolve(session, head, lookup, entry)
    if now is not head:
        head_fresh, read = True, None  # the pointer of a name is read after the name
    return await _read_pointer(session, lookup, now, entry, freshness, head_fresh=head_fresh, read=read)


async def _read_pointer(
    session: Session,
    lookup: RelationLookup,
    head: RegistryState,
    entry: RelationEntry | None,
    freshness: Freshness,
    *,
    head_fresh: bool,
    read: dict[str, Pointer | None] | None,
) -> RelationReadSet:
    """Returns the read set of a name with this entry, None if the name has none, and with the pointer as
    `read_relation_under` describes; the pointer of a table that follows another catalog's is made from the entry. Reads
    everything anew if the pointer is missing under a cached HEAD, and raises `InternalError` if it is missing under one
    that was read. An intent that stays undecided becomes the read set's `refusal`."""
    if entry is None:
        return RelationReadSet(head, None, None, head_fresh, pointer_fresh=False)
    followed = FollowedTable.of(entry.json)
    if followed is not None:
        return RelationReadSet(head, entry, followed.pointer(entry.entity, entry.kind), head_fresh, pointer_fresh=True)
    # Without a key no claim is put: the pointer may be of any age until the swap.
    max_age_ms = None if session.request.key is None else CLAIM_AGE_MS
    pointer = session.state.cached_pointer(entry.entity, max_age_ms) if freshness is Freshness.CACHED else None
    fresh = pointer is None or pointer.intent is not None  # an intent is never taken from memory
    if fresh:
        already = read is not None and entry.entity in read
        pointer = read[entry.entity] if read is not None and already else await session.state.pointer(entry.entity)
    read_set = RelationReadSet(head, entry, None, head_fresh, fresh)
    if pointer is None and not head_fresh:
        # The cached HEAD may be so old that the entity is dropped by now, and its pointer deleted.
        head = await session.state.head()
        return await read_relation_under(session, lookup, head, Freshness.FRESH, head_fresh=True)
    if pointer is None:
        raise missing_pointer(session.state.paths.pointer(entry.entity))
    if pointer.intent is None:
        read_set.pointer = pointer
        return read_set
    try:
        read_set.pointer = await _without_intent(session, lookup, pointer)
    except Unavailable as undecided:  # a commit that did not get its turn has failed, and its client begins anew
        read_set.refusal = CommitFailed(undecided.message)
    return read_set


async def _without_intent(session: Session, lookup: RelationLookup, pointer: Pointer) -> Pointer | None:
    """Returns the pointer without the intent in it: with the new state if the transaction committed, else with the old
    one. A lookup for writing first waits until the intent is decided, or aborts the transaction, as `resolve_for_write`
    does; the pointer in the store keeps the intent. None if the pointer does not exist any more."""
    if lookup.writing:
        return await resolve_for_write(session, pointer.entity, pointer, lookup.rank)
    return await resolve_for_read(session.state, pointer)


async def resolve_name(session: Session, head: RegistryState, lookup: RelationLookup) -> RelationEntry | None:
    """Returns the entry of the table, view, generic table or semantic model with the name in the lookup, from `head`,
    or from a later HEAD if that had to be read, and records it in the request's statistics; None if there is none of
    that kind. An intent on the name is the entry once the transaction has committed, and is no entry before."""
    return (await _resolve(session, head, lookup))[1]


async def _resolve(
    session: Session, head: RegistryState, lookup: RelationLookup, known: RelationEntry | None = None
) -> tuple[RegistryState, RelationEntry | None]:
    """Returns a HEAD and the entry that the lookup's name has there; None instead of the entry if there is none of its
    kind, or only an intent that has not committed. An entry that is returned is recorded in the request's statistics.
    It is a later HEAD than `head` if an intent on the name was settled, and its decision collected, between the reads
    of the two (docs/design/transaction.md#rule-7)."""
    while True:
        entry = known or await relation(session.state, head, lookup)
        outcome = (
            True if entry is None or entry.transaction is None else await read_outcome(session.state, entry.transaction)
        )
        if outcome is None:
            later = await session.state.head()
            if later.version != head.version:
                head, known = later, None
                continue
        if entry is None or not outcome:
            return head, None
        session.stats.about(entry.entity, entry.uuid)
        return head, entry


async def relation(state: State, head: RegistryState, lookup: RelationLookup) -> RelationEntry | None:
    """Loads and returns the entry of the lookup's name in this HEAD, which may be an intent; None if it is of another
    kind than the lookup's, or there is none."""
    if head.index.directory.refs:  # else there is nothing to load
        await load(state, head.index, Needs(keys=[relation_key(lookup.namespace, lookup.name)]))
    return find_kind(head.index, lookup.namespace, lookup.name, lookup.kind)


def cached_relation(head: RegistryState, lookup: RelationLookup) -> RelationEntry | None:
    """Returns the entry of the lookup's name under a cached HEAD, without reading; None if there is none of the
    lookup's kind, or if the segment that it would be in is not loaded."""
    if head.index.directory.refs and head.index.missing(Needs(keys=[relation_key(lookup.namespace, lookup.name)])):
        return None
    return find_kind(head.index, lookup.namespace, lookup.name, lookup.kind)
