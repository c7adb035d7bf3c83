"""Reads the receipts of the commits of a table or view."""

from arco_catalog.iceberg.errors import NoSuchTable
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.receipt_cursor import ReceiptCursor
from arco_catalog.planning.names import no_such
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.decisions import read_outcome, resolve_for_read
from arco_catalog.protocol.lookup import load
from arco_catalog.state.entries import find_relation, has_pointer, order_of_drop
from arco_catalog.state.fields import integer, text
from arco_catalog.state.index import Namespace, relation_key, tombstones_of
from arco_catalog.state.needs import Needs, Scan
from storage_backends.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class NamedEntity:
    """The entity of a table, view or other relation that has a name, or that was dropped under it at `dropped_ms`,
    which is None if it has the name now. An entity without a pointer (`has_pointer`) has no receipts."""

    entity: str
    dropped_ms: int | None
    has_pointer: bool = True

    @property
    def live(self) -> bool:
        """Whether the entity has the name now."""
        return self.dropped_ms is None


async def entities_named(session: Session, namespace: Namespace, name: str) -> list[NamedEntity]:
    """Returns the table, view or other relation that has the name now, if there is one, then those that were dropped
    under it, the last drop first. A name that a transaction creates counts only once that has committed. Raises
    `NoSuchTable` if there are none."""
    dropped = tombstones_of(namespace, name)
    while True:
        head = await session.state.head()
        await load(session.state, head.index, Needs(keys=[relation_key(namespace, name)], scans=[Scan(dropped)]))
        entry = find_relation(head.index, namespace, name)
        transaction = None if entry is None else entry.transaction
        outcome = True if transaction is None else await read_outcome(session.state, transaction)
        if outcome is not None or (await session.state.head()).version == head.version:
            break  # else the intent was settled, and its decision collected
    found = [NamedEntity(entry.entity, None, has_pointer(entry.json))] if entry is not None and outcome else []
    tombstones = [tombstone for _, tombstone in head.index.scan(dropped)]
    tombstones.sort(key=order_of_drop, reverse=True)
    found += [NamedEntity(text(each, "entity"), integer(each, "dropped_ms"), has_pointer(each)) for each in tombstones]
    if not found:
        raise no_such("table", namespace, name)
    return found


async def receipts(session: Session, namespace: Namespace, name: str) -> list[JsonObject]:
    """Returns, as `receipts_of` does, the receipts of the table or view that has the name now, or else of the one that
    was dropped last under it. Raises `NoSuchTable`, also if only relations without a pointer have or had the name."""
    found = await entities_named(session, namespace, name)
    first = next((each for each in found if each.has_pointer), found[0])
    return await receipts_of(session, first.entity)


async def receipts_of(session: Session, entity: str, limit: int | None = None) -> list[JsonObject]:
    """Returns the receipts of an entity's commits, newest first and at most `limit`, each with a `state`: `committed`,
    or `pending` if the committed one was not written yet. Raises `NoSuchTable` if no table or view with a pointer has
    that id.

    Ends at the first file without a receipt (docs/design/reconciliation.md). All have the field names of the current
    version of receipts.
    """
    pointer = await session.state.pointer(entity)
    if pointer is None:
        raise NoSuchTable(
            f"No table or view has the entity id {entity}, or its pointer is missing: check with `arco fsck`, unless "
            "it is a generic table, a semantic model or a table that follows another catalog's, which have no receipts"
        )
    newest = (await resolve_for_read(session.state, pointer)).metadata
    cursor = ReceiptCursor(session, entity, newest, origin=pointer.registered_from)
    found: list[JsonObject] = []
    while len(found) != limit and (commit := await cursor.step()) is not None and commit.receipt is not None:
        found.append(commit.receipt)
    return found
