"""What a leader takes in, cancels and leaves: each rule is one without which a proposal is treated otherwise
(docs/design/registry.md#proposals)."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.planning.proposals import Capacity, Leading, Verdict, judge_proposal, lead
from arco_catalog.state import registry
from arco_catalog.state.needs import Needs
from arco_catalog.state.proposal import Proposal
from arco_catalog.state.reads import Reads
from arco_catalog.state.registry import Operation, RegistryState
from tests.support.steps import result

ROOM = Capacity(128, 256 << 10)
LIFETIME_MS = 20_000


def moved(head: RegistryState, number: int, *operations: Operation) -> RegistryState:
    return head.successor(commit=f"c{number}", at_ms=1, edits={}, operations=operations)


HEAD = moved(moved(RegistryState.empty(), 1), 2)


def taking(name: str, attempt: str, *, head: RegistryState = HEAD, base: int = 2, written_ms: int = 0) -> Proposal:
    """A proposal that takes a name if that is free."""
    entry: JsonObject = {"entity": attempt}
    operation = Operation(attempt, "create-table", {"name": name}, None)
    reads = Reads.of(head, [Needs(keys=[name])])
    return Proposal.of(head, operation, {name: entry}, reads, base=base, written_ms=written_ms)


def cancelling(attempt: str, *cancels: str, base: int = 2) -> Proposal:
    """A proposal of a takeover, which cancels attempts."""
    operation = Operation(attempt, "cancel", {}, None, cancels)
    return Proposal.of(HEAD, operation, {}, Reads.of(HEAD, []), base=base, written_ms=0)


def verdict(proposal: Proposal, head: RegistryState = HEAD, read_ms: int = 0) -> Verdict:
    return result(judge_proposal(proposal, head, read_ms, LIFETIME_MS))


def led(*proposals: Proposal, head: RegistryState = HEAD, capacity: Capacity = ROOM) -> Leading:
    return result(lead(head, proposals, capacity, read_ms=0, lifetime_ms=LIFETIME_MS))


def ids(leading: Leading) -> Sequence[str]:
    return [operation.id for operation in leading.operations]


def test_a_proposal_that_holds_is_taken_in() -> None:
    assert verdict(taking("t", "01A")) is Verdict.TAKE_IN
    assert verdict(taking("t", "01A"), moved(HEAD, 3)) is Verdict.TAKE_IN


def test_a_proposal_whose_reads_have_changed_is_cancelled() -> None:
    taken = replace(HEAD, index=HEAD.index.edited({"t": {"entity": "01B"}}))
    assert verdict(taking("t", "01A"), taken) is Verdict.CANCEL


def test_a_committed_proposal_is_left_also_if_its_reads_hold_again() -> None:
    committed = moved(HEAD, 3, Operation("01A", "create-table", {}, None))
    assert verdict(taking("t", "01A"), committed) is Verdict.LEAVE


def test_a_cancelled_proposal_is_left() -> None:
    cancelled = moved(HEAD, 3, Operation("01X", "cancel", {}, None, ("01A",)))
    assert verdict(taking("t", "01A"), cancelled) is Verdict.LEAVE


def test_a_cancellation_is_taken_in_unless_one_of_its_attempts_is_committed() -> None:
    committed = moved(HEAD, 3, Operation("01A", "create-table", {}, None))
    assert verdict(cancelling("01X", "01A", "01B")) is Verdict.TAKE_IN
    assert verdict(cancelling("01X", "01A", "01B"), committed) is Verdict.CANCEL


def test_a_cancellation_is_left_if_head_does_not_list_all_since_its_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "RECENT_COMMITS", 2)
    later = moved(moved(HEAD, 3), 4)
    assert verdict(cancelling("01X", "01A", base=1), later) is Verdict.LEAVE


def test_of_an_attempt_and_its_cancellation_the_smaller_id_counts() -> None:
    later = led(taking("t", "01A"), cancelling("01X", "01A"), taking("t", "01Y"))
    assert (ids(later), later.cancels) == (["01A"], ["01X", "01Y"])
    earlier = led(cancelling("01X", "01Z"), taking("t", "01Y"), taking("u", "01Z"))
    assert (ids(earlier), earlier.cancels) == (["01X", "01Y"], [])
    assert earlier.changes == {"t": {"entity": "01Y"}}


def test_two_cancellations_of_an_attempt_are_both_taken_in() -> None:
    leading = led(cancelling("01X", "01A"), cancelling("01Y", "01A"))
    assert (ids(leading), leading.cancels) == (["01X", "01Y"], [])


def test_a_proposal_is_left_if_head_does_not_list_all_since_its_base(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "RECENT_COMMITS", 2)
    later = moved(moved(HEAD, 3), 4)
    assert verdict(taking("t", "01A", base=2), later) is Verdict.TAKE_IN
    assert verdict(taking("t", "01A", base=1), later) is Verdict.LEAVE


def test_a_proposal_with_old_files_is_left() -> None:
    proposal = taking("t", "01A", written_ms=1_000)
    assert verdict(proposal, read_ms=1_000 + LIFETIME_MS) is Verdict.TAKE_IN
    assert verdict(proposal, read_ms=1_001 + LIFETIME_MS) is Verdict.LEAVE


def test_of_two_proposals_for_one_name_the_older_attempt_gets_it() -> None:
    leading = led(taking("t", "01B"), taking("t", "01A"), taking("u", "01C"))
    assert (ids(leading), leading.cancels, leading.is_full) == (["01A", "01C"], ["01B"], False)
    assert leading.changes == {"t": {"entity": "01A"}, "u": {"entity": "01C"}}


def test_changes_of_the_same_commit_count_as_made() -> None:
    batch = replace(HEAD, index=HEAD.index.edited({"t": {"entity": "01Z"}}), place=1)
    assert led(taking("t", "01A"), head=batch).cancels == ["01A"]


def test_one_attempt_is_taken_in_once() -> None:
    """It has proposed again on a newer base."""
    leading = led(taking("t", "01A", base=1), taking("t", "01A", base=2))
    assert (ids(leading), leading.cancels) == (["01A"], [])


def test_tombstones_are_ordered_after_the_other_changes_of_the_commit() -> None:
    def dropping(attempt: str) -> Proposal:
        entry: JsonObject = {"operation": attempt, "sequence": HEAD.sequence, "place": 0}
        operation = Operation(attempt, "drop-table", {}, None)
        return Proposal.of(HEAD, operation, {f"tombstone\n{attempt}": entry}, Reads.of(HEAD, []), base=2, written_ms=0)

    later = replace(moved(HEAD, 3), place=7)
    changes = led(dropping("01A"), dropping("01B"), head=later).changes
    places = [(entry["sequence"], entry["place"]) for entry in changes.values() if entry is not None]
    assert places == [(3, 7), (3, 8)]


def test_what_does_not_fit_is_left_and_makes_the_commit_full() -> None:
    proposals = [taking(name, f"01{name}") for name in "ABCD"]
    assert (ids(led(*proposals, capacity=Capacity(2, 1 << 20))), led(*proposals).is_full) == (["01A", "01B"], False)
    assert led(*proposals, capacity=Capacity(2, 1 << 20)).is_full
    small = led(*proposals, capacity=Capacity(9, proposals[0].size))
    assert (ids(small), small.is_full, small.cancels) == (["01A"], True, [])


def test_a_change_that_is_larger_than_a_commit_may_be_is_taken_in_alone() -> None:
    large, small = taking("A", "01A"), taking("B", "01B")
    alone = led(large, small, capacity=Capacity(9, large.size - 1))
    assert (ids(alone), alone.is_full, alone.cancels) == (["01A"], True, [])


def test_a_proposal_that_no_longer_holds_makes_no_commit_full() -> None:
    leading = led(taking("t", "01A"), taking("t", "01B"), capacity=Capacity(1, 1 << 20))
    assert (leading.is_full, leading.cancels) == (False, ["01B"])


names = st.sampled_from("tuvw")
proposals = st.dictionaries(st.integers(1, 20), names, max_size=12).map(
    lambda chosen: [taking(name, f"01{number:02}") for number, name in chosen.items()]
)


@given(proposals, st.integers(0, 6), st.sets(names))
def test_a_leader_decides_as_if_each_proposal_were_alone(chosen: list[Proposal], limit: int, taken: set[str]) -> None:
    """The law of a leader: one after the other, by the order of their ids, each is decided on what the commit has so
    far. Nothing is both committed and cancelled, and the order in which proposals are listed means nothing."""
    head = replace(HEAD, index=HEAD.index.edited({name: {"entity": "01Z"} for name in taken}))
    leading = led(*chosen, head=head, capacity=Capacity(limit, 1 << 20))

    owners = {*taken}
    full = False
    for proposal in sorted(chosen, key=lambda each: each.attempt):
        (name,) = proposal.changes
        fits = name not in owners and len(owners) - len(taken) < limit
        full = full or (name not in owners and not fits)
        assert (proposal.attempt in ids(leading)) is fits
        assert (proposal.attempt in leading.cancels) is (name in owners)
        owners |= {name} if fits else set()
    assert leading.is_full is full
    assert led(*reversed(chosen), head=head, capacity=Capacity(limit, 1 << 20)) == leading


cancellations = st.dictionaries(
    st.integers(1, 20), st.sets(st.integers(1, 20), min_size=1, max_size=4), max_size=4
).map(
    lambda chosen: [
        cancelling(f"01{number:02}X", *(f"01{each:02}" for each in sorted(cancelled)))
        for number, cancelled in chosen.items()
    ]
)


@given(proposals, cancellations, st.integers(0, 6))
def test_no_commit_has_an_attempt_that_it_cancels(
    changes: list[Proposal], cancelled: list[Proposal], limit: int
) -> None:
    leading = led(*changes, *cancelled, capacity=Capacity(limit, 1 << 20))

    ended = {each for operation in leading.operations for each in operation.cancels} | {*leading.cancels}
    assert ended.isdisjoint(ids(leading))
    for cancellation in cancelled:
        if cancellation.attempt in leading.cancels:
            assert not {*cancellation.operation.cancels}.isdisjoint(ids(leading))
