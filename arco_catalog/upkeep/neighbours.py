"""Finds other entities that may have files at a table's locations. Nothing deletes files of a live table while there
are any (docs/design/pipeline.md#rule-11, docs/design/expiry.md#rule-7)."""

from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import dataclass

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.planning.names import dotted
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.lookup import carry_out, entries_in
from arco_catalog.state.borrowed import borrower_of
from arco_catalog.state.entries import RelationEntry, purge_began
from arco_catalog.state.fields import text
from arco_catalog.state.index import Index, locations_at, name_in, released_at, released_key
from arco_catalog.state.locations import Location
from arco_catalog.state.needs import Needs, Scan, Steps

UNKNOWN_LOCATION = "{} is not among the locations that the registry has for the table"


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Why files of a table must not be deleted: `entity` may have files at the table's locations, or the table borrows
    files from it. `how` is the predicate of a sentence with that entity as subject. `entity` is None if the table
    borrows from an unknown one, or files are to be deleted outside of its locations: then `how` is a whole sentence,
    about the table or the location."""

    entity: str | None
    how: str


async def deletion_obstacle(session: Session, entry: RelationEntry, location: str) -> str | None:
    """Returns the reason, for a report, why a procedure that deletes files at `location` must not be called for a
    table: another entity, which it names, may have files at the table's locations, the table borrows files, or
    `location` is not in a location that the registry has for the table. None if there is no such reason. Raises
    `StoreError`."""
    index = (await session.state.head()).index
    found = await carry_out(session.state, index, find_neighbour(index, entry, location))
    if found is None or found.entity is None:
        return None if found is None else found.how
    name = await _name_of(session, index, found.entity)
    return f"{name or 'another'} (entity {found.entity}) {found.how}"


def find_neighbour(index: Index, entry: RelationEntry, location: str) -> Steps[Neighbour | None]:
    """Returns the first reason why files of a table must not be deleted at `location`; None if nothing prevents it.

    The cause is an entity, live, dropped or being purged, with a location that equals, contains or lies inside one of
    the table's; an entity that borrows files from there; or an entity from which the table borrows. A neighbour without
    an entity is returned if the table borrows from a place of no known entity, or if `location` lies outside of the
    locations that the registry has for the table.
    """
    places = [Location.of_normal(normal) for normal in entry.locations]
    cleaned = Location.of_file(location)
    if cleaned is None or not cleaned.inside_any([place.normal for place in places]):
        return Neighbour(None, UNKNOWN_LOCATION.format(location))
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
    """Returns the first entity found, other than `entity`, with a location that equals, contains or lies inside
    `place`, and how it relates to it; None if there is none. Dropped entities with a location that others may use count
    too."""
    around = [*place.around()]
    inside = [locations_at(place.normal), released_at(place.normal)]
    released = [released_key(folder, "") for folder in around]
    yield Needs(scans=[Scan(prefix) for prefix in (*inside, *released)], holds=around)
    for hold in _holds(index, inside, around, released):
        holder = text(hold, "entity")
        if holder != entity:
            return Neighbour(holder, f"{_describe_hold(hold)} at a place that overlaps {place.uri}")
    return None


def _holds(index: Index, inside: list[str], around: list[str], released: list[str]) -> Iterator[JsonObject]:
    """Yields the index entries under the prefixes `inside` and `released`, and then the holds of entities on the
    folders in `around`."""
    for prefix in (*inside, *released):
        yield from (hold for _, hold in index.scan(prefix))
    for folder in around:
        yield from (hold for _, hold in index.holds_on(folder))


def _describe_hold(hold: JsonObject) -> str:
    """Returns the predicate of a sentence about the entity that has this hold on a location: that it lies there, was
    dropped, or is being purged."""
    if purge_began(hold):
        return "is being purged"
    return "was dropped, and its files may lie" if hold.get("state") in ("dropped", "purging") else "lies"


async def _name_of(session: Session, index: Index, entity: str) -> str | None:
    """Returns the name of the table or view with this entity, or the last name of a dropped one; None if the index has
    none. It reads all names of the catalog, which is slow, and is called only to name an entity in a report."""
    for kind in ("relation\n", "tombstone\n"):
        async with aclosing(entries_in(session.state, index, kind)) as entries:
            async for key, entry in entries:
                if entry.get("entity") == entity:
                    return dotted(*name_in(key))
    return None
