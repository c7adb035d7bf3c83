"""Which delete files apply to a data file: as Iceberg's `DeleteFileIndex` finds them, by what manifests tell.

It differs in one thing: Iceberg leaves out equality deletes whose keys lie outside of a data file's bounds.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

POSITION_DELETES, EQUALITY_DELETES = 1, 2
"""The content of a delete file; deletion vectors are position deletes."""


@dataclass(frozen=True, slots=True)
class DeleteFile:
    """A delete file. `partition` is None for equality deletes of a spec without partitions: they apply to all files.
    `of` is the only data file whose rows it deletes, where that is known."""

    content: int
    sequence: int
    records: int
    partition: str | None = None
    of: str | None = None
    vector: bool = False


@dataclass(frozen=True, slots=True)
class Applied:
    """What is deleted of a data file: by how many delete files, and how many rows at least. Rows are known of delete
    files that are of this data file alone."""

    files: int = 0
    records: int = 0


@dataclass(slots=True)
class DeleteIndex:
    """Delete files by where they apply. Of those that apply to a partition the sequence numbers are kept, sorted; of
    those of one data file these and the rows."""

    everywhere: Sequence[int] = ()
    equality: Mapping[str, Sequence[int]] = field(default_factory=dict)
    positions: Mapping[str, Sequence[int]] = field(default_factory=dict)
    of_file: Mapping[str, Sequence[tuple[int, int]]] = field(default_factory=dict)
    vectors: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, files: Iterable[DeleteFile]) -> "DeleteIndex":
        """Of the delete files of a snapshot."""
        everywhere: list[int] = []
        equality: dict[str, list[int]] = {}
        positions: dict[str, list[int]] = {}
        of_file: dict[str, list[tuple[int, int]]] = {}
        vectors: dict[str, int] = {}
        for file in files:
            if file.content == EQUALITY_DELETES:
                same = everywhere if file.partition is None else equality.setdefault(file.partition, [])
                same.append(file.sequence)
            elif file.of is None:
                positions.setdefault(str(file.partition), []).append(file.sequence)
            elif file.vector:
                vectors[file.of] = file.records
            else:
                of_file.setdefault(file.of, []).append((file.sequence, file.records))
        for sequences in (everywhere, *equality.values(), *positions.values()):
            sequences.sort()
        return cls(everywhere, equality, positions, of_file, vectors)

    def to(self, path: str, partition: str, sequence: int) -> Applied:
        """What applies to a data file: equality deletes that are newer than it, and position deletes that are not
        older. A deletion vector stands for all position deletes."""
        newer = sequence + 1
        equality = _from(self.everywhere, newer) + _from(self.equality.get(partition, ()), newer)
        vector = self.vectors.get(path)
        if vector is not None:
            return Applied(equality + 1, vector)
        own = [records for at, records in self.of_file.get(path, ()) if at >= sequence]
        return Applied(equality + _from(self.positions.get(partition, ()), sequence) + len(own), sum(own))


def _from(sequences: Sequence[int], least: int) -> int:
    """How many are not less."""
    return len(sequences) - bisect_left(sequences, least)
