"""Rules about the age of what an attempt names, left out one at a time."""

import pytest

from arco_catalog.operations.commit import CommitRelation
from arco_catalog.protocol import registry_mutation, relation_read_set
from arco_catalog.protocol.relation_read_set import RelationReadSet
from tests.simulation.rule_mutations import Mutation

A_CENTURY_MS = 100 * 365 * 24 * 3_600_000


def a_swap_that_names_a_version_of_any_age(patch: pytest.MonkeyPatch) -> None:
    async def has_moved(self: CommitRelation, read_set: RelationReadSet) -> bool:
        return False

    patch.setattr(CommitRelation, "has_moved", has_moved)


def a_claim_that_names_a_pointer_of_any_age(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(relation_read_set, "CLAIM_AGE_MS", A_CENTURY_MS)


def a_claim_that_names_a_head_of_any_age(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(registry_mutation, "CLAIM_AGE_MS", A_CENTURY_MS)


BUGS: tuple[Mutation, ...] = (
    a_swap_that_names_a_version_of_any_age,
    a_claim_that_names_a_pointer_of_any_age,
    a_claim_that_names_a_head_of_any_age,
)
