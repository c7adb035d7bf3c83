"""Decides whether several names, read twice, show one instant (docs/design/resolve.md#rule-5)."""

from collections.abc import Iterable, Mapping

from arco_catalog.state.entries import RelationEntry, has_pointer
from arco_catalog.state.followed import FollowedTable
from arco_catalog.state.pointer import Pointer
from storage_backends.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Observation:
    """What was read of several names in one collection: pointers by their entities, and by transaction whether it had
    committed, None if its decision was gone. What does not exist is left out."""

    pointers: Mapping[str, Pointer]
    outcomes: Mapping[str, bool | None]


def transactions_of(entries: Iterable[RelationEntry], pointers: Mapping[str, Pointer]) -> list[str]:
    """Returns the transactions with intents on these names and pointers, in order."""
    found = {entry.transaction for entry in entries} | {pointer.intent for pointer in pointers.values()}
    return sorted(each for each in found if each is not None)


def is_unmoved(entry: RelationEntry | None, before: Observation, now: Observation) -> bool:
    """Whether a name had one meaning from the reads of one collection to those of the next, if HEAD has this entry for
    it at a time between: the pointer has one version, and the decision that was read for an intent on the name or
    pointer is the same. No pointer is needed, and it is True, if there is no entry, if the transaction of an intent
    on the name has not committed in both collections, and for a table that follows another catalog's."""
    if entry is None:
        return True
    if entry.transaction is not None:
        if not _is_same_outcome(entry.transaction, before, now):
            return False
        if not _exists(entry, now):
            return True
    if FollowedTable.of(entry.json) is not None:  # HEAD has its state
        return True
    first, second = before.pointers.get(entry.entity), now.pointers.get(entry.entity)
    if first is None or second is None or first.version != second.version:
        return False
    return second.intent is None or _is_same_outcome(second.intent, before, now)


def _is_same_outcome(transaction: str, before: Observation, now: Observation) -> bool:
    """Whether both collections read the same decision. An undecided transaction counts as aborted, and so
    does one whose decision was gone in both, while its intent was still there when it was read again
    (docs/design/transaction.md#rule-7)."""
    read = transaction in before.outcomes and transaction in now.outcomes
    return read and before.outcomes[transaction] == now.outcomes[transaction]


def _exists(entry: RelationEntry, collected: Observation) -> bool:
    """Whether there is a table or view by its entry: that is no intent, or one whose transaction has committed."""
    return entry.transaction is None or collected.outcomes[entry.transaction] is True


def lacks_pointer(entry: RelationEntry, collected: Observation) -> bool:
    """Whether a table or view exists by its entry, and the pointer that it must have was not found."""
    return _exists(entry, collected) and has_pointer(entry.json) and entry.entity not in collected.pointers


def pointer_at(entry: RelationEntry | None, collected: Observation) -> Pointer | None:
    """Returns the pointer, without an intent, of the table or view that a name has by its entry and by what was
    collected; None if there is no table or view. The pointer must have been collected, unless the table follows another
    catalog's."""
    if entry is None or not _exists(entry, collected):
        return None
    followed = FollowedTable.of(entry.json)
    if followed is not None:
        return followed.pointer(entry.entity, entry.kind)
    pointer = collected.pointers[entry.entity]
    return pointer if pointer.intent is None else pointer.resolved(collected.outcomes[pointer.intent] is True)
