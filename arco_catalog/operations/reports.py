"""Accepts engines' reports of scans and commits, and stores them if the operator enables that
(docs/design/state.md#reports)."""

from datetime import UTC, datetime

from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps
from arco_catalog.iceberg.metrics_report import is_of_commit
from arco_catalog.planning.names import existing_namespace, not_of_kind
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.lookup import load
from arco_catalog.protocol.relation_read_set import RelationLookup, resolve_name
from arco_catalog.state.entries import find_relation
from arco_catalog.state.index import Namespace, namespace_key
from arco_catalog.state.needs import Needs
from arco_catalog.state.registry import RegistryState
from arco_catalog.state.watermarks import NAMESPACE

MAX_BYTES = 256 << 10
"""Maximum size of a report. Engines send no longer ones, so these are dropped."""


async def take_report(session: Session, namespace: Namespace, name: str, report: JsonObject, *, keep: bool) -> None:
    """Accepts a report on a table that exists, or a report of a commit on a free name, which a staged table may have,
    and stores the report if `keep` is set. Without an error it stores none on a table in the namespace `system`, which
    is the pipeline's, none longer than `MAX_BYTES`, and none in a read-only catalog. Raises `NoSuchTable`,
    `NoSuchNamespace`, and `StoreError` if the report can't be stored."""
    head = await session.head()
    entry = await resolve_name(session, head, RelationLookup(namespace, name, "table", writing=False))
    if entry is None and not (is_of_commit(report) and await _is_free(session, head, namespace, name)):
        raise not_of_kind(head.index, "table", namespace, name)
    if not keep or namespace[0] == NAMESPACE or session.settings.read_only_because is not None:
        return
    now_ms = session.runtime.now_ms()
    day = datetime.fromtimestamp(now_ms / 1000, UTC).date()
    levels: list[JsonValue] = [*namespace]
    body = dumps(
        {
            "version": 1,
            "ms": now_ms,
            "namespace": levels,
            "table": name,
            "entity": None if entry is None else entry.entity,
            "by": session.request.by,
            "report": report,
        }
    )
    if len(body) <= MAX_BYTES:
        await session.state.create(session.state.paths.report(day, session.runtime.ulid()), body)


async def _is_free(session: Session, head: RegistryState, namespace: Namespace, name: str) -> bool:
    """Whether the name is free, and so may be a staged table's, of which nothing is stored: an engine reports an append
    in a transaction before the transaction creates the table. Raises `NoSuchNamespace`."""
    await load(session.state, head.index, Needs(keys=[namespace_key(namespace)]))
    existing_namespace(head.index, namespace)
    return find_relation(head.index, namespace, name) is None
