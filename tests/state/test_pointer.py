"""A pointer remembers its moves, and keeps what it does not know."""

from hypothesis import given
from hypothesis import strategies as st

from arco_catalog.state.pointer import RECENT_MOVES, MetadataFile, Pointer, Turn
from storage_backends import Version

FIRST = MetadataFile("file:///t/metadata/00000-a-1.metadata.json", 1)


def first() -> Pointer:
    return Pointer.first(entity="E", kind="table", move="m1", metadata=FIRST, summary={"table_uuid": "u"})


def test_every_move_adds_one_and_goes_in_front() -> None:
    pointer = first().fenced("m2").marked_dropped("m3", "d").successor(attempt="m4", metadata=FIRST, summary={})
    assert pointer.sequence == 4
    assert pointer.recent == ("m4", "m3", "m2", "m1")


def test_a_fence_changes_the_bytes_and_nothing_else() -> None:
    fenced = first().fenced("m2")
    assert fenced.body != first().body
    assert fenced.metadata == first().metadata


def test_a_turn_ends_with_the_next_move() -> None:
    reserved = first().reserved(Turn("m2", 7))
    assert reserved.turn == Turn("m2", 7)
    assert reserved.metadata == first().metadata
    assert first().turn is None
    assert "turn" not in reserved.fenced("m3").document


def test_a_turn_that_an_earlier_version_of_the_program_has_kept_is_over() -> None:
    kept = first().reserved(Turn("m2", 7)).document["turn"]
    later = first().fenced("m2").fenced("m3")
    assert Pointer({**later.document, "turn": kept}, None).turn is None


def test_a_commit_names_its_base_and_clears_the_mark_of_an_undone_drop() -> None:
    new = MetadataFile("file:///t/metadata/00001-b-1.metadata.json", 2)
    pointer = first().marked_dropped("m2", "d").successor(attempt="m3", metadata=new, summary={})
    assert (pointer.metadata, pointer.base, pointer.dropped_by) == (new, FIRST, None)


def test_the_evidence_is_definite_for_a_thousand_moves_and_then_unknown() -> None:
    pointer = first()
    for move in range(RECENT_MOVES):
        pointer = pointer.fenced(f"f{move}")
    assert pointer.has_committed("other", since=1) is False
    assert pointer.has_committed("m1", since=0) is None
    assert pointer.fenced("one more").has_committed("other", since=1) is None
    assert pointer.has_committed("f0", since=1) is True


@given(st.dictionaries(st.sampled_from(["x", "y", "origin"]), st.integers(), max_size=3))
def test_fields_of_a_later_version_survive_every_move(unknown: dict[str, int]) -> None:
    stored = Pointer({**first().document, **unknown}, Version("1"))
    moved = stored.fenced("m2").successor(attempt="m3", metadata=FIRST, summary={}).marked_dropped("m4", "d")
    assert {key: moved.document[key] for key in unknown} == unknown
    assert Pointer.parse(moved.body, Version("2"), "here").document == moved.document
