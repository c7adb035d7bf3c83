"""Unpacks blocks of Avro files, never further than a bound: a block of a few kilobytes may unpack to terabytes."""

import bz2
import lzma
import sys
import zlib
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from arco_catalog.upkeep.purge.avro_schema import Unreadable

MAX_DICTIONARY_BYTES: Final = 128 << 20
"""Memory that a block may make the decompressor allocate: xz files of the highest level have it allocate 65 MB."""

Unpack = Callable[[bytes, int], bytes]
"""Unpacks a block to at most so many bytes. A corrupt or longer one is an error."""


class _Decompressor(Protocol):
    @property
    def eof(self) -> bool: ...

    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


def unpack_with(codec: str) -> Unpack:
    """Returns the function that decompresses blocks with an Avro codec; it raises `Unreadable` for a corrupt block, or
    one longer than its limit in bytes. A codec that is not supported, or has no installed package, is such an error
    too, here or at the first block."""
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
            unpacked = decompressor.decompress(data, limit + 1)
        except (ValueError, OSError, EOFError, MemoryError, zlib.error, lzma.LZMAError) as error:
            raise Unreadable(f"an Avro block is damaged: {error}") from error
        if len(unpacked) <= limit and not decompressor.eof:
            raise Unreadable("an Avro block ends before its compressed data does")
        return _bounded(unpacked, limit)

    return unpack


def _as_is(data: bytes, limit: int) -> bytes:
    return _bounded(data, limit)


def _bounded(unpacked: bytes, limit: int) -> bytes:
    if len(unpacked) > limit:
        raise Unreadable(f"an Avro block unpacks to more than {limit:,} bytes")
    return unpacked


def _snappy() -> Unpack:
    try:
        from cramjam import snappy  # type: ignore[import-not-found]  # an extra of fastavro's, which nothing of ours needs
    except ImportError as error:
        raise Unreadable("the Avro codec snappy needs the package cramjam, which is not installed") from error

    def unpack(data: bytes, limit: int) -> bytes:
        try:
            if snappy.decompress_raw_len(data[:-4]) > limit:
                raise Unreadable(f"an Avro block unpacks to more than {limit:,} bytes")
            return bytes(snappy.decompress_raw(data[:-4]))  # behind it is a checksum
        except (ValueError, snappy.DecompressionError) as error:
            raise Unreadable(f"an Avro block is damaged: {error}") from error

    return unpack


def _deflate() -> _Decompressor:
    return zlib.decompressobj(-15)


def _xz() -> _Decompressor:
    return lzma.LZMADecompressor(memlimit=MAX_DICTIONARY_BYTES)


def _zstandard() -> _Decompressor:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        try:
            from backports import zstd  # type: ignore[import-untyped]
        except ImportError as error:
            raise Unreadable(
                "the Avro codec zstandard needs the package backports.zstd, which is not installed"
            ) from error
    decompressor: _Decompressor = zstd.ZstdDecompressor()
    return decompressor


_DECOMPRESSORS: Final[Mapping[str, Callable[[], _Decompressor]]] = {
    "deflate": _deflate,
    "bzip2": bz2.BZ2Decompressor,
    "xz": _xz,
    "zstandard": _zstandard,
}
