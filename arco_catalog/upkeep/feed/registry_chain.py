"""Reads the operations of the registry that have not entered the event feed: from HEAD back to the position of the
feed (docs/design/events.md#rule-4)."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import Literal

from arco_catalog.iceberg.errors import CommitStateUnknown, InternalError
from arco_catalog.planning.feed import operation_record, position_after, registry_record
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import batches, gather
from arco_catalog.protocol.past_heads import next_list
from arco_catalog.state.commit_record import CommitRecord
from arco_catalog.state.feed import FeedRecord, RegistryPosition
from arco_catalog.state.fields import objects
from arco_catalog.state.registry import RegistryState
from arco_catalog.upkeep.feed.past_segments import records_back
from storage_backends.lazy_dataclass import dataclass

MAX_OPERATIONS = 1_000
"""The number of operations from which one step reads no further commit."""
MAX_COMMITS = 200_000
"""The number of ids of commits that a step keeps, of the oldest ones that have not entered: some 20 MB."""
AHEAD = 8
"""Number of commits that are read concurrently, each by one GET."""
NOWHERE = RegistryPosition(None, 0, 0)
"""The position before the first commit."""


@dataclass(frozen=True, slots=True)
class NewOperations:
    """The records of operations that enter next, in their order, with those of gaps and of a restore; and whether these
    are all up to HEAD."""

    records: Sequence[FeedRecord]
    is_all: bool


def position_of(head: RegistryState) -> RegistryPosition:
    """Returns the position after all operations of HEAD."""
    return RegistryPosition(head.id, head.sequence, len(objects(head.document, "operations")))


async def new_operations(session: Session, head: RegistryState, position: RegistryPosition, tail: int) -> NewOperations:
    """Returns the operations after a position of the feed up to HEAD, in order; if there are many, those of the oldest
    commits. A commit that is lost has a record of a gap. `tail` is the number of the first record of the last segment.
    Where HEAD's chain does not lead to the position, or the position is restored, the first record is about that,
    unless the operations go on at the same position. Raises `StoreError`, and `InternalError` for a corrupt segment."""
    if position.is_at(position_of(head)):
        return NewOperations([], True)
    chain = await _read_chain(session, head, position.sequence)
    records: list[FeedRecord] = []
    if position.is_restored or not chain.leads_to(position):
        before = position
        kind, position, chain = await _start_again(session, head, tail)
        if not position.is_at(before):
            records.append(registry_record(kind, position, head.at_ms))
    newer = [sequence for sequence in sorted(chain.ids) if sequence >= max(position.sequence, 1)]
    read = 0
    for batch in batches(newer, AHEAD):
        if len(records) >= MAX_OPERATIONS:
            break
        names = [chain.ids[sequence] for sequence in batch]
        commits = await gather(*(_commit(session, head, name) for name in names))
        for sequence, name, commit in zip(batch, names, commits, strict=True):
            records += _records(commit, name, sequence, position)
        read += len(batch)
    return NewOperations(records, read == len(newer) and max(chain.ids, default=0) == head.sequence)


async def _start_again(
    session: Session, head: RegistryState, tail: int
) -> tuple[Literal["restored", "gap"], RegistryPosition, "_Chain"]:
    """Returns the newest position of HEAD's chain that has entered the feed, and that chain, for a history that was
    restored; if none has, the position before the first known commit of the chain. The kind is that of the record about
    it: `restored`, or else `gap`."""
    chain = await _read_chain(session, head, 0)
    found = NOWHERE
    async with aclosing(records_back(session, tail)) as records:
        async for record in records:
            position = position_after([record], NOWHERE)
            if position.commit is not None and chain.leads_to(position):
                found = max(found, position, key=lambda each: (each.sequence, each.operations))
                if record.kind == "operation":  # later ones of the chain entered later
                    break
    if found.commit is not None:
        return "restored", found, chain
    oldest = min(chain.ids)
    return "gap", RegistryPosition(chain.ids[oldest], oldest, 0), chain


def _records(
    record: CommitRecord | None, name: str | None, sequence: int, position: RegistryPosition
) -> Sequence[FeedRecord]:
    """Returns the records of the operations of a commit that have not entered the feed, which are those after
    `position`. For a commit that is lost, that is the record of a gap; none if the position is at the end of that
    commit, or after this gap."""
    if record is None or name is None:
        if sequence == position.sequence and position.is_whole:
            return []
        return [registry_record("gap", RegistryPosition(name, sequence, 0), 0)]
    entered = position.operations if sequence == position.sequence else 0
    operations = objects(record.document, "operations")
    return [
        operation_record(operation, record.at_ms, commit=name, sequence=sequence, place=place, places=len(operations))
        for place, operation in enumerate(operations, 1)
        if place > entered
    ]


@dataclass(frozen=True, slots=True)
class _Chain:
    """The ids of commits of the registry, by their sequence numbers, without a gap up to that of HEAD or an earlier
    one. Number 0, before the first commit, has None."""

    ids: Mapping[int, str | None]

    def leads_to(self, position: RegistryPosition) -> bool:
        """Whether a position of the feed is in the chain: the commit of that sequence number is the same."""
        return position.sequence in self.ids and self.ids[position.sequence] == position.commit


async def _read_chain(session: Session, head: RegistryState, since: int) -> _Chain:
    """Returns the chain from HEAD back to a sequence number, or as far back as the commits that are stored list it. Of
    more than `MAX_COMMITS` commits it has the oldest."""
    ids: OrderedDict[int, str | None] = OrderedDict()
    listing: CommitRecord | None = head
    end = head.sequence
    while listing is not None:
        for name in listing.listed_from(end):
            ids[end] = name
            end -= 1
        while len(ids) > MAX_COMMITS:
            ids.popitem(last=False)
        if listing.before is None:
            ids[0] = None
        if listing.before is None or end < since:
            break
        listing = await next_list(session.state, listing, end)
    return _Chain({sequence: name for sequence, name in ids.items() if sequence >= since})


async def _commit(session: Session, head: RegistryState, name: str | None) -> CommitRecord | None:
    """Reads the commit of the registry with this id; HEAD itself is not read again. None if its object is gone or
    corrupt, or the id is None. Raises `StoreError`."""
    if name is None:
        return None
    if name == head.id:
        return head
    try:
        return await session.state.registry_commit(name)
    except (CommitStateUnknown, InternalError):
        return None
