"""Drops a catalog by two commits: the first closes the catalog's own registry, if it is empty; the second removes the
catalog's name from the realm (docs/design/access.md#management)."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from arco_catalog.iceberg.errors import (
    CatalogChanged,
    CommitStateUnknown,
    InternalError,
    NamespaceNotEmpty,
    Unavailable,
)
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.operations.management.entities import EntityChange, body_of
from arco_catalog.planning.attempt import Attempt
from arco_catalog.planning.names import dotted
from arco_catalog.planning.registry_change import Change
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import gather
from arco_catalog.protocol.driver import run
from arco_catalog.protocol.lookup import load
from arco_catalog.protocol.registry_mutation import RegistryReadSet
from arco_catalog.state.catalog_state import CATALOG_STATE, CatalogState
from arco_catalog.state.fields import texts
from arco_catalog.state.index import Edits, Index, namespaces_in
from arco_catalog.state.needs import Needs, Scan, Steps
from arco_catalog.state.realm import CatalogEntry, catalog_key, find_catalog
from arco_catalog.state.task import Status
from arco_catalog.state.task_log import read_task
from arco_catalog.state.tombstone import PURGED, PURGING, Tombstone
from arco_catalog.state.version_floors import raised_floor

MAX_NAMED = 20
"""Maximum number of tables that a refusal names."""
TOMBSTONES = Scan("tombstone\n")


async def end_catalog(session: Session, entry: CatalogEntry, *, cancel_purges: bool = False) -> Sequence[str]:
    """Closes the registry of a catalog, if it is empty and every purge in it has ended. With `cancel_purges` the same
    commit makes plain drops of the purges that have not begun. Returns the names of the tables whose purges were
    cancelled; if this entry has closed the registry already, the ones of that commit. Raises
    `NamespaceNotEmpty` if it has a namespace or an unfinished purge that is not cancelled, and `CatalogChanged` if the
    catalog was dropped and undropped since `entry` was read."""
    return texts(body_of(await run(session, _End(session, entry, cancel_purges))), "cancelled-purges")


async def remove_catalog(session: Session, entry: CatalogEntry) -> None:
    """Removes the name of a catalog that `end_catalog` has ended. If the name is free already, or belongs to another
    catalog by now, the commit has only an entry for the history. Raises `CatalogChanged`, and `CommitStateUnknown`
    instead of any other `Unavailable`, because the catalog is closed."""
    try:
        await run(session, _Remove(session, entry))
    except CatalogChanged:
        raise  # the handler runs again at once
    except Unavailable as error:
        raise CommitStateUnknown(
            f"Catalog {entry.name} was closed, but still has its name: drop it again. {error.message}"
        ) from error


def unfinished_purges(index: Index) -> Sequence[Tombstone]:
    """Returns the tombstones of purges that have not ended, begun ones first. `TOMBSTONES` must be loaded."""
    found = (Tombstone(entry) for _, entry in index.scan(TOMBSTONES.prefix))
    unfinished = [each for each in found if each.task is not None and each.state != PURGED]
    return sorted(unfinished, key=lambda each: each.state != PURGING)


def table_names(tombstones: Sequence[Tombstone]) -> list[JsonValue]:
    """Returns the full names of the tables that have these tombstones, sorted."""
    return [*sorted(dotted(each.namespace, each.name) for each in tombstones)]


class PurgeCancellation(EntityChange):
    """The base of changes of a catalog's registry that also cancel purges: each tombstone of an unfinished purge
    becomes one of a plain drop. The `edits` of a subclass must load `TOMBSTONES`."""

    def change(self, read_set: RegistryReadSet, attempt: Attempt) -> Steps[Change]:
        """Plans the change by `edits`, and adds the index changes that turn all unfinished purges into plain drops,
        in their tombstones. Raises as `edits` does."""
        index = read_set.head.index
        planned = yield from super().change(read_set, attempt)
        plain: dict[str, JsonObject | None] = {}
        for each in unfinished_purges(index):
            plain |= each.without_purge()
        return replace(planned, edits={**planned.edits, **plain})


class _End(PurgeCancellation):
    kind = "end-catalog"
    status = 200

    def __init__(self, session: Session, entry: CatalogEntry, cancel_purges: bool) -> None:
        super().__init__(session, {})
        self.entry, self.cancel_purges = entry, cancel_purges
        self._statuses: dict[str, Status | None] = {}
        """Status by task id, of the tasks that a refusal would name; None for a task without a valid record."""

    def needs_base(self, read_set: RegistryReadSet) -> bool:
        """Whether `load_base` must be called: the catalog's tombstones are not loaded, or the status of a task was not
        read, of the first `MAX_NAMED` unfinished purges."""
        index = read_set.head.index
        return bool(index.missing(Needs(scans=[TOMBSTONES])) or self._unread(index))

    async def load_base(self, read_set: RegistryReadSet) -> None:
        """Loads the catalog's tombstones, and reads the status of the tasks of the first `MAX_NAMED` unfinished purges,
        unless it was read before. Raises `StoreError`."""
        index = read_set.head.index
        await load(self.state, index, Needs(scans=[TOMBSTONES]))
        tasks = self._unread(index)
        self._statuses |= zip(tasks, await gather(*map(self._status, tasks)), strict=True)

    def _unread(self, index: Index) -> list[str]:
        """Returns the ids of tasks whose status was not read yet, of the first `MAX_NAMED` unfinished purges."""
        named = unfinished_purges(index)[:MAX_NAMED]
        return [str(each.task) for each in named if each.task not in self._statuses]

    async def _status(self, task: str) -> Status | None:
        """Reads the status of a task; None if it is missing or corrupt."""
        try:
            stored = await read_task(self.state, task)
        except InternalError:  # `arco fsck` reports it; the refusal names the task all the same
            return None
        return None if stored is None else stored.task.status

    def edits(self, index: Index, attempt: Attempt) -> Steps[tuple[Edits, JsonObject | None]]:
        """Plans the closing of the catalog's registry; the body names the tables whose purges are cancelled with it.
        If this entry has closed it before, it returns no index changes, and the body of that time. Raises
        `CatalogChanged` if the catalog was undropped since, and `NamespaceNotEmpty` for a namespace and for an
        unfinished purge that may not be cancelled."""
        yield Needs(keys=[CATALOG_STATE], scans=[Scan(namespaces_in(()), until=lambda entry: True), TOMBSTONES])
        state = CatalogState.of(index)
        if self.entry.entity in state.former:
            raise CatalogChanged(f"Catalog {self.entry.name} was dropped and undropped just now: try again")
        if state.is_closed and state.closed_by == self.entry.entity:
            return {}, {"cancelled-purges": [*state.cancelled]}
        if index.any_in(namespaces_in(())):
            raise NamespaceNotEmpty(f"Catalog {self.entry.name} is not empty: drop its namespaces first")
        unfinished = unfinished_purges(index)
        if unfinished and (not self.cancel_purges or unfinished[0].state == PURGING):
            raise NamespaceNotEmpty(self._refusal(unfinished))
        cancelled = table_names(unfinished)
        return {CATALOG_STATE: state.closed(self.entry.json, cancelled)}, {"cancelled-purges": cancelled}

    def _refusal(self, unfinished: Sequence[Tombstone]) -> str:
        """Returns the message of the refusal to drop a catalog with unfinished purges, which names the first
        `MAX_NAMED` of them."""
        name = self.entry.name
        listed = "; ".join(self._describe(each) for each in unfinished[:MAX_NAMED])
        more = f"; and {len(unfinished) - MAX_NAMED} more" if len(unfinished) > MAX_NAMED else ""
        cancel = f", or cancel them, of which none has begun: arco catalogs drop {name} --cancel-purges"
        return (
            f"Catalog {name} is not empty: purges have not ended: {listed}{more}. "
            f"Wait until their tasks have succeeded (arco tasks --warehouse {name})"
            f"{'' if unfinished[0].state == PURGING else cancel}"
        )

    def _describe(self, tombstone: Tombstone) -> str:
        """Returns in words where an unfinished purge stands: failed, with the command that submits it again, under way,
        or waiting until a time."""
        table, task = dotted(tombstone.namespace, tombstone.name), tombstone.task
        if self._statuses.get(str(task)) is Status.FAILURE:
            again = f"arco tasks retry {task} --warehouse {self.entry.name}"
            return f"the purge of {table} has failed, and is submitted again by: {again}"
        if tombstone.state == PURGING:
            return f"{table} is being purged by task {task}"
        after = datetime.fromtimestamp(tombstone.purge_after_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
        return f"{table} is purged by task {task} after {after} UTC"


class _Remove(EntityChange):
    kind = "drop-catalog"

    def __init__(self, session: Session, entry: CatalogEntry) -> None:
        super().__init__(session, {"name": entry.name, "catalog": entry.entity})
        self.entry = entry

    def edits(self, index: Index, attempt: Attempt) -> Steps[tuple[Edits, JsonObject | None]]:
        """Removes the name of the catalog, and keeps its version as the floor of the next one with the name. Makes no
        edits if the name is free or another catalog's by now. The answer is None."""
        key = catalog_key(self.entry.name)
        yield Needs(keys=[key])
        found = find_catalog(index, self.entry.name)
        if found is None or (found.entity, found.root) != (self.entry.entity, self.entry.root):
            return {}, None
        return {key: None, **(yield from raised_floor(index, key, found.version))}, None
