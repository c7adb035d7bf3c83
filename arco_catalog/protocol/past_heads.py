"""Reads HEAD as of a commit of the history. If the commit's object has only edits, HEAD is computed from the objects
since the last whole one (docs/design/registry.md#whole-commit-objects)."""

from arco_catalog.iceberg.json import JsonObject, dumps
from arco_catalog.protocol.concurrency import gather
from arco_catalog.state.access import State
from arco_catalog.state.commit_edits import chain_of, head_of, is_whole
from arco_catalog.state.commit_record import CommitRecord
from arco_catalog.state.registry import RegistryState
from storage_backends import Found

COPY = "head-"
"""The beginning of the name of a copy of HEAD, which is the id of a commit."""


async def past_head(state: State, commit: str) -> RegistryState:
    """Returns HEAD as of a commit, without a version. Raises `CommitStateUnknown` if one of the objects that this needs
    was deleted, and `InternalError` if one is corrupt."""
    last = await state.registry_commit(commit)
    document = last.document if is_whole(last.document) else await _computed(state, last)
    return RegistryState.of(document).with_segments(state.loaded_segment)


async def past_head_body(state: State, commit: str) -> bytes:
    """Returns the bytes of HEAD as of a commit. Raises `CommitStateUnknown` if one of the objects that this needs was
    deleted, and `InternalError` if one is corrupt."""
    body = await state.commit_object(commit)
    last = CommitRecord.read(body, state.paths.registry_commit(commit))
    return body if is_whole(last.document) else dumps(await _computed(state, last), sort_keys=True)


async def _computed(state: State, last: CommitRecord) -> JsonObject:
    """Returns HEAD as of a commit whose object has only edits. Reads the ancestor and the commits between them
    concurrently."""
    earlier = await gather(*(state.registry_commit(each) for each in chain_of(last.document)[:-1]))
    return head_of([*(each.document for each in earlier), last.document])


async def name_for_pages(state: State, head: RegistryState, *, is_first: bool) -> str:
    """Returns the name by which page tokens refer to HEAD as of its commit, for `read_named`. Where the object of the
    commit has only edits, it is the name of a copy of HEAD, which the first page of a listing stores. Raises
    `StoreError`."""
    if head.ancestor is None:
        return head.id or ""
    if is_first:
        await state.store_past_head(head)
    return f"{COPY}{head.id}"


async def read_named(state: State, name: str) -> RegistryState | None:
    """Reads the HEAD that a page token names, or returns the cached one; None if there is none, or not any more. Raises
    `InternalError` if it is corrupt."""
    commit = name.removeprefix(COPY)
    known = state.cached_head()
    if known is not None and known.id == commit:
        return known
    key = state.paths.registry_commit(commit) if name == commit else state.paths.past_head(commit)
    found = await state.store.get(key)
    record = CommitRecord.read(found.body, key) if isinstance(found, Found) else None
    if record is None or not is_whole(record.document):
        return None
    return RegistryState.of(record.document).with_segments(state.loaded_segment)
