"""The commit that removes what has expired of a table (docs/design/expiry.md#rule-3)."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from arco_catalog.iceberg import table
from arco_catalog.iceberg.commit import Commit
from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.expiry import Expiry, Retention, find_expired
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.iceberg.metadata import TableMetadata, complete
from arco_catalog.iceberg.properties import Properties
from arco_catalog.iceberg.updates import RemoveSnapshotRef, RemoveSnapshots
from arco_catalog.operations.commit import CommitRelation
from arco_catalog.planning.answers import TableState
from arco_catalog.planning.attempt import Attempt
from arco_catalog.planning.kinds import TABLES
from arco_catalog.planning.relation_change import RelationCommit
from arco_catalog.planning.writes import RecordWrite
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.current_file import current_file
from arco_catalog.protocol.driver import run
from arco_catalog.protocol.mutation import NoOp, Prerequisite
from arco_catalog.protocol.planned_commit import PointerCommit
from arco_catalog.protocol.relation_committer import RelationCommitter
from arco_catalog.protocol.relation_read_set import RelationReadSet
from arco_catalog.state.expiry_record import ExpiryRecord
from arco_catalog.state.index import Namespace
from arco_catalog.state.paths import commit_key
from storage_backends.lazy_dataclass import dataclass

ACTIONS = {RemoveSnapshotRef: "remove-snapshot-ref", RemoveSnapshots: "remove-snapshots"}

RetentionOf = Callable[[Properties], Retention]
"""Returns the retention for a table with these properties. Raises `BadRequest` for an invalid one."""


@dataclass(frozen=True, slots=True)
class ExpiryPlan:
    """What expires of one state of a table, and the record of it. `held_back` is why nothing may expire, None if it
    may. `lost` are the keys of records that were written before a commit that did not apply."""

    expiry: Expiry = Expiry()
    record: ExpiryRecord = ExpiryRecord(0)
    held_back: str | None = None
    lost: Sequence[str] = ()


def plan_expiry(document: JsonObject, retention_of: RetentionOf, now_ms: int) -> ExpiryPlan:
    """Plans the removal of the branches and tags, and of the oldest `MAX_EXPIRED` snapshots, that have expired now of a
    table with this metadata document: of nothing, with the reason in `held_back`, if the property gc.enabled is not
    true, a property of retention is invalid, or the branches are too long to follow. A pure function."""
    if not table.allows_deletes(document):
        return ExpiryPlan(held_back="the table's property gc.enabled is not true: its files must not be deleted")
    metadata: TableMetadata = complete(document)
    try:
        expiry = find_expired(metadata, retention_of(metadata["properties"]), now_ms)
    except BadRequest as invalid:
        return ExpiryPlan(held_back=invalid.message)
    statistics = [*metadata["statistics"], *metadata["partition-statistics"]]
    return ExpiryPlan(expiry, ExpiryRecord.of(expiry.snapshots, statistics))


async def plan_now(session: Session, entity: str, retention_of: RetentionOf) -> ExpiryPlan | None:
    """Reads a table, and plans what expires of it now; None if it has no pointer. Writes nothing. Raises `NotFound` if
    the metadata file does not exist, `InternalError` for one that can't be read, and `StoreError`."""
    found = await current_file(session, entity)
    if found is None:
        return None
    file, body = found
    now_ms = session.now_ms()
    plan = await session.files.parse(file.location, body, lambda document: plan_expiry(document, retention_of, now_ms))
    session.files.forget(file.location)
    return plan


class ExpireSnapshots(CommitRelation):
    """The commit of an expiry. What expires is computed for each state of the table that the commit may replace, and
    not once: a branch that was created meanwhile keeps its snapshots. `found` is the last plan."""

    def __init__(
        self, session: Session, namespace: Namespace, name: str, *, task: str, entity: str, retention_of: RetentionOf
    ) -> None:
        super().__init__(session, RelationCommit(TABLES, namespace, name, Commit((), ())))
        self._named = namespace, name
        self._task = task
        self._entity = entity
        self._retention_of = retention_of
        self.found = ExpiryPlan()
        self.records: list[str] = []
        """The keys of the records of all attempts."""

    async def plan(self, read_set: RelationReadSet, attempt: Attempt) -> PointerCommit | NoOp | Prerequisite:
        """Plans what expires of the table that was read, which is then in `found`, and a record of it, which is written
        before the commit. Changes nothing if nothing expires or something holds the expiry back, or if the name has
        another table by now."""
        entry, pointer, base = read_set.entry, read_set.pointer, read_set.base
        if read_set.refusal is not None or entry is None or pointer is None or base is None:
            return await super().plan(read_set, attempt)
        location, now_ms, retention_of = pointer.metadata.location, attempt.now_ms, self._retention_of
        self.found = await self.session.files.parse(
            location, base, lambda document: plan_expiry(document, retention_of, now_ms)
        )
        updates = self.found.expiry.updates
        if entry.entity != self._entity:
            self.found = replace(self.found, held_back="the table's name belongs to another one by now")
        if not updates or self.found.held_back is not None:
            return NoOp(TableState(pointer.entity, location, base, created=False))
        actions = tuple(action for kind, action in ACTIONS.items() if any(isinstance(each, kind) for each in updates))
        wanted = RelationCommit(TABLES, *self._named, Commit((), updates, (), actions))
        self.committer = RelationCommitter(self.session, wanted)
        change = await super().plan(read_set, attempt)
        if not isinstance(change, PointerCommit):
            return change
        commit = commit_key(self._entity, change.successor.metadata.location)
        key = self.session.state.paths.expiry_record(self._entity, self._task, commit)
        self.records.append(key)
        return replace(change, first=[*change.first, RecordWrite(key, self.found.record.body)])


async def expire_snapshots(session: Session, commit: ExpireSnapshots, namespace: Namespace, name: str) -> ExpiryPlan:
    """Makes the commit of an expiry after the writers of that table in this process that came first, if these end in
    time, and returns what it removed, or why it removed nothing. Raises the errors of a commit."""
    async with session.lock_table(namespace, name, lambda: True):
        await run(session, commit)
    is_made = commit.found.held_back is None and bool(commit.found.expiry.updates)
    return replace(commit.found, lost=commit.records[:-1] if is_made else commit.records)
