"""The registry's commits tell what was done, and by which ids it can be found again."""

import pytest

from arco_catalog.iceberg.errors import InternalError
from arco_catalog.state import registry
from arco_catalog.state.index import Edits
from arco_catalog.state.registry import RECENT_COMMITS, RECENT_OPERATIONS, Operation, RegistryState
from arco_catalog.state.segments import Segment
from arco_catalog.state.spilling import Limits, Spilling
from storage_backends import Version
from tests.support.steps import result


def after(head: RegistryState, number: int) -> RegistryState:
    operation = Operation(f"op{number}", "create-namespace", {"name": f"n{number}"}, {"status": 200, "body": None})
    return head.successor(
        commit=f"c{number}", at_ms=number, edits={f"k{number}": {"n": number}}, operations=[operation]
    )


def test_a_commit_follows_its_parent_and_keeps_its_operations() -> None:
    head = after(after(RegistryState.empty(), 1), 2)
    assert (head.id, head.document["parent"], head.sequence) == ("c2", "c1", 2)
    assert head.operation("op2") is not None
    assert head.operation("op1") is None
    assert head.commit_of("op1") == "c1"


def test_a_stored_commit_is_read_back_as_it_was() -> None:
    head = after(after(RegistryState.empty(), 1), 2)
    again = RegistryState.parse(head.body, Version("v"), "manifest")
    assert again.document == head.document
    assert list(again.index.scan("")) == list(head.index.scan(""))


def test_five_hundred_commits_are_remembered_and_the_one_before_them_is_named() -> None:
    head = RegistryState.empty()
    for number in range(1, RECENT_COMMITS + 1):
        head = after(head, number)
    assert head.before is None
    assert head.remembers(since=0)
    head = after(head, RECENT_COMMITS + 1)
    assert head.before == "c1"
    assert head.commit_of("op1") is None
    assert not head.remembers(since=0)
    assert head.remembers(since=1)


def test_commits_of_many_operations_are_remembered_until_these_are_too_many() -> None:
    head, shared = RegistryState.empty(), RECENT_OPERATIONS // 4
    for number in range(1, 6):
        operations = [Operation(f"op{number}-{place}", "create-table", {}, None) for place in range(shared)]
        head = head.successor(commit=f"c{number}", at_ms=number, edits={}, operations=operations)
    assert [commit for commit, _ in head.recent()] == ["c5", "c4", "c3", "c2"]
    assert head.before == "c1"
    assert (head.remembers(since=0), head.remembers(since=1)) == (False, True)
    huge = [Operation(f"op6-{place}", "create-table", {}, None) for place in range(2 * RECENT_OPERATIONS)]
    head = head.successor(commit="c6", at_ms=6, edits={}, operations=huge)
    assert ([commit for commit, _ in head.recent()], head.before) == (["c6"], "c5")


def cancelling(head: RegistryState, commit: str, *attempts: str) -> RegistryState:
    operation = Operation(f"of-{commit}", "cancel", {}, None, cancels=attempts)
    return head.successor(commit=commit, at_ms=1, edits={}, operations=[operation])


def test_a_cancelled_attempt_is_listed_as_long_as_the_commit_that_cancelled_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "RECENT_COMMITS", 3)
    head = cancelling(after(RegistryState.empty(), 1), "x", "dead", "gone")
    assert head.operation("of-x") == {
        **{"id": "of-x", "kind": "cancel", "answer": None},
        "cancels": ["dead", "gone"],
    }
    assert (head.is_cancelled("dead"), head.is_cancelled("op1"), head.commit_of("dead")) == (True, False, None)
    later = after(cancelling(head, "y", "third"), 4)
    assert later.cancelled() == {"y": ["third"], "x": ["dead", "gone"]}
    assert RegistryState.parse(later.body, None, "manifest").is_cancelled("gone")
    assert after(later, 5).cancelled() == {"y": ["third"]}
    assert not after(later, 5).is_cancelled("gone")


def test_a_registry_without_cancellations_has_no_field_for_them() -> None:
    assert "cancelled" not in after(RegistryState.empty(), 1).document


def test_a_cancelled_attempt_counts_as_an_operation_in_the_limit_of_a_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "RECENT_OPERATIONS", 5)
    head = cancelling(after(RegistryState.empty(), 1), "x", "a", "b", "c")
    assert head.remembers(since=0)
    assert not after(head, 2).remembers(since=0)
    assert after(head, 2).remembers(since=1)


def test_the_last_cancellation_that_is_forgotten_leaves_no_field(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "RECENT_COMMITS", 1)
    head = after(cancelling(RegistryState.empty(), "x", "dead"), 1)
    assert "cancelled" not in head.document


def test_a_registry_allows_cancellations_from_its_second_version_on() -> None:
    head = after(RegistryState.empty(), 1)
    raised = RegistryState.parse(
        RegistryState({**head.document, "version": 2}, head.index, None).body, None, "manifest"
    )
    assert (head.allows_cancellations, raised.allows_cancellations) == (False, True)
    assert after(raised, 2).allows_cancellations


def test_fields_of_a_later_version_survive() -> None:
    head = RegistryState(
        {**after(RegistryState.empty(), 1).document, "later": {"x": 1}}, after(RegistryState.empty(), 1).index, None
    )
    assert after(head, 2).document["later"] == {"x": 1}


def test_a_directory_of_another_form_stops_a_reader_that_does_not_know_it() -> None:
    head = after(RegistryState.empty(), 1)
    head.document["index"] = {"embedded": {}, "segments": ["s"]}
    with pytest.raises(InternalError, match="HEAD's list"):
        RegistryState.parse(head.body, None, "manifest")


def test_a_small_registry_has_no_directory() -> None:
    head = after(RegistryState.empty(), 1)
    assert head.document["index"] == {"embedded": {"k1": {"n": 1}}}
    assert not head.spilled


def test_a_commit_that_outgrows_its_limit_makes_segments_and_is_read_back_with_them() -> None:
    numbers = iter(range(100))
    spilling = Spilling(Limits(embedded=20, segment=60), lambda: f"s{next(numbers)}")
    segments_by_id: dict[str, Segment] = {}
    head = RegistryState.empty().with_segments(segments_by_id.get)
    for number in range(1, 9):
        edits: Edits = {f"k{number}": {"n": number}}
        spilled = result(head.index_after(edits, spilling))
        made = head.successor(commit=f"c{number}", at_ms=number, edits=edits, operations=[], spilled=spilled)
        head = made.with_segments(segments_by_id.get)
        segments_by_id |= {each.id: Segment.parse(each.id, each.body, "segment") for each in head.spilled}
    again = RegistryState.parse(head.body, None, "manifest").with_segments(segments_by_id.get)
    assert len(again.index.directory.refs) > 1
    assert len(again.index.edits) < 8
    assert list(again.index.scan("")) == [(f"k{number}", {"n": number}) for number in range(1, 9)]


def test_a_fence_spills_nothing() -> None:
    head = RegistryState.empty().successor(commit="c", at_ms=1, edits={"k": {}}, operations=[])
    spilling = Spilling(Limits(embedded=0), lambda: "s")
    index, segments = result(head.index_after({}, spilling))
    assert (index.edits, segments) == ({"k": {}}, ())


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"version":3}'])
def test_what_is_not_a_commit_is_our_own_fault(body: bytes) -> None:
    with pytest.raises(InternalError):
        RegistryState.parse(body, None, "manifest")
