"""Which programs have committed to a registry, as HEAD records it."""

import pytest

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.commit_record import NEWEST_VERSION
from arco_catalog.state.registry import RegistryState
from arco_catalog.state.writers import LastCommit, Writers


def committed(head: RegistryState, commit: str, at_ms: int) -> RegistryState:
    """The registry after a commit by this program."""
    return head.successor(commit=commit, at_ms=at_ms, edits={}, operations=[])


def committed_by_older(head: RegistryState, commit: str, at_ms: int) -> RegistryState:
    """The registry after a commit by a program that repeats fields which it does not know."""
    made = committed(head, commit, at_ms)
    kept = {name: value for name, value in made.document.items() if name != "writers"}
    if "writers" in head.document:
        kept["writers"] = head.document["writers"]
    return RegistryState(kept, made.index, None)


def test_a_new_registry_has_no_writers() -> None:
    assert RegistryState.empty().writers.last == {}
    assert RegistryState.empty().writers.older_than(NEWEST_VERSION) is None


def test_a_commit_records_what_its_program_can_read() -> None:
    head = committed(committed(RegistryState.empty(), "a", 1), "b", 2)

    assert head.document["writers"] == {str(NEWEST_VERSION): ["b", 2]}
    assert head.writers.older_than(NEWEST_VERSION) is None
    assert head.writers.older_than(NEWEST_VERSION + 1) == LastCommit("b", 2)


@pytest.mark.parametrize("first", [False, True])
def test_a_commit_of_a_program_without_the_field_shows_from_then_on(*, first: bool) -> None:
    head = committed(RegistryState.empty(), "a", 1) if first else RegistryState.empty()
    head = committed_by_older(head, "old", 2)
    assert head.writers.older_than(2) == LastCommit("old", 2)

    for number in range(3, 6):
        head = committed(head, f"c{number}", number)
        assert head.writers.older_than(2) == LastCommit("old", 2)


def test_the_newest_of_older_programs_counts() -> None:
    writers = Writers({1: LastCommit("a", 1), 2: LastCommit("b", 5), 3: LastCommit("c", 9)})

    assert writers.older_than(1) is None
    assert writers.older_than(2) == LastCommit("a", 1)
    assert writers.older_than(3) == LastCommit("b", 5)
    assert writers.after(LastCommit("d", 10), 1).older_than(3) == LastCommit("d", 10)


def test_what_a_later_program_records_is_kept() -> None:
    document: JsonObject = {
        **committed(RegistryState.empty(), "a", 1).document,
        "writers": {"2": ["x", 0], "3": ["a", 1]},
    }
    head = committed(RegistryState(document, RegistryState.empty().index, None), "b", 2)

    assert head.document["writers"] == {"2": ["b", 2], "3": ["a", 1]}


def test_a_form_that_is_not_known_counts_as_no_writer() -> None:
    assert Writers.of({"writers": {"2": ["x"], "later": ["x", 1], "3": {"id": "x"}}}).last == {}
