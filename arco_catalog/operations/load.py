"""Loading tables: manifest, pointer and metadata file, beside each other where this process knows the table."""

from arco_catalog.iceberg.errors import NotFound
from arco_catalog.planning.answers import TableState
from arco_catalog.planning.names import no_such
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import gather
from arco_catalog.protocol.mutation import Freshness
from arco_catalog.protocol.relation_read_set import (
    RelationLookup,
    cached_relation,
    read_relation,
    resolve_name,
)
from arco_catalog.state.index import Namespace


async def load_table(session: Session, namespace: Namespace, name: str) -> TableState:
    """The table's current state. Raises `NoSuchTable`, and `NotFound` if its metadata file is gone."""
    return await load(session, namespace, name, "table")


async def table_exists(session: Session, namespace: Namespace, name: str) -> None:
    """Raises `NoSuchTable` if it does not. The registry alone knows."""
    await exists(session, namespace, name, "table")


async def load_view(session: Session, namespace: Namespace, name: str) -> TableState:
    """The view's current state. Raises `NoSuchView`, and `NotFound` if its metadata file is gone."""
    return await load(session, namespace, name, "view")


async def view_exists(session: Session, namespace: Namespace, name: str) -> None:
    """Raises `NoSuchView` if it does not."""
    await exists(session, namespace, name, "view")


async def exists(session: Session, namespace: Namespace, name: str, kind: str) -> None:
    """Asks the registry alone."""
    lookup = RelationLookup(namespace, name, kind, writing=False)
    if await resolve_name(session, await session.state.head(), lookup) is None:
        raise no_such(kind, namespace, name)


async def load(session: Session, namespace: Namespace, name: str, kind: str) -> TableState:
    """The current state of a table or view, every part of it confirmed by the store for this request."""
    lookup = RelationLookup(namespace, name, kind, writing=False)
    guess = _cached_file(session, lookup)

    async def read_guess() -> bytes | None:
        try:
            return None if guess is None else await session.files.read(guess)
        except NotFound:  # the table may have moved on; if not, the read below says so
            return None

    read_set, guessed = await gather(read_relation(session, lookup, Freshness.FRESH), read_guess())
    missed: dict[str, NotFound] = {}
    while True:
        entry, pointer = read_set.entry, read_set.pointer
        if entry is None or pointer is None:
            raise no_such(kind, namespace, name)
        location = pointer.metadata.location
        if location in missed:
            raise missed[location]
        try:
            body = guessed if guessed is not None and location == guess else read_set.base
            if body is None:
                body = await session.files.read(location)
        except NotFound as gone:
            missed = {location: gone}  # perhaps removed behind a commit: what the name means now decides
            read_set = await read_relation(session, lookup, Freshness.FRESH)
            continue
        if guess is not None and guess != location:
            session.files.forget(guess)
        return TableState(entry.entity, location, body, created=False)


def _cached_file(session: Session, lookup: RelationLookup) -> str | None:
    head = session.state.cached_head()
    entry = None if head is None else cached_relation(head, lookup)
    pointer = None if entry is None else session.state.cached_pointer(entry.entity)
    location = None if pointer is None else pointer.metadata.location
    return location if location is not None and session.files.cached(location) is not None else None
