"""Reads many stored objects, a bounded number concurrently, for backups and restores."""

from collections.abc import AsyncGenerator, Collection, Mapping

from arco_catalog.iceberg.errors import InternalError
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.protocol.concurrency import batches, gather
from arco_catalog.state.access import State
from arco_catalog.state.listing import list_objects
from arco_catalog.state.marker import Slot
from storage_backends import Found

AT_ONCE = 32
"""Objects that are read concurrently."""
HOUR_MS = 60 * 60_000
"""More than the clock of a machine differs from the store's."""


async def read_all(state: State, keys: Collection[str]) -> AsyncGenerator[tuple[str, Found], None]:
    """Reads the objects at these keys, and yields each with its key; those that do not exist are left out."""
    for batch in batches(keys, AT_ONCE):
        found = await gather(*map(state.read, batch))
        for key, each in zip(batch, found, strict=True):
            if each is not None:
                yield key, each


async def final_answers(state: State, attempts: Collection[str], since_ms: int) -> Mapping[str, JsonObject]:
    """Returns the answers to these attempts that the last slots of markers have, by attempt. Only markers with slots
    from after an hour before `since_ms`, the time of the first attempt, are read; corrupt slots are left out."""
    if not attempts:
        return {}
    last: dict[str, int] = {}
    async for each in list_objects(state, state.paths.markers):
        marker, _, file = each.key.rpartition("/")
        number = file.removesuffix(".json")
        if number.isdecimal() and each.written_ms >= since_ms - HOUR_MS:
            last[marker] = max(int(number), last.get(marker, 0))
    answers: dict[str, JsonObject] = {}
    async for key, found in read_all(state, [f"{marker}/{number}.json" for marker, number in last.items()]):
        try:
            slot = Slot.parse(found, key)
        except InternalError:
            continue  # `arco fsck` reports it
        if slot.answer is not None and slot.attempt in attempts:
            answers[slot.attempt] = slot.answer
    return answers
