"""The checker accepts what an atomic catalog can answer, and refuses each change of it that no such catalog can."""

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arco_catalog.prove.checker import apply_claim, check
from arco_catalog.prove.findings import Breaks
from arco_catalog.prove.history import History, Kind, Observation, Operation, RepeatedRequest, Status, TableState
from arco_catalog.prove.linearizability import Event, Names, Verdict, search
from tests.prove.histories import atomic_history, state

CREATED = Observation(Operation("c", Kind.CREATE, ("a",)), Status.DONE, 1, 2, 200, tables=(state("c"),))


@given(st.integers(0, 1 << 32), st.integers(1, 60), st.integers(1, 6), st.sampled_from((0.0, 0.1, 0.4)))
def test_what_an_atomic_catalog_answers_is_accepted(seed: int, operations: int, clients: int, unknown: float) -> None:
    verdict = check(atomic_history(random.Random(seed), operations, clients, unknown))
    assert verdict.findings == []
    assert verdict.undecided == []


@given(st.integers(0, 1 << 32))
def test_a_commit_that_the_last_read_lacks_is_found(seed: int) -> None:
    history = atomic_history(random.Random(seed), 60, 4, 0.1)
    changed = [
        replace(each, tables=(state(each.tables[0].creator, *each.tables[0].commits[:-1]),))
        if each.final and each.tables and each.tables[0].commits
        else each
        for each in history.observations
    ]
    done = {each.operation.id for each in history.observations if each.status is Status.DONE}
    lost = [a for a, b in zip(history.observations, changed, strict=True) if a != b and a.tables[0].commits[-1] in done]
    assert not lost or any(each.breaks is Breaks.SPECIFICATION for each in check(History(changed)).findings)


def commit(name: str, base: TableState, invoked: int, completed: int, status: Status = Status.DONE) -> Observation:
    """A commit of table `a`."""
    tables = (state(base.creator, *base.commits, name),) if status is Status.DONE else ()
    code = 200 if status is Status.DONE else 409
    return Observation(Operation(name, Kind.COMMIT, ("a",)), status, invoked, completed, code, "", tables, (base,))


def load(name: str, shown: TableState, invoked: int, completed: int, *, final: bool = False) -> Observation:
    """A load of table `a`."""
    operation = Operation(name, Kind.LOAD, ("a",))
    return Observation(operation, Status.DONE, invoked, completed, 200, tables=(shown,), final=final)


def transaction(name: str, *bases: TableState) -> Observation:
    """A transaction over `a` and `b`."""
    return Observation(Operation(name, Kind.TRANSACTION, ("a", "b")), Status.DONE, 10, 11, 204, bases=bases)


def other(shown: TableState, invoked: int, *, final: bool = False) -> Observation:
    """A load of table `b`."""
    operation = Operation(f"r{invoked}", Kind.LOAD, ("b",))
    return Observation(operation, Status.DONE, invoked, invoked + 1, 200, tables=(shown,), final=final)


SECOND = Observation(Operation("d", Kind.CREATE, ("b",)), Status.DONE, 1, 3, 200, tables=(state("d"),))
AGAIN = Observation(Operation("e", Kind.CREATE, ("a",)), Status.DONE, 3, 4, 200, tables=(state("e"),))
DROP = Observation(Operation("x", Kind.DROP, ("a",)), Status.DONE, 5, 6, 204)
MISSING = Observation(Operation("m", Kind.LOAD, ("a",)), Status.REFUSED, 7, 8, 404, "NoSuchTableException")
RENAME = Observation(Operation("n", Kind.RENAME, ("a", "b")), Status.DONE, 5, 6, 204)


@pytest.mark.parametrize(
    ("rule", "breaks", "observations"),
    [
        ("one order", Breaks.SPECIFICATION, [CREATED, commit("1", state("c"), 3, 4), commit("2", state("c"), 5, 6)]),
        ("refused", Breaks.SPECIFICATION, [
            CREATED, commit("1", state("c"), 3, 4, Status.REFUSED), load("r", state("c", "1"), 5, 6),
        ]),
        ("applied once", Breaks.SPECIFICATION, [
            CREATED, commit("1", state("c"), 3, 4), load("r", state("c", "1", "1"), 5, 6),
        ]),
        ("sent", Breaks.SPECIFICATION, [CREATED, load("r", state("c", "9"), 5, 6)]),
        ("sent", Breaks.SPECIFICATION, [CREATED, load("r", state("c", "1"), 3, 4), commit("1", state("c"), 5, 6)]),
        ("whole", Breaks.SPECIFICATION, [
            CREATED, commit("1", state("c"), 3, 4), load("r", replace(state("c", "1"), snapshot=None), 5, 6),
        ]),
        ("fresh", Breaks.LINEARIZABILITY, [CREATED, commit("1", state("c"), 3, 4), load("r", state("c"), 5, 6)]),
        ("durable", Breaks.SPECIFICATION, [
            CREATED, commit("1", state("c"), 3, 4), load("r", state("c"), 5, 6, final=True),
        ]),
        ("durable", Breaks.SPECIFICATION, [
            CREATED, replace(commit("1", state("c"), 3, 4), tables=()), commit("2", state("c"), 5, 6),
        ]),
        ("fresh", Breaks.LINEARIZABILITY, [
            CREATED, commit("1", state("c"), 3, 20), load("r", state("c", "1"), 5, 6), load("q", state("c"), 7, 8),
        ]),
        ("one creation", Breaks.SPECIFICATION, [CREATED, load("r", replace(state("c"), uuid="another"), 5, 6)]),
        ("names", Breaks.SPECIFICATION, [CREATED, AGAIN]),
        ("names", Breaks.SPECIFICATION, [CREATED, DROP, load("r", state("c"), 9, 10, final=True)]),
        ("names at once", Breaks.LINEARIZABILITY, [CREATED, MISSING, load("r", state("c"), 9, 10, final=True)]),
        ("names at once", Breaks.LINEARIZABILITY, [CREATED, RENAME, load("r", state("c"), 9, 10)]),
        ("names at once", Breaks.LINEARIZABILITY, [
            CREATED, Observation(Operation("l", Kind.LIST), Status.DONE, 3, 4, 200, listed=frozenset()),
        ]),
        ("all or nothing", Breaks.SPECIFICATION, [
            CREATED, SECOND, transaction("t", state("c"), state("d")),
            load("r", state("c", "t"), 20, 21, final=True), other(state("d"), 22, final=True),
        ]),
        ("all or nothing", Breaks.SPECIFICATION, [
            CREATED, SECOND, transaction("t", state("c"), state("d")),
            load("r", state("c"), 20, 21, final=True), other(state("d", "t"), 22, final=True),
        ]),
        ("all at once", Breaks.LINEARIZABILITY, [
            CREATED, SECOND, replace(transaction("t", state("c"), state("d")), completed=40),
            load("r", state("c", "t"), 20, 21), other(state("d"), 22),
        ]),
    ],
)  # fmt: skip
def test_each_rule_finds_what_breaks_it(rule: str, breaks: Breaks, observations: list[Observation]) -> None:
    found = check(History(observations)).findings
    assert any((each.rule, each.breaks) == (rule, breaks) for each in found), found


def test_a_read_that_was_sent_before_a_commit_was_answered_may_lack_it() -> None:
    assert not check(History([CREATED, commit("1", state("c"), 3, 6), load("r", state("c"), 5, 8)])).findings


def test_another_answer_under_the_same_key_is_found() -> None:
    first = commit("1", state("c"), 3, 4)
    second = replace(first, status=Status.REFUSED, code=409, tables=())
    found = check(History([CREATED, first], [RepeatedRequest(first, second)])).findings
    assert [(each.rule, each.breaks) for each in found] == [("one outcome a key", Breaks.DOCUMENTATION)]
    assert not check(History([CREATED, first], [RepeatedRequest(first, first)])).findings


def test_a_request_that_is_sent_twice_may_show_its_commit_at_different_times() -> None:
    first = commit("1", state("c"), 3, 4)
    later = replace(first, tables=(state("c", "1", "2"),))
    without = replace(first, tables=(state("c"),))
    other = replace(first, tables=(replace(state("c", "1"), uuid="another"),))
    repeated = (RepeatedRequest(first, later), RepeatedRequest(later, first))
    assert not check(History([CREATED, first, commit("2", state("c", "1"), 5, 6)], repeated)).findings
    for second in (without, other):
        found = check(History([CREATED, first], [RepeatedRequest(first, second)])).findings
        assert [each.rule for each in found] == ["one outcome a key"]


def test_stale_reads_break_the_documentation_of_a_catalog_that_claims_to_be_linearizable() -> None:
    found = check(History([CREATED, commit("1", state("c"), 3, 4), load("r", state("c"), 5, 6)])).findings
    assert {each.breaks for each in apply_claim(found, linearizable=True)} == {Breaks.DOCUMENTATION}
    assert [*apply_claim(found, linearizable=False)] == [*found]


def test_a_search_that_takes_too_long_is_given_up_with_that_verdict() -> None:
    def impossible(_: Names) -> None:
        return None

    def writes(value: str) -> Event:
        return Event(value, 0, 100, lambda state: (*state, value))

    events = [*(writes(str(number)) for number in range(12)), Event("last", 101, 102, impossible)]
    assert search(events, (), max_steps=1000).verdict is Verdict.UNDECIDED
    assert search(events[:3], ()).verdict is Verdict.LINEARIZABLE
