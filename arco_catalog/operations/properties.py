"""How long the properties of a namespace or a generic table may be."""

from collections.abc import Mapping

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.json import JsonValue
from arco_catalog.iceberg.shapes import quoted

MAX_KEY_BYTES = 512
"""Of a property's name."""
MAX_VALUE_BYTES = 64 << 10
"""Of its value."""
MAX_PROPERTIES_BYTES = 256 << 10
"""Of all names and values of one entity."""
MOST_PROPERTIES = 100_000
"""More have no room in that: there are only so many names of one or two bytes."""


def check_properties(
    whose: str, updates: Mapping[str, JsonValue], after: Mapping[str, JsonValue], before: int = 0
) -> None:
    """Raises `BadRequest`, which tells `whose` they are, for a property that is too long, or if all are together and
    take more than `before` bytes, which they did already."""
    if len(updates) > MOST_PROPERTIES and before <= MAX_PROPERTIES_BYTES:  # before each of them is looked at
        raise BadRequest(
            f"The properties of {whose} would be {len(after):,}, which take more than {MAX_PROPERTIES_BYTES:,} bytes"
        )
    for name, value in updates.items():
        what = f"Invalid property {quoted(name)} of {whose}"
        if (size := len(name.encode())) > MAX_KEY_BYTES:
            raise BadRequest(f"{what}: its name is {size:,} bytes long, more than {MAX_KEY_BYTES:,}")
        if (size := len(str(value).encode())) > MAX_VALUE_BYTES:
            raise BadRequest(f"{what}: its value is {size:,} bytes long, more than {MAX_VALUE_BYTES:,}")
    total = size_of(after)
    if total > max(MAX_PROPERTIES_BYTES, before):
        largest = max(updates or after, key=lambda name: len(name) + len(str(after.get(name))))
        raise BadRequest(
            f"The properties of {whose} would be {total:,} bytes, more than "
            f"{MAX_PROPERTIES_BYTES:,}; the longest of those given is {quoted(largest)}"
        )


def size_of(properties: Mapping[str, JsonValue]) -> int:
    """Bytes of names and values together."""
    return sum(len(name.encode()) + len(str(value).encode()) for name, value in properties.items())
