"""Reads Avro object container files, a slice of records at a time (Avro specification, "Object Container Files").

Principals that may commit to a table write such files, and purges of other tables read them. So the figures in a file
are checked: the schema first (`avro_schema`), a block is unpacked no further than the bound, it has no more records
than bytes, and a file beyond a bound is refused. A thread does the work, in slices of some thousand records, which take
tens of milliseconds and more. It decodes in Python (`avro_decoder`), so the event loop gets its turn between any two
values.
"""

import struct
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from typing import Final, Generic, TypeAlias, TypeVar, cast

from arco_catalog.iceberg.json import JsonObject, MalformedJson, loads
from arco_catalog.state.avro_codecs import Unpack, unpack_with
from arco_catalog.state.avro_decoder import reader_of
from arco_catalog.state.avro_schema import MAX_SCHEMA_BYTES, FileSchemas, check_schema
from arco_catalog.state.avro_schema import Composite as Composite
from arco_catalog.state.avro_schema import Fields as Fields
from arco_catalog.state.avro_schema import UnpacksTooLong as UnpacksTooLong
from arco_catalog.state.avro_schema import Unreadable as Unreadable
from arco_catalog.state.fields import objects, text
from arco_catalog.state.worker_threads import SMALL_BYTES, off_loop
from storage_backends.lazy_dataclass import dataclass

T = TypeVar("T")

MAGIC: Final = b"Obj\x01"
SYNC_SIZE: Final = 16
CHUNK = 1 << 20
"""Bytes that one call to the store reads."""
MAX_HEADER_BYTES: Final = 16 << 20
"""Bytes of a file before its first block: Iceberg puts the table's schema there."""
MAX_HEADER_ENTRIES: Final = 1_000
MAX_BLOCK_BYTES = 64 << 20
"""Bytes of a block, as stored and unpacked. Writers end one at some 64 KB, but PyIceberg writes a whole manifest
list as one block."""
MAX_RECORD_BYTES = 4 << 20
"""Bytes of a record: one with all statistics of 10,000 columns has 700 KB."""
MAX_FILE_BYTES = 1 << 30
"""Bytes of all blocks of a file, unpacked."""
MAX_FILE_RECORDS = 2_000_000
"""Records of a file. Iceberg begins a new manifest at 8 MB, which is some 100,000 files; reading so many takes seconds,
and each purge reads what other tables have."""
SLICE_RECORDS: Final = 4_096
SLICE_BYTES: Final = 1 << 20
"""The number of records, and of bytes of records, that are decoded at a time."""

ReadRange = Callable[[int, int], Awaitable[bytes]]
"""Reads bytes of a file, from a position and at most so many: fewer at the end of the file, none behind it."""


Decode: TypeAlias = Callable[[bytes, int], tuple[T | None, int]]
"""Returns what a record is decoded to, None if that is left out of the result, and the position behind the record. It
raises as the functions of `avro_values` do."""


@dataclass(frozen=True, slots=True)
class AvroLimits:
    """The limits of one Avro file: the bytes of a block, as stored and unpacked, the bytes and records of all blocks,
    unpacked, the bytes of a record and of the header, and those of records that are decoded at a time."""

    block_bytes: int = MAX_BLOCK_BYTES
    file_bytes: int = MAX_FILE_BYTES
    file_records: int = MAX_FILE_RECORDS
    record_bytes: int = MAX_RECORD_BYTES
    header_bytes: int = MAX_HEADER_BYTES
    slice_bytes: int = SLICE_BYTES


@dataclass(frozen=True, slots=True)
class AvroHeader:
    """The header of an Avro file: its metadata, and the schemas of its records."""

    metadata: Mapping[str, bytes]
    schemas: FileSchemas

    @property
    def fields(self) -> Sequence[str]:
        """The names of the fields that the records of the Avro file have."""
        return [text(each, "name") for each in objects(self.schemas.writer, "fields")]


def read_blocks(read_range: ReadRange, fields: Fields) -> AsyncGenerator[Sequence[JsonObject], None]:
    """Reads an Avro file by `read_range`, and yields its records, up to some thousands at a time, each with those of
    `fields` that the file has. Raises `Unreadable` for a file that is corrupt or beyond a bound, or has `fields` of
    another form, and what `read_range` raises."""
    return parse_blocks(read_range, fields, lambda record: record, AvroLimits(), lambda _: None)


def parse_blocks(
    read_range: ReadRange,
    fields: Fields,
    parse: Callable[[JsonObject], T],
    limits: AvroLimits,
    check_header: Callable[[AvroHeader], None],
) -> AsyncGenerator[Sequence[T], None]:
    """Reads an Avro file as `read_blocks` does, within `limits`, and yields the results of `parse` for the records,
    up to some thousands at a time; a record for which it returns None is left out, so a slice may be empty.
    `check_header` is called with the header before any record is decoded, and `parse` with a record before the next one
    is, both perhaps in a worker thread.
    Raises as `read_blocks` does, and what `check_header` and `parse` raise, but `Unreadable` for an `IndexError`,
    `ValueError` or `struct.error` of `parse`."""

    def decoder_for(header: AvroHeader) -> Decode[T]:
        check_header(header)
        read = reader_of(header.schemas.writer, header.schemas.reader)

        def decode(data: bytes, place: int) -> tuple[T | None, int]:
            record, end = read(data, place)
            return parse(cast(JsonObject, record)), end

        return decode

    return decode_blocks(read_range, fields, decoder_for, limits)


def decode_all(count: int) -> bool:
    """Returns False for every block: none is skipped. It is the default of `decode_blocks`."""
    return False


async def decode_blocks(
    read_range: ReadRange,
    fields: Fields,
    decoder_for: Callable[[AvroHeader], Decode[T]],
    limits: AvroLimits,
    skips: Callable[[int], bool] = decode_all,
) -> AsyncGenerator[Sequence[T], None]:
    """Reads an Avro file by `read_range`, within `limits`, and yields its records, up to some thousands at a time, as
    the function decodes them that `decoder_for` returns for the header; both are called perhaps in a worker thread.
    Records that it decodes to None are left out, so a slice may be empty. A block for whose number of records `skips`
    is true is left out, and not unpacked. Raises `Unreadable` for a file that is corrupt or beyond a bound, or has
    `fields` of another form, and what `read_range`, `decoder_for` and the function raise, but `Unreadable` for an
    `IndexError`, `ValueError` or `struct.error` of the function."""
    parser = _Parser(fields, decoder_for, limits, skips)
    place, ended = 0, False
    while True:
        if parser.missing == 0:
            # A thread also for a few bytes, unless the limit is low: a block of a hundred may unpack to 64 MB.
            records = await off_loop(min(SMALL_BYTES, limits.block_bytes), parser.read)
            if records or parser.missing == 0:  # a caller with a deadline gets its turn also if none of a slice is left
                yield records
        elif ended:
            break
        else:
            size = max(CHUNK, parser.missing)
            part = await read_range(place, size)
            place, ended = place + len(part), len(part) < size
            parser.add(part)
    if not parser.between_blocks:
        raise Unreadable("the Avro file ends too early, within its header or a block")


class _NeedsBytes(Exception):
    """The bytes that were read end within the next item; `missing` is how many more it needs at least."""

    def __init__(self, missing: int) -> None:
        super().__init__(missing)
        self.missing = missing


class _Buffer:
    """The bytes of an Avro file that were read, and the position up to which they are taken."""

    def __init__(self) -> None:
        self._bytes = b""
        self._place = 0

    def __len__(self) -> int:
        return len(self._bytes) - self._place

    def add(self, data: bytes) -> None:
        """Appends bytes of the Avro file to the bytes in the buffer that are not taken yet."""
        self._bytes, self._place = self._bytes[self._place :] + data, 0

    def mark(self) -> int:
        """Returns the present position in the bytes of the Avro file, to which `go_back` can return."""
        return self._place

    def go_back(self, mark: int) -> None:
        """Sets the position in the bytes of the Avro file back to that of a call of `mark`: bytes that were taken since
        then are taken again. No bytes may have been added since."""
        self._place = mark

    def take(self, size: int) -> bytes:
        """Returns the next `size` bytes of the Avro file in the buffer, and advances the position. Raises
        `_NeedsBytes`, without that, if the buffer has fewer."""
        if size > len(self):
            raise _NeedsBytes(size - len(self))
        taken = self._bytes[self._place : self._place + size]
        self._place += size
        return taken

    def long(self) -> int:
        """Takes a long integer of Avro, in the variable-length zig-zag code. Raises `_NeedsBytes` if it is not there
        completely, and an error if it has more than ten bytes."""
        value = 0
        for shift in range(0, 70, 7):
            [byte] = self.take(1)
            value |= (byte & 0x7F) << shift
            if not byte & 0x80:
                return (value >> 1) ^ -(value & 1)
        raise Unreadable("an integer of the Avro file has more than ten bytes")


class _Parser(Generic[T]):
    """Reads one Avro file in the order of its bytes. The caller adds the next bytes while `missing` is not 0."""

    def __init__(
        self,
        fields: Fields,
        decoder_for: Callable[[AvroHeader], Decode[T]],
        limits: AvroLimits,
        skips: Callable[[int], bool],
    ) -> None:
        self._fields = fields
        self._decoder_for = decoder_for
        self._limits = limits
        self._skips = skips
        self._buffer = _Buffer()
        self._records: _Records[T] | None = None
        self._sync = b""
        self.missing = 1
        """The minimum number of bytes that must be added before `read` can return more records."""

    @property
    def pending(self) -> int:
        """The number of bytes that were added and belong to no block that was read, and of the decompressed bytes of
        the present block that are not decoded yet. 0 if all that was added is decoded or skipped."""
        return len(self._buffer) + (0 if self._records is None else self._records.pending)

    @property
    def between_blocks(self) -> bool:
        """Whether the Avro file may end at this position: the header is read, and all blocks up to it are complete."""
        return self._records is not None and self.pending == 0

    def add(self, data: bytes) -> None:
        """Adds the next bytes of the Avro file to those that are to be parsed, and lowers `missing` by their number, to
        0 at least."""
        self._buffer.add(data)
        self.missing = max(0, self.missing - len(data))

    def read(self) -> Sequence[T]:
        """Returns the next records of the Avro file, decoded, without those that the decoder leaves out: at most a
        slice of them, perhaps none. If bytes are missing, it sets `missing` to their minimum number, and returns the
        records before them. Raises `Unreadable` if the file is corrupt or beyond a bound, and what decoding raises."""
        found: list[T] = []
        steps, max_bytes = SLICE_RECORDS, self._limits.slice_bytes
        while steps > 0 and max_bytes > 0:
            mark = self._buffer.mark()
            try:
                if self._records is None:
                    self._records = self._read_header()
                    mark = self._buffer.mark()
                if self._records.left == 0:
                    self._read_block(self._records)
            except _NeedsBytes as error:
                self._buffer.go_back(mark)
                self.missing = error.missing
                break
            before = self._records.pending
            count, decoded = self._records.decode(steps, max_bytes)
            found += decoded
            steps -= 1 + count  # a block without records is work, too
            max_bytes -= before - self._records.pending
        return found

    def _read_header(self) -> "_Records[T]":
        """Reads the header of the Avro file, sets the sync marker, and returns the decoder of the records, which has no
        block yet. Raises `_NeedsBytes` if the header is not there completely, `UnpacksTooLong` if it is too long, or
        would be with the bytes that are missing, another error if it is corrupt or has an unsupported codec or schema,
        and what `decoder_for` raises."""
        start = len(self._buffer)
        try:
            if self._buffer.take(len(MAGIC)) != MAGIC:
                raise Unreadable("the file does not begin as an Avro file does")
            metadata = self._read_metadata()
            self._sync = self._buffer.take(SYNC_SIZE)
        except _NeedsBytes as error:
            self._check_header_size(start + error.missing)
            raise
        self._check_header_size(start - len(self._buffer))
        unpack = unpack_with(metadata.get("avro.codec", b"null").decode(errors="replace"))
        header = AvroHeader(metadata, _check_schemas(metadata, self._fields))
        return _Records(self._decoder_for(header), unpack, self._limits, self._skips)

    def _check_header_size(self, size: int) -> None:
        """Raises `UnpacksTooLong` if the header of the Avro file, of at least `size` bytes, is too long."""
        if size > self._limits.header_bytes:
            raise UnpacksTooLong(f"the header of the Avro file has more than {self._limits.header_bytes:,} bytes")

    def _read_metadata(self) -> dict[str, bytes]:
        """Reads the entries of the Avro header, by name; of two with one name the last counts. Raises `_NeedsBytes` if
        they are not there completely, and an error if they are corrupt or too many."""
        found: dict[str, bytes] = {}
        entries = 0
        while (count := self._buffer.long()) != 0:
            if count < 0:  # then the size of the entries follows
                count = -count
                self._buffer.long()
            entries += count
            if entries > MAX_HEADER_ENTRIES:
                raise Unreadable(f"the header of the Avro file has more than {MAX_HEADER_ENTRIES:,} entries")
            for _ in range(count):
                name = self._read_text().decode(errors="replace")
                found[name] = self._read_text()
        return found

    def _read_text(self) -> bytes:
        """Reads a name or value in the Avro header, as bytes. Raises `_NeedsBytes` if it is not there completely, and
        an error if its size is negative or too large."""
        size = self._buffer.long()
        if not 0 <= size <= MAX_HEADER_BYTES:
            raise Unreadable(
                f"a text in the header of the Avro file has {size} bytes, expected 0 to {MAX_HEADER_BYTES:,}"
            )
        return self._buffer.take(size)

    def _read_block(self, records: "_Records[T]") -> None:
        """Reads one block of the Avro file, and opens it in `records`. Raises `_NeedsBytes` if it is not there
        completely, `UnpacksTooLong` if it is too long, packed or unpacked, or makes the file too long unpacked, and
        another error if it is corrupt or the file has too many records."""
        count, size = self._buffer.long(), self._buffer.long()
        max_bytes = self._limits.block_bytes
        if count < 0 or not 0 <= size <= max_bytes:
            error = UnpacksTooLong if size > max_bytes else Unreadable
            raise error(
                f"an Avro block has {count} records in {size} bytes, expected at least 0 in 0 to {max_bytes:,} bytes"
            )
        data = self._buffer.take(size)
        if self._buffer.take(SYNC_SIZE) != self._sync:
            raise Unreadable("an Avro block is not followed by the sync marker of its file, where its stated size ends")
        records.open_block(count, data)


class _Records(Generic[T]):
    """Decodes the records in the blocks of an Avro file, by `decode`. What that raises for corrupt data is raised as
    `Unreadable`."""

    def __init__(self, decode: Decode[T], unpack: Unpack, limits: AvroLimits, skips: Callable[[int], bool]) -> None:
        self._decode = decode
        self._skips = skips
        self._limits = limits
        self._unpack = unpack
        self._block = b""
        self._start = self._place = 0
        self._window = b""
        """The part of the block from `_start` on in which records are decoded, up to two records of the greatest
        length: a corrupt one can't be taken for longer than that. `_place` is in the window."""
        self._file_bytes = self._file_records = 0
        self.left = 0
        """Records of the block that are still to be read."""

    @property
    def pending(self) -> int:
        """The number of decompressed bytes of the present Avro block that are not decoded yet."""
        return len(self._block) - self._start - self._place

    def open_block(self, count: int, packed: bytes) -> None:
        """Decompresses the next block of `count` records, so that `decode` returns them. Of a block that is skipped it
        only counts the records, which are checked with the next block that is not skipped. A block without records
        counts as one. Raises `UnpacksTooLong` for too many bytes; a corrupt block, or too many records of the file, are
        another error."""
        limits = self._limits
        if self._skips(count):
            self._file_records += max(1, count)
            return
        data = self._unpack(packed, limits.block_bytes)
        if count > len(data):
            raise Unreadable(
                f"an Avro block has {count} records in {len(data)} bytes: each must have at least one byte"
            )
        self._file_bytes += len(data)
        self._file_records += max(1, count)
        if self._file_records > limits.file_records:
            raise Unreadable(
                f"the Avro file has more than {limits.file_records:,} records, where a block without any counts as "
                "one: a fixed limit, or one by the counts in the manifest list"
            )
        if self._file_bytes > limits.file_bytes:
            raise UnpacksTooLong(
                f"the Avro file has more than {limits.file_bytes:,} bytes of records, unpacked: a fixed limit, or one "
                "by the size of the file"
            )
        self.left = count
        self._open(data if count else b"")

    def _open(self, block: bytes) -> None:
        """Makes `block`, which is decompressed, the present one of the Avro file. The caller passes an empty one when
        no record is left to decode."""
        self._block, self._start = block, 0
        self._open_window()

    def _open_window(self) -> None:
        """Copies the part of the present Avro block in which the next records are decoded, as long as two records may
        be."""
        self._window, self._place = self._block[self._start : self._start + 2 * self._limits.record_bytes], 0

    def decode(self, max_records: int, max_bytes: int) -> tuple[int, Sequence[T]]:
        """Decodes the next records of the present Avro block: at most `max_records`, and none that starts after the
        next `max_bytes` bytes. Returns their number, 0 at the end of the block, and their values, without those of
        records that `decode` of the constructor leaves out. A corrupt record is an error."""
        decoded: list[T] = []
        before, max_pending = self.left, self.pending - max_bytes
        end = before - max_records
        while self.left > max(0, end) and self.pending > max_pending:
            found = self._decode_one()
            if found is not None:
                decoded.append(found)
            self.left -= 1
        if self.left == 0:
            self._open(b"")
        return before - self.left, decoded

    def _decode_one(self) -> T | None:
        """Decodes the next Avro record, and advances the position; None for one that is left out of the result. Raises
        `Unreadable` for a record that is corrupt or too long."""
        longest = self._limits.record_bytes
        if self._place > longest:
            self._start += self._place
            self._open_window()
        try:
            found, end = self._decode(self._window, self._place)
        except (IndexError, ValueError, struct.error) as error:
            reason = f"an Avro record is damaged, or has more than {longest:,} bytes: {type(error).__name__}: {error}"
            raise Unreadable(reason) from error
        if end > len(self._window) or end - self._place > longest:
            raise Unreadable(f"a record goes on beyond its Avro block, or has more than {longest:,} bytes")
        self._place = end
        return found


def _check_schemas(metadata: Mapping[str, bytes], fields: Fields) -> FileSchemas:
    """Returns the schemas for reading an Avro file, from the metadata in its header: that of the writer, and the part
    of it with `fields` alone. Raises `Unreadable` for a schema that is not valid, or is beyond a bound, or has
    a field in another form than in `fields`."""
    stated = metadata.get("avro.schema", b"")
    if len(stated) > MAX_SCHEMA_BYTES:
        raise Unreadable(f"the Avro schema has more than {MAX_SCHEMA_BYTES:,} bytes")
    try:
        return check_schema(loads(stated), fields)
    except MalformedJson as error:
        raise Unreadable("the Avro schema is missing or not JSON") from error
