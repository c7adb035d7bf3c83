"""An operator's request to expire a table, and the preview of one."""

from arco_catalog.iceberg.errors import BadRequest, NoSuchTable
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.planning.names import dotted
from arco_catalog.planning.upkeep_policy import InvalidPolicy, SnapshotExpiry
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.lookup import relation_entry
from arco_catalog.state.index import Namespace
from arco_catalog.tasks.execution import OneSession
from arco_catalog.upkeep.expiry.commit import plan_now
from arco_catalog.upkeep.expiry.executor import obstacle, retention_by
from arco_catalog.upkeep.expiry.policies import PolicyReader
from arco_catalog.upkeep.expiry.tables import LiveTable, own_table, submit_table


async def request_expiry(session: Session, namespace: Namespace, name: str, settings: SnapshotExpiry) -> str:
    """Stores a task that expires a table by the settings, else by its policy, else by its properties, and returns its
    id. Raises `NoSuchTable`, and `BadRequest` for a table that is not to be expired, or an invalid policy."""
    table = await _table(session, namespace, name)
    merged = await _merged(session, table, settings)
    request: JsonObject = {"requested": True}
    if merged.max_age_ms is not None:
        request["max_age_ms"] = merged.max_age_ms
    if merged.min_to_keep is not None:
        request["min_to_keep"] = merged.min_to_keep
    return await submit_table(session, table, session.runtime.ulid(), request)


async def preview(session: Session, namespace: Namespace, name: str, settings: SnapshotExpiry) -> JsonObject:
    """Returns the snapshots by id, the oldest `MAX_EXPIRED` at most, and the branches and tags by name, that have
    expired now by the settings of `request_expiry`, and in `held_back` why it would remove none of them, None if it
    would. Raises as `request_expiry` and `plan_now` do. Writes nothing."""
    table = await _table(session, namespace, name)
    retention_of = retention_by(await _merged(session, table, settings))
    plan = await plan_now(session, table.entry.entity, retention_of)
    if plan is None:
        raise NoSuchTable(
            f"Table does not exist, or the pointer is lost, and `arco fsck` names the repair: {dotted(namespace, name)}"
        )
    held_back = await obstacle(OneSession(session), table) or plan.held_back
    return {
        "snapshots": [snapshot["snapshot-id"] for snapshot in plan.expiry.snapshots],
        "refs": [*plan.expiry.refs],
        "held_back": held_back,
    }


async def _table(session: Session, namespace: Namespace, name: str) -> LiveTable:
    """Returns the table of this name. Raises `NoSuchTable`, and `BadRequest` for one that can't be expired."""
    entry = await relation_entry(session.state, (await session.state.head()).index, namespace, name)
    if entry is None:
        raise NoSuchTable(f"Table does not exist: {dotted(namespace, name)}")
    if entry.kind != "table":
        raise NoSuchTable(f"{dotted(namespace, name)} can't be expired: it is a {entry.kind}, and no Iceberg table")
    table = own_table(namespace, name, entry)
    if table is None:
        raise BadRequest(
            f"{dotted(namespace, name)} can't be expired: it follows another catalog, belongs to the pipeline, or a "
            "transaction is changing its name"
        )
    return table


async def _merged(session: Session, table: LiveTable, settings: SnapshotExpiry) -> SnapshotExpiry:
    """Returns the settings of a request; the ones that it lacks come from the table's policy, if there is one and
    it is enabled. Raises `BadRequest` for an invalid policy."""
    index = (await session.state.head()).index
    try:
        policy = await PolicyReader(OneSession(session), index).of(table.namespace, table.name)
        required = SnapshotExpiry() if policy is None else SnapshotExpiry.of(policy)
    except InvalidPolicy as invalid:
        raise BadRequest(str(invalid)) from invalid
    return SnapshotExpiry(
        required.max_age_ms if settings.max_age_ms is None else settings.max_age_ms,
        required.min_to_keep if settings.min_to_keep is None else settings.min_to_keep,
    )
