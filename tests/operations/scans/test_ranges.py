"""Any split of a scan into parts has each entry of each manifest in one part."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from arco_catalog.operations.scans.ranges import MAX_PARTS, Piece, split, weight_of, within
from arco_catalog.operations.scans.tokens import WHOLE, Position, Range

COUNTS = st.lists(st.lists(st.integers(0, 300), max_size=6), min_size=1, max_size=4)


def pieces_of(counts: list[list[int]]) -> list[Piece]:
    return [Piece(number, place, entries) for number, each in enumerate(counts) for place, entries in enumerate(each)]


def entries(piece: Piece, part: Range, actual: int) -> list[Position]:
    """The entries of a manifest that a reader of the part reads, if the manifest has `actual` of them."""
    place = piece.list, piece.manifest
    first = part.start.entry if place == part.start[:2] else 0
    last = min(actual, part.end.entry) if place == part.end[:2] else actual
    return [Position(*place, entry) for entry in range(first, last)]


@given(COUNTS, st.integers(1, 500), st.integers(0, 50))
def test_parts_have_every_entry_once_whatever_the_counts_say(
    counts: list[list[int]], target: int, unlisted: int
) -> None:
    pieces = pieces_of(counts)
    parts = split(pieces, WHOLE, target)
    assert 1 <= len(parts) <= MAX_PARTS
    assert (parts[0].start, parts[-1].end) == WHOLE
    assert all(one.end == next_.start for one, next_ in itertools.pairwise(parts))
    wanted = {(piece.list, piece.manifest): piece.entries + unlisted for piece in pieces}
    seen = [
        entry
        for part in parts
        for piece in within(pieces, part)
        for entry in entries(piece, part, wanted[piece.list, piece.manifest])
    ]
    assert seen == [Position(*place, entry) for place, count in wanted.items() for entry in range(count)]


@given(COUNTS, st.integers(50, 500))
def test_a_part_is_cut_again_into_parts_of_itself(counts: list[list[int]], target: int) -> None:
    pieces = pieces_of(counts)
    for part in split(pieces, WHOLE, 4 * target):
        inner = split(within(pieces, part), part, target)
        assert (inner[0].start, inner[-1].end) == part


@given(COUNTS)
def test_parts_weigh_about_what_they_should(counts: list[list[int]]) -> None:
    pieces = pieces_of(counts)
    for part in split(pieces, WHOLE, 200):
        assert weight_of(within(pieces, part)) <= 2 * 200 + 80
