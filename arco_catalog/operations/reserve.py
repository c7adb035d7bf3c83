"""Locations that a commit adds to a table: the registry owns the set, so it is told first (design.md 5)."""

from collections.abc import Iterable, Sequence

from arco_catalog.iceberg.errors import BadRequest, CommitFailed
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.catalog import Session
from arco_catalog.operations.decisions import settle_names
from arco_catalog.operations.name_intents import change_registry
from arco_catalog.state.entries import RelationEntry, Undecided, find_relation, holds, overlapping
from arco_catalog.state.index import Edits, Index, Namespace, relation_key
from arco_catalog.state.locations import Location
from arco_catalog.state.registry import Head

MAX_NAMED = 16
"""Locations that a commit may name. Each is compared with all that the table holds, and then held as long as the table
is there."""


def unheld(session: Session, entry: RelationEntry, named: Sequence[str]) -> list[Location]:
    """Those of the named locations that the table does not hold yet. Raises `BadRequest` for a forbidden one, and for
    more than a commit may name."""
    if len(named) > MAX_NAMED:
        raise BadRequest(f"A commit may name at most {MAX_NAMED} locations, not {len(named)}")
    held = [Location.of_normal(location) for location in entry.locations]
    wanted = [session.catalog.locations.check(location) for location in named]
    return [location for location in wanted if not any(location.inside(own) for own in held)]


def refuse_overlap(
    session: Session,
    index: Index,
    locations: Iterable[Location],
    *,
    but: Sequence[str] = (),
    fresh: str | None = None,
) -> str | None:
    """What to tell a client whose locations are taken, None if they are free or may be shared. `fresh` is an entity id
    minted for this request (see `overlapping`)."""
    if session.settings.allow_location_overlap:
        return None
    for location in locations:
        if overlapping(index, location, but=but, fresh=fresh) is not None:
            return f"Location {location.uri} overlaps the location of another table"
    return None


async def reserve(
    session: Session, namespace: Namespace, name: str, entity: str, locations: Sequence[Location]
) -> None:
    """Makes a registry commit by which the entity holds these locations too, under a fresh operation id that no slot
    names and that is evidence of nothing. Raises `CommitFailed` if one is taken.

    Does nothing if the name no longer means the entity: whoever planned on that plans again.
    """
    normal = [location.normal for location in locations]

    def edit(head: Head) -> Edits | None:
        entry = find_relation(head.index, namespace, name)
        if entry is None or entry.standing().entity != entity:
            return None
        taken = refuse_overlap(session, head.index, locations, but=[entity])
        if taken is not None:
            raise CommitFailed(taken)
        return {relation_key(namespace, name): entry.with_locations(normal).json, **holds(entity, normal, "live")}

    detail: JsonObject = {"namespace": [*namespace], "name": name, "entity": entity, "locations": [*normal]}
    while True:
        try:
            await change_registry(session, "add-locations", detail, edit)
            return
        except Undecided as met:
            await settle_names(session, met.transaction)
