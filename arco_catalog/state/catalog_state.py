"""Whether a catalog still takes new namespaces: said in its own registry, since its name is in another."""

from arco_catalog.state.index import Index, level

CATALOG_STATE = level("catalog", ()) + "state"
"""Key of the entry."""
DROPPING = "dropping"
"""The state of a catalog that is empty and stays so: its name is about to be taken away."""


def is_dropping(index: Index) -> bool:
    """Whether nothing may be made in the catalog any more; the entry is loaded."""
    entry = index.get(CATALOG_STATE)
    return entry is not None and entry.get("state") == DROPPING
