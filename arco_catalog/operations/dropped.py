"""What was dropped and can be restored, or is being purged."""

from collections.abc import Sequence

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.listing import Listed, Paging, list_dropped_tables
from arco_catalog.protocol.catalog import Session
from arco_catalog.state.entries import order_of_drop
from arco_catalog.state.index import Namespace
from arco_catalog.state.tombstone import Tombstone


async def list_dropped(session: Session, namespace: Namespace, paging: Paging) -> tuple[Listed, Sequence[JsonObject]]:
    """The tables of a namespace that were dropped and not purged, each as often as it was dropped, and what is known of
    each: all of them, the newest first, or a page, in the order of their names. Raises `NoSuchNamespace`."""
    listed = await list_dropped_tables(session, namespace, paging)
    found = [entry for entry in listed.items if isinstance(entry, dict)]
    if paging.token is None:
        found.sort(key=order_of_drop, reverse=True)
    names: list[JsonObject] = [{"namespace": [*namespace], "name": entry["name"]} for entry in found]
    told = [_told(Tombstone(entry), name) for entry, name in zip(found, names, strict=True)]
    return Listed([*names], listed.next_page_token), told


def _told(tombstone: Tombstone, name: JsonObject) -> JsonObject:
    return {
        **name,
        "entity": tombstone.entity,
        "state": tombstone.state,
        "dropped-at-ms": tombstone.dropped_ms,
        "purge-after-ms": None if tombstone.task is None else tombstone.purge_after_ms,
        "purge-task": tombstone.task,
    }
