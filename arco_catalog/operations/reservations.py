"""Locations that a commit adds to a table: the registry owns the set, so it is told first
(docs/design/state.md#rule-6).

A reservation whose commit never came is given back before the next one is made, and only when no commit can rely on it
any more (docs/decisions/0023).
"""

from collections.abc import Collection, Iterable, Sequence

from arco_catalog.iceberg.errors import BadRequest, CommitStateUnknown
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.names import dotted
from arco_catalog.operations.overlap import refuse_folders, refuse_overlap
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.decisions import settle_names
from arco_catalog.protocol.evidence import fence_pointer
from arco_catalog.protocol.lookup import look_up
from arco_catalog.protocol.name_intents import change_registry
from arco_catalog.state.entries import PendingTransaction, RelationEntry, find_relation, location_holds
from arco_catalog.state.index import Edits, Namespace, location_key, relation_key
from arco_catalog.state.locations import Location
from arco_catalog.state.registry import RegistryState

MAX_NAMED = 16
"""Locations that a commit may name. Each is compared with all that the table holds, and then held as long as the table
is there."""
MAX_HELD = 32
"""Locations that a table or view may hold: each stands in the registry's HEAD."""


def check_named(named: Sequence[str]) -> None:
    """Raises `BadRequest` for more locations than a commit may name."""
    if len(named) > MAX_NAMED:
        raise BadRequest(f"A commit may name at most {MAX_NAMED} locations, not {len(named)}")


def locations_to_reserve(session: Session, entry: RelationEntry, named: Sequence[str]) -> list[Location]:
    """Those of the named locations that the table does not hold yet, or is about to give back. Raises `BadRequest` for
    a forbidden one, and for more than a commit may name."""
    check_named(named)
    leaving = entry.leaving
    held = {location for location in entry.locations if location not in leaving}
    wanted = [session.catalog.locations.check(location) for location in named]
    return [location for location in wanted if not location.inside_any(held)]


def reserved_for(session: Session, entry: RelationEntry, named: Sequence[str]) -> list[str]:
    """The reserved locations that a commit which names these relies on. Raises `BadRequest` as `locations_to_reserve`
    does."""
    wanted = [session.catalog.locations.check(location) for location in named]
    relied_on = {folder for location in wanted for folder in (location.normal, *location.around())}
    return [normal for normal in entry.reserved if normal in relied_on]


async def reserve_locations(
    session: Session, namespace: Namespace, name: str, entity: str, locations: Sequence[Location]
) -> None:
    """Makes a registry commit by which the entity holds these locations too, under a fresh operation id that no slot
    names and that is evidence of nothing. Raises `BadRequest` if one is taken, or if they become too many.

    Does nothing if the name no longer means the entity: the caller plans again.
    """
    reservation = Reservation(session, namespace, name, entity, locations)
    while True:
        try:
            named = await reservation.give_back()
            await reservation.add(named)
            return
        except PendingTransaction as met:
            await settle_names(session, met.transaction)


class Reservation:
    """Locations that a commit needs of one table or view."""

    def __init__(
        self, session: Session, namespace: Namespace, name: str, entity: str, locations: Sequence[Location]
    ) -> None:
        self.session = session
        self.namespace = namespace
        self.name = name
        self.entity = entity
        self.locations = locations

    async def add(self, named: Collection[str]) -> None:
        """Adds the locations; those that a commit has `named` are reserved no longer, but the table's for good."""
        normal = dict.fromkeys(location.normal for location in self.locations)

        def edit(head: RegistryState) -> Edits | None:
            entry = self._entry(head)
            if entry is None:
                return None
            refuse_overlap(self.session, head.index, self.locations, but=[self.entity])
            refuse_folders(self.session, head.index, self.locations, self.namespace)
            held = [*entry.locations, *normal]
            if len(set(held)) > MAX_HELD:
                raise BadRequest(
                    f"{dotted(self.namespace, self.name)} has {len(entry.locations)} locations for its files "
                    f"and may have at most {MAX_HELD}: write to one of those, or create another table"
                )
            reserved = [place for place in entry.reserved if place not in named]
            leaving = {place: release for place, release in entry.leaving.items() if place not in normal}
            return {
                **self._entry_edit(entry.with_locations(held, [*reserved, *normal], leaving)),
                **location_holds(self.entity, normal, name=(*self.namespace, self.name)),
            }

        await change_registry(self.session, "add-locations", self._detail(normal), edit)

    async def give_back(self) -> Collection[str]:
        """Gives back what was reserved for commits that never came. Returns the locations that commits have named.

        First the registry says that they are leaving: a commit whose name is validated from then on can't rely on
        them. Then the pointer is fenced: one that was validated earlier has moved it by now, and so named them, or
        never will.
        """
        state = self.session.state
        head = await state.head()
        entry = await look_up(state, lambda: self._entry(head))
        if entry is None or not entry.reserved:
            return ()
        pointer = await state.pointer(self.entity)
        named = set() if pointer is None else {*pointer.named_locations}
        doubtful = [place for place in entry.reserved if place not in named]
        if not doubtful:
            return named
        try:
            release = self.session.runtime.ulid()
            await self.doubt(doubtful, release)
            named |= {*(await fence_pointer(self.session, self.entity)).named_locations}
            await self.release(release, named)
        except CommitStateUnknown as error:  # a transaction is in the way: the next one tries again
            self.session.drop_write(f"the release of locations of {self.entity}", error)
        return named

    async def doubt(self, doubtful: Sequence[str], release: str) -> None:
        """Says in the registry that these are leaving, by this release."""

        def edit(head: RegistryState) -> Edits | None:
            entry = self._entry(head)
            reserved = set() if entry is None else {*entry.reserved}
            fresh = {place: release for place in doubtful if place in reserved}
            if entry is None or fresh.items() <= entry.leaving.items():
                return None
            return self._entry_edit(entry.with_locations(entry.locations, entry.reserved, {**entry.leaving, **fresh}))

        await change_registry(self.session, "release-locations", self._detail(doubtful), edit)

    async def release(self, release: str, named: Collection[str]) -> None:
        """Only what still leaves by this very release: a commit may have reserved it again, and named it since."""

        def edit(head: RegistryState) -> Edits | None:
            entry = self._entry(head)
            leaving = {} if entry is None else entry.leaving
            mine = {place: by for place, by in leaving.items() if by == release}
            if entry is None or not mine:
                return None
            gone = dict.fromkeys(place for place in mine if place not in named)
            after = entry.with_locations(
                [place for place in entry.locations if place not in gone],
                [place for place in entry.reserved if place not in mine],
                {place: by for place, by in leaving.items() if place not in mine},
            )
            return {**self._entry_edit(after), **{location_key(place, self.entity): None for place in gone}}

        await change_registry(self.session, "release-locations", self._detail([]), edit)

    def _entry(self, head: RegistryState) -> RelationEntry | None:
        """The entry, if the name still means the entity. Raises `PendingTransaction` and `Unread`."""
        entry = find_relation(head.index, self.namespace, self.name)
        return entry if entry is not None and entry.require_committed().entity == self.entity else None

    def _entry_edit(self, entry: RelationEntry) -> Edits:
        return {relation_key(self.namespace, self.name): entry.json}

    def _detail(self, locations: Iterable[str]) -> JsonObject:
        return {
            "namespace": [*self.namespace],
            "name": self.name,
            "entity": self.entity,
            "locations": [*locations],
        }
