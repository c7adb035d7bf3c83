"""Drops tables and views: a registry commit takes the name away, then the pointer is marked as dropped, then the
client is answered (docs/design/registry.md#rule-4)."""

import logging
from collections.abc import Collection

from arco_catalog.iceberg import table
from arco_catalog.iceberg.errors import BadRequest, CommitFailed, CommitStateUnknown, InternalError, NotFound, Refusal
from arco_catalog.iceberg.parsing import UnreadableMetadata
from arco_catalog.operations.named_change import NamedChange
from arco_catalog.operations.waiting_drop import wait_for_purge
from arco_catalog.planning.answers import Answer, Document, TableState
from arco_catalog.planning.attempt import Attempt
from arco_catalog.planning.kinds import TABLES, VIEWS, Semantics
from arco_catalog.planning.names import dotted
from arco_catalog.planning.protection import refuse_protected_relation
from arco_catalog.planning.purge import PurgeRequest, request_purge
from arco_catalog.planning.registry_change import Change
from arco_catalog.planning.upkeep_settings import PurgeMode
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.current_file import current_file
from arco_catalog.protocol.driver import run
from arco_catalog.protocol.lookup import load
from arco_catalog.protocol.registry_mutation import RegistryReadSet
from arco_catalog.state.entries import RelationEntry, find_kind, has_pointer
from arco_catalog.state.fields import text
from arco_catalog.state.index import Namespace, tombstone_key
from arco_catalog.state.marker import WriteSet
from arco_catalog.state.needs import Needs, Steps
from arco_catalog.state.restoration import describe_copy
from storage_backends import StoreError

_LOG = logging.getLogger(__name__)


async def drop_table(session: Session, namespace: Namespace, name: str, purge: bool) -> Answer:
    """Drops a table: removes the name, writes a tombstone, which has the entity and the locations, and marks the
    pointer, so that no commit to the table can apply any more; without `purge` no file is deleted. Raises
    `NoSuchTable`, and `CommitFailed` for a protected table.

    With `purge`, unless `purge.mode=off`, the same commit makes a task that deletes the files once the time to undo the
    drop has passed (docs/design/purge.md), and the workers are notified if the catalog has a queue for them; raises
    `CommitFailed` for a table whose `gc.enabled` is false. In any mode `purge` raises `BadRequest` for a table that
    follows another catalog's. With `purge.mode=sync`, and no time to undo the drop, waits for the end of the purge as
    long as the request's time allows; raises `PurgeFailed`, also each time the request is sent again with its
    idempotency key, until a later attempt of the purge has succeeded. In a copy of another catalog `purge` has no
    effect but a warning in the log (docs/recovery.md#copies).
    """
    drop = Drop(session, TABLES, namespace, name, purge)
    answer = await run(session, drop)
    if purge and drop.copy_of is not None:
        _LOG.warning(
            "Dropped %s in a copy of a catalog, without the purge of the request: %s",
            dotted(namespace, name),
            describe_copy(drop.copy_of),
        )
        return answer
    notify, settings = session.catalog.notify_workers, session.settings.purge
    if not purge or settings.mode is PurgeMode.OFF:
        return answer
    if notify is not None:
        await notify(session.state.paths.root, settings.undrop_window_ms)
    if settings.mode is PurgeMode.SYNC and settings.undrop_window_ms == 0:
        await wait_for_purge(session, namespace, name, await _attempts_of(session, drop))
    return answer


async def _attempts_of(session: Session, drop: "Drop") -> Collection[str]:
    """Returns the ids of all attempts at this drop, one of which committed: those of this call, and those of other
    requests with the same idempotency key."""
    marker = session.marker()
    if marker is None:
        return drop.attempts
    await marker.find_earlier()
    return {*drop.attempts, *(slot.attempt for slot in await marker.read_on())}


async def drop_view(session: Session, namespace: Namespace, name: str) -> Answer:
    """Removes a view's name, writes a tombstone, and marks the pointer, so that no commit to the view can apply any
    more; the pointer and all files stay. Raises `NoSuchView`, and `CommitFailed` for a protected view."""
    return await run(session, Drop(session, VIEWS, namespace, name, purge=False))


async def unregister_table(session: Session, namespace: Namespace, name: str) -> TableState:
    """Drops a table without a purge and returns its last state. It reads that after it marked the pointer, when no
    commit can be applied any more. Raises `NoSuchTable`, `CommitFailed` for a protected table, and `CommitStateUnknown`
    if the table was dropped and the last state can't be read."""
    answer = await run(session, _Unregister(session, TABLES, namespace, name, purge=False))
    if not isinstance(answer, Document) or answer.body is None:
        raise InternalError("The answer to the unregistration of a table has no entity id")
    entity = text(answer.body, "entity")
    try:
        last = await current_file(session, entity)
        if last is None:
            raise CommitStateUnknown(
                f"The table was unregistered, but its last metadata is unknown: the pointer of entity {entity} "
                "no longer exists",
                "result-lost",
            )
        return TableState(entity, last[0].location, last[1], created=False)
    except (StoreError, Refusal) as error:  # unchanged, the error would mean that the table was not dropped
        message = f"The table was unregistered, but its last metadata can't be read: {error}"
        raise CommitStateUnknown(message, "result-lost") from error


class Drop(NamedChange):
    """The drop of a table or view, by one commit of the registry that replaces its name by a tombstone, and may request
    a purge."""

    def __init__(self, session: Session, semantics: Semantics, namespace: Namespace, name: str, purge: bool) -> None:
        super().__init__(session, namespace, name)
        self.semantics = semantics
        self.purge = purge
        self.kind = f"drop-{semantics.kind}"
        self._purge_settings = session.settings.purge
        self._makes_task = purge and self._purge_settings.mode is not PurgeMode.OFF
        self.copy_of: str | None = None
        """The original of the catalog, if the catalog is a copy: a drop in a copy deletes no files."""
        self.attempts: set[str] = set()
        """The ids of the attempts for which the drop was planned."""
        self._examined: dict[str, Refusal | None] = {}
        """The results of `_examine`, by entity."""

    def needs_base(self, read_set: RegistryReadSet) -> bool:
        """Whether `load_base` must be called: for a drop that submits a purge, if the name is not loaded, or the table
        with the name was not examined yet. False for any other drop, and if there is no such table."""
        if not self._makes_task:
            return False
        if read_set.head.index.missing(Needs(keys=[self.key])):
            return True
        entry = self._entry(read_set)
        return entry is not None and entry.entity not in self._examined

    async def load_base(self, read_set: RegistryReadSet) -> None:
        """Loads the name's entry, and examines whether the table allows that files are deleted, unless this drop has
        examined it before. Keeps the result, which `change` raises if it is an error. Examines nothing if there is no
        such table."""
        await load(self.state, read_set.head.index, Needs(keys=[self.key]))
        entry = self._entry(read_set)
        if entry is not None and entry.entity not in self._examined:
            self._examined[entry.entity] = await self._examine(entry.entity)

    async def _examine(self, entity: str) -> Refusal | None:
        """Returns the refusal to purge the table with this entity id if the table has the property `gc.enabled=false`,
        else None. Returns None also if the pointer or the metadata file does not exist any more, or the file is no
        table metadata."""
        try:
            found = await current_file(self.session, entity)
            if found is None:
                return None
            file, body = found
            if await self.session.files.parse(file.location, body, table.allows_deletes):
                return None
        except (NotFound, UnreadableMetadata):
            return None
        return CommitFailed(
            f"Cannot purge table: {self.full_name} has gc.enabled=false, and its files may belong to other tables. "
            "It was not dropped: drop it without purge, or set the property to true first"
        )

    def _entry(self, read_set: RegistryReadSet) -> RelationEntry | None:
        """Returns the registry's entry of the table or view to drop, in the HEAD of this read set, which may be an
        intent; None if no relation of this kind has the name. The name's key must be loaded."""
        return find_kind(read_set.head.index, self.namespace, self.name, self.semantics.kind)

    async def write_set(self, read_set: RegistryReadSet, attempt: Attempt) -> WriteSet:
        """Returns the registry's sequence number and the entity whose pointer the drop is to mark; no entity if no
        relation of the kind has the name. May load the name's segment."""
        index = read_set.head.index
        await load(self.state, index, Needs(keys=[self.key]))
        entry = self._entry(read_set)
        return WriteSet(registry=read_set.head.sequence, marks=() if entry is None else (entry.entity,))

    def answer(self, entry: RelationEntry) -> Answer:
        """Returns the answer to the drop of this entry, which is an empty one unless a subclass returns another."""
        return Document(204)

    def change(self, read_set: RegistryReadSet, attempt: Attempt) -> Steps[Change]:
        """Plans the drop, with the submission of a purge if one is requested, purges are not off, and the catalog is
        no copy. Adds the attempt to `attempts`, and sets `copy_of`. Raises the kind's "does not exist",
        `PendingTransaction`, `CommitFailed` for a protected relation and for a purge with `gc.enabled=false`, and
        an error for a purge of a followed table."""
        head = read_set.head
        self.attempts.add(attempt.id)
        yield Needs(keys=[self.key])
        entry = self._entry(read_set)
        if entry is None:
            raise self.semantics.no_such(head.index, self.namespace, self.name)
        committed = entry.require_committed()
        refuse_protected_relation(committed, self.namespace, self.name)
        if self.purge and not has_pointer(committed.json):
            raise BadRequest(
                f"{self.full_name} follows another catalog's table, whose files only that catalog "
                "may delete: drop it without purge"
            )
        tombstone = yield from self.tombstone(head, entry, attempt, purge=self.purge)
        purge = PurgeRequest({}, (), ())
        self.copy_of = head.copy_of
        if self._makes_task and self.copy_of is None:
            refusal = self._examined[entry.entity]
            if refusal is not None:
                raise refusal
            left = tombstone[tombstone_key(self.namespace, self.name, entry.entity)]
            assert left is not None
            purge = request_purge(self.context.paths, self._purge_settings, left, attempt)
        copy_of = {} if self.copy_of is None or not self.purge else {"copy_of": self.copy_of}
        return Change(
            edits={self.key: None, **tombstone, **purge.edits},
            first=purge.first,
            after=purge.after,
            answer=self.answer(entry),
            detail=self.detail(entry.entity, purge=self.purge, **copy_of),
            about=(entry.entity, entry.uuid),
            marks=(entry.entity,),
        )


class _Unregister(Drop):
    """A drop of a table without a purge that is answered with the table's entity id."""

    def answer(self, entry: RelationEntry) -> Answer:
        """Returns a document with the entity id of the dropped table, under `entity`."""
        return Document(200, {"entity": entry.entity})
