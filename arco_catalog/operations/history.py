"""Reads the history of a registry, the operations on its names, roles and grants, from its commits, which are their own
receipts (docs/design/reconciliation.md#rule-4)."""

from collections.abc import AsyncIterator

from arco_catalog.iceberg.errors import CommitStateUnknown, InternalError
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import batches, gather
from arco_catalog.protocol.key_resolution import RECORD
from arco_catalog.state.commit_record import CommitRecord
from arco_catalog.state.fields import objects
from arco_catalog.state.registry_floor import read_registry_floor

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


async def history(
    session: Session, *, own: bool = False, newest: CommitRecord | None = None
) -> AsyncIterator[JsonObject]:
    """Yields the operations on the registry, newest first, from the commit `newest` or from HEAD back, each with the
    id, sequence number and time of the commit; with `own` also the kinds in `OWN`, such as fences and the creation of
    tables by a transaction. For a commit whose object is lost, or corrupt, yields one item of the kind `LOST`. Ends
    without an error at the first commit that a cleanup has deleted, and at a lost one if no list goes beyond it.

    A commit lists the ids of at most 500 commits, and names the one before them, which has the next list.
    """
    head = newest or await session.state.head()
    listing: CommitRecord | None = head
    sequence = head.sequence
    while listing is not None:
        commits, furthest = listing.listed_from(sequence), listing
        for batch in batches(commits, AHEAD):
            reads = [_commit(session, listing, each, sequence - place) for place, each in enumerate(batch)]
            for name, commit in zip(batch, await gather(*reads), strict=True):
                if commit is None and await _is_collected(session, sequence):
                    return
                for operation in _operations(name, sequence, commit):
                    if own or operation.get("kind") not in OWN:
                        yield operation
                if commit is not None and commit.before_sequence < furthest.before_sequence:
                    furthest = commit
                sequence -= 1
        if listing.before is None:
            return
        before = await _commit(session, listing, listing.before, sequence)
        if before is None and furthest is listing:
            if not await _is_collected(session, sequence):
                yield _lost(listing.before, sequence)
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
    """Whether a collection may have deleted the commit with this sequence number."""
    try:
        return sequence < await read_registry_floor(session.state)
    except InternalError:
        return True  # the floor is corrupt


def _operations(name: str, sequence: int, commit: CommitRecord | None) -> list[JsonObject]:
    if commit is None:
        return [_lost(name, sequence)]
    made: JsonObject = {"commit": commit.id, "sequence": commit.sequence, "at_ms": commit.at_ms}
    return [
        {**made, **{name: value for name, value in operation.items() if name != "answer"}}
        for operation in reversed(objects(commit.document, "operations"))
    ]


def _lost(name: str, sequence: int) -> JsonObject:
    return {"commit": name, "sequence": sequence, "at_ms": None, "kind": LOST}
