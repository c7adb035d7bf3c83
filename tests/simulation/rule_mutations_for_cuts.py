"""Consistent cuts with one rule left out (docs/design/resolve.md#rule-5): drawn programs must find each."""

from collections.abc import Sequence

import pytest

from arco_catalog.operations import cut
from arco_catalog.operations.cut import Cut, _cached, _collect, _entry, _relation
from arco_catalog.operations.resolve import load_names
from arco_catalog.planning import cut as comparison
from arco_catalog.planning.cut import Observation, is_unmoved
from arco_catalog.planning.names import Identifier
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.decisions import read_outcome
from arco_catalog.state.access import State
from arco_catalog.state.entries import RelationEntry
from arco_catalog.state.registry import RegistryState


def cuts_by_versions_alone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(comparison, "_is_same_outcome", lambda *_: True)


def cuts_of_one_collection(patch: pytest.MonkeyPatch) -> None:
    def is_there(entry: RelationEntry | None, before: Observation, now: Observation) -> bool:
        return is_unmoved(entry, now, now)

    patch.setattr(cut, "is_unmoved", is_there)


def cuts_by_a_head_that_is_not_read_again(patch: pytest.MonkeyPatch) -> None:
    real = cut.read_cut

    async def read_cut(session: Session, identifiers: Sequence[Identifier]) -> Cut:
        read = session.head

        async def head() -> RegistryState:
            return session.state.cached_head() or await read()

        patch.setattr(session, "head", head)
        return await real(session, identifiers)

    patch.setattr(cut, "read_cut", read_cut)


def cuts_with_decisions_from_memory(patch: pytest.MonkeyPatch) -> None:
    known: dict[tuple[int, str], bool | None] = {}

    async def read_once(state: State, transaction: str) -> bool | None:
        key = id(state), transaction
        if key not in known:
            known[key] = await read_outcome(state, transaction)
        return known[key]

    patch.setattr(cut, "read_outcome", read_once)


def cuts_with_a_head_after_the_pointers(patch: pytest.MonkeyPatch) -> None:
    """The entries of the names are compared, which are the same after a rename back."""

    async def read_cut(session: Session, identifiers: Sequence[Identifier]) -> Cut:
        before, head = await _cached(session, identifiers), session.state.cached_head() or await session.head()
        while True:
            entries = {each: _entry(head.index, each) for each in identifiers}
            now = await _collect(session, entries.values())
            head = await session.head()
            await load_names(session, head, identifiers)
            same = all(_entry(head.index, each) == entry for each, entry in entries.items())
            if same and all(is_unmoved(entry, before, now) for entry in entries.values()):
                return {each: _relation(each, entry, now, None) for each, entry in entries.items()}
            before = now

    patch.setattr(cut, "read_cut", read_cut)


BUGS = (
    cuts_by_versions_alone,
    cuts_of_one_collection,
    cuts_by_a_head_that_is_not_read_again,
    cuts_with_decisions_from_memory,
    cuts_with_a_head_after_the_pointers,
)
