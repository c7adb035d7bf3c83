"""Judges transactions: of the commits of one transaction to two tables, a reader sees all or none."""

from collections.abc import Iterator, Sequence

from arco_catalog.prove.findings import Breaks, Finding
from arco_catalog.prove.history import History, Kind, Observation


def check_transactions(history: History) -> list[Finding]:
    """Returns the violations of transactions: halves that stay, and halves that a reader saw."""
    transactions = [
        observation for observation in history.observations if observation.operation.kind is Kind.TRANSACTION
    ]
    return [finding for transaction in transactions for finding in _check(transaction, history.observations)]


def _check(transaction: Observation, observations: Sequence[Observation]) -> Iterator[Finding]:
    """Yields at most one violation of a transaction: that one answer showed a table with its commit, and a later one
    another table without it; two reads at the end of the run count in either order. If the one without it was a read at
    the end of the run, this breaks the specification; otherwise it is only weaker than linearizable."""
    name = transaction.operation.id
    uuids = {base.uuid for base in transaction.bases}
    sights = [
        (state, observation) for observation in observations for state in observation.tables if state.uuid in uuids
    ]
    with_it = [(state, observation) for state, observation in sights if name in state.commits]
    without_it = [(state, observation) for state, observation in sights if name not in state.commits]
    halves = [
        (first, second)
        for state, first in with_it
        for other, second in without_it
        if other.uuid != state.uuid and (first.precedes(second) or (first.final and second.final))
    ]
    final = next((half for half in halves if half[1].final), None)
    if final is not None:
        text = f"{_id(final[0])} showed a commit of transaction {name}, and {_id(final[1])} at the end not the other"
        yield Finding("all or nothing", Breaks.SPECIFICATION, text, (name,))
    elif halves:
        text = (
            f"{_id(halves[0][0])} showed a commit of transaction {name}, and {_id(halves[0][1])} after it not the other"
        )
        yield Finding("all at once", Breaks.LINEARIZABILITY, text, (name, _id(halves[0][0]), _id(halves[0][1])))


def _id(observation: Observation) -> str:
    """Returns the id of the observed operation."""
    return observation.operation.id
