"""The expiry of one table's snapshots: the commit, the wait, and the deletion of files (docs/design/expiry.md)."""

from collections.abc import Sequence

from arco_catalog.iceberg.errors import BadRequest, MetadataTooLarge, NoSuchTable
from arco_catalog.iceberg.expiry import Retention
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.iceberg.properties import Properties
from arco_catalog.planning.purge import ClosedCatalog, require_open
from arco_catalog.planning.upkeep_policy import DAY_MS, InvalidPolicy, SnapshotExpiry
from arco_catalog.protocol.evidence import fence_pointer
from arco_catalog.protocol.lookup import carry_out
from arco_catalog.state.expiry_record import StoredRecord, read_expiry_records
from arco_catalog.state.fields import mapping
from arco_catalog.state.locations import Location
from arco_catalog.state.purge_progress import count_in
from arco_catalog.state.restoration import describe_copy
from arco_catalog.state.task import Task
from arco_catalog.tasks.execution import Execution, NotYet, Sessions, TaskFailed, TaskResult
from arco_catalog.upkeep.expiry.commit import ExpireSnapshots, ExpiryPlan, RetentionOf, expire_snapshots
from arco_catalog.upkeep.expiry.deletion import DeletionProgress, FileDeletion
from arco_catalog.upkeep.expiry.policies import PolicyReader
from arco_catalog.upkeep.expiry.tables import LiveTable, find_table
from arco_catalog.upkeep.neighbours import deletion_obstacle
from arco_catalog.upkeep.purge.sharing import CHECKED, find_sharer

FILES_AGE_MS = 2 * DAY_MS
"""How long after the commit files are deleted at the earliest: a plan of a scan lives a day, and its readers longer."""
SEARCH_AGE_MS = DAY_MS
"""How long the search for other tables that use the files is good for: a deletion that takes longer searches again."""
COPY_WAIT_MS = 60 * 60_000
UNTIL, SEARCHED, SEARCHED_FROM = "files_until_ms", "searched_ms", "searched_from"
"""Fields of the checkpoint: when files may be deleted; when the search for other tables ended; and the number of the
task's version from which a round of the search counts."""


class ExpiryExecutor:
    """Expires snapshots of tables, and deletes what only these needed, in this process."""

    def takes(self, task: Task) -> bool:
        """Returns True: it executes every task of this type."""
        return True

    async def execute(self, execution: Execution) -> TaskResult:
        """Executes one attempt: the commit, if it is not made, or the deletion once the files are old enough. Returns
        the result if nothing expires, or after the deletion, which it adds to the worker's statistics. Raises `NotYet`
        after the commit and while the files are not old enough, and in a copy; `TaskFailed` if a retry can't help,
        `LeaseLost`, and for a failed attempt that is retried other errors, such as `StoreError`."""
        session = execution.session()
        head = await session.state.head()
        if head.copy_of is not None:
            raise NotYet(execution.taken_ms + COPY_WAIT_MS, describe_copy(head.copy_of))
        try:
            await carry_out(session.state, head.index, require_open(head.index))
        except ClosedCatalog as closed:
            raise TaskFailed(f"The expiry ends: {closed}") from closed
        until_ms = count_in(execution.checkpoint, UNTIL)
        if until_ms > execution.taken_ms:
            raise NotYet(until_ms, _waiting(execution.checkpoint))
        table = await find_table(execution.session(), execution.task.payload)
        await execution.start()
        if until_ms:
            result = await _delete(execution, table)
            counted = execution.stats().expiries
            counted.cleaned += count_in(execution.checkpoint, "snapshots")
            counted.held_back += "kept_for" in result.details
            return result
        if table is None:
            return TaskResult("Nothing expires: the table was dropped, or follows another catalog", {})
        return await _commit(execution, table)

    async def abandon(self, execution: Execution, reason: str) -> None:
        """Counts the failure. Removed snapshots can't be restored, and the files that were not deleted yet are left."""
        execution.stats().expiries.failed += 1


async def _commit(execution: Execution, table: LiveTable) -> TaskResult:
    """Removes what has expired by one commit, adds it to the worker's statistics, and schedules the deletion of the
    files by raising `NotYet`. Returns the result, with the reason if there is one, if neither this lease nor a previous
    one has written the record of such a commit. Raises `TaskFailed`, and `StoreError`."""
    held_back, plan = await obstacle(execution, table), None
    if held_back is None:
        retention_of = await _retention_of(execution, table)
        if isinstance(retention_of, str):
            held_back = retention_of
        else:
            plan = await _expire(execution, table, retention_of)
            held_back = plan.held_back
    records = await _records_of_task(execution, table)  # also of an earlier lease, which died after its commit
    execution.stats().expiries.held_back += held_back is not None
    if not records:
        return TaskResult("Nothing expires" if held_back is None else f"Nothing expires: {held_back}", {})
    if plan is None or held_back is not None or not plan.expiry.updates:
        # This lease has not moved the pointer. After the fence a commit of an earlier lease can't apply any more, so
        # that what it would remove was not removed at that time.
        await fence_pointer(execution.session(), table.entry.entity)
    until_ms = execution.session().now_ms() + FILES_AGE_MS
    lost = () if plan is None else plan.lost
    removed = max((each.record.snapshots for each in records if each.key not in lost), default=0)
    await execution.save({**execution.checkpoint, UNTIL: until_ms, "snapshots": removed})
    execution.stats().expiries.snapshots += removed
    raise NotYet(until_ms, _waiting(execution.checkpoint))


async def _expire(execution: Execution, table: LiveTable, retention_of: RetentionOf) -> ExpiryPlan:
    """Commits the removal of expired snapshots and refs, and returns what was removed. If nothing has expired, or
    something prevents the expiry, it commits nothing, and returns a plan with the reason or without updates. Raises
    `TaskFailed` for a refused commit."""
    commit = ExpireSnapshots(
        execution.session(),
        table.namespace,
        table.name,
        task=execution.task.id,
        entity=table.entry.entity,
        retention_of=retention_of,
    )
    try:
        return await expire_snapshots(commit.session, commit, table.namespace, table.name)
    except (NoSuchTable, BadRequest, MetadataTooLarge) as refused:
        raise TaskFailed(
            "this attempt removed no snapshots and deleted no files, since the commit of the expiry was refused: "
            f"{refused.message}"
        ) from refused


def _waiting(checkpoint: JsonObject) -> str:
    """Returns a sentence about a task with this checkpoint: how many snapshots were removed, and that the files are
    deleted later."""
    return f"Removed {count_in(checkpoint, 'snapshots'):,} snapshots; the files that only they need are deleted later"


async def _retention_of(execution: Execution, table: LiveTable) -> RetentionOf | str:
    """Returns the retention by which a task expires: that of the policy that applies to the table, or that of an
    operator's request. Returns the reason why there is none."""
    payload = mapping(execution.task.payload, "expiry")
    if payload:
        return retention_by(SnapshotExpiry(_number(payload, "max_age_ms"), _number(payload, "min_to_keep")))
    index = (await execution.session().state.head()).index
    try:
        policy = await PolicyReader(execution, index).of(table.namespace, table.name)
        return "no policy applies to the table" if policy is None else retention_by(SnapshotExpiry.of(policy))
    except InvalidPolicy as invalid:
        return str(invalid)


def _number(payload: JsonObject, name: str) -> int | None:
    """Returns the integer in the field `name` of the payload; None without one."""
    value = payload.get(name)
    return value if isinstance(value, int) else None


def retention_by(settings: SnapshotExpiry) -> RetentionOf:
    """Returns the function that gives a table's retention by its properties and these settings."""

    def retention_of(properties: Properties) -> Retention:
        return Retention.of(properties, snapshot_age_ms=settings.max_age_ms, to_keep=settings.min_to_keep)

    return retention_of


async def obstacle(sessions: Sessions, table: LiveTable) -> str | None:
    """Returns why no file of a table may be deleted, by the registry: locations of another table or view, live or
    dropped, overlap the table's own, or the table borrows files or lends them. None if nothing prevents it. Raises
    `StoreError`."""
    own = Location.of_normal(table.entry.locations[0]).uri  # all locations are compared
    return await deletion_obstacle(sessions.session(), table.entry, own)


async def _records_of_task(execution: Execution, table: LiveTable) -> Sequence[StoredRecord]:
    """Returns the records that this task has written about the table."""
    stored = read_expiry_records(execution.session().state, table.entry.entity)
    return [each async for each in stored if each.task == execution.task.id]


async def _delete(execution: Execution, table: LiveTable | None) -> TaskResult:
    """Deletes the files that only expired snapshots need, and returns the counts. Deletes none, and returns the reason,
    if the table was dropped, follows another catalog or may not be expired any more, or if another one may use files of
    it or lends it some."""
    checkpoint = execution.checkpoint
    removed = f"Removed {count_in(checkpoint, 'snapshots'):,} snapshots"
    if table is None:
        return TaskResult(f"{removed}; their files are kept: the table was dropped, or follows another catalog", {})
    kept_for = await obstacle(execution, table) or await _sharer(execution, table)
    if kept_for is not None:
        return TaskResult(f"{removed}; their files are kept: {kept_for}", {"kept_for": kept_for})
    return _finished(removed, await _delete_files(execution, table))


async def _delete_files(execution: Execution, table: LiveTable) -> DeletionProgress:
    """Deletes the files, and returns the progress of all leases of the task. Adds the files that this lease deleted to
    the worker's statistics, also if the deletion does not reach its end."""
    deletion = FileDeletion(execution, table.entry.entity, table.entry.locations, FILES_AGE_MS)
    before = deletion.progress.removed.files
    try:
        return await deletion.delete()
    finally:
        execution.stats().expiries.files += deletion.progress.removed.files - before


async def _sharer(execution: Execution, table: LiveTable) -> str | None:
    """Returns a clause that names another table, live or dropped, with a file at this table's locations. None if there
    is none, if the settings trust locations, or if a search ended less than `SEARCH_AGE_MS` ago, which is not repeated.
    A search may take several leases; its begin and its end are saved in the checkpoint."""
    if execution.session().settings.purge.trust_locations:
        return None
    checkpoint = execution.checkpoint
    if execution.taken_ms - count_in(checkpoint, SEARCHED) < SEARCH_AGE_MS:
        return None
    if SEARCHED in checkpoint or SEARCHED_FROM not in checkpoint:
        begun = {name: value for name, value in checkpoint.items() if name not in (CHECKED, SEARCHED)}
        await execution.save({**begun, SEARCHED_FROM: execution.number})
    beginning = count_in(execution.checkpoint, SEARCHED_FROM)
    sharer = await find_sharer(execution, table.entry.entity, table.entry.locations, beginning)
    if sharer is None:
        await execution.save({**execution.checkpoint, SEARCHED: execution.taken_ms})
    return sharer


def _finished(removed: str, progress: DeletionProgress) -> TaskResult:
    """Returns the result of an expiry after the deletion of files: the sentence `removed` with the number of deleted
    files, and the counts."""
    counts = progress.removed
    details: JsonObject = {
        "files_deleted": counts.files,
        "bytes_deleted": counts.bytes,
        "outside": counts.outside,
        "unaddressable": counts.unaddressable,
    }
    return TaskResult(f"{removed} and {counts.files:,} files", details)
