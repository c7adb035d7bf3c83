"""Reads HEAD as of a commit of the history. If the commit's object has only edits, HEAD is computed from the objects
since the last whole one (docs/design/registry.md#whole-commit-objects)."""

from collections.abc import Sequence

from arco_catalog.iceberg.errors import CommitStateUnknown, InternalError
from arco_catalog.iceberg.json import dumps
from arco_catalog.protocol.concurrency import gather
from arco_catalog.state.access import State, commit_gone
from arco_catalog.state.commit_edits import WHOLE_EVERY, chain_of, head_of, is_whole
from arco_catalog.state.commit_record import CommitRecord
from arco_catalog.state.memory import PARSED_WEIGHT, Allocation, Hold
from arco_catalog.state.registry import RegistryState
from arco_catalog.state.registry_floor import read_registry_floor

OBJECT_BYTES = 16 << 10
"""Bytes of a commit object with only edits, until its size is known: few have more."""


async def past_head(state: State, commit: str, hold: Hold | None = None) -> RegistryState:
    """Returns HEAD as of a commit, without a version, from memory if it is cached, else computed from stored objects
    and then cached. Takes memory for these objects in `hold`. Raises `CommitStateUnknown` if one of the objects that
    this needs was deleted, `InternalError` if one is corrupt, and `StoreError`."""
    known = state.cached_head_of(commit)
    if known is not None:
        return known
    chain, body = await _chain(state, commit, hold or Hold())
    document = chain[0].document if len(chain) == 1 else head_of([each.document for each in chain])
    return state.cache_head_of(commit, RegistryState.of(document), len(body))


async def past_head_body(state: State, commit: str) -> bytes:
    """Returns the bytes of HEAD as of a commit of the history: of the commit's object if that is whole, else computed
    from the objects since the last whole one. Raises as `past_head`."""
    chain, body = await _chain(state, commit, Hold())
    return body if len(chain) == 1 else dumps(head_of([each.document for each in chain]), sort_keys=True)


async def next_list(state: State, listing: CommitRecord, end: int) -> CommitRecord | None:
    """Returns the commit with the sequence number `end`, the first that `listing` does not list; if its object is lost
    or damaged, a later commit that lists it. None if there is none, or it was collected. Raises `StoreError`."""
    if listing.before is None:
        return None
    for place, commit in enumerate([listing.before, *(each for each, _ in listing.recent()[:0:-1])][:WHOLE_EVERY]):
        try:
            if place == 1 and end < await read_registry_floor(state):
                return None
            record = await state.registry_commit(commit)
            if record.before_sequence < end <= record.sequence:
                return record
        except (CommitStateUnknown, InternalError):
            continue  # `arco fsck` reports it
    return None


async def _chain(state: State, commit: str, hold: Hold) -> tuple[list[CommitRecord], bytes]:
    """Returns the commits from which HEAD as of `commit` is computed, from the last one with a whole object to `commit`
    itself, and the bytes of that object. The object of `commit` is read first; if it is not whole, all others that may
    be needed are then read concurrently. Memory for both reads is taken in `hold` before. Raises as `past_head`."""
    taken = await hold.take(PARSED_WEIGHT * OBJECT_BYTES)
    body = await state.commit_object(commit)
    await _settle(hold, taken, [body])
    chain = [_record(state, commit, body)]
    if is_whole(chain[0].document):
        return chain, body
    before = [*reversed(chain_of(chain[0].document)[:-1])]
    taken = await hold.take(PARSED_WEIGHT * OBJECT_BYTES * len(before))
    found = await gather(*(state.read(state.paths.registry_commit(each)) for each in before))
    await _settle(hold, taken, [each.body for each in found if each is not None])
    for name, each in zip(before, found, strict=True):
        if each is None:
            raise commit_gone(name)
        chain.insert(0, _record(state, name, each.body))
        if is_whole(chain[0].document):
            return chain, each.body
    return chain, body


async def _settle(hold: Hold, taken: Allocation, bodies: Sequence[bytes]) -> None:
    """Takes further memory in `hold` if objects with these bodies need more than `taken`, or gives back the rest of it
    if they need less."""
    needed = PARSED_WEIGHT * sum(map(len, bodies))
    taken.shrink(needed)
    await hold.take(needed - taken.size)


def _record(state: State, commit: str, body: bytes) -> CommitRecord:
    """Returns the record of a registry commit from the bytes of the commit's object. Raises `InternalError` if they are
    corrupt, or belong to another commit."""
    key = state.paths.registry_commit(commit)
    record = CommitRecord.read(body, key)
    if record.id != commit:
        raise InternalError(f"the registry commit {key} is damaged: it has the id of another commit, {record.id}")
    return record
