"""Gzip streams with a part that is compressed once, and sent again and again (RFC 1951, RFC 1952).

Compressed data that ends at a byte, and refers to nothing before its beginning, can follow other such data in one
stream. The checksum of the whole follows from those of the parts.
"""

import zlib

from storage_backends.lazy_dataclass import dataclass

LEVEL = 1
"""The fastest level of compression, which loses little on JSON."""

_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x04\xff"
"""Deflate, no name, no time, the fastest level, no operating system."""
_POLYNOMIAL = 0xEDB88320
"""That of CRC-32, the coefficient of x^0 in the highest of 32 bits."""
_ONE = 1 << 31
_X_TO_THE_EIGHTH = 1 << 23


@dataclass(frozen=True, slots=True)
class DeflatedPart:
    """A part of a gzip stream: `data` is the compressed form of `size` bytes, which have the checksum `crc`. `shift` is
    x^(8 * size), by which a checksum of what comes before is multiplied."""

    data: bytes
    size: int
    crc: int
    shift: int


def deflate(content: bytes) -> DeflatedPart:
    """Returns this content as a compressed part of a gzip stream, which may stand in several streams."""
    compressor = zlib.compressobj(LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    data = compressor.compress(content) + compressor.flush(zlib.Z_FULL_FLUSH)
    return DeflatedPart(data, len(content), zlib.crc32(content), _power(len(content)))


def gzip_stream(start: bytes, part: DeflatedPart, end: bytes) -> bytes:
    """Returns a gzip stream of `start`, the content of the part, and `end`. Equal arguments give equal bytes."""
    first = zlib.compressobj(LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    last = zlib.compressobj(LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    crc = zlib.crc32(end, _product(part.shift, zlib.crc32(start)) ^ part.crc)
    size = (len(start) + part.size + len(end)) & 0xFFFFFFFF
    return b"".join(
        (
            _HEADER,
            first.compress(start),
            first.flush(zlib.Z_FULL_FLUSH),
            part.data,
            last.compress(end),
            last.flush(),
            crc.to_bytes(4, "little"),
            size.to_bytes(4, "little"),
        )
    )


def _product(left: int, right: int) -> int:
    """Returns the product of two polynomials over GF(2), modulo that of CRC-32."""
    product = 0
    while left:
        if left & _ONE:
            product ^= right
        left = (left << 1) & 0xFFFFFFFF
        right = right >> 1 ^ (_POLYNOMIAL if right & 1 else 0)
    return product


def _power(size: int) -> int:
    """Returns x^(8 * size), modulo the polynomial of CRC-32."""
    power, square = _ONE, _X_TO_THE_EIGHTH
    while size:
        if size & 1:
            power = _product(power, square)
        square = _product(square, square)
        size >>= 1
    return power
