"""The floor of the registry's history: the sequence number before which commits may have been collected. A collection
raises it before it deletes the first of them (docs/design/collection.md#rule-9)."""

from functools import partial

from arco_catalog.iceberg.json import dumps
from arco_catalog.state.access import State
from arco_catalog.state.compare_and_swap import update_until_applied
from arco_catalog.state.fields import integer, parse_record
from storage_backends import Found


async def read_registry_floor(state: State) -> int:
    """Reads the sequence number before which commits of the registry may have been deleted; 0 if none was. Raises
    `InternalError` if the stored number is corrupt, and `StoreError`."""
    key = state.paths.registry_floor
    return parse_registry_floor(key, await state.read(key))


async def raise_registry_floor(state: State, sequence: int) -> None:
    """Raises the stored sequence number before which commits of the registry may have been deleted to `sequence`,
    unless it is higher, and returns when that is saved. Raises `InternalError`, and `StoreError`."""
    key = state.paths.registry_floor
    await update_until_applied(
        state,
        key,
        partial(parse_registry_floor, key),
        lambda stored: sequence if stored < sequence else None,
        lambda raised: dumps({"version": 1, "sequence": raised}, sort_keys=True),
    )


def parse_registry_floor(key: str, found: Found | None) -> int:
    """Reads the sequence number before which commits of the registry may have been deleted, from the object stored
    under `key`; 0 if that does not exist. Raises `InternalError`."""
    return 0 if found is None else integer(parse_record(found.body, key), "sequence")
