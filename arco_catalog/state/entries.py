"""What the registry's index holds: namespaces, tables and views, tombstones, and holds on locations (design.md 5).

Each class reads one entry and keeps its JSON, so that fields which a later version added survive a rewrite.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, Self

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.fields import optional_text, text, texts
from arco_catalog.state.index import Index, Namespace, location_key, locations_at, namespace_key, relation_key
from arco_catalog.state.locations import Location

Kind = Literal["table", "view"]
Hold = Literal["live", "dropped", "purging"]


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
    def new(cls, *, kind: Kind, entity: str, uuid: str | None, locations: Iterable[str]) -> Self:
        """An entry to store."""
        return cls({"type": kind, "format": "iceberg", "entity": entity, "uuid": uuid, "locations": [*locations]})

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

    def with_locations(self, added: Iterable[str]) -> "RelationEntry":
        """The entry holding further locations."""
        return RelationEntry({**self.json, "locations": [*self.locations, *added]})

    def buried(self, *, namespace: Namespace, name: str, operation: str, at_ms: int, purging: bool) -> JsonObject:
        """The tombstone that keeps what a drop must not lose: entity, pointer and locations (design.md 6.6)."""
        return {
            **self.json,
            "namespace": [*namespace],
            "name": name,
            "operation": operation,
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


def holds(entity: str, locations: Iterable[str], state: Hold) -> dict[str, JsonObject | None]:
    """Edits by which an entity holds locations, in a state."""
    return {location_key(location, entity): {"entity": entity, "state": state} for location in locations}


def overlapping(index: Index, location: Location, *, but: Iterable[str] = ()) -> str | None:
    """An entity that holds a location which equals, contains or lies inside this one and may not be shared: a live
    table's or a purging one's. Those in `but` are not looked at."""
    ignored = set(but)
    prefixes = [
        locations_at(location.normal),
        *(f"{locations_at(a.normal.rstrip('/'))}\n" for a in location.ancestors()),
    ]
    for prefix in prefixes:
        for _, hold in index.scan(prefix):
            entity = text(hold, "entity")
            if entity not in ignored and hold.get("state") != "dropped":
                return entity
    return None
