"""The delete files of some manifests in a form of which a plan reads as much as it needs: a part of the index of a
snapshot's deletes (docs/design/scan-planning.md#deletes).

A part is a header, a table with a hash for each delete file, and blocks of rows, each compressed. The hash is that of
the key by which a file is found (`delete_index.lookup_key`). Rows are in the order of partitions, and equality
deletes for all partitions come first. So a plan finds the blocks with rows for its data files by the table, and reads
only these.
"""

import base64
import hashlib
import sys
import zlib
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from decimal import Decimal, InvalidOperation
from typing import Any, Final, NamedTuple

from arco_catalog.iceberg.content_files import (
    ContentFile,
    EntryStatus,
    FileBatch,
    FileContent,
    FileStatistics,
    PartitionValue,
)
from arco_catalog.iceberg.delete_index import EVERYWHERE, FILE_PATH_ID, lookup_key, lookup_keys
from arco_catalog.iceberg.json import JsonObject, JsonValue, MalformedJson, dumps, loads
from arco_catalog.iceberg.partition_keys import PartitionKeys

VERSION: Final = 4
"""The version of the form: part of the hash that names a part."""
BLOCK_BYTES: Final = 32 << 10
"""Bytes of the rows of a block, after which it has no further row."""
MAX_BLOCK_BYTES: Final = 8 << 20
"""Maximum bytes of a block, unpacked. A row has at most a few megabytes: an entry of a manifest has two."""
HASH_BYTES: Final = 4
"""Bytes of a hash in the table, and of memory of a hash or the number of a row."""
_BIG_ENDIAN: Final = "big"
_HASHES: Final = "I"
"""The type of an array of hashes, and of the numbers of rows: lists of numbers take eight times as much memory."""
_GOES_ON: Final = "so the plan reads the manifests"
"""The part of an error that explains how a plan goes on without the part of an index."""


class InvalidPart(Exception):
    """The bytes are no part of an index of deletes in the form of this version, or are corrupt, or the part is gone
    from the store or too short. A plan then makes the part again, or reads the manifests instead."""


class Block(NamedTuple):
    """A block of a part of an index of deletes: the number of rows, and that of the compressed bytes."""

    rows: int
    size: int


class PartHeader(NamedTuple):
    """What a plan knows of a part before it reads the rows: the columns of equality deletes, by which the statistics of
    data files are compared, the blocks, and where the table of hashes starts, in bytes."""

    columns: frozenset[int]
    blocks: Sequence[Block]
    start: int

    @property
    def files(self) -> int:
        """The number of delete files in the part of the index of deletes."""
        return sum(block.rows for block in self.blocks)

    @property
    def end(self) -> int:
        """Where the table of hashes ends and the blocks start, in bytes."""
        return self.start + HASH_BYTES * self.files


class BlockRows(NamedTuple):
    """Some rows of a block of a part of an index of deletes, by number; and where in the part the compressed block
    starts, and how long it is, in bytes."""

    start: int
    size: int
    rows: Sequence[int]


class DeleteRows(NamedTuple):
    """Delete files of a block that a process remembers, by the numbers of their rows, with their JSON; and about how
    many bytes of memory they take together."""

    files: Mapping[int, ContentFile]
    memory: int

    def select(self, rows: Sequence[int]) -> FileBatch | None:
        """Returns the delete files in these rows, which are in order; None unless all are remembered."""
        if not all(row in self.files for row in rows):
            return None
        if len(rows) == len(self.files):
            return FileBatch([*self.files.values()], self.memory)
        return FileBatch.of([self.files[row] for row in rows])


def encode_part(files: Iterable[ContentFile], partitions: PartitionKeys) -> bytes:
    """Returns the bytes of a part of the index of a snapshot's deletes, which has these delete files: the header, the
    hashes of the keys by which plans find them, and compressed blocks of rows. Equal arguments give equal bytes."""
    columns: set[int] = set()
    hashes, blocks, body, rows = bytearray(), list[Block](), bytearray(), list[bytes]()
    size = 0
    for key, file in _in_order(files, partitions):
        columns.update(file.equality_ids or ())
        hashes += _hash(key).to_bytes(HASH_BYTES, _BIG_ENDIAN)
        rows.append(dumps(_row(file)))
        size += len(rows[-1])
        if size >= BLOCK_BYTES:
            blocks.append(_add_block(rows, body))
            size = 0
    if rows:
        blocks.append(_add_block(rows, body))
    header: JsonObject = {"version": VERSION, "columns": [*sorted(columns)], "blocks": [[*each] for each in blocks]}
    return dumps(header) + b"\n" + hashes + body


def _in_order(files: Iterable[ContentFile], partitions: PartitionKeys) -> Sequence[tuple[str, ContentFile]]:
    """Returns the delete files with the keys by which plans find them: equality deletes for all partitions first, then
    by a hash of the partition, the key, and the order in which they were given."""
    ordered: list[tuple[bytes, str, int, ContentFile]] = []
    for number, file in enumerate(files):
        key = lookup_key(file, partitions)
        place = b"" if key == EVERYWHERE else hashlib.blake2b(_bytes(partitions.text_of(file)), digest_size=8).digest()
        ordered.append((place, key, number, file))
    ordered.sort(key=lambda each: each[:3])
    return [(key, file) for _, key, _, file in ordered]


def _add_block(rows: list[bytes], body: bytearray) -> Block:
    """Compresses these rows, appends them to the body of a part, and empties the list. Returns the block: the number of
    rows and of compressed bytes."""
    packed = zlib.compress(b"\n".join(rows), 3)
    body += packed
    block = Block(len(rows), len(packed))
    rows.clear()
    return block


def read_header(part: bytes) -> PartHeader:
    """Reads the header of a part of an index of deletes from the first bytes of the part. Raises `InvalidPart` if they
    do not have the whole header, or if it has another version or form."""
    line, _, _ = part.partition(b"\n")
    try:
        header = loads(line)
    except MalformedJson as error:
        raise InvalidPart(
            f"the header of a part of an index of deletes is not JSON, or longer than the bytes read, {_GOES_ON}"
        ) from error
    match header:
        case {"version": version, "columns": list(columns), "blocks": list(blocks)} if version == VERSION:
            ids = frozenset(column for column in columns if isinstance(column, int))
            return PartHeader(ids, [*map(_block, blocks)], len(line) + 1)
        case _:
            raise InvalidPart(f"the header of a part of an index of deletes has an unknown version or form, {_GOES_ON}")


def _block(value: JsonValue) -> Block:
    """Reads a block, its rows and bytes, from the JSON of a part's header. Raises `InvalidPart` unless both are numbers
    above 0."""
    match value:
        case [int(rows), int(size)] if rows > 0 and size > 0:
            return Block(rows, size)
        case _:
            raise InvalidPart(
                "a block in the header of a part of an index of deletes is not two numbers above 0, of rows and bytes, "
                f"{_GOES_ON}"
            )


def lookup_hashes(data: Iterable[ContentFile], partitions: PartitionKeys) -> Set[int]:
    """Returns the hashes of all keys by which delete files that may apply to one of these data files are found, whether
    or not there are any."""
    return {*map(_hash, lookup_keys(data, partitions))}


def rows_found(header: PartHeader, table: bytes, hashes: Set[int]) -> Sequence[BlockRows]:
    """Returns the numbers of the rows of a part that have one of these hashes by its `table` of them, by block; blocks
    without such rows are left out. Raises `InvalidPart` for a table of another length."""
    if len(table) != HASH_BYTES * header.files:
        raise InvalidPart(
            f"the table of hashes of a part of an index of deletes has another length than its rows need, {_GOES_ON}"
        )
    of_rows = array(_HASHES, table)
    if sys.byteorder != _BIG_ENDIAN:
        of_rows.byteswap()
    if hashes.isdisjoint(of_rows):
        return []
    found: list[BlockRows] = []
    first, start = 0, header.end
    for block in header.blocks:
        of_block = of_rows[first : first + block.rows]
        rows = array(_HASHES, (row for row, each in enumerate(of_block) if each in hashes))
        if rows:
            found.append(BlockRows(start, block.size, rows))
        first += block.rows
        start += block.size
    return found


def read_rows(packed: bytes, rows: Sequence[int]) -> Sequence[ContentFile]:
    """Returns the delete files in the rows with these numbers of a compressed block, in the order of the numbers.
    Raises `InvalidPart` if the block is corrupt or too long, or one of these rows is corrupt or missing."""
    unpacker = zlib.decompressobj()
    try:
        lines = unpacker.decompress(packed, MAX_BLOCK_BYTES).split(b"\n")
        if not unpacker.eof:
            raise InvalidPart(
                f"a block of a part of an index of deletes is too long, unpacked, or ends too early, {_GOES_ON}"
            )
        return [_file(loads(lines[row])) for row in rows]
    except zlib.error as error:
        raise InvalidPart(f"a block of a part of an index of deletes can't be unpacked, {_GOES_ON}: {error}") from error
    except (MalformedJson, ValueError, TypeError, LookupError, InvalidOperation) as error:
        raise InvalidPart(
            f"a row of a part of an index of deletes is corrupt or missing, {_GOES_ON}: {error}"
        ) from error


def _hash(key: str) -> int:
    """Returns the hash, of four bytes, of the key by which a plan finds a delete file, as a part stores it. Keys with
    one hash only make a plan read rows that it does not need."""
    return zlib.crc32(_bytes(key))


def _bytes(key: str) -> bytes:
    """Returns the bytes of a key in UTF-8, also of surrogates in it."""
    return key.encode("utf-8", "surrogatepass")


def _row(file: ContentFile) -> JsonValue:
    """Returns the JSON of a delete file, without column sizes and without the JSON that a scan may have written. Of the
    statistics of a file of positions it keeps only the record count and the bounds of the file paths."""
    if file.content == FileContent.POSITION_DELETES:
        found = file.statistics
        bounds = _of_paths(found.lower_bounds), _of_paths(found.upper_bounds)
        file = file._replace(statistics=FileStatistics(found.record_count, None, None, None, *bounds))
    return [*map(_tagged, file._replace(column_sizes=None)[:-1])]  # without its JSON, which a scan may have written


def _of_paths(bounds: Mapping[int, bytes] | None) -> Mapping[int, bytes] | None:
    """Returns these bounds with only that of the column of file paths; None if they have none."""
    return {FILE_PATH_ID: bounds[FILE_PATH_ID]} if bounds is not None and FILE_PATH_ID in bounds else None


def _file(row: JsonValue) -> ContentFile:
    """Reads a delete file from the JSON of a row, as `_row` writes it. Raises `TypeError`, `ValueError`, `LookupError`
    or `InvalidOperation` for a corrupt one."""
    fields: list[Any] = [*_items(row), None]
    for place in _TAGGED:
        fields[place] = _untagged(fields[place])
    fields[_CONTENT], fields[_STATUS] = FileContent(fields[_CONTENT]), EntryStatus(fields[_STATUS])
    fields[_PARTITION], fields[_STATISTICS] = tuple(fields[_PARTITION]), FileStatistics(*fields[_STATISTICS])
    return ContentFile._make(fields)


def _tagged(value: object) -> JsonValue:
    """Returns the JSON form of a field of a delete file: an object with a letter for a float, bytes, a decimal or a
    mapping, a list for a tuple, and null, booleans, integers and text as they are. Raises `TypeError` for a type that
    no field has."""
    match value:
        case float():
            return {"f": repr(value)}
        case bytes():
            return {"b": base64.b64encode(value).decode()}
        case Decimal():
            return {"d": str(value)}
        case Mapping():
            return {"m": [[*map(_tagged, value.keys())], [*map(_tagged, value.values())]]}
        case list() | tuple():
            return [*map(_tagged, value)]
        case None | bool() | int() | str():
            return value
        case _:
            raise TypeError(
                f"the plan of a scan fails: a field of a delete file has a {type(value).__name__}, which an index of "
                "deletes can't hold"
            )


def _untagged(value: JsonValue) -> Any:
    """Returns the value of which `_tagged` made this JSON, with lists in place of tuples."""
    if isinstance(value, list):
        return [_untagged(each) if isinstance(each, list | dict) else each for each in value]
    if not isinstance(value, dict):
        return value
    [(tag, inner)] = value.items()
    if tag == "m":
        keys, values = map(_items, _items(inner))
        return dict(zip(map(_untagged, keys), map(_untagged, values), strict=True))
    return _FROM_TEXT[tag](str(inner))


def _items(value: JsonValue) -> list[JsonValue]:
    """Returns the value as it is if it is a list. Raises `TypeError` for any other value."""
    if not isinstance(value, list):
        raise TypeError(f"expected a list in a row of an index of deletes, got a {type(value).__name__}")
    return value


_FROM_TEXT: Final[Mapping[str, Callable[[str], PartitionValue]]] = {"f": float, "b": base64.b64decode, "d": Decimal}
_CONTENT, _PARTITION, _STATISTICS, _STATUS, _KEY = map(
    ContentFile._fields.index, ("content", "partition", "statistics", "status", "key_metadata")
)
_TAGGED: Final = (_PARTITION, _STATISTICS, _KEY)
"""The fields that JSON may have no form for."""
