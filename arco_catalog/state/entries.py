"""The entries of the registry's index: namespaces, relations (tables, views, generic tables, semantic models),
tombstones, and holds on locations (docs/design/registry.md).

Each class wraps the JSON of one entry, so that a rewrite keeps fields that a later version added.
"""

from collections.abc import Iterable, Mapping, Sequence
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
from storage_backends.lazy_dataclass import dataclass

DescribedKind = Literal["generic-table", "semantic-model"]
"""The kinds of entity of which the catalog stores only a description: a table of another format than Iceberg, and a
document about the meaning of tables and views."""
DESCRIBED_KINDS: tuple[DescribedKind, ...] = get_args(DescribedKind)
Kind = Literal["table", "view"] | DescribedKind
"""The kinds of entity that a name in a namespace can have."""

NO_LOANS = Loans()

TOMBSTONE_FIELDS = (
    *("namespace", "namespace_entity", "name", "operation", "sequence", "place", "dropped_ms", "state"),
    *("purge_requested", "task", "purge_after", "task_version", "begun_version", "purged_ms"),
)
"""The fields of a tombstone that the entry before the drop does not have."""


class PendingTransaction(Exception):
    """An entry of the index is an intent of a transaction, which must be decided and settled first
    (docs/design/transaction.md)."""

    def __init__(self, transaction: str) -> None:
        super().__init__(transaction)
        self.transaction = transaction


@dataclass(frozen=True, slots=True)
class NamespaceEntry:
    """The registry's entry of a namespace. The properties are in an immutable object with the id `value`. The location
    is repeated here, because every create of a table needs it."""

    json: JsonObject

    @classmethod
    def new(cls, *, entity: str, value: str, location: str) -> Self:
        """Returns the entry of a new namespace with this entity id and location. `value` is the id of its
        properties."""
        return cls({"entity": entity, "value": value, "location": location})

    def with_value(self, value: str, location: str) -> "NamespaceEntry":
        """Returns the namespace's entry after a change of its properties, with this location: `value` is the id of the
        new properties."""
        return NamespaceEntry({**self.json, "value": value, "location": location})

    def with_protection(self, protected: bool) -> "NamespaceEntry":
        """Returns the namespace's entry with the mark of a protected namespace, or without it."""
        entry = {name: value for name, value in self.json.items() if name != "protected"}
        return NamespaceEntry({**entry, "protected": True} if protected else entry)

    @property
    def is_protected(self) -> bool:
        """Whether the properties with the id `value` have `arco.protected=true`: repeated here, so that a drop reads no
        properties."""
        return self.json.get("protected") is True

    @property
    def entity(self) -> str:
        """The namespace's entity id. Raises `InternalError` if the entry has none."""
        return text(self.json, "entity")

    @property
    def value(self) -> str:
        """The id of the stored object with the namespace's properties. Raises `InternalError` if the entry has none."""
        return text(self.json, "value")

    @property
    def location(self) -> str:
        """The namespace's location, inside which the default locations of tables and child namespaces are. Raises
        `InternalError` if the entry has none."""
        return text(self.json, "location")


@dataclass(frozen=True)  # no slots, which cached properties can't have
class RelationEntry:
    """The registry's entry of the name of a table, view, generic table or semantic model: the entity that has it.
    `locations` are the normalised locations that the entity holds.

    Two fields describe some of the `locations`. Those in `reserved` were added for a commit that may not have been
    made. `leaving` maps a location to the id of the release that is about to remove it; no commit may rely on such a
    location (docs/decisions/0023).
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
        """Returns the entry of a new table or view; with a transaction, an intent on the name. With `made` the catalog
        generated the first of the locations for this entity alone. `borrowed` are the loans of files from elsewhere."""
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
        """Returns the entry of a new generic table or semantic model. Its description is an immutable object with the
        id `value`; `written_in` is the format of the table or document."""
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
        """The id of the value that describes a generic table or a semantic model. Raises `InternalError` if the entry
        has none, as that of a table or view."""
        return text(self.json, "value")

    def with_value(self, value: str) -> "RelationEntry":
        """Returns the entry of a generic table or semantic model with another description, the one with the id
        `value`."""
        return RelationEntry({**self.json, "value": value})

    @property
    def governance(self) -> dict[str, str]:
        """Owner, quality and tags of a table or view (planning/governance.py); empty if none are set. Raises
        `InternalError` if one is no string, or the field no object."""
        return string_map(self.json, "governance")

    def with_governance(self, governance: Mapping[str, str]) -> "RelationEntry":
        """Returns the entry of a table or view with another governance; an empty one removes it."""
        entry = {name: value for name, value in self.json.items() if name != "governance"}
        return RelationEntry({**entry, "governance": {**governance}} if governance else entry)

    @cached_property
    def kind(self) -> str:
        """The kind of the relation: `table`, `view`, `generic-table` or `semantic-model`. Raises `InternalError` if the
        entry has none."""
        return text(self.json, "type")

    @cached_property
    def entity(self) -> str:
        """The relation's entity id, which a rename does not change. Raises `InternalError` if the entry has none."""
        return text(self.json, "entity")

    @property
    def uuid(self) -> str | None:
        """The UUID in the metadata of the table or view; None if there is none, as for a generic table."""
        return optional_text(self.json, "uuid")

    @cached_property
    def locations(self) -> tuple[str, ...]:
        """The normalised locations that the entity holds, including the reserved ones; empty if the entry has none."""
        return texts(self.json, "locations")

    @property
    def borrowed(self) -> tuple[str, ...]:
        """Folders outside of the entity's locations from which its metadata takes files (state/borrowed.py)."""
        return texts(self.json, "borrowed")

    @property
    def loans(self) -> Loans:
        """The borrowed folders, and which of them include all folders below."""
        return Loans.parse(self.json)

    @property
    def made(self) -> bool:
        """Whether the catalog generated the first of the entity's locations for it alone: no request had named that
        location, and no create was staged there."""
        return self.json.get("made") is True

    @property
    def shared(self) -> bool:
        """Whether the entry has the mark that another request has named, after the create, the location that the
        catalog generated for the entity. The mark may be in a hold or claim instead (planning/shared_places.py)."""
        return self.json.get("shared") is True

    @property
    def reserved(self) -> tuple[str, ...]:
        """The locations that were added for a commit that may not have applied."""
        return texts(self.json, "reserved")

    @property
    def leaving(self) -> dict[str, str]:
        """The locations that are about to be removed, with the id of the release that removes each; no commit may rely
        on them."""
        return {place: release for place, release in mapping(self.json, "leaving").items() if isinstance(release, str)}

    @property
    def transaction(self) -> str | None:
        """The transaction of which this entry is an intent; None for a committed entry."""
        return optional_text(self.json, "transaction")

    def require_committed(self) -> "RelationEntry":
        """Returns this entry if it is committed. Raises `PendingTransaction` for an intent, which only the
        settlement of the transaction may change."""
        if self.transaction is not None:
            raise PendingTransaction(self.transaction)
        return self

    def with_locations(
        self, locations: Iterable[str], reserved: Iterable[str], leaving: Mapping[str, str]
    ) -> "RelationEntry":
        """Returns the entry of a table or view with these locations in place of its own, without repetitions, and with
        these reserved and leaving ones, which must be among `locations`, in place of the present ones."""
        entry = {name: value for name, value in self.json.items() if name not in ("reserved", "leaving")}
        entry["locations"] = [*dict.fromkeys(locations)]
        if kept := [*dict.fromkeys(reserved)]:
            entry["reserved"] = [*kept]
        if leaving:
            entry["leaving"] = {**leaving}
        return RelationEntry(entry)

    def with_loans(self, loans: Loans) -> "RelationEntry":
        """Returns the entry of a table or view with these loans in place of its own."""
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
        """Returns the tombstone of this entry after a drop. It keeps all fields of the entry, such as the entity id and
        the locations; the pointer is not in it, but is left in the store for a restore
        (docs/design/registry.md#rule-5). `namespace_entity` is the id of the namespace, whose name may pass
        to another one, or None. `sequence` is the registry's at the drop, and `place` the number of the drop among the
        changes of one commit: these order drops, because clocks are not exact enough. `purge` records that the client
        requested a purge; one begins only with a task (tombstone.py)."""
        purge_field: JsonObject = {"purge_requested": True} if purge else {}
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
            **purge_field,
        }


def described_kind(relation: JsonObject) -> DescribedKind | None:
    """Returns the kind of an entry or tombstone if it has only a description; None for a table or view."""
    return next((kind for kind in DESCRIBED_KINDS if kind == relation.get("type")), None)


def has_pointer(relation: JsonObject) -> bool:
    """Whether the entity of an entry or tombstone has a pointer. An entity with only a description has none, and a
    table that follows another catalog's has none (followed.py)."""
    return described_kind(relation) is None and "follows" not in relation


def find_namespace(index: Index, namespace: Namespace) -> NamespaceEntry | None:
    """Returns the index entry of a namespace, None if it does not exist or is the root, which has no entry."""
    entry = index.get(namespace_key(namespace)) if namespace else None
    return None if entry is None else NamespaceEntry(entry)


def find_relation(index: Index, namespace: Namespace, name: str) -> RelationEntry | None:
    """Returns the index entry of a name in a namespace, which is that of a table, view, generic table or semantic
    model, also an intent of a transaction; None if there is none."""
    entry = index.get(relation_key(namespace, name))
    return None if entry is None else RelationEntry(entry)


def find_kind(index: Index, namespace: Namespace, name: str, kind: str) -> RelationEntry | None:
    """Returns the index entry of a name in a namespace, also an intent of a transaction, if it is of this kind; None if
    it is of another kind, or there is none."""
    entry = find_relation(index, namespace, name)
    return entry if entry is not None and entry.kind == kind else None


def newest_tombstone(tombstones: Iterable[JsonObject]) -> JsonObject | None:
    """Returns the tombstone of the last drop among all tombstones of a name; None for no tombstones."""
    return max(tombstones, key=order_of_drop, default=None)


def order_of_drop(tombstone: JsonObject) -> tuple[int, int, int, str]:
    """Returns the sort key by which drops of one name are ordered; the last drop has the greatest. Tombstones of an
    earlier version have no `place` in their commit. One process made such a commit, so its clock decides."""
    place = tombstone.get("place")
    known = place if isinstance(place, int) else 0
    return integer(tombstone, "sequence"), known, integer(tombstone, "dropped_ms"), text(tombstone, "entity")


def purge_began(tombstone_or_hold: JsonObject) -> bool:
    """Whether the purge of a dropped table is under way, given the table's tombstone or hold on a location: False
    before the purge and after it. An earlier version has written the state `purging` for every drop with a purge, and
    purged nothing: without a task that state means a plain drop."""
    return tombstone_or_hold.get("state") == "purging" and "task" in tombstone_or_hold


def purge_requested(tombstone: JsonObject) -> bool:
    """Whether the drop that has written this tombstone requested a purge; True also for the state `purging`, which
    earlier versions wrote instead."""
    return tombstone.get("purge_requested") is True or tombstone.get("state") == "purging"


@dataclass(frozen=True, slots=True)
class Holder:
    """The entity that holds a location, and whether a purge of the entity is under way. `name` is the name that it had
    when it took the hold or was last renamed; empty if an earlier version has written the hold without one."""

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
    """Returns a holder of a location that equals, contains or lies inside this one; None if there is none. A holder is
    a live entity, or one whose purge is under way. Entities in `but` are ignored, and with `purging_only` also live
    ones. Raises `PendingTransaction` if the hold that it finds is an intent.

    `fresh` is an entity id that this request generated. No other entity can hold a location that ends in it, or one
    inside, so for such a location only those that contain it are searched.
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
    """An entity that held a location when it was dropped. `name` is the name at the drop, with the namespace's levels
    first, and `namespace_entity` the id of the namespace. In a claim or hold of an older version the name may be
    missing (empty), and the id (None)."""

    entity: str
    name: tuple[str, ...] = ()
    namespace_entity: str | None = None

    @property
    def namespace(self) -> Namespace:
        """The namespace in which the entity was when it was dropped; empty if the name is not known."""
        return self.name[:-1]

    @classmethod
    def of(cls, claim: JsonObject) -> Self:
        """Reads a former holder from the claim that its drop left on a location."""
        return cls(text(claim, "entity"), texts(claim, "name"), optional_text(claim, "namespace_entity"))


def dropped_at(index: Index, location: Location) -> Steps[Sequence[FormerHolder]]:
    """Returns the dropped entities that held a location which equals, contains or lies inside this one: each once, by
    entity id. Left out are entities that were purged, or of which the tombstone was collected."""
    around = [*location.around()]
    released = [released_at(location.normal), *(released_key(folder, "") for folder in around)]
    yield Needs(scans=[Scan(prefix) for prefix in (*released, locations_at(location.normal))], holds=around)
    claims = chain(*(index.scan(prefix) for prefix in released))
    holds = chain(index.scan(locations_at(location.normal)), *(index.holds_on(folder) for folder in around))
    earlier = ((key, hold) for key, hold in holds if _dropped_by_earlier(hold))
    former = {holder.entity: holder for _, claim in chain(claims, earlier) for holder in [FormerHolder.of(claim)]}
    return [former[entity] for entity in sorted(former)]


def _dropped_by_earlier(hold: JsonObject) -> bool:
    """Whether a hold is that of a dropped entity without a purge under way, which an earlier version stored among the
    holds of live ones."""
    return hold.get("state") in ("dropped", "purging") and not purge_began(hold)


def purging_at(index: Index, location: Location, entity: str) -> Steps[str | None]:
    """Returns an entity other than `entity` whose purge is under way and includes this location or one around it; None
    if there is none."""
    paths = [location.normal, *location.around()]
    yield Needs(holds=paths)
    holds = (hold for each in paths for _, hold in index.holds_on(each))
    return next((text(hold, "entity") for hold in holds if text(hold, "entity") != entity and purge_began(hold)), None)


def held_by_another(index: Index, file: Location, entity: str) -> Steps[bool]:
    """Whether an entity other than `entity` holds a folder that contains this file, or held one when it was dropped and
    has a claim on it, until a purge ends or the tombstone is collected."""
    folders = [*file.around()]
    given_up = [released_key(folder, "") for folder in folders]
    yield Needs(holds=folders, scans=[Scan(prefix) for prefix in given_up])
    holds = chain(*(index.holds_on(folder) for folder in folders), *(index.scan(prefix) for prefix in given_up))
    return any(text(hold, "entity") != entity for _, hold in holds)
