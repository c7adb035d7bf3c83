"""Intents on names, which a transaction places and its decision settles (docs/design/transaction.md): the entry of a
table that a transaction creates names the transaction, and takes effect once that has committed. No intent is ever
spilled, so all of them are in the index's edits."""

from collections.abc import Callable, Mapping, Sequence

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.index import Edits, Index
from arco_catalog.state.needs import Needs, Steps


def pending_transactions(
    index: Index, counts: Callable[[str, JsonObject], bool] = lambda key, entry: True
) -> Sequence[str]:
    """Returns the ids of the transactions on which entries of the index depend, oldest first. Only entries for which
    `counts` returns True are considered. The search covers the edits, because no intent is ever spilled."""
    found = {
        transaction
        for key, entry in index.edits.items()
        if entry is not None and isinstance(transaction := entry.get("transaction"), str) and counts(key, entry)
    }
    return sorted(found)


def settling(index: Index, decided: Mapping[str, bool]) -> Steps[Edits]:
    """Returns the index changes that settle the intents of the transactions in `decided`, which maps them to whether
    they committed: intents of committed ones become entries, those of the others in it are removed. Intents of further
    transactions stay. The search covers the edits, because no intent is ever spilled. Its lookups are the intents that
    it finds: one that is placed later is left to the next request that reads it."""
    edits: dict[str, JsonObject | None] = {}
    for key, entry in index.edits.items():
        transaction = None if entry is None else entry.get("transaction")
        if entry is None or not isinstance(transaction, str) or transaction not in decided:
            continue
        settled = {name: value for name, value in entry.items() if name != "transaction"}
        edits[key] = settled if decided[transaction] else None
    yield Needs(keys=[*edits])
    return edits
