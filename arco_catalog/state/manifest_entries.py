"""Reads the entries of a manifest (table spec, "Manifests") as content files, with what they inherit from it.

An entry is decoded no further than it is needed: first its status and partition, which decide whether it is read on,
and then the statistics of the columns that the reader needs. Anyone who may commit to a table writes such files, so
what an entry states is checked before it is used.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Final, NamedTuple, cast

from arco_catalog.iceberg.content_files import ContentFile, EntryStatus, FileContent, FileStatistics, Partition
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.iceberg.manifests import DATA, ManifestFile
from arco_catalog.iceberg.partition import PartitionSpec
from arco_catalog.iceberg.shapes import MAX_LONG
from arco_catalog.state.avro import AvroHeader, AvroLimits, Decode, ReadRange, decode_blocks
from arco_catalog.state.avro_decoder import fields_reader
from arco_catalog.state.avro_schema import Unreadable
from arco_catalog.state.avro_skippers import Skippers
from arco_catalog.state.entry_fields import EntryValues, field_readers, flat_fields
from arco_catalog.state.partition_values import PartitionReader
from storage_backends.lazy_dataclass import dataclass

USUAL: Final = AvroLimits(
    block_bytes=256 << 10, file_bytes=512 << 20, record_bytes=256 << 10, header_bytes=1 << 20, slice_bytes=128 << 10
)
"""The limits of a manifest as most writers write them: Iceberg's Java library ends a block at 64 KB."""
LIMITS: Final = AvroLimits(
    block_bytes=8 << 20, file_bytes=512 << 20, record_bytes=2 << 20, header_bytes=8 << 20, slice_bytes=128 << 10
)
"""The limits of a manifest. An entry with all statistics of 10,000 columns has 700 KB. One takes a hundred bytes of
memory for each of its own, decoded, so few are decoded at a time."""
MAX_FORMAT_LENGTH: Final = 100
"""Characters of the name of a file's format."""
MAX_PATH_LENGTH: Final = 16 << 10
"""Characters of a file's name: no store has a longer one."""
MAX_JUDGED: Final = 4_096
"""Partitions of a manifest whose judgement is remembered."""
MAX_JUDGED_BYTES: Final = 1 << 10
"""Bytes of a partition whose judgement is remembered. An entry may have one of two megabytes."""

_STATUSES: Final = tuple(EntryStatus)
_CONTENTS: Final = tuple(FileContent)


def _always(_: object) -> bool:
    """Returns True for any value: the default condition of a selection, which excludes no entry."""
    return True


@dataclass(frozen=True, slots=True)
class EntrySelection:
    """Which entries of a manifest are read: from the one at position `first` up to the one before `end`, or to the last
    if that is None, without deleted ones, if the partition `may_match` and the `statistics_may_match`; with
    `added_only`, only those with the status added. `spec` is the manifest's partition spec, and `partition_types` are
    the types of its fields' values. Statistics are read of these `columns`, of all if that is None."""

    spec: PartitionSpec
    partition_types: Sequence[str]
    columns: frozenset[int] | None = frozenset()
    first: int = 0
    end: int | None = None
    added_only: bool = False
    may_match: Callable[[Partition], bool] = _always
    statistics_may_match: Callable[[FileStatistics], bool] = _always

    def has(self, position: int, status: object) -> bool:
        """Whether an entry of a manifest at this position with this status is selected, if its partition and statistics
        match: it is in the range, and with `added_only` it was added, else it is not deleted."""
        if position < self.first or (self.end is not None and position >= self.end):
            return False
        return status == EntryStatus.ADDED if self.added_only else status != EntryStatus.DELETED

    def beginning_at(self, first: int) -> "EntrySelection":
        """Returns the selection of entries of a manifest with this position as the first one, in place of its own."""
        from dataclasses import replace  # few manifests need it

        return replace(self, first=first)


async def read_entries(
    read_range: ReadRange, manifest: ManifestFile, selection: EntrySelection, limits: AvroLimits = LIMITS
) -> AsyncGenerator[Sequence[ContentFile], None]:
    """Yields the selected entries of a manifest as files, up to some hundreds at a time, perhaps none, in their order.
    It ends at the end of the selection. Raises `Unreadable` for a file that is corrupt or beyond the limits
    (`UnpacksTooLong` for a block or header), and what `read_range` and the functions of `selection` raise."""
    decoders: list[_EntryDecoder] = []

    def decoder_for(header: AvroHeader) -> Decode[ContentFile]:
        decoders.append(_EntryDecoder(header.schemas.writer, manifest, selection))
        return decoders[0].decode

    def skips(count: int) -> bool:
        return decoders[0].skips(count)

    async with aclosing(decode_blocks(read_range, {}, decoder_for, limits, skips)) as blocks:
        async for files in blocks:
            yield files
            if selection.end is not None and decoders[0].position >= selection.end:
                return


class _Judgement(NamedTuple):
    """The partition of entries of a manifest, and whether entries with it are read on."""

    partition: Partition
    matches: bool


class _EntryDecoder:
    """Decodes the entries of one manifest, one after the other."""

    def __init__(self, schema: JsonObject, manifest: ManifestFile, selection: EntrySelection) -> None:
        self._manifest = manifest
        self._selection = selection
        self.position = 0
        """The position of the next entry."""
        self._next_row_id = manifest.first_row_id if manifest.content == DATA else None
        self._judged: dict[bytes, _Judgement] = {}
        fields = flat_fields(schema)
        names = [name for name, _ in fields]
        at = names.index("partition")
        before, partition, after = fields[:at], fields[at][1], fields[at + 1 :]
        if "status" not in names[:at]:
            raise Unreadable("the schema of the manifest's entries has no field status before the field partition")
        skippers = Skippers()
        readers = field_readers(fields, selection.columns, skippers.patterns)
        self._read_head = fields_reader(before, readers, skippers)
        self._partitions = PartitionReader(partition, selection.spec, selection.partition_types)
        self._skip_partition = skippers.of(partition)
        self._read_rest = fields_reader(after, readers, skippers)
        counted = () if self._next_row_id is None else ("record_count", "first_row_id")
        counts = {name: readers[name] for name in counted if name in readers}
        self._count_rest = fields_reader(after, counts, skippers)

    def skips(self, count: int) -> bool:
        """Whether the next `count` entries of the manifest need not be decoded, because all are before the selected
        ones and no row id is counted. If so, this moves the position behind them."""
        if self._next_row_id is not None or self.position + count > self._selection.first:
            return False
        self.position += count
        return True

    def decode(self, data: bytes, place: int) -> tuple[ContentFile | None, int]:
        """Decodes the next entry of the manifest as a file, None unless it is selected, and returns it with the
        position behind it in the data. Also counts the entry and its row ids. Raises as the functions of `avro_values`
        and of the selection do."""
        position, self.position = self.position, self.position + 1
        values, start = self._read_head(data, place)
        end = self._skip_partition(data, start)
        status = values["status"]
        partition = self._partition_if_read(data, start, end) if self._selection.has(position, status) else None
        rest, end = (self._count_rest if partition is None else self._read_rest)(data, end)
        values.update(rest)
        entry = cast(EntryValues, values)
        if partition is None:
            self._take_row_id(entry)
            return None, end
        file = self._file(position, partition, entry)
        return file if self._selection.statistics_may_match(file.statistics) else None, end

    def _partition_if_read(self, data: bytes, start: int, end: int) -> Partition | None:
        """Returns the partition at this place of the manifest if the selection's `may_match` accepts it, else None.
        Remembers short partitions with the result."""
        encoded = data[start:end]
        judged = self._judged.get(encoded)
        if judged is None:
            partition = self._partitions.read(data, start)
            judged = _Judgement(partition, self._selection.may_match(partition))
            if len(self._judged) >= MAX_JUDGED:
                self._judged.clear()
            if len(encoded) <= MAX_JUDGED_BYTES:
                self._judged[encoded] = judged
        return judged.partition if judged.matches else None

    def _take_row_id(self, values: EntryValues) -> int | None:
        """Returns the first row id of the file of an entry: the stated one, else the manifest's next one, which then
        moves on by the rows of the file. None for any entry if the manifest has none, and for a deleted entry that
        states none. An invalid number of rows that this counts is an error."""
        if self._next_row_id is None:
            return None
        stated = values.get("first_row_id")
        if stated is not None or values["status"] == EntryStatus.DELETED:
            return stated
        taken = self._next_row_id
        self._next_row_id += _number(values["record_count"])
        return taken

    def _file(self, position: int, partition: Partition, values: EntryValues) -> ContentFile:
        """Returns the file of an entry, complete with the fields that it inherits from the manifest; takes a row id for
        it. A value that is not valid is an error."""
        manifest = self._manifest
        status, content = values["status"], values.get("content") or DATA
        if not (0 <= status < len(_STATUSES) and 0 <= content < len(_CONTENTS)):
            raise Unreadable("an entry of the manifest has an unknown status or content")
        if (content == DATA) != (manifest.content == DATA):
            raise Unreadable("a manifest of data files has delete files, or one of delete files has data files")
        snapshot_id = values.get("snapshot_id")
        return ContentFile(
            _CONTENTS[content],
            _path(values["file_path"]),
            _format(values["file_format"]),
            manifest.partition_spec_id,
            partition,
            _statistics(values),
            _number(values["file_size_in_bytes"]),
            _number(self._inherited(status, values.get("sequence_number"))),
            self._inherited(status, values.get("file_sequence_number")),
            _STATUSES[status],
            manifest.added_snapshot_id if snapshot_id is None else snapshot_id,
            position,
            values.get("column_sizes"),
            values.get("key_metadata"),
            values.get("split_offsets"),
            values.get("equality_ids"),
            values.get("sort_order_id"),
            self._take_row_id(values),
            values.get("referenced_data_file"),
            values.get("content_offset"),
            values.get("content_size_in_bytes"),
        )

    def _inherited(self, status: int, stated: int | None) -> int | None:
        """Returns a sequence number of an entry: the stated one; if there is none, that of the manifest, provided that
        the entry was added with it or the manifest has the number 0, as one of a table of version 1 then; otherwise
        None."""
        number = self._manifest.sequence_number
        return number if stated is None and (status == EntryStatus.ADDED or number == 0) else stated


def _statistics(values: EntryValues) -> FileStatistics:
    """Returns the number of rows of a file and the statistics of its columns, from the decoded fields of the entry in a
    manifest. An invalid number of rows is an error."""
    return FileStatistics(
        _number(values["record_count"]),
        values.get("value_counts"),
        values.get("null_value_counts"),
        values.get("nan_value_counts"),
        values.get("lower_bounds"),
        values.get("upper_bounds"),
    )


def _number(value: int | None) -> int:
    """Returns a number in an entry of a manifest as it is. Raises `Unreadable` if it is None, below zero or above 64
    bits."""
    if value is None or not 0 <= value <= MAX_LONG:
        raise Unreadable(
            "an entry of the manifest has a record count, file size or sequence number that is missing, below zero or "
            "above 64 bits"
        )
    return value


def _format(value: str) -> str:
    """Returns the name of a file format in lower case. A name of more than `MAX_FORMAT_LENGTH` characters is an
    error."""
    if len(value) > MAX_FORMAT_LENGTH:
        raise Unreadable(
            f"an entry of the manifest has a format with a name of {len(value):,} characters, expected at most "
            f"{MAX_FORMAT_LENGTH}"
        )
    return value.lower()


def _path(value: str) -> str:
    """Returns the path of a file in an entry of a manifest as it is. Raises `Unreadable` for an empty or too long
    one."""
    if not 0 < len(value) <= MAX_PATH_LENGTH:
        raise Unreadable(
            f"an entry of the manifest has a path of {len(value):,} characters, expected 1 to {MAX_PATH_LENGTH:,}"
        )
    return value
