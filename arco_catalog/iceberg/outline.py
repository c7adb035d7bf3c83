"""Outlines of metadata documents: the few parts that are needed after a document was checked. Also frees the other
parts of large documents step by step."""

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.iceberg.json_pieces import let_go

_OUTLINED = frozenset(("metadata-log", "properties", "refs"))
"""The arrays and objects that are needed after a commit. All others may be long, also those in fields that the catalog
does not know; the next commit reads them again."""

LARGE_BYTES = 64 << 10
"""The bytes of JSON from which on a document is freed piece by piece. To walk through smaller ones takes longer than to
free them."""


def outline(document: JsonObject) -> JsonObject:
    """Returns the metadata without arrays and objects, except for the metadata log, the properties and the refs: all
    others may be long. The result is a new object that shares the values."""
    return {name: value for name, value in document.items() if name in _OUTLINED or not isinstance(value, list | dict)}


def let_long_parts_go(document: JsonObject, size: int) -> None:
    """Frees the parts of a document that `outline` leaves out, piece by piece: they are empty afterwards. Freeing a
    large document at once would block every thread until it is done. A document of less than `LARGE_BYTES` bytes of
    JSON, by `size`, is left as it is: Python frees it in 0.3 ms at most."""
    if size >= LARGE_BYTES:
        for name, value in document.items():
            if name not in _OUTLINED:
                let_go(value)
