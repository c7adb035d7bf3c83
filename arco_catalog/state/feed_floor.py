"""The floor of the event feed: the number of the first record of the first segment that collections have not deleted. A
collection raises it before it deletes any segment before that (docs/design/events.md#rule-11)."""

from functools import partial

from arco_catalog.iceberg.json import dumps
from arco_catalog.state.access import State
from arco_catalog.state.compare_and_swap import update_until_applied
from arco_catalog.state.feed import FIRST_NUMBER
from arco_catalog.state.fields import integer, parse_record
from storage_backends import Found


async def read_feed_floor(state: State) -> int:
    """Reads the number of the first record of the first segment of the event feed that may still exist; `FIRST_NUMBER`
    if none is saved. Raises `InternalError` if the stored number is corrupt, and `StoreError`."""
    key = state.paths.feed_floor
    return _parsed(key, await state.read(key))


async def raise_feed_floor(state: State, first: int) -> None:
    """Raises the saved number of the first record of the first segment of the event feed that may still exist to
    `first`, unless it is as high already, and returns when that is stored. Raises `InternalError` for a corrupt record,
    and `StoreError`."""
    key = state.paths.feed_floor
    await update_until_applied(
        state,
        key,
        partial(_parsed, key),
        lambda stored: first if stored < first else None,
        lambda raised: dumps({"version": 1, "first": raised}, sort_keys=True),
    )


def _parsed(key: str, found: Found | None) -> int:
    """Returns the number of the first record of the first segment of the feed from the object `found`; `FIRST_NUMBER`
    if that does not exist. Raises `InternalError` if it is corrupt."""
    return FIRST_NUMBER if found is None else integer(parse_record(found.body, key), "first")
