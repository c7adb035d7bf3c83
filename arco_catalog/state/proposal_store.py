"""Reads, writes and deletes the proposals of a registry (docs/design/registry.md#proposals)."""

from collections.abc import Iterable

from arco_catalog.state.access import State
from arco_catalog.state.proposal import Proposal
from arco_catalog.state.runtime import ulid_of

MAX_AGE_MS = 120_000
"""How old a proposal may be, by the id of its attempt, for other processes to read it: longer than any request
takes."""
NO_ENTROPY = bytes(10)


class ProposalStore:
    """Reads, writes and deletes the proposals of one registry. Methods raise `StoreError`."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._paths = state.paths

    async def put(self, proposal: Proposal) -> None:
        """Stores a proposal, as `State.create` does, under a key with the attempt and the base."""
        await self._state.create(self._paths.proposal(proposal.attempt, proposal.base), proposal.body)

    async def attempts(self, since_ms: int) -> dict[str, str]:
        """Returns the ids of the attempts that began at or after a time (milliseconds since 1970) and have a proposal,
        by the keys of the proposals, in the order of the keys."""
        oldest, found, after = ulid_of(max(0, since_ms), NO_ENTROPY), list[str](), None
        while True:
            page = await self._state.store.list(self._paths.proposals, after)
            found += (entry.key for entry in page.entries)
            if page.after is None:
                break
            after = page.after
        by_key = {key: key.removeprefix(self._paths.proposals).partition("-")[0] for key in sorted(found)}
        return {key: attempt for key, attempt in by_key.items() if attempt >= oldest}

    async def read(self, key: str) -> Proposal | None:
        """Returns the proposal under a key, None if it was deleted. Raises `InternalError` for a damaged one."""
        found = await self._state.read(key)
        return None if found is None else Proposal.parse(found.body, key)

    async def delete(self, proposals: Iterable[Proposal]) -> None:
        """Deletes these proposals, at most 1,000. Those that the store fails to delete are left; a bucket that can't
        be reached is no error. Raises `DeadlinePassed` if the deadline of the request has passed, and on a local disk
        other `StoreError`s."""
        await self._state.store.delete_many([self._paths.proposal(each.attempt, each.base) for each in proposals])
