"""Up to where commits of the registry may have been collected: written before the first of them goes
(docs/design/collection.md#rule-9)."""

from functools import partial

from arco_catalog.iceberg.json import dumps
from arco_catalog.state.access import State
from arco_catalog.state.compare_and_swap import update_until_applied
from arco_catalog.state.fields import integer, parse_record
from storage_backends import Found


async def read_registry_floor(state: State) -> int:
    """The sequence number before which commits may be gone; 0 where all are kept. Raises `InternalError`."""
    key = state.paths.registry_floor
    found = await state.store.get(key)
    return parse_registry_floor(key, found if isinstance(found, Found) else None)


async def raise_registry_floor(state: State, sequence: int) -> None:
    """Raises it for certain; it is never lowered. Raises `InternalError`, and `StoreError`."""
    key = state.paths.registry_floor
    await update_until_applied(
        state,
        key,
        partial(parse_registry_floor, key),
        lambda stored: sequence if stored < sequence else None,
        lambda raised: dumps({"version": 1, "sequence": raised}, sort_keys=True),
    )


def parse_registry_floor(key: str, found: Found | None) -> int:
    """The floor as it is stored, 0 where there is none. Raises `InternalError`."""
    return 0 if found is None else integer(parse_record(found.body, key), "sequence")
