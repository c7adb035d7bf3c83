"""The registry's commits tell what was done, and by which ids it can be found again."""

import pytest

from arco_catalog.iceberg.errors import Broken
from arco_catalog.state.registry import RECENT_COMMITS, Head, Operation
from storage_backends import Version


def after(head: Head, number: int) -> Head:
    operation = Operation(f"op{number}", "create-namespace", {"name": f"n{number}"}, {"status": 200, "body": None})
    return head.successor(
        commit=f"c{number}", at_ms=number, edits={f"k{number}": {"n": number}}, operations=[operation]
    )


def test_a_commit_follows_its_parent_and_keeps_its_operations() -> None:
    head = after(after(Head.empty(), 1), 2)
    assert (head.id, head.document["parent"], head.sequence) == ("c2", "c1", 2)
    assert head.operation("op2") is not None
    assert head.operation("op1") is None
    assert head.commit_of("op1") == "c1"


def test_a_stored_commit_is_read_back_as_it_was() -> None:
    head = after(after(Head.empty(), 1), 2)
    again = Head.parse(head.body, Version("v"), "manifest")
    assert again.document == head.document
    assert list(again.index.scan("")) == list(head.index.scan(""))


def test_five_hundred_commits_are_remembered_and_the_one_before_them_is_named() -> None:
    head = Head.empty()
    for number in range(1, RECENT_COMMITS + 1):
        head = after(head, number)
    assert head.before is None
    assert head.remembers(since=0)
    head = after(head, RECENT_COMMITS + 1)
    assert head.before == "c1"
    assert head.commit_of("op1") is None
    assert not head.remembers(since=0)
    assert head.remembers(since=1)


def test_fields_of_a_later_version_survive() -> None:
    head = Head({**after(Head.empty(), 1).document, "later": {"x": 1}}, after(Head.empty(), 1).index, None)
    assert after(head, 2).document["later"] == {"x": 1}


def test_a_spilled_index_stops_a_reader_that_does_not_know_it() -> None:
    head = after(Head.empty(), 1)
    head.document["index"] = {"embedded": {}, "segments": ["s"]}
    with pytest.raises(Broken, match="spilled"):
        Head.parse(head.body, None, "manifest")


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"version":2}'])
def test_what_is_not_a_commit_is_our_own_fault(body: bytes) -> None:
    with pytest.raises(Broken):
        Head.parse(body, None, "manifest")
