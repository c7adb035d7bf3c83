"""Data files and delete files, as the entries of manifests describe them (table spec, "Manifests")."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from enum import IntEnum
from typing import Final, NamedTuple, TypeAlias

FILE_BYTES: Final = 700
"""Bytes of memory of a file without what may have any length."""
ITEM_BYTES: Final = 100
"""Bytes of memory of a number or bound of a column."""

CHARACTER_BYTES: Final = 8
"""Maximum bytes of memory of a character of a text that is not ASCII: four in the text, as wide as its widest one, and
four in its UTF-8, which Python keeps after it was written as JSON."""

PartitionValue: TypeAlias = bool | int | float | Decimal | str | bytes | None
Partition: TypeAlias = tuple[PartitionValue, ...]
"""The values of a file's partition fields, in the order of its partition spec. A date is in days, a time or timestamp
in microseconds, a `timestamp_ns` in nanoseconds, a UUID is bytes."""


def length_of(value: str | bytes) -> int:
    """Returns how many bytes of memory the characters of a text take at most, or the bytes."""
    return len(value) if isinstance(value, bytes) or value.isascii() else CHARACTER_BYTES * len(value)


class FileContent(IntEnum):
    """What a file of a table contains: rows, positions of deleted rows, or values of deleted rows."""

    DATA = 0
    POSITION_DELETES = 1
    """Positions of deleted rows: a file of them, or a deletion vector."""
    EQUALITY_DELETES = 2


class EntryStatus(IntEnum):
    """What a manifest's snapshot did with the file of an entry: kept, added or removed it. A `DELETED`
    file is not in that snapshot itself."""

    EXISTING = 0
    ADDED = 1
    DELETED = 2


class FileStatistics(NamedTuple):
    """The number of a file's rows, and counts and bounds of the values in its columns, by the ids of the columns. A
    mapping is None if the file has no such statistics. Bounds are in the binary single-value form, and may be
    truncated: a lower bound is no higher than the column's least value, an upper bound no lower than its greatest."""

    record_count: int
    value_counts: Mapping[int, int] | None = None
    null_value_counts: Mapping[int, int] | None = None
    nan_value_counts: Mapping[int, int] | None = None
    lower_bounds: Mapping[int, bytes] | None = None
    upper_bounds: Mapping[int, bytes] | None = None


class ContentFile(NamedTuple):
    """A data file or delete file, and the state of its entry in a manifest, with all that an entry inherits from the
    manifest. `format` is in lower case, `size` and `column_sizes` are bytes, and `position` is how many entries the
    manifest has before this one. The statistics and column sizes may lack columns that the file has.

    `sequence_number` is that of the rows or deletes, `file_sequence_number` that of the snapshot that added the file.
    `first_row_id` is None for delete files, and for data files whose rows have no ids. A deletion vector has
    `content_offset` and `content_size`, the place of its blob in the file, and `referenced_data_file`. `written` is the
    JSON of the file without statistics, for the schema of a scan, None if it was not written yet."""

    content: FileContent
    path: str
    format: str
    spec_id: int
    partition: Partition
    statistics: FileStatistics
    size: int
    sequence_number: int
    file_sequence_number: int | None = None
    status: EntryStatus = EntryStatus.ADDED
    snapshot_id: int | None = None
    position: int = 0
    column_sizes: Mapping[int, int] | None = None
    key_metadata: bytes | None = None
    split_offsets: Sequence[int] | None = None
    equality_ids: Sequence[int] | None = None
    sort_order_id: int | None = None
    first_row_id: int | None = None
    referenced_data_file: str | None = None
    content_offset: int | None = None
    content_size: int | None = None
    written: bytes | None = None

    @property
    def memory(self) -> int:
        """About how many bytes of memory the file takes."""
        statistics = self.statistics
        items, size = 0, FILE_BYTES + length_of(self.path)
        for counts in (
            *(self.column_sizes, statistics.value_counts, statistics.null_value_counts, statistics.nan_value_counts),
            *(self.split_offsets, self.equality_ids),
        ):
            if counts:
                items += len(counts)
        for bounds in (statistics.lower_bounds, statistics.upper_bounds):
            if bounds:
                items += len(bounds)
                size += sum(map(len, bounds.values()))
        for text in (self.referenced_data_file, self.key_metadata, self.written, *self.partition):
            if isinstance(text, str | bytes):
                size += length_of(text)
        return size + ITEM_BYTES * items

    @property
    def is_deletion_vector(self) -> bool:
        """Whether the file is a deletion vector: a blob in a Puffin file."""
        return self.format == "puffin"


class FileBatch(NamedTuple):
    """Files of one manifest, in their order, and about how many bytes of memory they take together."""

    files: Sequence[ContentFile]
    memory: int

    @classmethod
    def of(cls, files: Sequence[ContentFile]) -> "FileBatch":
        """Returns the batch of these files, with the sum of the memory that they take."""
        return cls(files, sum(file.memory for file in files))
