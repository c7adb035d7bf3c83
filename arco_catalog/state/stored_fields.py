"""Keeps the fields that a later version of the program added to stored entries (docs/design/state.md)."""

from arco_catalog.state.index import Edits, Index
from arco_catalog.state.needs import Needs, Steps


def keep_stored_fields(index: Index, edits: Edits) -> Steps[Edits]:
    """Returns the index changes, with the fields added to each entry that only the stored entry has; removals as they
    are. It is for entries that never lose a field: to remove a value, an edit sets it to null or makes it empty."""
    yield Needs(keys=[key for key, entry in edits.items() if entry is not None])
    return {key: None if entry is None else {**(index.get(key) or {}), **entry} for key, entry in edits.items()}
