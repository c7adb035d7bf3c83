"""Deletes a registry's old objects: commits that never were HEAD, old commits that the pipeline has read, and segments
and values to which no HEAD of the last week refers (docs/design/collection.md#rule-9).

The HEADs that refer to a segment or a value are consecutive. So one that is older than the HEAD of a week ago, and is
in neither that HEAD nor the current one, is in no HEAD that a page token or a marker may name.
"""

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from arco_catalog.iceberg.errors import CommitStateUnknown
from arco_catalog.planning.collection import Kind, has_moved_past, is_older
from arco_catalog.protocol.evidence import fence_registry
from arco_catalog.protocol.lookup import entries_in
from arco_catalog.protocol.past_heads import next_list, past_head
from arco_catalog.state.commit_edits import WHOLE_EVERY
from arco_catalog.state.commit_record import CommitRecord
from arco_catalog.state.entries import NamespaceEntry
from arco_catalog.state.registry import RegistryState
from arco_catalog.state.registry_floor import raise_registry_floor, read_registry_floor
from arco_catalog.upkeep.collection.names import Names, NumberedNames
from arco_catalog.upkeep.collection.pipeline import PipelineProgress
from arco_catalog.upkeep.collection.run import Run
from storage_backends import Found, Listed


@dataclass
class History:
    """The history of a registry: the ids and sequence numbers of the commits that were HEAD, as far as HEAD and the
    commits that can be read list them; the objects of some may be gone. `whole` is whether they go back to the first
    commit, or to the floor, below which commits were collected."""

    head: RegistryState
    sequences: NumberedNames = field(default_factory=NumberedNames)
    whole: bool = True
    end: int = 0
    """The sequence number of the newest commit that `sequences` does not have; 0 if it has all."""
    past: int | None = None
    """The sequence number of the newest commit whose object is a week old; None if there is none. A repair may have
    written the object of the next commit again (`CopyHead`), so either may be the one that was HEAD a week ago."""


async def collect_registry(run: Run, pipeline: PipelineProgress) -> None:
    """Deletes old registry commits that never were HEAD, and commits past the retention of receipts that the pipeline
    has read and that no kept one is computed from; then the old segments and values to which neither HEAD nor the HEAD
    of a week ago refers, unless the latter is unknown or can't be read. Before that, fences the registry if HEAD is too
    old, except in a dry run, which only counts. Does nothing if there is no registry yet."""
    found = await run.session.state.store.get(run.paths.manifest)
    if not isinstance(found, Found):
        return
    if not has_moved_past(found.written_ms, found.now_ms - run.retention.orphans_ms, run.retention) and run.delete:
        await fence_registry(run.session)  # so that no write from before a week ago can apply
    history = await _history(run)
    await _collect_commits(run, history, pipeline)
    if history.past is None:
        return
    heads = [history.head]
    for sequence in range(history.past, min(history.past + 2, history.head.sequence)):
        old = await run.unless_unreadable(f"commit {sequence} of the registry", _head_as_of(run, history, sequence))
        if old is None:  # the references of the old HEAD are unknown
            return
        heads.append(old)
    await _collect_segments(run, heads)
    await _collect_values(run, heads)


async def _history(run: Run) -> History:
    """Reads the ids of the registry's commits from HEAD back to the floor. `whole` is false if the commits that list
    older ones no longer exist or are corrupt."""
    state = run.session.state
    floor = await read_registry_floor(state)
    head = await state.head()
    history, listing = History(head, end=head.sequence), CommitRecord(head.document)
    while True:
        for commit in listing.listed_from(history.end):
            history.sequences.add(commit, history.end)
            history.end -= 1
        if listing.before is None or history.end < floor:
            return history
        run.check_may_continue()
        after = await next_list(state, listing, history.end)
        if after is None:
            history.whole = False
            return history
        listing = after


async def _head_as_of(run: Run, history: History, sequence: int) -> RegistryState:
    """Returns HEAD as of the commit with this sequence number, which is less than that of HEAD. Raises
    `CommitStateUnknown` if no commit that lists it can be read, and as `past_head`."""
    state = run.session.state
    listing: CommitRecord | None = CommitRecord(history.head.document)
    while listing is not None and listing.before_sequence >= sequence:
        run.check_may_continue()
        listing = await next_list(state, listing, listing.before_sequence)
    if listing is None:
        raise CommitStateUnknown(
            f"the registry commit with the number {sequence} can't be found: all commits that list it are gone or "
            "damaged. So a collection deletes no segments and values, which HEAD as of that commit may need"
        )
    return await past_head(state, listing.listed_from(sequence)[0])


async def _collect_commits(run: Run, history: History, pipeline: PipelineProgress) -> None:
    """Deletes old registry commits that never were HEAD, and older ones that the pipeline has read and no later commit
    is computed from; a dry run only counts them. If the history has a gap, a commit that it does not list may be in the
    gap, and is deleted only if it is as old and the pipeline has read all commits of the gap. Keeps the commits of HEAD
    and of the newest commit with an object that is a week old, and sets `history.past` to the sequence number of the
    latter."""
    past: tuple[int, Listed, bool] | None = None
    prefix = run.paths.registry_commits
    needed_from = await _needed_from(run, history, pipeline)
    async with aclosing(run.pages(prefix)) as pages:
        async for page, now_ms in pages:
            lost: list[Listed] = []
            old: list[tuple[int, Listed]] = []
            for each in page:
                sequence = history.sequences.get(_id(prefix, each))
                if not is_older(each.written_ms, now_ms, run.retention.with_margin(run.retention.orphans_ms)):
                    continue
                expired = is_older(each.written_ms, now_ms, run.retention.receipts_ms)
                if sequence is None:
                    if history.whole or (expired and pipeline.has_read_commit(history.end)):
                        lost.append(each)
                    continue
                may_go = expired and sequence < needed_from and pipeline.has_read_commit(sequence)
                if past is None or sequence > past[0]:
                    if past is not None and past[2]:
                        old.append(past[:2])
                    past = sequence, each, may_go
                elif may_go:
                    old.append((sequence, each))
            await run.collect(Kind.REGISTRY_COMMIT, lost)
            await _collect_old(run, [item for item in old if item[0] != history.head.sequence])
    history.past = None if past is None else past[0]


async def _needed_from(run: Run, history: History, pipeline: PipelineProgress) -> int:
    """Returns the sequence number from which on registry commits must stay because others are computed from them. It is
    greater than that of HEAD if no commit object can have only edits; else less by `WHOLE_EVERY` - 1 than that of the
    oldest one that is not collected, or of the HEAD of a week ago if that is older: a commit needs all from its whole
    ancestor on."""
    kept, week_old = history.head.sequence, 0
    if not history.head.allows_cancellations:
        return kept + 1
    prefix = run.paths.registry_commits
    async with aclosing(run.pages(prefix)) as pages:
        async for page, now_ms in pages:
            for each in page:
                sequence = history.sequences.get(_id(prefix, each))
                if sequence is None:
                    continue
                is_week_old = is_older(each.written_ms, now_ms, run.retention.with_margin(run.retention.orphans_ms))
                expired = is_older(each.written_ms, now_ms, run.retention.receipts_ms)
                if is_week_old:
                    week_old = max(week_old, sequence)
                if not (is_week_old and expired and pipeline.has_read_commit(sequence)):
                    kept = min(kept, sequence)
    return min(kept, week_old or kept) - WHOLE_EVERY + 1


async def _collect_old(run: Run, old: Sequence[tuple[int, Listed]]) -> None:
    """Deletes old registry commits, each given with the sequence number. First raises the floor of the registry, by
    which readers know that the commits below it were collected. A dry run only counts the commits."""
    if old and run.delete:
        await raise_registry_floor(run.session.state, max(sequence for sequence, _ in old) + 1)
    await run.collect(Kind.REGISTRY_COMMIT, [each for _, each in old])


def _id(prefix: str, listed: Listed) -> str:
    """Returns the id in the key of a listed object."""
    return listed.key.removeprefix(prefix).removesuffix(".json")


async def _collect_segments(run: Run, heads: Sequence[RegistryState]) -> None:
    """Deletes the old segments of the index that none of these HEADs names; a dry run only counts them."""
    named = {ref.id for head in heads for key_range in head.index.key_ranges("") if (ref := key_range.ref) is not None}
    await _collect_unnamed(run, Kind.REGISTRY_SEGMENT, run.paths.index_segments, named)


async def _collect_values(run: Run, heads: Sequence[RegistryState]) -> None:
    """Deletes the properties of namespaces that are as old as `_collect_unnamed` requires and that none of these HEADs
    names; a dry run only counts them."""
    values = Names()
    for head in heads:
        async with aclosing(entries_in(run.session.state, head.index, "namespace\n")) as entries:
            async for _, entry in entries:
                values.add(NamespaceEntry(entry).value)
    await _collect_unnamed(run, Kind.REGISTRY_VALUE, run.paths.namespace_values, values)


async def _collect_unnamed(run: Run, kind: Kind, prefix: str, named: set[str] | Names) -> None:
    """Deletes, and in a dry run only counts, the objects of a kind under a prefix that are older than `orphans_ms` and
    two margins, and whose ids are not in `named`, the ids to which the current HEAD, or the newest of more than
    `orphans_ms` ago, refers."""
    async with aclosing(
        run.older(prefix, run.retention.with_margin(run.retention.with_margin(run.retention.orphans_ms)))
    ) as batches:
        async for batch in batches:
            await run.collect(kind, [each for each in batch if _id(prefix, each) not in named])
