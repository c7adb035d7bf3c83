"""Tries a change of the registry without making it: plans it as a real one, on a HEAD in memory, and writes nothing.
Several changes can be planned one upon another."""

from dataclasses import replace

from arco_catalog.iceberg.errors import Unavailable
from arco_catalog.planning.registry_change import Change
from arco_catalog.protocol.lookup import carry_out
from arco_catalog.protocol.registry_mutation import RegistryMutation, RegistryReadSet
from arco_catalog.state.entries import PendingTransaction
from arco_catalog.state.registry import RegistryState


class Rehearsal:
    """A change of the registry that is only planned, not made. Call `prepare` first: it reads what the plan needs
    besides HEAD. Then `plan` returns the HEAD that the change would leave."""

    def __init__(self, mutation: RegistryMutation, head: RegistryState) -> None:
        self._mutation = mutation
        self._read_set = RegistryReadSet(mutation.state, head, fresh=True)
        self._attempt = mutation.session.attempt().at(mutation.session.now_ms())

    async def prepare(self) -> None:
        """Reads the files that the plan of the change needs, such as the metadata file to register. Raises `StoreError`
        where the store does not answer."""
        if self._mutation.needs_base(self._read_set):
            await self._mutation.load_base(self._read_set)

    async def plan(self, head: RegistryState) -> RegistryState:
        """Plans the change on `head` without writing, and returns the HEAD as it would be afterwards; `head` itself if
        nothing would change. Raises the `Refusal` with which the change would fail, and `Unavailable` while a
        transaction has the name."""
        mutation, read_set = self._mutation, self._read_set
        read_set.head = head
        try:
            change = await carry_out(mutation.state, head.index, mutation.change(read_set, self._attempt))
        except PendingTransaction as met:
            raise Unavailable(
                "This name can't be imported now, nor can that be tried, and nothing is written for it: transaction "
                f"{met.transaction}, which uses the name, is not decided. Try once more in a minute"
            ) from met
        return replace(head, index=head.index.edited(change.edits)) if isinstance(change, Change) else head
