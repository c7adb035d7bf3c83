"""Reads the history of a registry, the operations on its names, roles and grants, from its commits, which are their own
receipts (docs/design/reconciliation.md#rule-4)."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

from arco_catalog.iceberg.errors import CommitStateUnknown, InternalError
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import batches, gather
from arco_catalog.protocol.key_resolution import RECORD
from arco_catalog.state.commit_record import CommitRecord
from arco_catalog.state.fields import objects
from arco_catalog.state.registry_floor import read_registry_floor
from storage_backends.lazy_dataclass import dataclass

OWN = frozenset(
    {
        "fence",
        "cancel",
        "add-locations",
        "release-locations",
        "share-locations",
        "lay-names",
        "settle-names",
        "collect-tombstones",
        RECORD,
    }
)
"""Kinds of operations that the protocols make for themselves, which `history` yields only with `own`. They change no
name, except that `lay-names` and `settle-names` create the tables of a transaction."""
LOST = "lost"
"""The kind of an item that stands for the unknown operations of a commit."""
AHEAD = 8
"""Number of commits that are read concurrently, each by one GET."""


@dataclass(frozen=True, slots=True)
class HistoryCommit:
    """One commit of a registry's history; without a `record` if its object is lost or corrupt. `listing` is the commit
    that has it in its list, or names it as the one before its list."""

    id: str
    sequence: int
    record: CommitRecord | None
    listing: CommitRecord

    def operations(self) -> list[JsonObject]:
        """Returns the commit's operations, the last one first, with the id, sequence number and time of the commit, and
        without the stored answers; for a commit without a record one item of the kind `LOST`."""
        if self.record is None:
            return [{"commit": self.id, "sequence": self.sequence, "at_ms": None, "kind": LOST}]
        made: JsonObject = {"commit": self.id, "sequence": self.sequence, "at_ms": self.record.at_ms}
        return [
            {**made, **{name: value for name, value in operation.items() if name != "answer"}}
            for operation in reversed(objects(self.record.document, "operations"))
        ]


async def history(
    session: Session, *, own: bool = False, newest: CommitRecord | None = None
) -> AsyncIterator[JsonObject]:
    """Yields the operations on the registry, newest first, from the commit `newest` or from HEAD back, in the form of
    `HistoryCommit.operations`; with `own` also the kinds in `OWN`, such as fences and the creation of tables by a
    transaction. Ends as `walk_commits` does."""
    head = newest or await session.state.head()
    async with aclosing(walk_commits(session, head, head.sequence)) as commits:
        async for commit in commits:
            for operation in commit.operations():
                if own or operation.get("kind") not in OWN:
                    yield operation


async def walk_commits(
    session: Session, listing: CommitRecord, sequence: int, *, ahead: int = AHEAD
) -> AsyncGenerator[HistoryCommit, None]:
    """Yields the commits of the registry from the one with a sequence number back. `listing` is this commit or a later
    one that lists it, or after whose list it comes. Reads up to `ahead` commits concurrently. Ends without an error at
    the first commit that a cleanup has deleted, and at a lost one if no list goes beyond it.

    A commit lists the ids of at most 500 commits, and names the one before them, which has the next list.
    """
    while True:
        commits, furthest = listing.listed_from(sequence), listing
        for batch in batches(commits, ahead):
            reads = [_commit(session, listing, each, sequence - place) for place, each in enumerate(batch)]
            for name, record in zip(batch, await gather(*reads), strict=True):
                if record is None and await _is_collected(session, sequence):
                    return
                yield HistoryCommit(name, sequence, record, listing)
                if record is not None and record.before_sequence < furthest.before_sequence:
                    furthest = record
                sequence -= 1
        if listing.before is None:
            return
        before = await _commit(session, listing, listing.before, sequence)
        if before is None and furthest is listing:
            if not await _is_collected(session, sequence):
                yield HistoryCommit(listing.before, sequence, None, listing)
            return
        listing = before or furthest


async def _commit(session: Session, listing: CommitRecord, commit: str, sequence: int) -> CommitRecord | None:
    """Reads the commit with this sequence number, which `listing` may be; None if its object does not exist or is
    corrupt."""
    if commit == listing.id:
        return listing
    try:
        read = await session.state.registry_commit(commit)
        return read if (read.id, read.sequence) == (commit, sequence) and read.at_ms >= 0 else None
    except (CommitStateUnknown, InternalError):
        return None


async def _is_collected(session: Session, sequence: int) -> bool:
    """Whether a collection may have deleted the commit with this sequence number; also true if the record of the
    collections is corrupt."""
    try:
        return sequence < await read_registry_floor(session.state)
    except InternalError:
        return True  # the floor is corrupt
