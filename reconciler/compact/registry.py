"""New commits of the registry: those after the last one that `catalog_events` knows, along their chain."""

from collections.abc import Sequence
from dataclasses import dataclass

from arco_catalog.iceberg.errors import CommitStateUnknown
from arco_catalog.protocol.catalog import Session
from arco_catalog.state.registry import RegistryState


@dataclass(frozen=True, slots=True)
class ListedCommit:
    """A commit by its id, and its sequence number."""

    id: str
    sequence: int


async def commits_after(session: Session, sequence: int) -> Sequence[ListedCommit]:
    """The commits after a sequence number, the oldest first, as far back as history is kept. One GET tells of 500."""
    found: list[ListedCommit] = []
    listing: RegistryState | None = await session.state.head()
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
            listing = None  # collected
    return found[::-1]
