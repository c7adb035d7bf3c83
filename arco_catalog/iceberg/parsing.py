"""Parses the bytes of a metadata file, and checks only that it is a JSON object."""

from arco_catalog.iceberg.errors import InternalError
from arco_catalog.iceberg.json import JsonObject, MalformedJson, loads


class UnreadableMetadata(InternalError):
    """A file that should contain metadata has no JSON object, or gzip that can't be unpacked. This is an internal
    error; a caller for which a client named the file turns it into another."""


def parse_metadata(body: bytes, location: str) -> JsonObject:
    """Returns the document in the bytes of the metadata file at `location`. Raises `UnreadableMetadata`."""
    try:
        document = loads(body)
    except MalformedJson as error:
        raise UnreadableMetadata(f"{location} is not a metadata file: {error}") from None
    if not isinstance(document, dict):
        raise UnreadableMetadata(f"{location} is not a metadata file: expected a JSON object")
    return document
