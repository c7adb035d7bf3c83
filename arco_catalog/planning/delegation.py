"""Which purges may be handed over to a delegation service (docs/design/tasks.md#rule-8), by HEAD's index."""

from arco_catalog.state.index import Index
from arco_catalog.state.needs import Steps
from arco_catalog.state.tombstone import Tombstone


def may_be_handed_over(index: Index, tombstone: Tombstone) -> Steps[bool]:
    """Whether a purge is of one location, which the catalog made for this table alone and which nobody else has named,
    and of a table that takes files from nowhere else. What is not known is not so. Overlap is refused when a purge
    begins."""
    if tombstone.made is None or len(tombstone.locations) != 1 or tombstone.json.get("borrowed"):
        return False
    return not (yield from tombstone.is_shared(index))
