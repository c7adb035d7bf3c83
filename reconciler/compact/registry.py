"""Lists the new commits of the registry: the ones after the last one in the system table `catalog_events`."""

from collections.abc import Sequence
from dataclasses import dataclass

from arco_catalog.iceberg.errors import CommitStateUnknown
from arco_catalog.protocol.catalog import Session
from arco_catalog.state.commit_record import CommitRecord


@dataclass(frozen=True, slots=True)
class ListedCommit:
    """The id and sequence number of a registry commit."""

    id: str
    sequence: int


async def commits_after(session: Session, sequence: int) -> Sequence[ListedCommit]:
    """Returns the registry commits with a number greater than `sequence`, the oldest first. A commit that the collector
    has deleted is absent, unless HEAD or a commit that is left names it. HEAD and each commit name about 500 commits
    before them, so that few are read."""
    found: list[ListedCommit] = []
    listing: CommitRecord | None = await session.state.head()
    while listing is not None:
        for place, (commit, _) in enumerate(listing.recent()):
            number = listing.sequence - place
            if number <= sequence:
                return found[::-1]
            found.append(ListedCommit(commit, number))
        before = listing.before
        try:
            listing = None if before is None else await session.state.registry_commit(before)
        except CommitStateUnknown:
            listing = None  # the collector has deleted it and all before it
    return found[::-1]
