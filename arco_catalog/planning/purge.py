"""The changes of the registry by a purge: the drop that requests it, its beginning, the fences of later leases, and its
release (docs/design/purge.md). All functions are pure functions of HEAD's index."""

from collections.abc import Sequence

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.planning.attempt import Attempt
from arco_catalog.planning.upkeep_settings import PurgeSettings
from arco_catalog.planning.writes import PlannedWrite, RecordWrite
from arco_catalog.state.borrowed import borrower_of, pending_borrowing
from arco_catalog.state.catalog_state import CATALOG_STATE, is_dropping
from arco_catalog.state.entries import PendingTransaction, dropped_at, overlapping
from arco_catalog.state.fields import text, texts
from arco_catalog.state.index import Edits, Index, tombstone_key
from arco_catalog.state.locations import Location
from arco_catalog.state.needs import Needs, Steps
from arco_catalog.state.paths import Paths
from arco_catalog.state.task import TABLE_PURGE, Task
from arco_catalog.state.tombstone import PURGED, PURGING, Tombstone, task_key
from storage_backends.lazy_dataclass import dataclass


class NothingToPurge(Exception):
    """The purge has nothing to do: the table was restored or dropped again, is purged already, or a restore of the
    catalog took the purge back."""


class TooEarly(Exception):
    """The purge may not begin yet: the drop can still be undone, or an overlapping purge has not ended."""


class LeaseFenced(Exception):
    """The tombstone of the table to purge has the fence of another lease of the task, or no purge of it runs any more,
    so this lease must stop."""


class ClosedCatalog(Exception):
    """The catalog of the table to purge was dropped, so that the table's locations may belong to another catalog
    now."""


class InTheWay(Exception):
    """Another entity prevents the purge of a dropped table at the location `place`: it holds a location inside or
    around that; it held one until its drop (`dropped`); or it takes files from there (`borrows`). `name` is its full
    name, or empty if the index must be searched for it."""

    def __init__(
        self, entity: str, place: str, *, name: Sequence[str] = (), dropped: bool = False, borrows: bool = False
    ) -> None:
        super().__init__(f"entity {entity} prevents the purge of {place}")
        self.entity = entity
        self.place = place
        self.name = tuple(name)
        self.dropped = dropped
        self.borrows = borrows


@dataclass(frozen=True, slots=True)
class PurgeRequest:
    """The part of a drop that requests a purge of the table: index changes for the drop's commit, and objects to write
    before that (`first`) and after it (`after`)."""

    edits: Edits
    first: Sequence[PlannedWrite]
    after: Sequence[PlannedWrite]


def request_purge(
    paths: Paths,
    settings: PurgeSettings,
    tombstone: JsonObject,
    attempt: Attempt,
) -> PurgeRequest:
    """Returns the request of a purge for the drop that writes this tombstone: the tombstone with the new task and the
    time to undo the drop, and the task's hint and first version (docs/design/purge.md#rule-1)."""
    task, after_ms = attempt.uuid("task", text(tombstone, "entity")), attempt.now_ms + settings.undrop_window_ms
    dropped = Tombstone({**tombstone, "task": task, "purge_after": after_ms})
    named: JsonObject = {
        "type": TABLE_PURGE,
        "namespace": [*dropped.namespace],
        "name": dropped.name,
        "entity": dropped.entity,
    }
    first = first_version(paths.root, task, dropped, record=attempt.uuid("task-record", task), at_ms=attempt.now_ms)
    return PurgeRequest(
        edits={dropped.key: dropped.json, task_key(task): named},
        first=[RecordWrite(paths.open_task(task, after_ms), b"")],
        after=[RecordWrite(paths.task_version(task, 1), first.body)],
    )


def first_version(catalog: str, task: str, tombstone: Tombstone, *, record: str, at_ms: int) -> Task:
    """Returns the first version of the task that purges the table of a tombstone, for a submission at `at_ms`. `record`
    is a fresh id of this version. A worker may run the task once the time to undo the drop has passed."""
    payload: JsonObject = {
        "common_payload": {
            "operation_type": "SYNCHRONOUS_TABLE_PURGE",
            "request_timestamp_ms": tombstone.dropped_ms,
            "realm_identifier": catalog,
            "correlation_id": tombstone.operation,
        },
        "operation_parameters": {
            "table_identity": {
                "table_entity_id": tombstone.entity,
                "catalog_name": catalog,
                "namespace_levels": [*tombstone.namespace],
                "table_name": tombstone.name,
            },
            "properties": {},
        },
    }
    return Task.submitted(
        record=record,
        task=task,
        kind=TABLE_PURGE,
        payload=payload,
        at_ms=at_ms,
        not_before_ms=tombstone.purge_after_ms,
    )


def purge_of(index: Index, task: str) -> Steps[Tombstone | None]:
    """Returns the tombstone of the table that a task purges, found by the task's own entry in the index; None if there
    is no such entry, or the tombstone does not name the task any more."""
    yield Needs(keys=[task_key(task)])
    named = index.get(task_key(task))
    if named is None:
        return None
    key = tombstone_key(texts(named, "namespace"), text(named, "name"), text(named, "entity"))
    return (yield from tombstone_with(index, key, task))


def tombstone_with(index: Index, key: str, task: str) -> Steps[Tombstone | None]:
    """Returns the tombstone with a key if it names this task; None otherwise."""
    yield Needs(keys=[key])
    found = index.get(key)
    return None if found is None or found.get("task") != task else Tombstone(found)


def begin(
    index: Index, planned: Tombstone, fence: int, store_ms: int, *, anti_join: bool = False
) -> Steps[Edits | None]:
    """Returns the index changes that begin a purge, or those of a fence if another lease began it; None if this lease
    has written one of these already. `fence` is the number of the task's version with which this lease began.
    `store_ms` is a time that the store's clock has passed. With `anti_join` other tables, live or dropped, may overlap
    the purged one or borrow from it.

    Raises `NothingToPurge` if the drop was undone or the purge has ended, `TooEarly` before the time to undo the drop
    has passed, and with `anti_join` while an overlapping purge runs, `LeaseFenced` if a later lease has written the
    tombstone, `ClosedCatalog`, and only without `anti_join` `InTheWay` if another entity prevents the purge, and
    `PendingTransaction`.
    """
    yield from require_open(index)
    tombstone = yield from _current_tombstone(index, planned, fence)
    if tombstone.state == PURGING:
        return None if tombstone.fence == fence else tombstone.fenced(fence)
    if tombstone.purge_after_ms > store_ms:
        raise TooEarly("the time to undo the drop has not passed: the purge goes on by itself after that")
    if anti_join:
        yield from _wait_for_purges(index, tombstone)
    else:
        yield from _refuse_overlap(index, tombstone)
    return (yield from tombstone.begun(index, fence))


def give_up(index: Index, planned: Tombstone, fence: int, *, must_fence: bool = False) -> Steps[Edits | None]:
    """Returns the index changes that end a purge which failed before it deleted a file: the table is in the state
    `dropped` once more, and no longer holds its locations. If no purge runs they are None, or with `must_fence` those
    after which no proposal of this lease can begin one, unless they are there. Raises `NothingToPurge` if the drop was
    undone or the purge has ended, and `LeaseFenced` if a later lease than that of `fence` has written the tombstone."""
    tombstone = yield from _current_tombstone(index, planned, fence)
    if tombstone.state != PURGING:
        fenced = tombstone.fenced(fence)
        return fenced if must_fence and fenced[tombstone.key] != tombstone.json else None
    return tombstone.returned(fence)


def release(index: Index, planned: Tombstone, fence: int, at_ms: int) -> Steps[Edits | None]:
    """Returns the index changes that end a purge at `at_ms`: the tombstone stays, in the state `purged`, and gives up
    all locations. Returns None if the purge has ended. Raises `LeaseFenced` if the tombstone has another fence than
    this lease's, or no purge runs, and `ClosedCatalog`."""
    yield from require_open(index)
    found = yield from tombstone_with(index, planned.key, str(planned.task))
    if found is not None and found.state == PURGED:
        return None
    require_fence(found, fence)
    assert found is not None
    return found.released(at_ms)


def require_open(index: Index) -> Steps[None]:
    """Raises `ClosedCatalog` if the catalog was dropped (docs/design/purge.md#rule-25)."""
    yield Needs(keys=[CATALOG_STATE])
    if is_dropping(index):
        raise ClosedCatalog(
            "the catalog was dropped, and its locations may belong to another catalog now, so nothing more is deleted"
        )


def require_fence(tombstone: Tombstone | None, fence: int) -> None:
    """Raises `LeaseFenced` unless there is a tombstone, its purge runs, and it has the fence of this lease."""
    if tombstone is None or tombstone.state != PURGING:
        raise LeaseFenced("the table is not being purged any more")
    if tombstone.fence != fence:
        raise _fenced_by(tombstone)


def _fenced_by(tombstone: Tombstone) -> LeaseFenced:
    """Returns the error of a lease when a later one continues the purge."""
    return LeaseFenced(f"a later lease, of version {tombstone.fence} of the task, continues the purge")


def _current_tombstone(index: Index, planned: Tombstone, fence: int) -> Steps[Tombstone]:
    """Returns the present tombstone of a planned purge, for the lease with this `fence`, also if `give_up` ended the
    purge. Raises `NothingToPurge` if the drop was undone, a restore of the catalog took the purge back, it is over, or
    the table was dropped a second time since, and `LeaseFenced` if a later lease has written the tombstone, also one
    that gave the purge up."""
    found = yield from tombstone_with(index, planned.key, str(planned.task))
    if found is None:
        raise NothingToPurge("the drop was undone, or a restore of the catalog took the purge back")
    if found.state == PURGED:
        raise NothingToPurge("the table is purged already")
    if found.operation != planned.operation:
        raise NothingToPurge("the table was restored, and dropped again")
    if found.fence > fence:
        raise _fenced_by(found)
    return found


def _wait_for_purges(index: Index, tombstone: Tombstone) -> Steps[None]:
    """Raises `TooEarly` while an overlapping purge runs; live tables and intents do not count. Two such purges must not
    run at once, because each would keep the files to which the other's table refers."""
    for normal in tombstone.locations:
        location = Location.of_normal(normal)
        holder = yield from overlapping(index, location, but=[tombstone.entity], purging_only=True)
        if holder is not None:
            raise TooEarly(
                f"{location.uri}, a location of the dropped table, overlaps the location of entity {holder.entity}, "
                "which is being purged"
            )


def _refuse_overlap(index: Index, tombstone: Tombstone) -> Steps[None]:
    """Raises `InTheWay` if another table or view holds a location that overlaps one of the dropped table's, held one
    until its drop, or takes files from there; and `PendingTransaction` if such a hold is an intent."""
    for normal in tombstone.locations:
        location = Location.of_normal(normal)
        holder = yield from overlapping(index, location, but=[tombstone.entity])
        if holder is not None:
            raise InTheWay(holder.entity, location.uri, name=holder.name)
        former = yield from dropped_at(index, location)
        others = [holder for holder in former if holder.entity != tombstone.entity]
        if others:
            raise InTheWay(others[0].entity, location.uri, name=others[0].name, dropped=True)
        borrower = yield from borrower_of(index, location, tombstone.entity)
        if borrower is not None:
            transaction = yield from pending_borrowing(index, location, borrower)
            if transaction is not None:
                raise PendingTransaction(transaction)
            raise InTheWay(borrower, location.uri, borrows=True)
