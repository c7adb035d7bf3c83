"""Floors: for each entity the time of the newest metadata file whose receipts may have been collected. At such a file,
or an older one, without a receipt a walk stops, or only reads on in the metadata, and writes no receipt; a receipt that
is still there leads on (docs/design/collection.md#rule-5).

A collection raises a floor before it deletes the first receipt at or below it. If a floor is lost, a walk restores
receipts from metadata.
"""

import hashlib
from collections.abc import Callable, Collection, Mapping
from functools import partial

from arco_catalog.iceberg.json import JsonObject, dumps
from arco_catalog.state.access import State
from arco_catalog.state.compare_and_swap import update_until_applied
from arco_catalog.state.fields import integer, mapping, parse_record
from storage_backends import Found

SHARDS = 16
"""How many objects hold the floors."""

Floors = Mapping[str, int]
"""Milliseconds since 1970, by the entities."""


async def read_floors(state: State) -> Floors:
    """Reads the floor of each entity that has one: the time, in milliseconds since 1970, of the newest metadata file
    whose receipts may have been collected. Raises `InternalError` for a corrupt record of floors, and `StoreError`."""
    floors: dict[str, int] = {}
    for shard in range(SHARDS):
        floors.update(await _read(state, shard))
    return floors


async def read_floor(state: State, entity: str) -> int | None:
    """Reads the floor of one entity, the time, in milliseconds since 1970, of the newest metadata file whose receipts
    may have been collected; None if it has none. Raises as `read_floors` does."""
    return (await _read(state, _shard_of(entity))).get(entity)


async def raise_floors(state: State, raised: Floors) -> None:
    """Raises the floors of these entities, the times up to which receipts may be collected from now on, to those in
    `raised`, unless they are as high already. Returns when all are saved. Raises as `read_floors` does."""
    for shard, ours in _by_shard(raised).items():
        await _update(state, shard, partial(_raised, ours))


async def forget_floors(state: State, entities: Collection[str]) -> None:
    """Removes the floors (the times up to which receipts may have been collected) of entities that no longer exist.
    Raises as `read_floors` does."""
    for shard, gone in _by_shard(dict.fromkeys(entities, 0)).items():
        await _update(state, shard, partial(_without, gone))


def _raised(ours: Floors, stored: Floors) -> Floors | None:
    """Returns the stored floors of receipts with the higher ones of `ours`, also for entities without one; None if none
    is higher."""
    higher = {entity: ms for entity, ms in ours.items() if stored.get(entity, ms - 1) < ms}
    return {**stored, **higher} if higher else None


def _without(gone: Floors, stored: Floors) -> Floors | None:
    """Returns the stored floors of receipts without the entities in `gone`; None if they have none of these."""
    kept = {entity: ms for entity, ms in stored.items() if entity not in gone}
    return kept if len(kept) < len(stored) else None


async def _update(state: State, shard: int, mutate: Callable[[Floors], Floors | None]) -> None:
    """Changes the floors of receipts in one object by `mutate`, which returns None for no change, as
    `update_until_applied` does, with the same limit of tries. Raises as `read_floors` does, and `UpdateContention`
    after the last try."""
    key = state.paths.floors(shard)
    await update_until_applied(state, key, partial(parse_floors, key), mutate, _encoded)


async def _read(state: State, shard: int) -> Floors:
    """Reads the floors of receipts, by entity, in one object; empty if it does not exist. Raises as `read_floors`
    does."""
    key = state.paths.floors(shard)
    return parse_floors(key, await state.read(key))


def parse_floors(key: str, found: Found | None) -> Floors:
    """Reads the floors by entity, the times up to which receipts may have been collected, from the object `found` that
    is stored under `key`; empty if it does not exist. Raises `InternalError` if it is corrupt."""
    if found is None:
        return {}
    floors = mapping(parse_record(found.body, key), "floors")
    return {entity: integer(floors, entity) for entity in floors}


def _encoded(floors: Floors) -> bytes:
    """Returns the stored form of floors of receipts."""
    document: JsonObject = {"version": 1, "floors": dict(floors)}
    return dumps(document, sort_keys=True)


def _shard_of(entity: str) -> int:
    """Returns the number, below `SHARDS`, of the object that has the floor of an entity's receipts."""
    return hashlib.sha256(entity.encode()).digest()[0] % SHARDS


def _by_shard(floors: Floors) -> dict[int, dict[str, int]]:
    """Returns floors of receipts, by entity, grouped by the number of the object that has them."""
    shards: dict[int, dict[str, int]] = {}
    for entity, ms in floors.items():
        shards.setdefault(_shard_of(entity), {})[entity] = ms
    return shards
