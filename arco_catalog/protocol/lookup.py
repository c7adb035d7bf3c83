"""Lookups in the registry's index, with segments as older parts: those that a computation needs are read
before it goes on (state/needs.py)."""

from collections.abc import AsyncGenerator
from typing import Generic, TypeVar

from arco_catalog.iceberg.errors import InternalError
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.protocol.concurrency import batches, gather
from arco_catalog.state.access import State
from arco_catalog.state.entries import NamespaceEntry, RelationEntry, find_namespace, find_relation
from arco_catalog.state.index import Index, Namespace, namespace_key, relation_key
from arco_catalog.state.needs import Needs, Steps
from arco_catalog.state.segments import KeyRange, Segment
from arco_catalog.state.worker_threads import off_loop
from storage_backends.lazy_dataclass import dataclass

T = TypeVar("T")

ROUNDS = 1_000
"""The limit of repetitions until all segments of one need are loaded. Each loads at least one, and no index has so
many."""
AHEAD = 8
"""The number of segments that are read concurrently."""


@dataclass(frozen=True, slots=True)
class _StepsResult(Generic[T]):
    value: T


def _resume(steps: Steps[T]) -> Needs | _StepsResult[T]:
    """Resumes a computation on the index, and returns the lookups that it needs next, or its result if it is done."""
    try:
        return next(steps)
    except StopIteration as end:
        return _StepsResult(end.value)


async def carry_out(state: State, index: Index, steps: Steps[T], size: int = 0) -> T:
    """Runs a computation on the index, loads the segments that it needs from the store, and returns the result. It runs
    in a worker thread unless `size`, the bytes of its input, is small. Raises `SegmentGone` if a segment was deleted
    meanwhile, and what the computation raises, or a call that it needs (`Needs.call`)."""
    while True:
        match await off_loop(size, lambda: _resume(steps)):
            case _StepsResult(value):
                return value
            case Needs() as needs:
                await load(state, index, needs)
                if needs.call is not None:
                    await needs.call()


def carry_out_loaded(index: Index, steps: Steps[T]) -> T | None:
    """Runs a computation on the index without reading, and returns the result; None if a segment that it needs is not
    loaded, or if it needs a call (`Needs.call`)."""
    while True:
        match _resume(steps):
            case _StepsResult(value):
                return value
            case Needs() as needs if needs.call is not None or index.missing(needs):
                steps.close()
                return None


async def load(state: State, index: Index, needs: Needs) -> None:
    """Loads the segments of the index that lookups need and that are not loaded; reads nothing if all are. Raises
    `SegmentGone` if one was deleted meanwhile, and `InternalError` if the lookups need others after every read."""
    for _ in range(ROUNDS):
        missing = index.missing(needs)
        if not missing:
            return
        for batch in batches(missing, AHEAD):
            await gather(*(state.fetch_segment(segment) for segment in batch))
    raise InternalError(
        f"a lookup in the registry's index made no progress: after {ROUNDS} reads of segments it needs others"
    )


async def namespace_entry(state: State, index: Index, namespace: Namespace) -> NamespaceEntry | None:
    """Loads and returns the entry of a namespace; None if it does not exist or is the root. Raises `SegmentGone`."""
    if namespace:
        await load(state, index, Needs(keys=[namespace_key(namespace)]))
    return find_namespace(index, namespace)


async def relation_entry(state: State, index: Index, namespace: Namespace, name: str) -> RelationEntry | None:
    """Loads and returns the entry of a relation's name, which may be an intent of a transaction, decided or not; None
    if no relation has the name. Raises `SegmentGone`."""
    await load(state, index, Needs(keys=[relation_key(namespace, name)]))
    return find_relation(index, namespace, name)


async def entries_in(state: State, index: Index, prefix: str) -> AsyncGenerator[tuple[str, JsonObject], None]:
    """Yields all keys that start with `prefix` and their entries, in order. It reads a few segments at a time, so that
    its memory is bounded. Raises `SegmentGone`."""
    key_ranges = index.key_ranges(prefix)

    async def read(key_range: KeyRange) -> Segment | None:
        return None if key_range.ref is None else await state.segment(key_range.ref.id)

    for batch in batches(key_ranges, AHEAD):
        segments = await gather(*(read(key_range) for key_range in batch))
        for key_range, segment in zip(batch, segments, strict=True):
            for item in index.entries(key_range, segment):
                yield item
