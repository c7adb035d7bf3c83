"""Reads several tables and views as they are at one instant (docs/design/resolve.md#rule-5): what they mean is
collected twice, with HEAD read between, until nothing of it has moved."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from arco_catalog.iceberg.errors import NotFound, Refusal, Unavailable
from arco_catalog.operations.load import CurrentState, read_metadata
from arco_catalog.operations.resolve import hidden_names, listed, load_names
from arco_catalog.planning.cut import Observation, is_unmoved, lacks_pointer, pointer_at, transactions_of
from arco_catalog.planning.names import Identifier, no_such
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import for_each
from arco_catalog.protocol.decisions import read_outcome
from arco_catalog.state.entries import RelationEntry, find_relation, has_pointer
from arco_catalog.state.index import Index, relation_key
from arco_catalog.state.needs import Needs
from arco_catalog.state.pointer import Pointer, missing_pointer
from storage_backends.lazy_dataclass import dataclass

TRIES = 10
"""How often the names are collected before the request gives up."""
AT_ONCE = 16
"""Pointers and decisions that are read concurrently."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CurrentRelation:
    """A table or view at the instant of a cut: the registry's entry of the name, and the pointer without an intent."""

    entry: RelationEntry
    pointer: Pointer

    async def load(self, session: Session) -> CurrentState:
        """Reads the metadata file that the pointer names, and returns the state of the table or view with it. Raises
        `NotFound` if the file is missing."""
        return CurrentState(self.entry, self.pointer, await read_metadata(session, self.pointer))


Cut = Mapping[Identifier, CurrentRelation | Refusal]
"""What names mean at one instant. A name without a table or view that the caller may know of has the error of a
load."""


async def with_cut(session: Session, identifiers: Sequence[Identifier], use: Callable[[Cut], Awaitable[T]]) -> T:
    """Returns what `use` returns for a cut of these names. If it raises `NotFound`, as for a metadata file that a
    commit since then removed, it is called once more, with a new cut. Raises what `use` raises, also `NotFound` of that
    second call, and as `read_cut` does."""
    try:
        return await use(await read_cut(session, identifiers))
    except NotFound:
        return await use(await read_cut(session, identifiers))


async def read_cut(session: Session, identifiers: Sequence[Identifier]) -> Cut:
    """Returns what these names mean at one instant after this call. The first collection is what this process has
    cached. Raises `Unavailable`, which names what moved last, if something moves in all `TRIES`, or `InternalError` if
    a pointer is missing in the last of them; `ForbiddenObjects`; and the errors of `Session.head`."""
    before = await _cached(session, identifiers)
    moved: list[Identifier] = []
    for _ in range(TRIES):
        head = await session.head()
        await load_names(session, head, identifiers)
        hidden = await hidden_names(session, head, identifiers)
        entries = {each: None if each in hidden else _entry(head.index, each) for each in identifiers}
        now = await _collect(session, entries.values())
        moved = [each for each, entry in entries.items() if not is_unmoved(entry, before, now)]
        if not moved:
            return {each: _relation(each, entry, now, hidden.get(each)) for each, entry in entries.items()}
        before = now
    for identifier in moved:
        entry = entries[identifier]
        if entry is not None and lacks_pointer(entry, now):
            raise missing_pointer(session.state.paths.pointer(entry.entity))
    raise Unavailable(
        f"No consistent state could be read: during all {TRIES} tries of this request some of its tables and views "
        f"changed, in the last one {listed(moved)}. Try again, or request those apart"
    )


def _entry(index: Index, identifier: Identifier) -> RelationEntry | None:
    """Returns the entry of the table or view with a name, which may be an intent; None if there is none, also if
    another kind of relation has the name. The name's key must be loaded."""
    entry = find_relation(index, *identifier)
    return entry if entry is not None and entry.kind in ("table", "view") else None


def _relation(
    identifier: Identifier, entry: RelationEntry | None, now: Observation, hidden: Refusal | None
) -> CurrentRelation | Refusal:
    """Returns the table or view with an identifier in a collection, or the error of a load if there is none, or if the
    caller may not know of it (`hidden`)."""
    pointer = pointer_at(entry, now)
    if entry is None or pointer is None:
        return hidden or no_such("table-like", *identifier)
    return CurrentRelation(entry, pointer)


async def _cached(session: Session, identifiers: Iterable[Identifier]) -> Observation:
    """Returns the first collection: the cached pointers of these names, by the cached HEAD, as far as this process has
    them. Only decisions are read, which are never cached."""
    head = session.state.cached_head()
    if head is None:
        return Observation({}, {})
    known = [each for each in identifiers if not head.index.missing(Needs(keys=[relation_key(*each)]))]
    entries = [entry for each in known if (entry := _entry(head.index, each)) is not None]
    cached = (session.state.cached_pointer(entry.entity) for entry in entries)
    pointers = {pointer.entity: pointer for pointer in cached if pointer is not None}
    return Observation(pointers, await _outcomes(session, entries, pointers))


async def _collect(session: Session, found: Iterable[RelationEntry | None]) -> Observation:
    """Reads the pointers of these entries, and then the decisions on which the entries and pointers depend. Names
    without an entry (None), tables that follow another catalog's, and pointers that are missing are left out."""
    entries = [entry for entry in found if entry is not None]
    pointers: dict[str, Pointer] = {}

    async def read(entity: str) -> None:
        pointer = await session.state.pointer(entity)
        if pointer is not None:
            pointers[entity] = pointer

    entities = dict.fromkeys(entry.entity for entry in entries if has_pointer(entry.json))
    await for_each(entities, AT_ONCE, read)
    return Observation(pointers, await _outcomes(session, entries, pointers))


async def _outcomes(
    session: Session, entries: Iterable[RelationEntry], pointers: Mapping[str, Pointer]
) -> Mapping[str, bool | None]:
    """Reads the decisions of all transactions that have intents in these entries and pointers: true for a committed
    one, None if the decision was collected or the transaction was closed before it began, else false."""
    outcomes: dict[str, bool | None] = {}

    async def read(transaction: str) -> None:
        outcomes[transaction] = await read_outcome(session.state, transaction)

    await for_each(transactions_of(entries, pointers), AT_ONCE, read)
    return outcomes
