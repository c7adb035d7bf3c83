"""Readers of an intent whose decision was collected that do not read the intent again: programs must find each
(docs/design/transaction.md#rule-7)."""

import pytest

from arco_catalog.protocol import decisions, instant, relation_read_set
from arco_catalog.state.access import State
from arco_catalog.state.transaction import Decision


async def _as_aborted(state: State, transaction: str) -> bool:
    return await decisions.transaction_committed(state, transaction)


def a_name_whose_decision_is_gone_taken_for_aborted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(relation_read_set, "read_outcome", _as_aborted)


def a_listing_that_takes_a_decision_that_is_gone_for_an_abort(patch: pytest.MonkeyPatch) -> None:
    async def read_decision(state: State, transaction: str) -> Decision:
        found = await decisions.read_decision(state, transaction)
        return found or Decision({"status": "aborted", "tables": []}, None, 0)

    patch.setattr(instant, "read_decision", read_decision)


def a_decision_that_was_created_as_aborted_taken_for_the_outcome(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Decision, "is_closed", property(lambda self: False))


def a_pointer_whose_decision_is_gone_taken_for_aborted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(decisions, "read_outcome", _as_aborted)
