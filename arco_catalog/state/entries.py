"""What the registry's index holds: namespaces, tables and views, tombstones, and holds on locations (design.md 5).

Each class reads one entry and keeps its JSON, so that fields which a later version added survive a rewrite.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Literal, Self

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.fields import integer, optional_text, text, texts
from arco_catalog.state.index import (
    Edits,
    Index,
    Namespace,
    location_key,
    locations_at,
    namespace_key,
    relation_key,
    released_key,
)
from arco_catalog.state.locations import Location

Kind = Literal["table", "view"]
Hold = Literal["live", "purging"]


BURIAL = ("namespace", "name", "operation", "sequence", "place", "dropped_ms", "state")
"""The fields that a tombstone has besides those of the entry that it was."""


class Undecided(Exception):
    """What was looked at depends on a transaction: its intent must be decided and settled first (design.md 6.7)."""

    def __init__(self, transaction: str) -> None:
        super().__init__(transaction)
        self.transaction = transaction


@dataclass(frozen=True, slots=True)
class NamespaceEntry:
    """A namespace. Its properties are an immutable value of their own, `value`; its location is repeated here because
    every create needs it."""

    json: JsonObject

    @classmethod
    def new(cls, *, entity: str, value: str, location: str) -> Self:
        """An entry to store."""
        return cls({"entity": entity, "value": value, "location": location})

    def with_value(self, value: str, location: str) -> "NamespaceEntry":
        """The entry after a change of properties."""
        return NamespaceEntry({**self.json, "value": value, "location": location})

    @property
    def entity(self) -> str:
        return text(self.json, "entity")

    @property
    def value(self) -> str:
        return text(self.json, "value")

    @property
    def location(self) -> str:
        return text(self.json, "location")


@dataclass(frozen=True, slots=True)
class RelationEntry:
    """A table or view under its name. `locations` are the normalised locations that its entity holds."""

    json: JsonObject

    @classmethod
    def new(
        cls, *, kind: Kind, entity: str, uuid: str | None, locations: Iterable[str], transaction: str | None = None
    ) -> Self:
        """An entry to store; with a transaction, an intent on the name."""
        json: JsonObject = {
            "type": kind,
            "format": "iceberg",
            "entity": entity,
            "uuid": uuid,
            "locations": [*locations],
        }
        if transaction is not None:
            json["transaction"] = transaction
        return cls(json)

    @property
    def kind(self) -> str:
        return text(self.json, "type")

    @property
    def entity(self) -> str:
        return text(self.json, "entity")

    @property
    def uuid(self) -> str | None:
        return optional_text(self.json, "uuid")

    @property
    def locations(self) -> tuple[str, ...]:
        return texts(self.json, "locations")

    @property
    def transaction(self) -> str | None:
        """The transaction on which this name's meaning anything depends; None for one that is there."""
        return optional_text(self.json, "transaction")

    def standing(self) -> "RelationEntry":
        """This entry, as one that is there. Raises `Undecided` for an intent: a registry commit never acts on those."""
        if self.transaction is not None:
            raise Undecided(self.transaction)
        return self

    def with_locations(self, added: Iterable[str]) -> "RelationEntry":
        """The entry holding further locations."""
        return RelationEntry({**self.json, "locations": [*self.locations, *added]})

    def buried(
        self, *, namespace: Namespace, name: str, operation: str, sequence: int, place: int, at_ms: int, purging: bool
    ) -> JsonObject:
        """The tombstone that keeps what a drop must not lose: entity, pointer and locations (design.md 6.6). `sequence`
        is the registry's at the drop, `place` the drop's among the changes of one commit: clocks don't tell which of
        two came last."""
        return {
            **self.json,
            "namespace": [*namespace],
            "name": name,
            "operation": operation,
            "sequence": sequence,
            "place": place,
            "dropped_ms": at_ms,
            "state": "purging" if purging else "dropped",
        }


def find_namespace(index: Index, namespace: Namespace) -> NamespaceEntry | None:
    """The namespace's entry."""
    entry = index.get(namespace_key(namespace)) if namespace else None
    return None if entry is None else NamespaceEntry(entry)


def find_relation(index: Index, namespace: Namespace, name: str) -> RelationEntry | None:
    """The table or view that the name means."""
    entry = index.get(relation_key(namespace, name))
    return None if entry is None else RelationEntry(entry)


def newest_tombstone(stones: Iterable[JsonObject]) -> JsonObject | None:
    """What was dropped last under a name, of all its tombstones. Those of an earlier version have no place within their
    commit, which one process made: there its clock decides."""
    return max(stones, key=_dropped, default=None)


def _dropped(stone: JsonObject) -> tuple[int, int, int, str]:
    place = stone.get("place")
    known = place if isinstance(place, int) else 0
    return integer(stone, "sequence"), known, integer(stone, "dropped_ms"), text(stone, "entity")


def holds(entity: str, locations: Iterable[str], state: Hold = "live", transaction: str | None = None) -> Edits:
    """Edits by which an entity holds locations, in a state; with a transaction, if that commits."""
    hold: JsonObject = {"entity": entity, "state": state}
    if transaction is not None:
        hold["transaction"] = transaction
    return {location_key(location, entity): hold for location in locations}


def released(entity: str, locations: Iterable[str]) -> Edits:
    """Edits by which a dropped entity gives its locations up, to whoever wants them, and is still known to have files
    there. What anybody may hold is kept apart, so that every hold is in the way of others."""
    edits: dict[str, JsonObject | None] = {}
    for location in locations:
        edits[location_key(location, entity)] = None
        edits[released_key(location, entity)] = {"entity": entity, "state": "dropped"}
    return edits


def held_again(entity: str, locations: Iterable[str], state: Hold) -> Edits:
    """Edits by which an entity takes back what it had given up."""
    places = [*locations]
    gone: Edits = {released_key(location, entity): None for location in places}
    return {**gone, **holds(entity, places, state)}


def overlapping(index: Index, location: Location, *, but: Iterable[str] = (), fresh: str | None = None) -> str | None:
    """An entity that holds a location which equals, contains or lies inside this one: a live table's or a purging
    one's. Those in `but` are not looked at. Raises `Undecided` for a hold that is an intent, and `Unread`.

    Nobody can have named a place that is called by an entity id minted for this very request, `fresh`, or anything
    inside it: then only what contains it is looked at.
    """
    ignored = set(but)
    named = fresh is None or not location.segments[-1:] or not location.segments[-1].endswith(f"-{fresh}")
    inside = [index.scan(locations_at(location.normal))] if named else []
    around = [index.held_at(ancestor.normal) for ancestor in location.ancestors()]
    for _, hold in chain(*inside, *around):
        entity = text(hold, "entity")
        if entity in ignored or hold.get("state") == "dropped":  # as an earlier version kept it
            continue
        transaction = optional_text(hold, "transaction")
        if transaction is not None:
            raise Undecided(transaction)
        return entity
    return None
