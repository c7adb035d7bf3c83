"""Each rule of proposals, left out, makes the simulation fail."""

import logging
from collections.abc import Iterator, Sequence

import pytest

from tests.simulation import proposing
from tests.simulation import rule_mutations_for_proposals as mutations
from tests.simulation.explore import REPLAY, Scenario, trace
from tests.simulation.faults import CRASH_AFTER, CRASH_BEFORE, CRASH_LATE, DELAY, FREEZE, SLOW, Fault, FaultPlan
from tests.simulation.known_runs import Run, find
from tests.simulation.rule_mutations import Mutation
from tests.simulation.test_rule_mutations import SEEDS, runs


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(REPLAY, raising=False)
    logging.getLogger("arco_catalog").setLevel(logging.ERROR)


CASES: list[tuple[Mutation, Scenario, Sequence[Fault]]] = [
    (mutations.a_committed_attempt_decided_again, proposing.creates_of_many_processes, ()),
    (mutations.a_cancelled_attempt_taken_in, proposing.keys_that_several_processes_send, (DELAY,)),
    (
        mutations.a_proposal_whose_base_is_forgotten,
        proposing.names_that_change_to_and_fro,
        (CRASH_BEFORE, CRASH_AFTER),
    ),
    (mutations.a_proposal_with_old_files, proposing.creates_beside_a_collector, (CRASH_LATE,)),
    (mutations.a_proposal_whose_reads_changed, proposing.creates_of_many_processes, ()),
    (
        mutations.a_changed_proposal_left_instead_of_cancelled,
        proposing.creates_of_one_name_by_many_processes,
        (),
    ),
    (mutations.a_commit_on_a_head_that_was_not_judged, proposing.creates_of_many_processes, ()),
    (mutations.a_takeover_that_only_fences, proposing.keys_that_several_processes_send, (DELAY,)),
    (mutations.a_cancellation_of_a_committed_attempt, proposing.takeovers_of_many_processes, (DELAY,)),
    (mutations.a_cancellation_of_an_attempt_in_the_same_commit, proposing.takeovers_of_many_processes, (DELAY,)),
    (mutations.an_attempt_taken_in_after_its_cancellation, proposing.takeovers_of_many_processes, (DELAY,)),
    (
        mutations.a_cancellation_proposed_again_without_a_walk,
        proposing.takeovers_beside_forgotten_commits,
        (SLOW,),
    ),
    (
        mutations.a_proposal_without_a_look_at_the_next_slot,
        proposing.names_that_are_freed_beside_takeovers,
        (),
    ),
    (mutations.a_later_base_without_a_walk, proposing.names_that_change_to_and_fro, (DELAY, FREEZE)),
    (mutations.a_shared_commit_without_the_edits_of_others, proposing.creates_of_many_processes, ()),
    (mutations.a_failure_answered_after_proposing, proposing.requests_with_little_time, ()),
    (
        mutations.a_head_without_the_attempt_taken_for_evidence,
        proposing.creates_drops_and_renames_of_many_processes,
        (),
    ),
    (mutations.intents_settled_without_being_read, proposing.intents_that_several_processes_settle, (CRASH_LATE,)),
    (mutations.a_commit_of_the_catalog_without_its_reads, proposing.transactions_of_many_processes, ()),
]


def test_every_planted_bug_has_a_case() -> None:
    assert [bug for bug, _, _ in CASES] == [*mutations.BUGS]


@pytest.mark.parametrize(("bug", "scenario", "faults"), CASES, ids=[bug.__name__ for bug, _, _ in CASES])
def test_the_simulation_finds(bug: Mutation, scenario: Scenario, faults: Sequence[Fault]) -> None:
    late = next((fault for fault in (CRASH_LATE, SLOW) if fault in faults), None)
    drawn = runs(scenario, faults) if late is None else late_proposals(scenario, late)
    assert find(bug, scenario, drawn, seconds=90.0)


def late_proposals(scenario: Scenario, fault: Fault) -> Iterator[Run]:
    """Runs in each of which one proposal is stored late: its process dies of it (`CRASH_LATE`), or waits (`SLOW`)."""
    for seed in range(SEEDS):
        for event in trace(scenario, seed).history:
            if event.kind == "put" and event.step.startswith("sent") and "/proposals/" in event.key:
                yield seed, FaultPlan.parse(f"{event.process}@{event.number}:{fault}")
