"""The tables whose snapshots a catalog may expire, and the tasks that do it (docs/design/expiry.md#rule-2)."""

import hashlib
import uuid
from collections.abc import AsyncGenerator
from contextlib import aclosing

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.planning.names import dotted
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.lookup import entries_in, relation_entry
from arco_catalog.state.entries import RelationEntry, has_pointer
from arco_catalog.state.fields import optional_text, texts
from arco_catalog.state.index import Index, Namespace, name_in
from arco_catalog.state.task import TABLE_EXPIRY, table_identity
from arco_catalog.state.task_log import read_task
from arco_catalog.state.watermarks import NAMESPACE
from arco_catalog.tasks.execution import TaskFailed
from arco_catalog.tasks.new_task import store_new_task
from storage_backends.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class LiveTable:
    """A table that has a name: its namespace, name, and entry in the registry."""

    namespace: Namespace
    name: str
    entry: RelationEntry

    def __str__(self) -> str:
        return dotted(self.namespace, self.name)


async def own_tables(session: Session, index: Index, after: str = "") -> AsyncGenerator[tuple[str, LiveTable], None]:
    """Yields the tables of the catalog by their keys in the index, in order, beginning after the key `after`: without
    views, tables of another format, the pipeline's own, tables that follow another catalog, and names that a
    transaction has not settled."""
    async with aclosing(entries_in(session.state, index, "relation\n")) as entries:
        async for key, value in entries:
            if key > after and (table := own_table(*name_in(key), RelationEntry(value))) is not None:
                yield key, table


def own_table(namespace: Namespace, name: str, entry: RelationEntry) -> LiveTable | None:
    """Returns a table by its entry; None if its snapshots may not be expired: a view, a table of another format or of
    another catalog, one of the pipeline, or a name that a transaction has not settled."""
    is_own = entry.kind == "table" and has_pointer(entry.json) and entry.transaction is None
    return LiveTable(namespace, name, entry) if is_own and namespace[0] != NAMESPACE else None


async def find_table(session: Session, payload: JsonObject) -> LiveTable | None:
    """Returns the table of a task, under its present name; None if it has no name any more, or may not be expired.
    Raises `TaskFailed` for an invalid payload."""
    identity = table_identity(payload)
    entity, name = optional_text(identity, "table_entity_id"), optional_text(identity, "table_name")
    if entity is None or name is None:
        raise TaskFailed("the payload of the task has no table_entity_id or no table_name, so its table is unknown")
    index, namespace = (await session.state.head()).index, texts(identity, "namespace_levels")
    entry = await relation_entry(session.state, index, namespace, name)
    if entry is not None and entry.entity == entity:
        return own_table(namespace, name, entry)
    async with aclosing(own_tables(session, index)) as tables:  # it was renamed
        async for _, table in tables:
            if table.entry.entity == entity:
                return table
    return None


def task_id(kind: str, *parts: str) -> str:
    """Returns the id of a task of this kind, a digest: concurrent workers that make the same task get the same id."""
    digest = hashlib.sha256("\n".join((kind, *parts)).encode()).digest()
    return str(uuid.UUID(bytes=digest[:16], version=5))


def table_payload(table: LiveTable, settings: JsonObject) -> JsonObject:
    """Returns the payload of a task that expires snapshots of a table; `settings` come from an operator's
    request, and are empty for a task by policy."""
    identity: JsonObject = {
        "table_entity_id": table.entry.entity,
        "namespace_levels": [*table.namespace],
        "table_name": table.name,
    }
    return {"operation_parameters": {"table_identity": identity, "properties": {}}, "expiry": settings}


async def submit(session: Session, task: str, kind: str, payload: JsonObject) -> None:
    """Stores a task that is due now, unless it exists. Raises `StoreError`."""
    if await read_task(session.state, task) is None:
        await store_new_task(session, task, kind, payload)


async def submit_table(session: Session, table: LiveTable, period: str, settings: JsonObject) -> str:
    """Stores the task that expires a table's snapshots in a period, unless it exists, and returns its id. Raises
    `StoreError`."""
    task = task_id(TABLE_EXPIRY, table.entry.entity, period)
    await submit(session, task, TABLE_EXPIRY, table_payload(table, settings))
    return task
