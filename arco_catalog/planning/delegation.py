"""Decides, by the index of the registry's HEAD, which purges a delegation service may execute
(docs/design/tasks.md#rule-8)."""

from arco_catalog.state.index import Index
from arco_catalog.state.needs import Steps
from arco_catalog.state.tombstone import Tombstone


def may_be_handed_over(index: Index, tombstone: Tombstone) -> Steps[bool]:
    """Whether a delegation service may execute the purge of this tombstone's table: the table has a single location,
    which the catalog generated for it alone, no other request has named that location, and the table takes no files
    from elsewhere. False if this is not known. Overlaps are not checked here, because the beginning of a purge rejects
    them."""
    if tombstone.made is None or len(tombstone.locations) != 1 or tombstone.json.get("borrowed"):
        return False
    return not (yield from tombstone.is_shared(index))
