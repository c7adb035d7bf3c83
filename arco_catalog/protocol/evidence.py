"""Evidence and fences: how a process learns whether an attempt committed, and makes sure that it no longer can
(docs/design/commit.md#rule-2, docs/design/commit.md#evidence)."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from arco_catalog.iceberg.errors import CommitStateUnknown, Unavailable
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.decisions import abort_if_undecided, resolve_for_write, transaction_committed
from arco_catalog.protocol.internal_commits import HeadChange, change_head, try_to_settle
from arco_catalog.protocol.prepared_commit import SWAP_ATTEMPTS
from arco_catalog.state.access import State
from arco_catalog.state.marker import WriteSet
from arco_catalog.state.pointer import Pointer
from arco_catalog.state.registry import Operation, RegistryState
from storage_backends import Applied, StoreUnavailable
from storage_backends.backoff import growing_pause_s, limit_attempts

FORGOTTEN = (
    "Whether the change was made is unknown: too many later changes have removed the evidence. Look whether the "
    "change is there before you repeat it"
)


def moved_pointer(pointer: Pointer, attempt: str, write_set: WriteSet) -> bool:
    """Whether an attempt has committed to this pointer; False if its write set does not have the pointer. Raises
    `CommitStateUnknown` if the pointer does not list the attempt, and no longer lists all moves since the attempt's
    sequence number."""
    since = write_set.pointers.get(pointer.entity)
    if since is None:
        return False
    committed = pointer.has_committed(attempt, since)
    if committed is None:
        raise CommitStateUnknown(FORGOTTEN, "evidence-lost")
    return committed


async def moved_registry(state: State, head: RegistryState, attempt: str, write_set: WriteSet) -> bool:
    """Whether an attempt has committed to the registry, up to `head`; False if its write set does not have the
    registry. Raises `CommitStateUnknown` if the attempt is not found, and the history no longer reaches back to it."""
    return write_set.registry is not None and await state.commit_of(head, attempt, write_set.registry) is not None


async def has_committed(state: State, attempt: str, write_set: WriteSet) -> bool:
    """Reads whether an attempt has committed, by its evidence in the objects of the write set. The evidence of a
    transaction is its decision. A pointer that does not exist (any more) counts as one without evidence. Raises
    `CommitStateUnknown` if the evidence was removed from an object that exists."""
    if write_set.transaction is not None:
        return await transaction_committed(state, write_set.transaction)
    for entity in write_set.pointers:
        pointer = await state.pointer(entity)
        if pointer is not None and moved_pointer(pointer, attempt, write_set):
            return True
    return write_set.registry is not None and await moved_registry(state, await state.head(), attempt, write_set)


class LostEvidence:
    """Keeps the last error about removed evidence while a commit is searched for in many objects. The search goes on to
    the end, and only without a commit is the outcome unknown (`check_none`)."""

    def __init__(self) -> None:
        self._last: CommitStateUnknown | None = None

    @contextmanager
    def collect(self) -> Iterator[None]:
        """Returns a context for one step of a search for a commit, which keeps a `CommitStateUnknown` that the step
        raises, instead of raising it."""
        try:
            yield
        except CommitStateUnknown as unknown:
            self._last = unknown

    def check_none(self) -> None:
        """Raises the last `CommitStateUnknown` that the steps of the search for a commit raised, if there was one."""
        if self._last is not None:
            raise self._last


async def find_committed(state: State, attempts: Mapping[str, WriteSet]) -> str | None:
    """Returns the id of the one of these attempts that is seen to have committed by now; None if there is none, or if
    evidence is lost. No answer may rest on None before the attempts were fenced."""
    lost = LostEvidence()
    for attempt, write_set in attempts.items():
        with lost.collect():
            if await has_committed(state, attempt, write_set):
                return attempt
    return None


async def fence(session: Session, attempts: Mapping[str, WriteSet]) -> str | None:
    """Makes sure that none of these attempts can commit any more: closes their transactions, and moves everything else
    that they name to a fresh version. Returns None if none has committed. As soon as one is seen to have committed, it
    returns the id of that one, and does not fence the others.

    Raises `CommitStateUnknown` if none is seen to have committed and the evidence of one is lost, or a pointer is gone,
    which counts as fenced and is no evidence, or an undecided intent stands in the way for too long: all others are
    fenced by then. Also raises `StoreError`, and `CommitStateUnknown` if a write was not confirmed in time: some may
    not be fenced then.
    """
    state, runtime = session.state, session.runtime
    closed: dict[str, bool] = {}
    for attempt, write_set in attempts.items():
        if write_set.transaction is not None:
            if await abort_if_undecided(state, runtime, write_set.transaction):
                return attempt
            closed[write_set.transaction] = False
    if closed:
        await try_to_settle(session, closed)  # their coordinator may be dead, and we may refuse before we meet them
    lost = LostEvidence()
    by_entity: dict[str, list[str]] = {}
    for attempt, write_set in attempts.items():
        for entity in write_set.pointers:
            by_entity.setdefault(entity, []).append(attempt)
    for entity in sorted(by_entity):
        with lost.collect():
            pointer = await fence_pointer(session, entity)
            for attempt in by_entity[entity]:
                with lost.collect():
                    if moved_pointer(pointer, attempt, attempts[attempt]):
                        return attempt
    in_registry = {attempt: each for attempt, each in attempts.items() if each.registry is not None}
    if in_registry:
        head = await cancel_in_registry(session, in_registry)
        for attempt, write_set in in_registry.items():
            with lost.collect():
                if await moved_registry(state, head, attempt, write_set):
                    return attempt
    lost.check_none()
    return None


async def fence_pointer(session: Session, entity: str) -> Pointer:
    """Moves a pointer to another version, so that no commit that expects an older version can apply, and returns it,
    without the new version. Repeats this until it applies. It changes nothing else, except that an intent on the
    pointer is decided first, and settled by this move, and that a turn ends. Raises `CommitStateUnknown` if the pointer
    does not exist, or the intent can't be decided in time."""
    while True:
        pointer = await settled_base(session, entity, await session.state.pointer(entity))
        if pointer is None:
            raise CommitStateUnknown(
                f"The pointer of entity {entity} no longer exists, so whether an earlier change of the entity was made "
                "is unknown. Look whether the change is there before you make it again",
                "evidence-lost",
            )
        fenced = pointer.fenced(session.runtime.ulid())
        if isinstance(await session.state.move_pointer(fenced, pointer.version), Applied):
            return fenced
        await session.state.pause()


async def settled_base(session: Session, entity: str, pointer: Pointer | None) -> Pointer | None:
    """Returns the pointer without its intent for a move that is necessary, after waiting for the decision of the
    intent's transaction as `resolve_for_write` does; None if the pointer does not exist (any more). Raises
    `CommitStateUnknown` if the intent can't be decided in time."""
    try:
        return await resolve_for_write(session, entity, pointer)
    except Unavailable as undecided:
        raise CommitStateUnknown(
            f"Whether this request was carried out to the end is unknown: {undecided.message}", "undecided"
        ) from undecided


async def cancel_in_registry(session: Session, attempts: Mapping[str, WriteSet]) -> RegistryState:
    """Makes sure that none of these attempts can commit to the registry any more, and returns a HEAD that shows which
    of them has. If HEAD allows cancellations, a commit lists each attempt that has not committed as cancelled, and none
    is made if one has committed; an attempt whose evidence is lost is not listed. If HEAD allows none, or none is left
    to list, the registry is only fenced."""
    must_fence = False

    async def change(head: RegistryState) -> HeadChange | None:
        nonlocal must_fence
        absent = await _absent_from(session.state, head, attempts) if head.allows_cancellations else ()
        must_fence = absent is not None and not absent
        return HeadChange(head, {}, cancels=absent, lookups=()) if absent else None

    head = await change_head(session, "cancel", change)
    return await fence_registry(session, head) if must_fence else head


async def _absent_from(state: State, head: RegistryState, attempts: Mapping[str, WriteSet]) -> Sequence[str] | None:
    """Returns those of the attempts that have not committed to the registry up to `head`; None if one has. An attempt
    whose evidence is lost is not among them, because it may have committed."""
    absent: list[str] = []
    for attempt, write_set in attempts.items():
        with LostEvidence().collect():
            if await moved_registry(state, head, attempt, write_set):
                return None
            absent.append(attempt)
    return absent


async def fence_registry(session: Session, head: RegistryState | None = None) -> RegistryState:
    """Makes sure that no compare-and-swap can apply any more that names HEAD from before this call, or, if `head` is
    given, only that HEAD or an older one, by a registry commit on it that changes no entry. If another process moves
    HEAD first, that is the fence: while the store throttles the swap, it looks at HEAD. Returns the new HEAD. Raises as
    `State.swap` does, and `DeadlinePassed`."""
    state, runtime = session.state, session.runtime
    async with session.lock_registry():
        head = head or await state.head()
        operation, commit = Operation(runtime.ulid(), "fence", {}, None), runtime.ulid()
        fenced = head.successor(commit=commit, at_ms=runtime.now_ms(), edits={}, operations=[operation])
        await state.create(state.paths.registry_commit(commit), fenced.commit_body)
        attempt = 0
        while True:
            with suppress(StoreUnavailable), limit_attempts(SWAP_ATTEMPTS):
                if isinstance(await state.move_head(fenced, head.version), Applied):
                    return fenced
            now = await state.head()
            if now.version != head.version:
                return now
            await runtime.sleep(growing_pause_s(runtime.random(), attempt))
            attempt += 1


async def mark_dropped(session: Session, entity: str, operation: str) -> None:
    """Puts the mark of a drop, the id `operation`, on a pointer, unless it is there or the pointer does not exist. The
    mark is a fence: no commit that was under way can apply after it (docs/design/registry.md#rule-4). Raises
    `CommitStateUnknown` as `settled_base` does."""
    state = session.state
    pointer = state.cached_pointer(entity)
    if pointer is None or pointer.intent is not None:
        pointer = await state.pointer(entity)
    while pointer is not None and operation not in pointer.drops:
        pointer = await settled_base(session, entity, pointer)
        if pointer is None:
            return
        marked = pointer.marked_dropped(session.runtime.ulid(), operation)
        if isinstance(await state.move_pointer(marked, pointer.version), Applied):
            return
        await state.pause()
        pointer = await state.pointer(entity)
