"""Who else may have files where a table's lie: nothing that deletes files runs then
(docs/design/pipeline.md#rule-11)."""

from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial

from arco_catalog.iceberg.errors import NotFound
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.iceberg.parsing import parse_metadata
from arco_catalog.planning.names import dotted
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.current_file import current_file
from arco_catalog.protocol.lookup import carry_out, entries_in
from arco_catalog.state.borrowed import borrower_of
from arco_catalog.state.entries import RelationEntry, purge_began
from arco_catalog.state.fields import text, texts
from arco_catalog.state.index import Index, locations_at, released_at, released_key
from arco_catalog.state.locations import Location
from arco_catalog.state.needs import Needs, Scan, Steps
from arco_catalog.state.worker_threads import off_loop
from arco_catalog.tasks.execution import TaskFailed
from arco_catalog.upkeep.purge.other_table import MAX_ROUNDS
from arco_catalog.upkeep.purge.reach import Reached, files_behind
from reconciler.maintain.files_elsewhere import is_inside
from storage_backends import StoreUnavailable

UNKNOWN_PLACE = "{} is not among the locations that the registry knows for the table"


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Another entity, and how it comes to have files there. `entity` None: whose they are is not known."""

    entity: str | None
    how: str


@dataclass(frozen=True, slots=True)
class _Alone:
    """One session for whoever reads a table's files, who would take a fresh one for each call."""

    of: Session

    def session(self) -> Session:
        return self.of


async def file_elsewhere(session: Session, entry: RelationEntry) -> str | None:
    """A file outside of the table's own places that one of its snapshots names; None if there is none. All manifests
    are read, as they are when snapshots expire. Where something is gone the table is read again, if it has another
    state by then: its manifests may have been rewritten. Raises `TaskFailed` for what can't be read, or is gone of a
    state that stays; and `StoreError`, which a table raises as well that changes all the time."""
    own, read, gone = frozenset(entry.locations), "", list[str]()
    for _ in range(MAX_ROUNDS):
        try:
            found = await current_file(session, entry.entity)
        except NotFound as missing:
            raise TaskFailed(f"its metadata file is gone: {missing.message}") from missing
        if found is None:
            return None
        file, body = found
        session.files.forget(file.location)
        if file.location == read:
            raise TaskFailed(f"{gone[0]} is gone, so nobody knows which files its snapshots have")
        read, gone = file.location, []
        reached = Reached()
        reached.add(await off_loop(len(body), partial(parse_metadata, body, file.location)))
        async with aclosing(files_behind(_Alone(session), reached, gone)) as files:
            async for each in files:
                if not is_inside(each, own):
                    return each
        if not gone:
            return None
    raise StoreUnavailable(f"entity {entry.entity} changes faster than it can be read")


async def told_neighbour(session: Session, entry: RelationEntry, location: str) -> str | None:
    """Who stands in the way of deleting files of a table that lies at `location`, as a report tells it; None if nobody
    does. Raises `StoreError`."""
    index = (await session.state.head()).index
    found = await carry_out(session.state, index, neighbour_of(index, entry, location))
    if found is None or found.entity is None:
        return None if found is None else found.how
    name = await _name_of(session, index, found.entity)
    return f"{name or 'another'} (entity {found.entity}) {found.how}"


def neighbour_of(index: Index, entry: RelationEntry, location: str) -> Steps[Neighbour | None]:
    """Another entity whose locations equal, contain or lie inside those of this one, be it live, dropped or being
    purged; one that borrows from there; or one from which this table borrows. A table that lies outside of the places
    that the registry knows for it is nobody's to clean, either."""
    places = [Location.of_normal(normal) for normal in entry.locations]
    lies = Location.of_file(location)
    if lies is None or not lies.inside_any([place.normal for place in places]):
        return Neighbour(None, UNKNOWN_PLACE.format(location))
    for place in places:
        found = yield from _holder_at(index, place, entry.entity)
        if found is not None:
            return found
        borrower = yield from borrower_of(index, place, entry.entity)
        if borrower is not None:
            return Neighbour(borrower, f"takes files from {place.uri}")
    for normal in entry.borrowed:
        folder = Location.of_normal(normal)
        found = yield from _holder_at(index, folder, entry.entity)
        return Neighbour(None, f"it takes files from {folder.uri}") if found is None else found
    return None


def _holder_at(index: Index, place: Location, entity: str) -> Steps[Neighbour | None]:
    around = [*place.around()]
    inside = [locations_at(place.normal), released_at(place.normal)]
    released = [released_key(folder, "") for folder in around]
    yield Needs(scans=[Scan(prefix) for prefix in (*inside, *released)], holds=around)
    for hold in _holds(index, inside, around, released):
        holder = text(hold, "entity")
        if holder != entity:
            return Neighbour(holder, f"{_how(hold)} at a place that overlaps {place.uri}")
    return None


def _holds(index: Index, inside: list[str], around: list[str], released: list[str]) -> Iterator[JsonObject]:
    for prefix in (*inside, *released):
        yield from (hold for _, hold in index.scan(prefix))
    for folder in around:
        yield from (hold for _, hold in index.holds_on(folder))


def _how(hold: JsonObject) -> str:
    if purge_began(hold):
        return "is being purged"
    return "was dropped, and its files may lie" if hold.get("state") in ("dropped", "purging") else "lies"


async def _name_of(session: Session, index: Index, entity: str) -> str | None:
    """What an entity is, or was, called. All names are looked at: it is asked for a refusal alone."""
    for kind in ("relation\n", "tombstone\n"):
        async with aclosing(entries_in(session.state, index, kind)) as entries:
            async for key, entry in entries:
                if entry.get("entity") != entity:
                    continue
                if kind == "tombstone\n":
                    return dotted(texts(entry, "namespace"), text(entry, "name"))
                _, namespace, name = key.split("\n")
                return dotted(tuple(namespace.split("\t")), name)
    return None
