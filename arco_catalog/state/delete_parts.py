"""The delete files of some manifests in a form of which a plan reads as much as it needs: a part of the index of a
snapshot's deletes (docs/design/scan-planning.md#deletes).

A part is a header, and a compressed body with a row for each delete file. A row begins with the hash of the key by
which its file is found (`delete_index.lookup_key`). So a plan finds the rows for its data files without decoding the
others, which takes a tenth of a microsecond a row.
"""

import base64
import hashlib
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from decimal import Decimal, InvalidOperation
from typing import Any, Final, NamedTuple

from arco_catalog.iceberg.content_files import (
    ContentFile,
    EntryStatus,
    FileContent,
    FileStatistics,
    PartitionValue,
)
from arco_catalog.iceberg.delete_index import FILE_PATH_ID, lookup_key, lookup_keys
from arco_catalog.iceberg.json import JsonObject, JsonValue, MalformedJson, dumps, loads
from arco_catalog.iceberg.partition_keys import PartitionKeys

VERSION: Final = 2
"""The version of the form: part of the hash that names a part."""
MAX_UNPACKED: Final = 64 << 20
"""Maximum bytes of a part, unpacked."""
_PIECE_BYTES: Final = 256 << 10
"""Bytes of a part that are unpacked at a time."""
_KEY_BYTES: Final = 8


class InvalidPart(Exception):
    """The bytes are no part of an index of deletes in the form of this version."""


class PartHeader(NamedTuple):
    """What a plan knows of a part before it reads the body: the number of delete files, the columns of equality
    deletes, by which the statistics of data files are compared, and the bytes of the body."""

    files: int
    columns: frozenset[int]
    size: int


def encode_part(files: Iterable[ContentFile], partitions: PartitionKeys) -> bytes:
    """Returns the bytes of a part of the index of a snapshot's deletes, with these delete files under the keys of their
    partitions. Equal arguments give equal
    bytes."""
    columns: set[int] = set()
    count, packer, body = 0, zlib.compressobj(3), bytearray()
    for file in files:
        count += 1
        columns.update(file.equality_ids or ())
        body += packer.compress(_hash(lookup_key(file, partitions)) + dumps(_row(file)) + b"\n")
    body += packer.flush()
    header: JsonObject = {"version": VERSION, "files": count, "columns": [*sorted(columns)], "size": len(body)}
    return dumps(header) + b"\n" + body


def read_header(part: bytes) -> PartHeader:
    """Reads the header of a part of an index of deletes, of which the first bytes are given. Raises `InvalidPart`."""
    try:
        header = loads(part.partition(b"\n")[0])
    except MalformedJson as error:
        raise InvalidPart("the header of a part of an index of deletes is not JSON") from error
    match header:
        case {"version": 2, "files": int(files), "columns": list(columns), "size": int(size)}:
            return PartHeader(files, frozenset(column for column in columns if isinstance(column, int)), size)
        case _:
            raise InvalidPart("the header of a part of an index of deletes has an unknown version or form")


def lookup_hashes(data: Iterable[ContentFile], partitions: PartitionKeys) -> Set[bytes]:
    """Returns the hashes with which the rows begin, in an index of deletes, that may apply to one of these data
    files."""
    return {_hash(key) for file in data for key in lookup_keys(file, partitions)}


class PartReader:
    """Reads the delete files in a part whose rows begin with one of some hashes, a few at a time. `check` is called
    while rows are read, and may raise. `ended` is whether all were read."""

    def __init__(self, part: bytes, hashes: Set[bytes], check: Callable[[], None]) -> None:
        self._rows = _rows(part, check)
        self._hashes = hashes
        self.ended = False

    def read(self, memory: int) -> Sequence[ContentFile]:
        """Returns the next delete files, up to the one with which they take more than `memory` bytes; sets `ended` if
        none is left after them. Raises `InvalidPart`, and as `check` does."""
        found: list[ContentFile] = []
        try:
            for row in self._rows:
                if row[: 2 * _KEY_BYTES] in self._hashes:
                    found.append(_file(loads(row[2 * _KEY_BYTES :])))
                    memory -= found[-1].memory
                    if memory < 0:
                        return found
        except (MalformedJson, ValueError, TypeError, KeyError, InvalidOperation) as error:
            raise InvalidPart(f"a row in a part of an index of deletes is corrupt: {error}") from error
        self.ended = True
        return found


def _rows(part: bytes, check: Callable[[], None]) -> Iterator[bytes]:
    """Unpacks a part of an index of deletes, and yields the rows. `check` is called before each piece is unpacked.
    Raises `InvalidPart`."""
    _, _, packed = part.partition(b"\n")
    unpacker = zlib.decompressobj()
    left, rest = MAX_UNPACKED, b""
    try:
        while not unpacker.eof:
            check()
            piece = unpacker.decompress(packed, _PIECE_BYTES)
            packed, left = unpacker.unconsumed_tail, left - len(piece)
            if left < 0 or not (piece or packed or unpacker.eof):
                raise InvalidPart(
                    f"a part of an index of deletes ends too early, or has more than {MAX_UNPACKED:,} bytes of rows"
                )
            *rows, rest = (rest + piece).split(b"\n")
            yield from rows
        if rest:
            raise InvalidPart("a part of an index of deletes ends within a row")
    except zlib.error as error:
        raise InvalidPart(f"a part of an index of deletes can't be decompressed: {error}") from error


def _hash(key: str) -> bytes:
    """Returns the hash of a key of delete files, as the rows of an index of deletes begin with it."""
    return hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=_KEY_BYTES).hexdigest().encode()


def _row(file: ContentFile) -> JsonValue:
    """Returns the JSON of a delete file. Of the statistics of a file of positions, a plan needs the bounds of paths."""
    if file.content == FileContent.POSITION_DELETES:
        found = file.statistics
        bounds = _of_paths(found.lower_bounds), _of_paths(found.upper_bounds)
        file = file._replace(statistics=FileStatistics(found.record_count, None, None, None, *bounds))
    return [*map(_tagged, file._replace(column_sizes=None)[:-1])]  # without its JSON, which a scan may have written


def _of_paths(bounds: Mapping[int, bytes] | None) -> Mapping[int, bytes] | None:
    """Returns the bound of the column of file paths; None without one."""
    return {FILE_PATH_ID: bounds[FILE_PATH_ID]} if bounds is not None and FILE_PATH_ID in bounds else None


def _file(row: JsonValue) -> ContentFile:
    """Reads a delete file from a row."""
    found = ContentFile(*map(_untagged, _items(row)))
    return found._replace(
        content=FileContent(found.content),
        status=EntryStatus(found.status),
        partition=tuple(found.partition),
        statistics=FileStatistics(*found.statistics),
    )


def _tagged(value: object) -> JsonValue:
    """Returns the JSON form of a field of a delete file: an object with a letter for a type that JSON does not have."""
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
                f"a field of a delete file has a {type(value).__name__}, which an index of deletes can't hold"
            )


def _untagged(value: JsonValue) -> Any:
    """Returns the value of which `_tagged` made this JSON."""
    if isinstance(value, list):
        return [*map(_untagged, value)]
    if not isinstance(value, dict):
        return value
    [(tag, inner)] = value.items()
    if tag == "m":
        keys, values = map(_items, _items(inner))
        return dict(zip(map(_untagged, keys), map(_untagged, values), strict=True))
    return _FROM_TEXT[tag](str(inner))


def _items(value: JsonValue) -> list[JsonValue]:
    """Returns the list. Raises `TypeError` for any other value."""
    if not isinstance(value, list):
        raise TypeError(f"expected a list, got a {type(value).__name__}")
    return value


_FROM_TEXT: Final[Mapping[str, Callable[[str], PartitionValue]]] = {"f": float, "b": base64.b64decode, "d": Decimal}
