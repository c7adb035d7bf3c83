"""Finds the delete files that apply to a data file, by the rules of Iceberg's `DeleteFileIndex`, from manifests.

It differs from Iceberg's in one point: Iceberg leaves out equality deletes with keys that lie outside of a data file's
bounds.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

POSITION_DELETES, EQUALITY_DELETES = 1, 2
"""The content of a delete file; deletion vectors are position deletes."""


@dataclass(frozen=True, slots=True)
class DeleteFile:
    """A delete file of a snapshot. `content` is `POSITION_DELETES` or `EQUALITY_DELETES`, `sequence` the sequence
    number, and `records` the number of deletes. `partition` is None for equality deletes of an unpartitioned spec,
    which apply to all data files. `data_file` is the path of the only data file from which it deletes rows; None if
    there may be more than one. `vector` marks a deletion vector."""

    content: int
    sequence: int
    records: int
    partition: str | None = None
    data_file: str | None = None
    vector: bool = False


@dataclass(frozen=True, slots=True)
class AppliedDeletes:
    """The deletes of a data file: how many delete files apply to it, and how many rows of it are deleted at least.
    Only delete files that refer to no other data file count towards `records`."""

    files: int = 0
    records: int = 0


@dataclass(slots=True)
class DeleteIndex:
    """The delete files of a snapshot by what they apply to. `everywhere` (equality deletes for all data files),
    `equality` and `positions` (both by partition) have the files' sequence numbers, sorted. By the path of the only
    data file that they refer to, `of_file` has files of position deletes as pairs of the sequence number and the number
    of deleted rows, and `vectors` the number of rows that a deletion vector deletes."""

    everywhere: Sequence[int] = ()
    equality: Mapping[str, Sequence[int]] = field(default_factory=dict)
    positions: Mapping[str, Sequence[int]] = field(default_factory=dict)
    of_file: Mapping[str, Sequence[tuple[int, int]]] = field(default_factory=dict)
    vectors: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, files: Iterable[DeleteFile]) -> "DeleteIndex":
        """Indexes the delete files of a snapshot, with sorted sequence numbers; of two deletion vectors for one data
        file the last counts."""
        everywhere: list[int] = []
        equality: dict[str, list[int]] = {}
        positions: dict[str, list[int]] = {}
        of_file: dict[str, list[tuple[int, int]]] = {}
        vectors: dict[str, int] = {}
        for file in files:
            if file.content == EQUALITY_DELETES:
                same = everywhere if file.partition is None else equality.setdefault(file.partition, [])
                same.append(file.sequence)
            elif file.data_file is None:
                positions.setdefault(str(file.partition), []).append(file.sequence)
            elif file.vector:
                vectors[file.data_file] = file.records
            else:
                of_file.setdefault(file.data_file, []).append((file.sequence, file.records))
        for sequences in (everywhere, *equality.values(), *positions.values()):
            sequences.sort()
        return cls(everywhere, equality, positions, of_file, vectors)

    def deletes_of(self, path: str, partition: str, sequence: int) -> AppliedDeletes:
        """Counts the deletes that apply to the data file at `path` in this partition and with this sequence number:
        equality deletes with a greater sequence number, of this partition or of an unpartitioned spec, and position
        deletes with one that is not less. A deletion vector replaces all position deletes."""
        newer = sequence + 1
        equality = _count_from(self.everywhere, newer) + _count_from(self.equality.get(partition, ()), newer)
        vector = self.vectors.get(path)
        if vector is not None:
            return AppliedDeletes(equality + 1, vector)
        own = [records for at, records in self.of_file.get(path, ()) if at >= sequence]
        return AppliedDeletes(equality + _count_from(self.positions.get(partition, ()), sequence) + len(own), sum(own))


def _count_from(sequences: Sequence[int], least: int) -> int:
    """Returns how many of these sorted sequence numbers are `least` or greater."""
    return len(sequences) - bisect_left(sequences, least)
