"""What the registry's index holds: namespaces, relations (tables, views, generic tables, semantic models), tombstones,
and holds on locations (docs/design/registry.md).

Each class reads one entry and keeps its JSON, so that fields which a later version added survive a rewrite.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Literal, Self, get_args

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.borrowed import Loans
from arco_catalog.state.fields import integer, mapping, optional_text, string_map, text, texts
from arco_catalog.state.index import (
    Index,
    Namespace,
    locations_at,
    namespace_key,
    relation_key,
    released_at,
    released_key,
)
from arco_catalog.state.locations import Location
from arco_catalog.state.needs import Needs, Scan, Steps

DescribedKind = Literal["generic-table", "semantic-model"]
"""What the catalog keeps a description of, and nothing else: a table of another format, and a document that says what
tables and views mean."""
DESCRIBED_KINDS: tuple[DescribedKind, ...] = get_args(DescribedKind)
Kind = Literal["table", "view"] | DescribedKind
"""What a name of a namespace can mean."""

NO_LOANS = Loans()

TOMBSTONE_FIELDS = (
    *("namespace", "namespace_entity", "name", "operation", "sequence", "place", "dropped_ms", "state"),
    *("purge_requested", "task", "purge_after", "task_version", "begun_version", "purged_ms"),
)
"""The fields that a tombstone has besides those of the entry that it was."""


class PendingTransaction(Exception):
    """An entry is the intent of a transaction, which must be decided and settled first (docs/design/transaction.md)."""

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


@dataclass(frozen=True)  # without slots: what is read again and again is cached
class RelationEntry:
    """What a name means. `locations` are the normalised locations that its entity holds.

    Those in `reserved` were added for a commit that is not known to have been made; those of them in `leaving` are
    about to be given back by the release whose id stands there, and no commit may rely on them (docs/decisions/0023).
    """

    json: JsonObject

    @classmethod
    def new(
        cls,
        *,
        kind: Kind,
        entity: str,
        uuid: str | None,
        locations: Iterable[str],
        borrowed: Loans = NO_LOANS,
        made: bool = False,
        transaction: str | None = None,
    ) -> Self:
        """An entry of a table or view to store; with a transaction, an intent on the name."""
        json: JsonObject = {
            "type": kind,
            "format": "iceberg",
            "entity": entity,
            "uuid": uuid,
            "locations": [*locations],
        }
        json |= borrowed.to_json()
        if made:
            json["made"] = True
        if transaction is not None:
            json["transaction"] = transaction
        return cls(json)

    @classmethod
    def described(
        cls, kind: DescribedKind, *, written_in: str, entity: str, locations: Iterable[str] = (), value: str
    ) -> Self:
        """An entry to store of what has a description alone, which is an immutable value of its own, `value`."""
        json: JsonObject = {
            "type": kind,
            "format": written_in,
            "entity": entity,
            "uuid": None,
            "locations": [*locations],
            "value": value,
        }
        return cls(json)

    @property
    def value(self) -> str:
        """The value that describes a generic table or a semantic model."""
        return text(self.json, "value")

    def with_value(self, value: str) -> "RelationEntry":
        """The entry with another description."""
        return RelationEntry({**self.json, "value": value})

    @property
    def governance(self) -> dict[str, str]:
        """Owner, quality and tags of a table or view (planning/governance.py). Raises `InternalError`."""
        return string_map(self.json, "governance")

    def with_governance(self, governance: Mapping[str, str]) -> "RelationEntry":
        """The entry with another governance."""
        entry = {name: value for name, value in self.json.items() if name != "governance"}
        return RelationEntry({**entry, "governance": {**governance}} if governance else entry)

    @cached_property
    def kind(self) -> str:
        return text(self.json, "type")

    @cached_property
    def entity(self) -> str:
        return text(self.json, "entity")

    @property
    def uuid(self) -> str | None:
        return optional_text(self.json, "uuid")

    @cached_property
    def locations(self) -> tuple[str, ...]:
        return texts(self.json, "locations")

    @property
    def borrowed(self) -> tuple[str, ...]:
        """Folders outside of these from which its metadata takes files (state/borrowed.py)."""
        return texts(self.json, "borrowed")

    @property
    def loans(self) -> Loans:
        """The borrowed locations, and which of them stand for all below."""
        return Loans.parse(self.json)

    @property
    def made(self) -> bool:
        """Whether the catalog made the first of its locations for it alone: nobody had named that, and no create was
        staged there."""
        return self.json.get("made") is True

    @property
    def shared(self) -> bool:
        """Whether somebody else has named that place since (planning/shared_places.py)."""
        return self.json.get("shared") is True

    @property
    def reserved(self) -> tuple[str, ...]:
        return texts(self.json, "reserved")

    @property
    def leaving(self) -> dict[str, str]:
        return {place: release for place, release in mapping(self.json, "leaving").items() if isinstance(release, str)}

    @property
    def transaction(self) -> str | None:
        """The transaction of which this entry is an intent; None for a committed entry."""
        return optional_text(self.json, "transaction")

    def require_committed(self) -> "RelationEntry":
        """This entry, if it is committed. Raises `PendingTransaction` for an intent: a registry commit never acts on
        one."""
        if self.transaction is not None:
            raise PendingTransaction(self.transaction)
        return self

    def with_locations(
        self, locations: Iterable[str], reserved: Iterable[str], leaving: Mapping[str, str]
    ) -> "RelationEntry":
        """The entry holding these locations instead, the last two among them."""
        entry = {name: value for name, value in self.json.items() if name not in ("reserved", "leaving")}
        entry["locations"] = [*dict.fromkeys(locations)]
        if kept := [*dict.fromkeys(reserved)]:
            entry["reserved"] = [*kept]
        if leaving:
            entry["leaving"] = {**leaving}
        return RelationEntry(entry)

    def with_loans(self, loans: Loans) -> "RelationEntry":
        """The entry borrowing from these folders instead."""
        entry = {name: value for name, value in self.json.items() if name not in ("borrowed", "borrowed_files")}
        return RelationEntry({**entry, **loans.to_json()})

    def tombstone(
        self,
        *,
        namespace: Namespace,
        namespace_entity: str | None,
        name: str,
        operation: str,
        sequence: int,
        place: int,
        at_ms: int,
        purge: bool,
    ) -> JsonObject:
        """The tombstone that keeps what a drop must not lose: entity, pointer and locations
        (docs/design/registry.md#rule-5). `namespace_entity` is the namespace's id: another may get its name.
        `sequence` is the registry's at the drop, `place` the drop's among the changes
        of one commit: clocks don't tell which of two came last. That a purge was asked for is remembered; without a
        task (tombstone.py) none begins."""
        asked: JsonObject = {"purge_requested": True} if purge else {}
        dropped_from: JsonObject = {} if namespace_entity is None else {"namespace_entity": namespace_entity}
        return {
            **self.json,
            "namespace": [*namespace],
            **dropped_from,
            "name": name,
            "operation": operation,
            "sequence": sequence,
            "place": place,
            "dropped_ms": at_ms,
            "state": "dropped",
            **asked,
        }


def described_kind(relation: JsonObject) -> DescribedKind | None:
    """The kind of an entry, or of a tombstone, if it is of those that have a description alone."""
    return next((kind for kind in DESCRIBED_KINDS if kind == relation.get("type")), None)


def has_pointer(relation: JsonObject) -> bool:
    """Whether the entity of an entry, or of a tombstone, has a pointer: what has a description alone has none, nor has
    a table that follows another catalog's (followed.py)."""
    return described_kind(relation) is None and "follows" not in relation


def find_namespace(index: Index, namespace: Namespace) -> NamespaceEntry | None:
    """The namespace's entry."""
    entry = index.get(namespace_key(namespace)) if namespace else None
    return None if entry is None else NamespaceEntry(entry)


def find_relation(index: Index, namespace: Namespace, name: str) -> RelationEntry | None:
    """What the name means."""
    entry = index.get(relation_key(namespace, name))
    return None if entry is None else RelationEntry(entry)


def find_kind(index: Index, namespace: Namespace, name: str, kind: str) -> RelationEntry | None:
    """What the name means, if that is of this kind; None if it is of another, or nothing."""
    entry = find_relation(index, namespace, name)
    return entry if entry is not None and entry.kind == kind else None


def newest_tombstone(tombstones: Iterable[JsonObject]) -> JsonObject | None:
    """What was dropped last under a name, of all its tombstones. Those of an earlier version have no place within their
    commit, which one process made: there its clock decides."""
    return max(tombstones, key=order_of_drop, default=None)


def order_of_drop(tombstone: JsonObject) -> tuple[int, int, int, str]:
    """By which drops under one name are ordered, the last being the greatest."""
    place = tombstone.get("place")
    known = place if isinstance(place, int) else 0
    return integer(tombstone, "sequence"), known, integer(tombstone, "dropped_ms"), text(tombstone, "entity")


def purge_began(tombstone_or_hold: JsonObject) -> bool:
    """Whether a tombstone, or its hold on a location, is of a purge that has begun. An earlier version wrote `purging`
    at every drop that asked for a purge, and purged nothing: without a task that is a plain drop."""
    return tombstone_or_hold.get("state") == "purging" and "task" in tombstone_or_hold


def purge_requested(tombstone: JsonObject) -> bool:
    """Whether the drop that left this tombstone asked for a purge."""
    return tombstone.get("purge_requested") is True or tombstone.get("state") == "purging"


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a location, and whether its purge has begun. `name` is what it was called when it took hold, or was
    renamed; empty where an earlier version did not say."""

    entity: str
    name: tuple[str, ...] = ()
    purging: bool = False


def overlapping(
    index: Index,
    location: Location,
    *,
    but: Iterable[str] = (),
    fresh: str | None = None,
    purging_only: bool = False,
) -> Steps[Holder | None]:
    """Who holds a location which equals, contains or lies inside this one: a live table's, or one whose purge has
    begun. Those in `but` are not looked at, nor, with `purging_only`, live ones. Raises `PendingTransaction` for a hold
    that is an intent.

    `fresh` is an entity id made for this very request. Nobody can know a location that ends in it, or hold anything
    inside: there only the locations that contain it are looked at.
    """
    ignored = set(but)

    def in_the_way(hold: JsonObject) -> bool:
        if text(hold, "entity") in ignored or _dropped_by_earlier(hold):
            return False
        return purge_began(hold) or not purging_only

    named = fresh is None or not location.named_after(fresh)
    inside, around = [locations_at(location.normal)] if named else [], [*location.around()]
    yield Needs(scans=[Scan(prefix, in_the_way) for prefix in inside])
    holds = (hold for prefix in inside for _, hold in index.scan(prefix))
    found = next(filter(in_the_way, holds), None)
    if found is None:
        yield Needs(holds=around)
        found = next(filter(in_the_way, (hold for folder in around for _, hold in index.holds_on(folder))), None)
    if found is None:
        return None
    transaction = optional_text(found, "transaction")
    if transaction is not None:
        raise PendingTransaction(transaction)
    return Holder(text(found, "entity"), texts(found, "name"), purge_began(found))


@dataclass(frozen=True, slots=True)
class FormerHolder:
    """An entity that held a location when it was dropped. `name` is its name then, and `namespace_entity` the id of the
    namespace that it was dropped from; None in a claim older than this field."""

    entity: str
    name: tuple[str, ...] = ()
    namespace_entity: str | None = None

    @property
    def namespace(self) -> Namespace:
        """The namespace that it was dropped from."""
        return self.name[:-1]

    @classmethod
    def of(cls, claim: JsonObject) -> Self:
        """Reads what a drop left on a location."""
        return cls(text(claim, "entity"), texts(claim, "name"), optional_text(claim, "namespace_entity"))


def dropped_at(index: Index, location: Location) -> Steps[Sequence[FormerHolder]]:
    """The entities that held, when they were dropped, a location which equals, contains or lies inside this one."""
    around = [*location.around()]
    released = [released_at(location.normal), *(released_key(folder, "") for folder in around)]
    yield Needs(scans=[Scan(prefix) for prefix in (*released, locations_at(location.normal))], holds=around)
    claims = chain(*(index.scan(prefix) for prefix in released))
    holds = chain(index.scan(locations_at(location.normal)), *(index.holds_on(folder) for folder in around))
    earlier = ((key, hold) for key, hold in holds if _dropped_by_earlier(hold))
    former = {holder.entity: holder for _, claim in chain(claims, earlier) for holder in [FormerHolder.of(claim)]}
    return [former[entity] for entity in sorted(former)]


def _dropped_by_earlier(hold: JsonObject) -> bool:
    """Whether a hold is a dropped entity's, as an earlier version kept them among those of live ones."""
    return hold.get("state") in ("dropped", "purging") and not purge_began(hold)


def purging_at(index: Index, location: Location, entity: str) -> Steps[str | None]:
    """Another entity that is being purged at this location or around it."""
    paths = [location.normal, *location.around()]
    yield Needs(holds=paths)
    holds = (hold for each in paths for _, hold in index.holds_on(each))
    return next((text(hold, "entity") for hold in holds if text(hold, "entity") != entity and purge_began(hold)), None)


def held_by_another(index: Index, file: Location, entity: str) -> Steps[bool]:
    """Whether anybody but this entity holds a folder of this file, or held it when it was dropped."""
    folders = [*file.around()]
    given_up = [released_key(folder, "") for folder in folders]
    yield Needs(holds=folders, scans=[Scan(prefix) for prefix in given_up])
    holds = chain(*(index.holds_on(folder) for folder in folders), *(index.scan(prefix) for prefix in given_up))
    return any(text(hold, "entity") != entity for _, hold in holds)
