"""Reserves locations for a table in the registry, before a commit that names them moves the table's pointer
(planning/reserved_locations.py).

The commit may then fail, and leave a reservation that is not used. The table's next reservation first gives that back,
once no commit can rely on it any more (docs/decisions/0023).
"""

from collections.abc import Collection, Iterable, Sequence

from arco_catalog.iceberg.errors import BadRequest, CommitStateUnknown
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.planning.borrowing import borrow
from arco_catalog.planning.names import dotted
from arco_catalog.planning.overlap import check_choice, refuse_folders, refuse_overlap
from arco_catalog.planning.relation_change import MissingLocations
from arco_catalog.planning.reserved_locations import MAX_HELD
from arco_catalog.planning.shared_places import shared_marks
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.decisions import settle_names
from arco_catalog.protocol.evidence import fence_pointer
from arco_catalog.protocol.internal_commits import change_registry
from arco_catalog.protocol.lookup import carry_out
from arco_catalog.state.borrowed import renewed_loans
from arco_catalog.state.entries import PendingTransaction, RelationEntry, find_relation
from arco_catalog.state.holds import renewed_holds
from arco_catalog.state.index import Edits, Namespace, location_key, relation_key
from arco_catalog.state.locations import Location
from arco_catalog.state.needs import Needs, Steps
from arco_catalog.state.registry import RegistryState


async def reserve_locations(session: Session, namespace: Namespace, name: str, missing: MissingLocations) -> None:
    """Makes a registry commit that adds the `missing` locations to those that the entity holds, and the `missing` paths
    to those from which it takes files; before it adds locations, it gives back reserved ones that no commit has used.
    The operation id is a fresh one that no slot names, so it is never evidence of the request. Raises `BadRequest` if a
    location is taken, or is or contains the folder of a namespace, if files at a path are being deleted, if there are
    too many paths, or if the entity would hold more than `MAX_HELD`; `Forbidden` if the caller may not choose a
    location or take files from a path, and as `change_registry` does.

    A transaction that has an intent on the name is first waited for and settled. Does nothing if the entity does not
    have the name any more: the caller plans again.
    """
    reservation = Reservation(session, namespace, name, missing.entity, missing.locations, missing.borrowed)
    while True:
        try:
            named = await reservation.give_back() if missing.locations else ()
            await reservation.add(named)
            return
        except PendingTransaction as met:
            await settle_names(session, met.transaction)


class Reservation:
    """The reservation of locations that a commit of one table or view names, and that its entity does not hold yet; and
    of `borrowed` directories from which it takes files, and which are not in the registry yet. These directories stay
    in the registry, whatever becomes of the commit."""

    def __init__(
        self,
        session: Session,
        namespace: Namespace,
        name: str,
        entity: str,
        locations: Sequence[Location],
        borrowed: Sequence[Location] = (),
    ) -> None:
        self.session = session
        self.namespace = namespace
        self.name = name
        self.entity = entity
        self.locations = locations
        self.borrowed = borrowed

    async def add(self, named: Collection[str]) -> None:
        """Adds, by a registry commit, the reservation's locations to those that the table holds, as reserved, and
        `borrowed` to the paths from which it takes files. Locations that commits have `named` are no longer reserved:
        the table keeps them. Does nothing if the name no longer means the table. Raises as `reserve_locations` does,
        and `PendingTransaction`."""
        added = dict.fromkeys(location.normal for location in self.locations)

        def edit(head: RegistryState) -> Steps[Edits | None]:
            entry = yield from self._entry(head)
            if entry is None:
                return None
            borrowed = yield from borrow(
                self.session.context, head.index, entry.loans, self.borrowed, self.namespace, self.entity
            )
            yield from check_choice(self.session.context, head.index, self.locations, self.namespace)
            yield from refuse_overlap(self.session.context, head.index, self.locations, but=[self.entity])
            yield from refuse_folders(self.session.context, head.index, self.locations, self.namespace)
            held = [*entry.locations, *added]
            if len(set(held)) > MAX_HELD:
                raise BadRequest(
                    f"{dotted(self.namespace, self.name)} would have {len(set(held))} locations for its files, and may "
                    f"have at most {MAX_HELD}: use one of the {len(entry.locations)} that it has, or create another "
                    "table or view"
                )
            reserved = [place for place in entry.reserved if place not in named]
            leaving = {place: release for place, release in entry.leaving.items() if place not in added}
            marks = yield from shared_marks(self.session.context, head.index, self.locations, entity=self.entity)
            grown = entry.with_locations(held, [*reserved, *added], leaving).with_loans(borrowed)
            name = (*self.namespace, self.name)
            lent = yield from renewed_loans(head.index, self.entity, entry.borrowed, borrowed)
            renewed = yield from renewed_holds(head.index, self.entity, added, name=name)
            return {
                **marks,
                **self._entry_edit(grown),
                **lent,
                **renewed,
            }

        await change_registry(self.session, "add-locations", self._detail(added), edit)

    async def give_back(self) -> Collection[str]:
        """Gives back what was reserved for commits that were never made. Returns the locations that commits have named;
        empty if the table has none reserved, or does not have the name any more. If that has an unknown outcome, which
        is logged, the next reservation tries again, and the locations that are known as named by then are returned.

        First the registry marks the locations as leaving: a commit that validates its name from now on does not rely on
        them. Then the pointer is fenced: a commit that validated its name earlier has either moved the pointer by now,
        and so named the locations, or can't move it any more. Then the registry removes what was not named.
        """
        state = self.session.state
        head = await state.head()
        entry = await carry_out(state, head.index, self._entry(head))
        if entry is None or not entry.reserved:
            return ()
        pointer = await state.pointer(self.entity)
        named = set() if pointer is None else {*pointer.named_locations}
        unnamed = [place for place in entry.reserved if place not in named]
        if not unnamed:
            return named
        try:
            release = self.session.runtime.ulid()
            await self.mark_leaving(unnamed, release)
            named |= {*(await fence_pointer(self.session, self.entity)).named_locations}
            await self.remove_leaving(release, named)
        except CommitStateUnknown as error:  # a transaction is in the way: the next one tries again
            self.session.note_failed_write(f"the release of locations of {self.entity}", error)
        return named

    async def mark_leaving(self, locations: Sequence[str], release: str) -> None:
        """Marks in the registry those of these locations that are still reserved as leaving, with the id of this
        release. Makes no commit if there are none, or the name no longer means the entity."""

        def edit(head: RegistryState) -> Steps[Edits | None]:
            entry = yield from self._entry(head)
            reserved = set() if entry is None else {*entry.reserved}
            fresh = {place: release for place in locations if place in reserved}
            if entry is None or fresh.items() <= entry.leaving.items():
                return None
            return self._entry_edit(entry.with_locations(entry.locations, entry.reserved, {**entry.leaving, **fresh}))

        await change_registry(self.session, "release-locations", self._detail(locations), edit)

    async def remove_leaving(self, release: str, named: Collection[str]) -> None:
        """Removes from the table's entry, by a registry commit, the locations that are still marked with this release,
        unless they were named; the named ones remain, and are not reserved any more: since the mark, a commit may have
        reserved one again and named it. Makes no commit if no location has the mark, or the entity does not have the
        name any more."""

        def edit(head: RegistryState) -> Steps[Edits | None]:
            entry = yield from self._entry(head)
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

    def _entry(self, head: RegistryState) -> Steps[RelationEntry | None]:
        """Returns the entry of the table or view for which locations are reserved; None if the name no longer means
        that entity. Raises `PendingTransaction` if the entry is an intent."""
        yield Needs(keys=[relation_key(self.namespace, self.name)])
        entry = find_relation(head.index, self.namespace, self.name)
        return entry if entry is not None and entry.require_committed().entity == self.entity else None

    def _entry_edit(self, entry: RelationEntry) -> Edits:
        """Returns the change of the index that stores this entry under the table's or view's name."""
        return {relation_key(self.namespace, self.name): entry.json}

    def _detail(self, locations: Iterable[str]) -> JsonObject:
        """Returns the detail with which the registry's history describes a change of a table's or view's
        `locations`."""
        return {
            "namespace": [*self.namespace],
            "name": self.name,
            "entity": self.entity,
            "locations": [*locations],
        }
