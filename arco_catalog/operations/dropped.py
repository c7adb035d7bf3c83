"""Lists dropped tables that are not purged: tables whose drop may still be undone, and tables whose purge has begun,
also if it failed."""

from collections.abc import Sequence

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.listing import ListingPage, Paging, list_dropped_tables
from arco_catalog.protocol.catalog import Session
from arco_catalog.state.entries import order_of_drop
from arco_catalog.state.index import Namespace
from arco_catalog.state.tombstone import Tombstone


async def list_dropped(
    session: Session, namespace: Namespace, paging: Paging
) -> tuple[ListingPage, Sequence[JsonObject]]:
    """Returns a page with the names of tables that were dropped from a namespace and that the caller may see, except
    where the purge has ended, and the details of these drops, in the order of the page; a table name that was dropped
    twice is given twice. Without pages they are in order of their drops, newest first; each page is in order of names.
    Raises the errors of `list_dropped_tables`."""
    page = await list_dropped_tables(session, namespace, paging)
    found = [entry for entry in page.items if isinstance(entry, dict)]
    if paging.token is None:
        found.sort(key=order_of_drop, reverse=True)
    names: list[JsonObject] = [{"namespace": [*namespace], "name": entry["name"]} for entry in found]
    details = [_details(Tombstone(entry), name) for entry, name in zip(found, names, strict=True)]
    return ListingPage([*names], page.next_page_token), details


def _details(tombstone: Tombstone, name: JsonObject) -> JsonObject:
    """Returns the JSON of a dropped table: the fields of `name`, the entity id, the state and time of the drop, and the
    task and time of the purge, null without one."""
    return {
        **name,
        "entity": tombstone.entity,
        "state": tombstone.state,
        "dropped-at-ms": tombstone.dropped_ms,
        "purge-after-ms": None if tombstone.task is None else tombstone.purge_after_ms,
        "purge-task": tombstone.task,
    }
