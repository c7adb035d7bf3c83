"""Applies notifications of another catalog to the tables that follow its own (docs/design/polaris.md#notifications).

A notification that changes something is one registry commit, which changes name, metadata file and time together. One
of type VALIDATE is only checked.
"""

from arco_catalog.iceberg import table
from arco_catalog.iceberg.errors import BadRequest, NoSuchWarehouse, Refusal
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.existing_file import ExistingFile, read_existing
from arco_catalog.operations.named_change import NamedChange
from arco_catalog.operations.namespaces import LOCATION, namespace_value
from arco_catalog.planning.answers import Answer, Document
from arco_catalog.planning.attempt import Attempt
from arco_catalog.planning.kinds import TABLES
from arco_catalog.planning.names import name_taken, no_such
from arco_catalog.planning.notifications import Event, Notification, check_order, check_time
from arco_catalog.planning.overlap import namespace_location, refuse_overlap, refuse_purged
from arco_catalog.planning.protection import refuse_protected_relation
from arco_catalog.planning.registry_change import Change
from arco_catalog.planning.reserved_locations import MAX_HELD
from arco_catalog.planning.shared_places import shared_marks
from arco_catalog.planning.writes import RecordWrite
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.driver import run
from arco_catalog.protocol.mutation import NoOp
from arco_catalog.protocol.registry_mutation import RegistryReadSet
from arco_catalog.state.borrowed import merged, outside, renewed_loans
from arco_catalog.state.catalog_state import CATALOG_STATE, is_dropping
from arco_catalog.state.entries import (
    NO_LOANS,
    NamespaceEntry,
    RelationEntry,
    find_namespace,
    find_relation,
)
from arco_catalog.state.followed import FollowedTable, last_notified
from arco_catalog.state.holds import location_holds
from arco_catalog.state.index import Edits, Index, Namespace, namespace_key
from arco_catalog.state.locations import Location, slug
from arco_catalog.state.needs import Needs, Steps
from arco_catalog.state.pointer import MetadataFile


async def notify(session: Session, namespace: Namespace, name: str, notification: Notification) -> Answer:
    """Applies a notification to a table of an external catalog: creates, updates or drops it. One of type VALIDATE is
    only checked: it changes nothing, and the metadata file is not read.

    Raises `BadRequest` in an internal catalog, for a time more than a day in the future, for a table other than the
    followed one, for locations that are not allowed, taken or too many, and for a file that is not metadata of this
    table; `AlreadyExists` for a notification that is not later than the last one, and for a name that another kind of
    relation has; `NotFound` if the file does not exist; `MetadataTooLarge`; `NoSuchWarehouse` if the catalog is being
    dropped, except for a drop; `NoSuchTable` for the drop of a table that does not exist, and `CommitFailed` for that
    of a protected one.
    """
    if not session.settings.external:
        await session.head()
        raise BadRequest("Cannot update internal catalog via notifications")
    mutation = {Event.DROP: _Drop, Event.VALIDATE: _Validate}.get(notification.event, _Follow)
    return await run(session, mutation(session, namespace, name, notification))


class _NotificationChange(NamedChange):
    def __init__(self, session: Session, namespace: Namespace, name: str, notification: Notification) -> None:
        super().__init__(session, namespace, name)
        self.notification = notification

    def admitted(self, index: Index, attempt: Attempt) -> Steps[RelationEntry | None]:
        """Returns the entry of the followed table with the name, or None if the name is free, after checking the
        notification against it. Raises `AlreadyExists` if another kind of relation, or a table of this catalog, has the
        name, and unless the notification is later than the last one applied to the name; `BadRequest` for a time more
        than a day in the future and for a table other than the followed one; and `PendingTransaction`."""
        notification = self.notification
        yield Needs(keys=[self.key])
        entry = find_relation(index, self.namespace, self.name)
        if entry is not None and FollowedTable.of(entry.require_committed().json) is None:
            raise name_taken("table", entry.kind, self.namespace, self.name)
        check_time(notification, attempt.now_ms)
        last = yield from last_notified(index, self.namespace, self.name)
        check_order(notification, self.namespace, self.name, last)
        if entry is not None and (entry.uuid or "").lower() != notification.uuid.lower():
            name = self.full_name
            raise BadRequest(
                f"{name} follows table {entry.uuid}, not {notification.uuid}: send a DROP notification for the former, "
                "and then this one with a later timestamp than that"
            )
        return entry

    def namespaces(self, index: Index, attempt: Attempt) -> Steps[tuple[Edits, list[RecordWrite]]]:
        """Computes the edits and writes that create those levels of the namespace that do not exist yet: a notification
        creates them, as they exist in the other catalog. Raises `NoSuchWarehouse` if the catalog is being dropped."""
        levels = [self.namespace[:depth] for depth in range(1, len(self.namespace) + 1)]
        yield Needs(keys=[CATALOG_STATE, *map(namespace_key, levels)])
        if is_dropping(index):
            raise NoSuchWarehouse(
                f"Warehouse does not exist: {self.session.settings.warehouse} is being dropped or was dropped"
            )
        edits: dict[str, JsonObject | None] = {}
        values = []
        location = self.context.warehouse
        for depth, level in enumerate(levels):
            known = find_namespace(index, level)
            if known is not None:
                location = Location.parse(known.location)
                continue
            location = location.below(slug(level[-1]))
            value, write = namespace_value(self.context, attempt, level, {LOCATION: location.uri})
            made = NamespaceEntry.new(entity=attempt.member(depth).entity, value=value, location=location.uri)
            edits[namespace_key(level)] = made.json
            values.append(write)
        return edits, values

    def describe(self, entity: str) -> JsonObject:
        """Returns the details of a notification's change of the table with this entity id, for the registry's
        history."""
        notification = self.notification
        return self.detail(
            entity,
            metadata_location=notification.metadata_location,
            notification=notification.event.value,
            notified=notification.at,
            source={**self.context.caller.source, "kind": "Notification"},
        )


class _Drop(_NotificationChange):
    kind = "drop-followed"

    def change(self, read_set: RegistryReadSet, attempt: Attempt) -> Steps[Change]:
        """Plans the drop of the followed table, which leaves a tombstone with the time of the notification and
        deletes no files. Raises the errors of `admitted`, then `NoSuchTable` if the name is free, and `CommitFailed`
        for a protected table."""
        head = read_set.head
        entry = yield from self.admitted(head.index, attempt)
        followed = None if entry is None else FollowedTable.of(entry.json)
        if entry is None or followed is None:
            raise no_such("table", self.namespace, self.name)
        refuse_protected_relation(entry, self.namespace, self.name)
        left = RelationEntry(FollowedTable(followed.metadata, self.notification.at).written(entry.json))
        tombstone = yield from self.tombstone(head, left, attempt)
        return Change(
            edits={self.key: None, **tombstone},
            answer=Document(204),
            detail=self.describe(entry.entity),
            about=(entry.entity, entry.uuid),
        )


class _Validate(_NotificationChange):
    """A check whether a notification would be accepted, which changes nothing and does not read the metadata file."""

    kind = "validate-followed"

    def change(self, read_set: RegistryReadSet, attempt: Attempt) -> Steps[NoOp]:
        """Checks the state of the catalog, the notification by `admitted`, and the location of the metadata file, and
        returns `NoOp`. Raises `NoSuchWarehouse`, the errors of `admitted`, and an error for the location."""
        yield from self.namespaces(read_set.head.index, attempt)
        yield from self.admitted(read_set.head.index, attempt)
        self.context.locations.check(self.notification.metadata_location)
        return NoOp(Document(204))


class _Follow(_NotificationChange):
    kind = "follow"

    def __init__(self, session: Session, namespace: Namespace, name: str, notification: Notification) -> None:
        super().__init__(session, namespace, name, notification)
        self._existing: ExistingFile | None = None

    def needs_base(self, read_set: RegistryReadSet) -> bool:
        """Whether `load_base` must be called: the metadata file was not read for this request, and no error was met by
        this read set."""
        return self._existing is None and read_set.refusal is None

    async def load_base(self, read_set: RegistryReadSet) -> None:
        """Reads the metadata file of the notification, once for all attempts. An error for the client is put into the
        read set, and `change` raises it: for a location that is not allowed, a missing file, and one that is no
        metadata of the table."""
        try:
            file = self.notification.metadata_location
            self.context.locations.check(file)
            self._existing = await read_existing(self.session, TABLES, file, self._check_uuid)
        except Refusal as refusal:
            read_set.refusal = refusal

    def _check_uuid(self, document: JsonObject) -> None:
        """Raises `BadRequest` if the metadata file has another table's UUID than the notification, or none."""
        uuid = table.table_uuid(document)
        if uuid is None or uuid.lower() != self.notification.uuid.lower():
            raise BadRequest(
                f"{self.notification.metadata_location} is metadata of table {uuid}, not of {self.notification.uuid}, "
                "the table of the notification"
            )

    def change(self, read_set: RegistryReadSet, attempt: Attempt) -> Steps[Change]:
        """Plans the entry of the followed table with the notified metadata file, the locations that it holds, and
        the levels of the namespace that are missing. Raises `NoSuchWarehouse`, the errors of `admitted`, the one that
        `load_base` kept, and an error for metadata that is too large, for locations that can't be had or are too many,
        and for files that are being purged."""
        index, name = read_set.head.index, self.full_name
        made, values = yield from self.namespaces(index, attempt)
        before = yield from self.admitted(index, attempt)
        if read_set.refusal is not None:
            raise read_set.refusal
        assert self._existing is not None  # `load_base` read it
        self.context.check_metadata(self._existing.body, name)
        uuid = TABLES.uuid(self._existing.document)
        entity = attempt.entity if before is None else before.entity
        edits, entry = yield from self._entry(index, entity, before, self._existing)
        return Change(
            edits={**made, **edits, self.key: entry.json},
            answer=Document(204),
            detail=self.describe(entity),
            first=values,
            about=(entity, uuid),
        )

    def _entry(
        self, index: Index, entity: str, before: RelationEntry | None, existing: ExistingFile
    ) -> Steps[tuple[Edits, RelationEntry]]:
        """Computes the entry of the table after a notification with this `existing` file, which replaces the entry
        `before`, None for a new table, and the edits that reserve its locations. Raises `BadRequest` for a location
        that is not allowed, for one that overlaps that of another table or view unless the operator allows overlaps,
        for too many locations, and for files where a purge runs; and `PendingTransaction`."""
        allowed, held = self.context.locations, () if before is None else before.locations
        document = existing.document
        places = table.location(document), *table.written_locations(document)
        named = [allowed.check(place) for place in places]
        added = {place.normal: place for place in named if place.normal not in held}
        if len(held) + len(added) > MAX_HELD:
            raise BadRequest(
                f"{self.full_name} would have {len(held) + len(added)} locations for its files, "
                f"earlier ones included, and may have at most {MAX_HELD}: send a DROP notification and then a CREATE "
                "notification, which make it a new table without the earlier locations"
            )
        yield from refuse_overlap(self.context, index, added.values(), but=[entity])
        normal = [*held, *added]
        outer = outside(existing.folders, {*normal})
        within = yield from namespace_location(index, self.namespace)
        borrowed = merged(NO_LOANS if before is None else before.loans, outer, within)
        yield from refuse_purged(index, outer, entity)
        lent = yield from renewed_loans(index, entity, () if before is None else before.borrowed, borrowed)
        marks = yield from shared_marks(self.context, index, [*added.values()], entity=entity)
        uuid = TABLES.uuid(document)
        if before is None:
            new = RelationEntry.new(kind="table", entity=entity, uuid=uuid, locations=normal, borrowed=borrowed)
        else:
            new = RelationEntry({**before.json, "uuid": uuid, "locations": [*normal]}).with_loans(borrowed)
        file = MetadataFile(self.notification.metadata_location, table.last_updated_ms(document))
        entry = RelationEntry(FollowedTable(file, self.notification.at).written(new.json))
        edits: Edits = {
            **marks,
            **lent,
            **location_holds(entity, added, name=(*self.namespace, self.name)),
        }
        return edits, entry
