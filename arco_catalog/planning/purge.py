"""What a purge changes of the registry: the drop that asks for it, its beginning, the fences of later leases, its
release (docs/design/purge.md). Pure functions of HEAD's index."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.planning.attempt import Attempt
from arco_catalog.planning.writes import PlannedWrite, RecordWrite
from arco_catalog.state.borrowed import borrower_of
from arco_catalog.state.catalog_state import CATALOG_STATE, is_dropping
from arco_catalog.state.entries import dropped_at, overlapping
from arco_catalog.state.fields import text, texts
from arco_catalog.state.index import Edits, Index, tombstone_key
from arco_catalog.state.locations import Location
from arco_catalog.state.needs import Needs, Steps
from arco_catalog.state.paths import Paths
from arco_catalog.state.task import TABLE_PURGE, Task
from arco_catalog.state.tombstone import PURGED, PURGING, Tombstone, task_key

HOUR_MS = 60 * 60 * 1000
DAY_MS = 24 * HOUR_MS
LEAST_STS_S = 900


class PurgeMode(StrEnum):
    """What a drop with `purgeRequested=true` does."""

    ASYNC = "async"
    SYNC = "sync"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class PurgeSettings:
    """What an operator may set of purges: `purge.mode`, `purge.undrop-window`, `purge.trust-locations` and
    `purge.whole-location`; and for how long the credentials hold that clients are given for a table's files."""

    mode: PurgeMode = PurgeMode.ASYNC
    undrop_window_ms: int = DAY_MS
    trust_locations: bool = False
    whole_location: bool = False
    vended_ms: int = HOUR_MS


def vended_ms(lifetime_s: int) -> int:
    """How long a vended credential holds, at most: STS gives none for less than a quarter of an hour."""
    return 1_000 * max(lifetime_s, LEAST_STS_S)


class Undone(Exception):
    """There is nothing (more) to purge: the table was restored, or dropped again, or it is purged already."""


class TooEarly(Exception):
    """The time to undo the drop has not passed."""


class Fenced(Exception):
    """Another lease has written itself into the tombstone."""


class ClosedCatalog(Exception):
    """The catalog is closed: its locations may belong to another catalog by now."""


class InTheWay(Exception):
    """Another entity holds, or held when it was `dropped`, a location inside or around `place`, which is to be purged,
    or `borrows` files from there. `name` is empty where only its tombstone or its own entry has the name."""

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
    """The purge that a drop asks for: edits of the drop's own commit, and objects beside and behind it."""

    edits: Edits
    first: Sequence[PlannedWrite]
    after: Sequence[PlannedWrite]


def request_purge(
    paths: Paths,
    settings: PurgeSettings,
    tombstone: JsonObject,
    attempt: Attempt,
) -> PurgeRequest:
    """Makes the purge of this tombstone a part of the drop that leaves it (docs/design/purge.md#rule-1)."""
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
    """The task that purges what this tombstone is of."""
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
    """The tombstone that names a task, by way of the task's own entry."""
    yield Needs(keys=[task_key(task)])
    named = index.get(task_key(task))
    if named is None:
        return None
    key = tombstone_key(texts(named, "namespace"), text(named, "name"), text(named, "entity"))
    return (yield from tombstone_with(index, key, task))


def tombstone_with(index: Index, key: str, task: str) -> Steps[Tombstone | None]:
    """The tombstone under a key, if it is that of this task's drop."""
    yield Needs(keys=[key])
    found = index.get(key)
    return None if found is None or found.get("task") != task else Tombstone(found)


def begin(
    index: Index, planned: Tombstone, fence: int, store_ms: int, *, anti_join: bool = False
) -> Steps[Edits | None]:
    """The beginning of a purge, or, where that was made, the fence of another lease; None if this lease has made one.
    `store_ms` is a time that the store's clock has passed; with the `anti_join` others may overlap. Raises `Undone`,
    `TooEarly`, `Fenced`, `InTheWay`, and `PendingTransaction`."""
    yield from require_open(index)
    tombstone = yield from _still(index, planned)
    if tombstone.state == PURGING:
        if tombstone.fence > fence:
            raise Fenced(f"version {tombstone.fence} of the task is at it")
        return None if tombstone.fence == fence else tombstone.fenced(fence)
    if tombstone.purge_after_ms > store_ms:
        raise TooEarly("the time to undo the drop has not passed")
    if anti_join:
        yield from _wait_for_purges(index, tombstone)
    else:
        yield from _refuse_overlap(index, tombstone)
    return (yield from tombstone.begun(index, fence))


def give_up(index: Index, planned: Tombstone, fence: int) -> Steps[Edits | None]:
    """What a purge leaves that failed before it deleted anything; None if it never began. Raises `Undone`, and
    `Fenced`."""
    tombstone = yield from _still(index, planned)
    if tombstone.state != PURGING:
        return None
    if tombstone.fence > fence:
        raise Fenced(f"version {tombstone.fence} of the task is at it")
    return tombstone.returned(fence)


def release(index: Index, planned: Tombstone, fence: int, at_ms: int) -> Steps[Edits | None]:
    """The end of a purge; None if it was made. Raises `Fenced` if the tombstone has not this lease's version, and
    `ClosedCatalog`."""
    yield from require_open(index)
    found = yield from tombstone_with(index, planned.key, str(planned.task))
    if found is not None and found.state == PURGED:
        return None
    require_fence(found, fence)
    assert found is not None
    return found.released(at_ms)


def require_open(index: Index) -> Steps[None]:
    """Raises `ClosedCatalog` for a closed catalog (docs/design/purge.md#rule-25)."""
    yield Needs(keys=[CATALOG_STATE])
    if is_dropping(index):
        raise ClosedCatalog("the catalog is closed, and its locations may belong to another by now")


def require_fence(tombstone: Tombstone | None, fence: int) -> None:
    """Raises `Fenced` unless this lease is the one that purges."""
    if tombstone is None or tombstone.state != PURGING:
        raise Fenced("the table is not being purged any more")
    if tombstone.fence != fence:
        raise Fenced(f"version {tombstone.fence} of the task is at it")


def _still(index: Index, planned: Tombstone) -> Steps[Tombstone]:
    """The tombstone as it is now. Raises `Undone`."""
    found = yield from tombstone_with(index, planned.key, str(planned.task))
    if found is None:
        raise Undone("the drop was undone")
    if found.state == PURGED:
        raise Undone("the table is purged already")
    if found.operation != planned.operation:
        raise Undone("the table was restored, and dropped again")
    return found


def _wait_for_purges(index: Index, tombstone: Tombstone) -> Steps[None]:
    """Of two that overlap one is purged first: each would keep what the other leads to. Raises `TooEarly`, and
    `PendingTransaction`."""
    for normal in tombstone.locations:
        location = Location.of_normal(normal)
        holder = yield from overlapping(index, location, but=[tombstone.entity], purging_only=True)
        if holder is not None:
            raise TooEarly(f"{location.uri} overlaps the location of entity {holder.entity}, which is being purged")


def _refuse_overlap(index: Index, tombstone: Tombstone) -> Steps[None]:
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
            raise InTheWay(borrower, location.uri, borrows=True)
