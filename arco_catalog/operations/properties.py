"""Limits the size of the properties of namespaces and generic tables; the governance of a namespace counts as part of
them."""

from collections.abc import Mapping

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.json import JsonValue
from arco_catalog.iceberg.shapes import quoted

MAX_KEY_BYTES = 512
"""Maximum size of a property's name."""
MAX_VALUE_BYTES = 64 << 10
"""Maximum size of a property's value."""
MAX_PROPERTIES_BYTES = 256 << 10
"""Maximum size of all names and values of one entity."""
MAX_PROPERTIES = 100_000
"""More properties can't fit into `MAX_PROPERTIES_BYTES`: most of their names must have three bytes or more."""


def check_properties(
    owner: str, updates: Mapping[str, JsonValue], after: Mapping[str, JsonValue], before: int = 0
) -> None:
    """Raises `BadRequest`, with `owner` in the message, if the name or value of one of the `updates` is too long, or if
    all properties `after` them are too large together. An entity that was too large `before` (bytes) may stay so, but
    not grow."""
    if len(updates) > MAX_PROPERTIES and before <= MAX_PROPERTIES_BYTES:  # first, as it needs no loop
        raise BadRequest(
            f"The {len(after):,} properties of {owner} would take more than the allowed {MAX_PROPERTIES_BYTES:,} bytes"
        )
    for name, value in updates.items():
        if (size := len(name.encode())) > MAX_KEY_BYTES:
            raise BadRequest(
                f"Invalid property {quoted(name)} of {owner}: its name is {size:,} bytes long, more than "
                f"{MAX_KEY_BYTES:,}"
            )
        if (size := len(str(value).encode())) > MAX_VALUE_BYTES:
            raise BadRequest(
                f"Invalid property {quoted(name)} of {owner}: its value is {size:,} bytes long, more than "
                f"{MAX_VALUE_BYTES:,}"
            )
    total = size_of(after)
    if total > max(MAX_PROPERTIES_BYTES, before):
        largest = max(updates or after, key=lambda name: len(name) + len(str(after.get(name))))
        raise BadRequest(
            f"The properties of {owner} would be {total:,} bytes, more than {MAX_PROPERTIES_BYTES:,}; the longest of "
            f"{'those given' if updates else 'all, governance included,'} is {quoted(largest)}"
        )


def size_of(properties: Mapping[str, JsonValue]) -> int:
    """Returns the bytes of all names and values of these properties together, in UTF-8."""
    return sum(len(name.encode()) + len(str(value).encode()) for name, value in properties.items())
