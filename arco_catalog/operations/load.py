"""Loads the current state of tables and views. Reads HEAD of the registry, pointer and metadata file concurrently if
this process has earlier versions of them in memory, else one after the other. A metadata file that the catalog wrote
and that this process has in memory is used without a read for a time that the operator sets, by default a minute
(docs/design/registry.md#confirmed-files)."""

from collections.abc import Awaitable, Callable

from arco_catalog.iceberg.errors import NotFound
from arco_catalog.planning.answers import TableState
from arco_catalog.planning.names import not_of_kind
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import gather
from arco_catalog.protocol.mutation import Freshness
from arco_catalog.protocol.relation_read_set import (
    RelationLookup,
    RelationReadSet,
    cached_relation,
    read_relation,
    read_relation_under,
    relation_as_read,
    resolve_name,
)
from arco_catalog.state.entries import RelationEntry
from arco_catalog.state.index import Namespace
from arco_catalog.state.pointer import Pointer
from arco_catalog.state.registry import RegistryState
from storage_backends.lazy_dataclass import dataclass

Judge = Callable[[RegistryState], Awaitable[None]]
"""Returns if a HEAD allows the caller to load what it loads, and otherwise raises the error."""


async def load_table(session: Session, namespace: Namespace, name: str) -> TableState:
    """Returns the table's current state. Raises `NoSuchTable`, and `NotFound` if its metadata file is missing."""
    return await load(session, namespace, name, "table")


async def require_table(session: Session, namespace: Namespace, name: str) -> None:
    """Raises `NoSuchTable` if the table does not exist. Reads no pointer and no metadata file."""
    await _require(session, namespace, name, "table")


async def load_view(session: Session, namespace: Namespace, name: str) -> TableState:
    """Returns the view's current state. Raises `NoSuchView`, and `NotFound` if its metadata file is missing."""
    return await load(session, namespace, name, "view")


async def require_view(session: Session, namespace: Namespace, name: str) -> None:
    """Raises `NoSuchView` if the view does not exist. Reads no pointer and no metadata file."""
    await _require(session, namespace, name, "view")


async def _require(session: Session, namespace: Namespace, name: str, kind: str) -> None:
    """Raises the error for a missing relation unless the name has one of this kind."""
    lookup = RelationLookup(namespace, name, kind, writing=False)
    head = await session.head()
    if await resolve_name(session, head, lookup) is None:
        raise not_of_kind(head.index, kind, namespace, name)


@dataclass(frozen=True, slots=True)
class CurrentState:
    """The current state of a table or view: the registry's entry of the name, the pointer without an intent, and the
    bytes of the metadata file that the pointer names."""

    entry: RelationEntry
    pointer: Pointer
    metadata: bytes

    @property
    def answer(self) -> TableState:
        """The state in the form of an answer to a load."""
        entry, location = self.entry, self.pointer.metadata.location
        return TableState(entry.entity, location, self.metadata, created=False, governance=entry.governance)


async def load(session: Session, namespace: Namespace, name: str, kind: str) -> TableState:
    """Returns the current state of a table or view, as `kind` selects, in the form of an answer. Raises the errors of
    `load_table` and `load_view`."""
    return (await load_current(session, namespace, name, kind)).answer


async def load_current(session: Session, namespace: Namespace, name: str, kind: str) -> CurrentState:
    """Returns the current state of a table or view, as `kind` selects. Cached parts are used only after the store has
    confirmed them for this request, except for metadata files (`Files.read_written`). Raises the errors of `load_table`
    and `load_view`."""
    lookup = RelationLookup(namespace, name, kind, writing=False)
    state, known = session.state, session.state.cached_head()
    cached = None if known is None else cached_relation(known, lookup)
    guess = None if cached is None else _cached_pointer(session, cached.entity)
    guessed = None
    if known is None or cached is None or guess is None:
        read_set = await session.with_rights(read_relation(session, lookup, Freshness.FRESH))
    else:
        reading = state.head(), state.pointer(cached.entity), _read_guess(session, guess)
        if not session.is_restricted:
            head, pointer, guessed = await gather(*reading)
        else:
            head, pointer, guessed, _ = await gather(*reading, session.access.read(Freshness.FRESH))
        read_set = await relation_as_read(session, lookup, known, cached, head, pointer)
    return await _with_metadata(session, lookup, read_set, session.judge, guess, guessed)


async def load_under(
    session: Session, head: RegistryState, namespace: Namespace, name: str, kind: str, judge: Judge
) -> CurrentState:
    """Returns the current state of a table or view, as `kind` selects, whose name is read from a HEAD that was read for
    this request and allows the load. Where access is restricted, it calls `judge` with the HEAD that it uses: `head`,
    and any later one that had to be read. Raises what that raises, and the errors of `load_table` and `load_view`."""
    lookup = RelationLookup(namespace, name, kind, writing=False)
    read_set = await read_relation_under(session, lookup, head, Freshness.FRESH, head_fresh=True)
    return await _with_metadata(session, lookup, read_set, judge)


async def _with_metadata(
    session: Session,
    lookup: RelationLookup,
    read_set: RelationReadSet,
    judge: Judge,
    guess: Pointer | None = None,
    guessed: bytes | None = None,
) -> CurrentState:
    """Returns the state in a read set with the metadata file that its pointer names, once `judge` allows the HEAD of it
    where access is restricted. `guessed` is the file of the pointer `guess`, read before, None for one that was not
    read; the file of a wrong guess is dropped from the cache. If the file is missing, reads HEAD and pointer again, and
    raises `NotFound` if they name the same file. Raises `NoSuchTable` or `NoSuchView` without an entry or a pointer."""
    missed: dict[str, NotFound] = {}
    while True:
        if session.is_restricted:
            await judge(read_set.head)
        entry, pointer = read_set.entry, read_set.pointer
        if entry is None or pointer is None:
            raise not_of_kind(read_set.head.index, lookup.kind, lookup.namespace, lookup.name)
        location = pointer.metadata.location
        if location in missed:
            raise missed[location]
        try:
            is_guess = guess is not None and location == guess.metadata.location
            body = guessed if guessed is not None and is_guess else read_set.base
            if body is None:
                body = await read_metadata(session, pointer)
        except NotFound as gone:
            missed = {location: gone}  # a commit meanwhile may have removed it: read again, and fail if it is the same
            read_set = await read_relation(session, lookup, Freshness.FRESH)
            continue
        if guess is not None and not is_guess:
            session.files.forget(guess.metadata.location)
        return CurrentState(entry, pointer, body)


async def read_metadata(session: Session, pointer: Pointer) -> bytes:
    """Returns the metadata file that a current pointer names: the cached one without a request if the catalog wrote it,
    it is no local file, and this process has confirmed it recently. Otherwise the store confirms the cached one, or it
    is read. Raises `NotFound`, and the errors of `Files.read_current`."""
    location = pointer.metadata.location
    if pointer.is_file_written_here:
        return await session.files.read_written(location)
    return await session.files.read_current(location)


async def _read_guess(session: Session, pointer: Pointer) -> bytes | None:
    """Reads the metadata file that a cached pointer names, as `read_metadata` does; None if it does not exist, as when
    the pointer is outdated."""
    try:
        return await read_metadata(session, pointer)
    except NotFound:  # the table may have a newer file; if it has not, the caller's own read raises this
        return None


def _cached_pointer(session: Session, entity: str) -> Pointer | None:
    """Returns the pointer of the entity that this process read last, or None if that pointer, or the bytes of the
    metadata file that it names, are not cached."""
    pointer = session.state.cached_pointer(entity)
    return None if pointer is None or session.files.cached(pointer.metadata.location) is None else pointer
