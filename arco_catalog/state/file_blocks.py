"""Files of manifests in a form in which a process remembers many of them: a tenth of the bytes that they have in a
manifest, and ready for the answers of plans.

What the next plan needs of all files is apart from what it needs of those that match: partitions, then statistics of
columns, then the rest with the JSON of the file. Each is packed column by column, because files of one manifest have
most fields in common, so what a cache counts for it is what it takes.
"""

import marshal
import zlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby, repeat
from typing import Any, Final

from arco_catalog.iceberg.content_files import (
    ContentFile,
    EntryStatus,
    FileBatch,
    FileContent,
    FileStatistics,
    Partition,
    length_of,
)
from arco_catalog.iceberg.json import dumps
from arco_catalog.iceberg.scan_json import file_json
from arco_catalog.state.manifest_entries import EntrySelection

BLOCK_ENTRIES: Final = 1_024
"""The entries of a manifest that are packed together, of which deleted ones are left out."""
ROWS: Final = 64
"""Files whose rest is unpacked together."""
MAX_COLUMNS: Final = 8
"""Columns whose statistics are kept for later plans."""
OBJECT_BYTES: Final = 400
"""Bytes of memory of packed files besides what is packed."""
PARTITION_BYTES: Final = 120
"""Bytes of memory of a partition without what may have any length."""
VALUE_BYTES: Final = 56
"""Bytes of memory of a partition's value, without its length."""
FILE_WORK: Final = 200
"""Bytes that the work on a packed file counts as."""
_MARSHAL: Final = 2
"""The version of the format of `marshal` that is read fastest. No bytes leave the process."""
_CONTENTS: Final = tuple(FileContent)
_STATUSES: Final = tuple(EntryStatus)
_CONTENT, _PARTITION, _STATISTICS, _STATUS, _COLUMN_SIZES, _WRITTEN = map(
    ContentFile._fields.index, ("content", "partition", "statistics", "status", "column_sizes", "written")
)
_NO_FILES: Final = FileBatch((), 0)


class FileBlock:
    """The live files of a block of a manifest: of `BLOCK_ENTRIES` entries, or those up to the end of the manifest
    (`is_last`). They have the statistics of these `columns`, of all if that is None, and their JSON with partition
    values of these types."""

    __slots__ = ("_heads", "_partitions", "_rows", "_statistics", "columns", "is_last", "memory", "size", "work")

    def __init__(
        self,
        files: Sequence[ContentFile],
        partition_types: Sequence[str],
        columns: frozenset[int] | None,
        *,
        is_last: bool,
        memory: int,
    ) -> None:
        self.columns = columns
        self.memory = memory
        """Bytes of memory of the files, unpacked."""
        self.is_last = is_last
        self._partitions: list[Partition] = []
        numbers: dict[str, int] = {}  # by text: -0.0 equals 0.0, and is another value
        heads: list[tuple[int, int, int, int]] = []
        rows: list[Sequence[object]] = []
        for file in files:
            number = numbers.setdefault(repr(file.partition), len(numbers))
            if number == len(self._partitions):
                self._partitions.append(file.partition)
            written = dumps(file_json(file, partition_types))
            heads.append((number, file.position, int(file.status), file.memory + len(written)))
            rows.append(_row(file, written))
        self._heads = _encoded(heads)
        self._statistics = _encoded([(*file.statistics, file.column_sizes) for file in files])
        self._rows = [_encoded(rows[first : first + ROWS]) for first in range(0, len(rows), ROWS)]
        self.work = FILE_WORK * len(files)
        """Bytes that the work on all files counts as when it is given to a thread."""
        parts = (self._heads, self._statistics, *self._rows)
        self.size = OBJECT_BYTES + sum(map(len, parts)) + 50 * len(parts) + sum(map(_memory_of, self._partitions))

    def has(self, columns: frozenset[int] | None) -> bool:
        """Whether the packed files have the statistics of these columns, of all if that is None."""
        return self.columns is None or (columns is not None and columns <= self.columns)

    def select(self, selection: EntrySelection) -> FileBatch:
        """Unpacks and returns the packed files of a manifest that `selection` takes, by partition, position in the
        manifest, status and statistics, with their JSON, and the bytes of memory that they take."""
        matches = [selection.may_match(partition) for partition in self._partitions]
        if not any(matches):
            return _NO_FILES
        first, end, added_only = selection.first, selection.end, selection.added_only
        numbers, positions, statuses, memory = map(list, _decoded(self._heads))
        selected = [  # by `selection.has`, whose calls would take a tenth of the time again
            place
            for place, (number, position, status) in enumerate(zip(numbers, positions, statuses, strict=True))
            if matches[number]
            and position >= first
            and (end is None or position < end)
            and (not added_only or status == EntryStatus.ADDED)
        ]
        if not selected:
            return _NO_FILES
        *counts, sizes = map(list, _decoded(self._statistics))
        statistics = [*map(FileStatistics._make, zip(*counts, strict=True))]
        partitions = [self._partitions[number] for number in numbers]
        may_match = selection.statistics_may_match
        matching = [place for place in selected if may_match(statistics[place])]
        found: list[ContentFile] = []
        for start, places in groupby(matching, lambda place: place - place % ROWS):
            group = slice(start, start + ROWS)
            files = _files(_decoded(self._rows[start // ROWS]), partitions[group], statistics[group], sizes[group])
            found += [files[place - start] for place in places]
        return FileBatch(found, sum(memory[place] for place in matching))


def _row(file: ContentFile, written: bytes) -> list[object]:
    """Returns the fields of a data or delete file as `marshal` takes them: without partition, statistics and column
    sizes, which are packed apart, and with its JSON."""
    row: list[object] = [*file]
    row[_CONTENT], row[_STATUS] = int(file.content), int(file.status)
    row[_PARTITION] = row[_STATISTICS] = row[_COLUMN_SIZES] = None
    row[_WRITTEN] = written
    return row


def _files(
    columns: list[Iterable[Any]],
    partitions: Iterable[Partition],
    statistics: Iterable[FileStatistics],
    sizes: Iterable[Mapping[int, int] | None],
) -> Sequence[ContentFile]:
    """Returns the files of rows that `_row` has made, of which `columns` has the fields, with what is packed apart."""
    columns[_CONTENT] = map(_CONTENTS.__getitem__, columns[_CONTENT])
    columns[_STATUS] = map(_STATUSES.__getitem__, columns[_STATUS])
    columns[_PARTITION], columns[_STATISTICS], columns[_COLUMN_SIZES] = partitions, statistics, sizes
    return [*map(ContentFile._make, zip(*columns, strict=True))]


def _encoded(rows: Sequence[Sequence[object]]) -> bytes:
    """Returns rows of equal length as bytes, column by column, serialised by `marshal` and compressed. Of a column with
    one value in all rows, as most fields of the files of a manifest have, it is there once, in a tuple."""
    columns = [values[:1] if _are_equal(values) else [*values] for values in zip(*rows, strict=True)]
    return zlib.compress(marshal.dumps((len(rows), columns), _MARSHAL), 1)


def _decoded(data: bytes) -> list[Iterable[Any]]:
    """Returns the columns of the rows of which `_encoded` has made these bytes."""
    count, columns = marshal.loads(zlib.decompress(data))
    return [repeat(values[0], count) if isinstance(values, tuple) else values for values in columns]


def _are_equal(values: Sequence[object]) -> bool:
    """Whether all of these values, of which there is at least one, are equal and of one type."""
    first = values[0]
    return all(value is first or (type(value) is type(first) and value == first) for value in values)


def _memory_of(partition: Partition) -> int:
    """Returns about how many bytes of memory a partition takes."""
    lengths = sum(length_of(value) for value in partition if isinstance(value, str | bytes))
    return PARTITION_BYTES + VALUE_BYTES * len(partition) + lengths
