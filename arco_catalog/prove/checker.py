"""Judges the history of a run by all rules."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from arco_catalog.prove.findings import Breaks, Finding
from arco_catalog.prove.history import History, Kind, Status, TableState
from arco_catalog.prove.names import check_names
from arco_catalog.prove.table_order import check_tables
from arco_catalog.prove.transactions import check_transactions


@dataclass(frozen=True, slots=True)
class HistoryVerdict:
    """The violations in a history, and the names for which the search for an order was given up."""

    findings: Sequence[Finding]
    undecided: Sequence[str] = ()


def check(history: History) -> HistoryVerdict:
    """Judges a history by all rules (the commits of tables, transactions, names, requests that were repeated), and
    returns the violations, and the names for which the search for an order was given up."""
    names = check_names(history)
    findings = [*check_tables(history), *check_transactions(history), *names.findings, *_check_repeated(history)]
    return HistoryVerdict(findings, names.undecided)


def _check_repeated(history: History) -> Iterator[Finding]:
    """Yields the violations of this rule: a request that is sent twice under one key has one outcome. Each time it may
    show the table at another time, the second time at an earlier one too, but both times with the commit, and with what
    was there before it."""
    for repeat in history.repeated:
        first, second = repeat.first, repeat.second
        name = first.operation.id
        if first.status is not second.status or (first.status is Status.REFUSED and first.code != second.code):
            text = f"{name} ended with {first.code}, and under the same key {second.code}"
            yield Finding("one outcome a key", Breaks.DOCUMENTATION, text, (name,))
        for one, other in zip(first.tables, second.tables, strict=False):
            shorter, longer = sorted((one.commits, other.commits), key=len)
            without = first.operation.kind is Kind.COMMIT and name not in shorter
            if one.uuid != other.uuid or without or shorter != longer[: len(shorter)]:
                text = f"{name} showed {_shown(one)}, and under the same key {_shown(other)}"
                yield Finding("one outcome a key", Breaks.DOCUMENTATION, text, (name,))


def _shown(state: TableState) -> str:
    """Returns a table's commits, in order, and UUID as words for a finding."""
    return f"commits {' '.join(state.commits) or 'none'} of table {state.uuid}"


def apply_claim(findings: Sequence[Finding], *, linearizable: bool) -> list[Finding]:
    """Returns the findings, where those that are only weaker than linearizable break the documentation of a catalog
    that claims to be `linearizable`."""
    weaker = Breaks.DOCUMENTATION if linearizable else Breaks.LINEARIZABILITY
    return [
        Finding(
            finding.rule,
            weaker if finding.breaks is Breaks.LINEARIZABILITY else finding.breaks,
            finding.text,
            finding.operations,
        )
        for finding in findings
    ]
