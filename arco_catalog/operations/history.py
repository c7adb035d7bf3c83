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
    without an error at the first commit that a cleanup has deleted.

    A commit lists the ids of at most 500 commits, and names the commit before those, which has the next list.
    """
    listing: CommitRecord | None = newest or await session.state.head()
    while listing is not None:
        commits, sequence = [commit for commit, _ in listing.recent()], listing.sequence
        for batch in batches(commits, AHEAD):
            for name, commit in zip(
                batch, await gather(*(_commit(session, listing, each) for each in batch)), strict=True
            ):
                if commit is None and await _is_collected(session, sequence):
                    return
                for operation in _operations(name, sequence, commit):
                    if own or operation.get("kind") not in OWN:
                        yield operation
                sequence -= 1
        listing = None if listing.before is None else await _commit(session, listing, listing.before)


async def _commit(session: Session, listing: CommitRecord, commit: str) -> CommitRecord | None:
    """Reads a commit, which `listing` may be; None if its object does not exist or is corrupt."""
    if commit == listing.id:
        return listing
    try:
        read = await session.state.registry_commit(commit)
        return read if read.id == commit and read.at_ms >= 0 else None
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
        return [{"commit": name, "sequence": sequence, "at_ms": None, "kind": LOST}]
    made: JsonObject = {"commit": commit.id, "sequence": commit.sequence, "at_ms": commit.at_ms}
    return [
        {**made, **{name: value for name, value in operation.items() if name != "answer"}}
        for operation in reversed(objects(commit.document, "operations"))
    ]
