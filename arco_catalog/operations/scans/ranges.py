"""Splits a scan into parts that are planned one by one. Pure functions over positions in manifest lists."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from arco_catalog.operations.scans.tokens import Position, Range

MAX_PARTS: Final = 64
"""Maximum plan tasks in a response. The parts of a large scan have parts of their own."""
MANIFEST_WEIGHT: Final = 40
"""The weight of a manifest besides its entries, which have 1 each: a read of the store takes as long as so many
entries."""


class Piece(NamedTuple):
    """A manifest that a scan reads: where it is, and how many entries it has, roughly."""

    list: int
    manifest: int
    entries: int

    @property
    def weight(self) -> int:
        """How long the manifest takes to plan, in entries."""
        return self.entries + MANIFEST_WEIGHT


def weight_of(pieces: Sequence[Piece]) -> int:
    """Returns how long these pieces take to plan, in entries."""
    return sum(piece.weight for piece in pieces)


def within(pieces: Sequence[Piece], part: Range) -> Sequence[Piece]:
    """Returns the pieces that are in a part of the scan, at least with some of their entries, with the number of these;
    a piece that ends in the part is included even if no entry of it seems to be there."""
    found: list[Piece] = []
    for piece in pieces:
        place = piece.list, piece.manifest
        if not part.start[:2] <= place <= part.end[:2]:
            continue
        first = part.start.entry if place == part.start[:2] else 0
        last = piece.entries if place < part.end[:2] else part.end.entry
        # The count may be wrong, so a manifest whose end is in the part is in it, whatever its count.
        if place < part.end[:2] or last > first:
            found.append(piece._replace(entries=max(0, last - first)))
    return found


def split(pieces: Sequence[Piece], part: Range, target: int) -> Sequence[Range]:
    """Splits a part of a scan, in which these pieces are, into parts of about equal weight that together are all of it:
    at most `MAX_PARTS`, each of about the weight `target` unless that would be more parts. Only a piece heavier than
    that is in several parts."""
    target = max(target, -(-weight_of(pieces) // MAX_PARTS))
    splits: list[Position] = []
    weight = 0
    for piece in pieces:
        start = part.start.entry if (piece.list, piece.manifest) == part.start[:2] else 0
        if piece.entries > target:
            steps = -(-piece.entries // target)
            splits += (
                Position(piece.list, piece.manifest, start + piece.entries * step // steps) for step in range(steps)
            )
            weight = target
        elif weight + piece.weight > target:
            splits.append(Position(piece.list, piece.manifest, start))
            weight = piece.weight
        else:
            weight += piece.weight
    inner = sorted({each for each in splits if part.start < each < part.end})
    inner = inner[:: -(-len(inner) // (MAX_PARTS - 1)) or 1]
    return [Range(*ends) for ends in zip((part.start, *inner), (*inner, part.end), strict=True)]
