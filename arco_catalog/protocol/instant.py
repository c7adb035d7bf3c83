"""One instant of the registry: HEAD, and the decisions at that time of the transactions whose intents it has.

A name that a transaction creates is an intent until it is settled. It exists as soon as the transaction object has the
status `committed` (docs/design/transaction.md). A reader of several names must use one decision for all names of a
transaction, and must not see one transaction's commit without that of an earlier transaction.
"""

from collections.abc import Callable, Sequence

from arco_catalog.iceberg.errors import Unavailable
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.planning.name_intents import pending_transactions
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.concurrency import batches, gather
from arco_catalog.protocol.decisions import read_decision
from arco_catalog.state.registry import RegistryState

ROUNDS = 100
"""How often HEAD is read: again for each time that a transaction commits between it and the look at its decision."""
AT_ONCE = 32
"""Decisions that are read concurrently."""


async def one_instant(
    session: Session, counts: Callable[[str, JsonObject], bool]
) -> tuple[RegistryState, Sequence[str], frozenset[str]]:
    """Returns three things: HEAD; the transactions on which the index entries that `counts` selects, by key and entry,
    depend; and those of these transactions that had committed when HEAD was read.

    A commit counts if it was known before HEAD was read. A commit that is found later may be newer than HEAD, so HEAD
    is read once more, and also if a decision was collected: its intents may have been settled since, and if they are
    still there, they were aborted. A transaction that is undecided after HEAD was read was undecided before. Raises
    `Unavailable` after `ROUNDS` reads of HEAD, if transactions keep committing in between, which takes many of them a
    second; and, if HEAD does not allow the request, as `Session.head` does.
    """
    decided: dict[str, bool] = {}
    for _ in range(ROUNDS):
        head = await session.head()
        waiting = pending_transactions(head.index, counts)
        learned = await _decided(session, [each for each in waiting if each not in decided])
        if all(outcome is False for outcome in learned.values()):
            return head, waiting, frozenset(each for each in waiting if decided.get(each))
        decided |= {transaction: outcome is True for transaction, outcome in learned.items()}
    raise Unavailable(
        f"No consistent state could be read: transactions committed during all {ROUNDS} attempts of this request. "
        "Try again"
    )


async def _decided(session: Session, transactions: Sequence[str]) -> dict[str, bool | None]:
    """Returns for those of these transactions that are decided whether they committed; None for one whose decision was
    collected, or was created as aborted (`Decision.is_closed`). Pending ones are left out."""
    outcomes: dict[str, bool | None] = {}
    for batch in batches(transactions, AT_ONCE):
        decisions = await gather(*(read_decision(session.state, transaction) for transaction in batch))
        for transaction, decision in zip(batch, decisions, strict=True):
            if decision is None or decision.is_closed:
                outcomes[transaction] = None
            elif decision.status != "pending":
                outcomes[transaction] = decision.status == "committed"
    return outcomes
