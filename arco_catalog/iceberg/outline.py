"""The few parts of metadata that are needed once it was judged, and steps that free the others."""

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.iceberg.json_pieces import let_go

_OUTLINED = frozenset(("metadata-log", "properties", "refs"))
"""The arrays and objects that are needed after a commit. All others may be long, those of fields that the catalog does
not know too: the next commit reads them anew."""


def outline(document: JsonObject) -> JsonObject:
    """Metadata without the arrays and objects that may be long."""
    return {name: value for name, value in document.items() if name in _OUTLINED or not isinstance(value, list | dict)}


def let_long_parts_go(document: JsonObject) -> None:
    """Frees the long parts of metadata piece by piece. Dropping the whole document at once would block every thread
    until all of it is freed."""
    let_go([value for name, value in document.items() if name not in _OUTLINED])
