"""Unpacks blocks of Avro files, never further than a bound: a block of a few kilobytes may unpack to terabytes."""

import bz2
import lzma
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Final, Protocol

from arco_catalog.state.avro_schema import UnpacksTooLong, Unreadable

MAX_DICTIONARY_BYTES: Final = 128 << 20
"""Memory that a block may make the decompressor allocate: xz files of the highest level have it allocate 65 MB."""

INPUT_BYTES: Final = 64 << 10
PIECE_BYTES: Final = 1 << 20
"""Maximum bytes that one call of a decompressor reads and returns. A call copies its result with the interpreter lock
held: 70 ms for 64 MB."""

Unpack = Callable[[bytes, int], bytes]
"""Unpacks a block to at most so many bytes. A corrupt or longer one is an error."""


class Decompressor(Protocol):
    """The interface of what decompresses a block of an Avro file that it is given part by part, and keeps what it has
    not decompressed yet."""

    @property
    def eof(self) -> bool:
        """Whether the decompressor has reached the end of the compressed data of an Avro block."""

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        """Takes the next compressed bytes of an Avro block, and returns at most `max_length` decompressed bytes. Keeps
        the rest: the next call, with no bytes, returns more of it."""


def unpack_with(codec: str) -> Unpack:
    """Returns the function that decompresses blocks with an Avro codec; it raises `Unreadable` for a corrupt block, and
    `UnpacksTooLong` for one longer than its limit in bytes. A codec that is not supported, or has no installed package,
    is such an error too, here or at the first block."""
    if codec == "null":
        return _as_is
    if codec == "snappy":
        return _snappy()
    if codec not in _DECOMPRESSORS:
        raise Unreadable(f"the Avro codec {codec[:100]!r} is not supported")
    new_decompressor = _DECOMPRESSORS[codec]

    def unpack(data: bytes, limit: int) -> bytes:
        try:
            decompressor = new_decompressor()
            unpacked = b"".join(pieces(decompressor, data, limit))
        except (ValueError, OSError, EOFError, MemoryError, zlib.error, lzma.LZMAError) as error:
            raise Unreadable(
                f"an Avro block can't be decompressed: it is corrupt, or needs more memory than it may use: {error}"
            ) from error
        if not decompressor.eof:
            raise Unreadable("an Avro block ends before its compressed data does")
        return unpacked

    return unpack


def pieces(decompressor: Decompressor, data: bytes, limit: int) -> Iterator[bytes]:
    """Yields the decompressed data of an Avro block, in pieces of at most a megabyte. Raises `UnpacksTooLong` if they
    have more bytes than the limit, and what the decompressor raises. After the last piece the decompressor's `eof` is
    whether the block was complete. Bytes after the end of the compressed data are ignored."""
    left = limit
    for start in range(0, len(data), INPUT_BYTES):
        part = data[start : start + INPUT_BYTES]
        size = PIECE_BYTES
        while size == PIECE_BYTES and not decompressor.eof:
            piece = decompressor.decompress(part, PIECE_BYTES)
            part, size = b"", len(piece)
            left -= size
            if left < 0:
                raise _too_long(limit)
            yield piece


def _as_is(data: bytes, limit: int) -> bytes:
    """Returns an Avro block that is not compressed. Raises `UnpacksTooLong` if it has more than `limit` bytes."""
    return _bounded(data, limit)


def _bounded(unpacked: bytes, limit: int) -> bytes:
    """Returns the unpacked block as it is. Raises `UnpacksTooLong` if it has more than `limit` bytes."""
    if len(unpacked) > limit:
        raise _too_long(limit)
    return unpacked


def _too_long(limit: int) -> UnpacksTooLong:
    """Returns, for the caller to raise, the error for an Avro block that unpacks to more than `limit` bytes."""
    return UnpacksTooLong(f"an Avro block unpacks to more than {limit:,} bytes")


def _snappy() -> Unpack:
    """Returns the function that unpacks Avro blocks compressed by snappy, without a check of the checksum at their end.
    Raises `Unreadable` if the library of the codec is missing."""
    try:
        from cramjam import snappy  # type: ignore[import-not-found]  # an extra of fastavro's, which nothing of ours needs
    except ImportError as error:
        raise Unreadable("the Avro codec snappy needs the package cramjam, which is not installed") from error

    def unpack(data: bytes, limit: int) -> bytes:
        try:
            if snappy.decompress_raw_len(data[:-4]) > limit:
                raise _too_long(limit)
            return bytes(snappy.decompress_raw(data[:-4]))  # behind it is a checksum
        except (ValueError, snappy.DecompressionError) as error:
            raise Unreadable(f"an Avro block can't be decompressed: {error}") from error

    return unpack


class _Deflate:
    """zlib's decompressor, which keeps input that it has not read yet, as the decompressors of other codecs do."""

    def __init__(self) -> None:
        self._decompressor = zlib.decompressobj(-15)

    @property
    def eof(self) -> bool:
        """Whether the end of the compressed data was reached."""
        return self._decompressor.eof

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        """Decompresses the input that is left and `data`, and returns at most `max_length` bytes, any number if that is
        0; the rest of the input is kept. Raises `zlib.error` for damaged data."""
        return self._decompressor.decompress(self._decompressor.unconsumed_tail + data, max_length)


def _xz() -> Decompressor:
    """Returns a decompressor of xz that may allocate `MAX_DICTIONARY_BYTES`."""
    return lzma.LZMADecompressor(memlimit=MAX_DICTIONARY_BYTES)


def _zstandard() -> Decompressor:
    """Returns a decompressor of zstandard. Raises `Unreadable` if its library is missing."""
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        try:
            from backports import zstd  # type: ignore[import-untyped]
        except ImportError as error:
            raise Unreadable(
                "the Avro codec zstandard needs the package backports.zstd, which is not installed"
            ) from error
    decompressor: Decompressor = zstd.ZstdDecompressor()
    return decompressor


_DECOMPRESSORS: Final[Mapping[str, Callable[[], Decompressor]]] = {
    "deflate": _Deflate,
    "bzip2": bz2.BZ2Decompressor,
    "xz": _xz,
    "zstandard": _zstandard,
}
