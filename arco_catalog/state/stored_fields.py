"""Keeps what a later version of this program added to stored entries (docs/design/state.md)."""

from arco_catalog.state.index import Edits, Index
from arco_catalog.state.needs import Needs, Steps


def keep_stored_fields(index: Index, edits: Edits) -> Steps[Edits]:
    """The edits, each entry with the fields that only the stored one has. For entries that never lose a field: what
    they no longer have is null, or empty."""
    yield Needs(keys=[key for key, entry in edits.items() if entry is not None])
    return {key: None if entry is None else {**(index.get(key) or {}), **entry} for key, entry in edits.items()}
