"""Undoes a drop of a table, view or other relation: the tombstone becomes the name's entry again, after a check that
the metadata file and the manifest lists still exist (docs/design/registry.md#rule-5)."""

from collections.abc import Iterator, Mapping

from arco_catalog.iceberg import table
from arco_catalog.iceberg.errors import (
    BadRequest,
    CommitFailed,
    Forbidden,
    NoSuchNamespace,
    NoSuchTable,
    NotFound,
    Refusal,
)
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.iceberg.parsing import UnreadableMetadata
from arco_catalog.operations.named_change import NamedChange
from arco_catalog.planning.access import Requirement, Securable, denied
from arco_catalog.planning.answers import Answer, Document
from arco_catalog.planning.attempt import Attempt
from arco_catalog.planning.dropped import is_dropped_from
from arco_catalog.planning.names import dotted, name_taken
from arco_catalog.planning.overlap import refuse_overlap
from arco_catalog.planning.privileges import Privilege
from arco_catalog.planning.registry_change import Change
from arco_catalog.planning.shared_places import shared_marks
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import batches, gather
from arco_catalog.protocol.current_file import current_file
from arco_catalog.protocol.driver import run
from arco_catalog.protocol.lookup import load
from arco_catalog.protocol.registry_mutation import RegistryReadSet
from arco_catalog.state.entries import (
    TOMBSTONE_FIELDS,
    Kind,
    RelationEntry,
    find_namespace,
    find_relation,
    has_pointer,
    newest_tombstone,
    purge_began,
)
from arco_catalog.state.fields import text
from arco_catalog.state.holds import restored_holds
from arco_catalog.state.index import Index, Namespace, namespace_key, tombstones_of
from arco_catalog.state.locations import Location
from arco_catalog.state.needs import Needs, Scan, Steps
from arco_catalog.state.tombstone import PURGED, Tombstone, task_key
from storage_backends.lazy_dataclass import dataclass

AT_ONCE = 16
_NOTHING_DROPPED = "No dropped table or view has the name {}"
_RIGHTS: Mapping[Kind, tuple[Privilege, Privilege, Privilege]] = {
    "table": (Privilege.TABLE_DROP, Privilege.TABLE_CREATE, Privilege.TABLE_LIST),
    "view": (Privilege.VIEW_DROP, Privilege.VIEW_CREATE, Privilege.VIEW_LIST),
}
"""The privileges to restore a dropped relation, on it and on its namespace, and the privilege to know that it was
dropped, by kind."""


async def undrop(session: Session, namespace: Namespace, name: str, *, force: bool = False) -> Answer:
    """Restores the table, view or other relation that was dropped last under this name, after checking that the
    metadata file and the manifest lists of all snapshots exist, and cancels the purge.

    Raises `NoSuchTable` if there is none, or it was purged, or the caller may not know of it; `Forbidden` if the caller
    may not restore it; `NoSuchNamespace`; `AlreadyExists` if the name is taken; `BadRequest` if a location overlaps
    another entity's, or a manifest list lies in no store of this catalog; `CommitFailed` once the purge has begun; and
    `NotFound` if a file is missing, or a table's metadata file can't be parsed. With `force` it restores a table
    without parsing that file, and although manifest lists are missing or can't be checked, but never without it.
    """
    return await run(session, _Undrop(session, namespace, name, force=force))


class _Undrop(NamedChange):
    kind = "undrop"

    def __init__(self, session: Session, namespace: Namespace, name: str, *, force: bool) -> None:
        super().__init__(session, namespace, name)
        self.force = force
        self._examined: dict[str, Refusal | None] = {}
        """The results of `_examine`, by the id of the drop that left the tombstone."""

    def needs_base(self, read_set: RegistryReadSet) -> bool:
        """Whether `load_base` must be called: the tombstones of the name are not loaded, or the files of the newest one
        were not examined. False if nothing was dropped under the name."""
        index = read_set.head.index
        if index.missing(Needs(scans=[self._tombstones])):
            return True
        tombstone = self._newest(index)
        return tombstone is not None and _drop_operation(tombstone) not in self._examined

    async def load_base(self, read_set: RegistryReadSet) -> None:
        """Loads the tombstones of the name, and examines whether the files of the newest one exist, unless this undrop
        has examined them before. Keeps the result, which `change` raises if it is an error."""
        await load(self.state, read_set.head.index, Needs(scans=[self._tombstones]))
        tombstone = self._newest(read_set.head.index)
        if tombstone is not None and _drop_operation(tombstone) not in self._examined:
            self._examined[_drop_operation(tombstone)] = await self._examine(tombstone)

    async def _examine(self, tombstone: RelationEntry) -> Refusal | None:
        """Checks that the metadata file of the dropped table or view exists and, without `force`, the manifest lists of
        a table. Returns the refusal if it can't be restored, else None. A relation without a pointer has no files of
        which the catalog knows."""
        if not has_pointer(tombstone.json):
            return None
        full_name = self.full_name
        try:
            found = await current_file(self.session, tombstone.entity)
        except NotFound as gone:
            return NotFound(f"{full_name} cannot be restored: its metadata file is missing. {gone.message}")
        if found is None:
            return NotFound(f"{full_name} cannot be restored: the pointer of entity {tombstone.entity} is gone")
        file, body = found
        if tombstone.kind != "table" or self.force:
            return None
        try:
            lists = await self.session.files.parse(file.location, body, table.manifest_lists)
        except UnreadableMetadata as error:
            return NotFound(f"{full_name} cannot be restored: {error.message}")
        missing = await _first_missing(self.session, iter(lists))
        return None if missing is None else missing.refusal(full_name)

    def change(self, read_set: RegistryReadSet, attempt: Attempt) -> Steps[Change]:
        """Plans the restoration of the drop made last under the name: the entry and locations return, the tombstone and
        the index entry of the purge's task go (the task itself ends when it is due). Raises `NoSuchNamespace`,
        `NoSuchTable` if nothing was dropped or it was purged, `Forbidden`, `CommitFailed` once the purge has begun,
        `AlreadyExists`, `PendingTransaction`, an error for a taken location, and the error that `load_base` kept."""
        index = read_set.head.index
        names = namespace_key(self.namespace), self.key
        yield Needs(keys=names, scans=[self._tombstones])
        if find_namespace(index, self.namespace) is None:
            missing = dotted(self.namespace)
            raise NoSuchNamespace(
                f"{self.full_name} cannot be restored: its namespace {missing} does not exist. Create the namespace, "
                "and then restore what was dropped from it: in a realm that takes TABLE_DROP on the catalog, or "
                "VIEW_DROP for a view"
            )
        tombstone = self._newest(index)
        if tombstone is None:
            raise NoSuchTable(_NOTHING_DROPPED.format(self.full_name))
        yield from self._check_rights(index, tombstone)
        if purge_began(tombstone.json):
            raise CommitFailed(
                f"{self.full_name} cannot be restored: a purge of it has begun. It can be if the purge fails before it "
                "deletes a file"
            )
        dropped = Tombstone(tombstone.json)
        if dropped.state == PURGED:
            raise NoSuchTable(f"{self.full_name} was purged: its files are gone")
        existing = find_relation(index, self.namespace, self.name)
        if existing is not None:
            raise name_taken(tombstone.kind, existing.require_committed().kind, self.namespace, self.name)
        locations = [Location.of_normal(location) for location in tombstone.locations]
        yield from refuse_overlap(self.context, index, locations, advice="drop that one first")
        marks = yield from shared_marks(self.context, index, locations, entity=tombstone.entity)
        shared = yield from dropped.is_shared(index)
        refusal = self._examined[_drop_operation(tombstone)]
        if refusal is not None:
            raise refusal
        held = yield from restored_holds(
            index, tombstone.entity, tombstone.locations, name=(*self.namespace, self.name)
        )
        entry: JsonObject = {key: value for key, value in tombstone.json.items() if key not in TOMBSTONE_FIELDS}
        if shared:
            entry["shared"] = True
        return Change(
            edits={
                **marks,
                dropped.key: None,
                **({} if dropped.task is None else {task_key(dropped.task): None}),
                self.key: entry,
                **held,
            },
            answer=Document(204),
            detail=self.detail(tombstone.entity),
        )

    def _check_rights(self, index: Index, tombstone: RelationEntry) -> Steps[None]:
        """Raises `Forbidden` if the caller may not drop this table or view, and so may not restore it, or `NoSuchTable`
        if the caller may not list it either. If another namespace has the name of the one from which it was dropped, or
        the tombstone does not have its id, this requires the privilege on the catalog: principals with privileges on
        that other namespace would get the files. Raises `Forbidden` also if the caller may not create a table or view
        in the namespace."""
        what: Kind = "view" if tombstone.kind == "view" else "table"
        drops, creates, lists = _RIGHTS[what]
        full_name = self.full_name
        on = Securable(self.namespace, kind=what, entity=tombstone.entity)
        lacking = f"To restore {full_name} takes the privilege {drops} on it"
        recorded = Tombstone(tombstone.json).namespace_entity
        if not (yield from is_dropped_from(index, self.namespace, recorded)):
            on = Securable()
            lacking = (
                f"{full_name} was not dropped from the namespace that {dotted(self.namespace)} is now, but from one "
                f"that {'had this name before' if recorded else 'its tombstone does not record'}: to restore it "
                f"here takes the privilege {drops} on the catalog. Have it restored by a principal with that privilege"
            )
        if (yield from self.context.may(index, Requirement(drops, on, writes_to=self.namespace))):
            if not (yield from self.context.may(index, Requirement(creates, Securable(self.namespace)))):
                refused = Forbidden(f"To restore {full_name} takes the privilege {creates} on its namespace")
                raise denied(refused, creates.value, f"dropped {what} {tombstone.entity}")
            return
        refusal: Refusal = NoSuchTable(_NOTHING_DROPPED.format(full_name))
        if (yield from self.context.may(index, Requirement(lists, on))):
            refusal = Forbidden(lacking)
        raise denied(refusal, drops.value, f"dropped {what} {tombstone.entity}")

    @property
    def _tombstones(self) -> Scan:
        """The lookup of all tombstones of the name in the registry's index."""
        return Scan(tombstones_of(self.namespace, self.name))

    def _newest(self, index: Index) -> RelationEntry | None:
        """Returns the tombstone that the latest drop left under the name, or None if there is none: nothing was dropped
        under it, or the tombstones were collected since."""
        newest = newest_tombstone(tombstone for _, tombstone in index.scan(tombstones_of(self.namespace, self.name)))
        return None if newest is None else RelationEntry(newest)


def _drop_operation(tombstone: RelationEntry) -> str:
    """Returns the id of the drop that left the tombstone. Another drop of the same entity, with other files, has
    another id."""
    return text(tombstone.json, "operation")


@dataclass(frozen=True, slots=True)
class _Missing:
    """A file that is missing, or, if `unreadable` gives a reason, one that this catalog can't check."""

    location: str
    unreadable: str | None

    def refusal(self, full_name: str) -> Refusal:
        """Returns the refusal to restore the table with this name: `BadRequest` if the file can't be checked,
        `NotFound` if it is missing."""
        if self.unreadable is not None:
            return BadRequest(
                f"{full_name} was not restored: whether {self.location} still exists cannot be checked "
                f"({self.unreadable}). Allow its location (ARCO_ALLOWED_LOCATIONS), or use --force"
            )
        return NotFound(
            f"{full_name} cannot be restored completely: the manifest list {self.location} is missing, as after "
            "`DROP TABLE ... PURGE` in Spark, which deletes files itself. Use --force to restore it without"
        )


async def _first_missing(session: Session, locations: Iterator[str]) -> _Missing | None:
    """Returns the first of these files that is missing, or that this catalog can't check; None if all exist."""

    async def look(location: str) -> _Missing | None:
        try:
            return None if await session.files.exists(location) else _Missing(location, None)
        except BadRequest as refusal:
            return _Missing(location, refusal.message)

    for batch in batches(locations, AT_ONCE):
        missing = next((seen for seen in await gather(*map(look, batch)) if seen is not None), None)
        if missing is not None:
            return missing
    return None
