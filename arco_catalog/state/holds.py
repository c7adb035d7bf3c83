"""Edits by which entities hold locations and release them (docs/design/state.md#locations). All but `location_holds`
keep the fields that a later version added to a hold or claim."""

from collections.abc import Iterable, Sequence

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.index import Edits, Index, location_key, released_key
from arco_catalog.state.needs import Needs, Steps
from arco_catalog.state.stored_fields import keep_stored_fields

_OWN_FIELDS = frozenset({"entity", "state", "name", "transaction", "task", "shared", "namespace_entity"})
"""The fields that this version writes."""


def location_holds(
    entity: str,
    locations: Iterable[str],
    transaction: str | None = None,
    *,
    name: Sequence[str] = (),
) -> Edits:
    """Returns the index changes by which an entity holds locations; with a transaction, only if that commits. `name`
    has the levels of the entity's namespace and the name, which errors about overlaps show."""
    hold: JsonObject = {"entity": entity, "state": "live"}
    if name:
        hold["name"] = [*name]
    if transaction is not None:
        hold["transaction"] = transaction
    return {location_key(location, entity): hold for location in locations}


def renewed_holds(index: Index, entity: str, locations: Iterable[str], *, name: Sequence[str]) -> Steps[Edits]:
    """Returns the index changes by which an entity with this name holds locations, some of which it may hold already.
    Fields that only the present holds have are kept."""
    return (yield from keep_stored_fields(index, location_holds(entity, locations, name=name)))


def released_holds(
    index: Index,
    entity: str,
    locations: Iterable[str],
    *,
    name: Sequence[str] = (),
    namespace_entity: str | None = None,
) -> Steps[Edits]:
    """Returns the index changes by which a dropped entity releases its locations and leaves a claim on each, because
    its files may still be there. A claim has another key than a hold, and does not stop others from holding the
    location. It has the `name` at the drop and the id of the namespace, on which rights to the files depend."""
    places = [*locations]
    yield Needs(keys=[location_key(place, entity) for place in places])
    claim: JsonObject = {"entity": entity, "state": "dropped"}
    if name:
        claim["name"] = [*name]
    if namespace_entity is not None:
        claim["namespace_entity"] = namespace_entity
    edits: dict[str, JsonObject | None] = {}
    for place in places:
        hold = location_key(place, entity)
        stored = index.get(hold) or {}
        shared: JsonObject = {"shared": True} if stored.get("shared") is True else {}
        edits[hold] = None
        edits[released_key(place, entity)] = {**_later_fields(stored), **shared, **claim}
    return edits


def restored_holds(index: Index, entity: str, locations: Iterable[str], *, name: Sequence[str] = ()) -> Steps[Edits]:
    """Returns the index changes by which an undropped entity holds the locations that its drop released, and its claims
    end."""
    places = [*locations]
    held = yield from reclaimed_holds(index, entity, places, {"state": "live"}, name=name)
    return {**{released_key(place, entity): None for place in places}, **held}


def reclaimed_holds(
    index: Index, entity: str, locations: Sequence[str], state: JsonObject, *, name: Sequence[str] = ()
) -> Steps[Edits]:
    """Returns the index changes by which a dropped entity holds the locations that it released, with the fields of
    `state`. Its claims stay. `name` has the levels of the entity's namespace and the name, for errors about
    overlaps."""
    claims = {place: released_key(place, entity) for place in locations}
    held = location_holds(entity, locations, name=name)
    yield Needs(keys=[*claims.values(), *held])
    edits: dict[str, JsonObject | None] = {}
    for place, claim in claims.items():
        key = location_key(place, entity)
        stored = {**_later_fields(index.get(claim)), **_later_fields(index.get(key))}
        edits[key] = {**stored, **(held[key] or {}), **state}
    return edits


def _later_fields(stored: JsonObject | None) -> JsonObject:
    """Returns the fields of a stored hold or claim that this version of the program does not know; empty for None."""
    return {field: value for field, value in (stored or {}).items() if field not in _OWN_FIELDS}
