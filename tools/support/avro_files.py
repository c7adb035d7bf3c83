"""Makes Avro files byte by byte, also such as no library writes: with wrong counts, or data that is none."""

from collections.abc import Sequence

from arco_catalog.iceberg.json import JsonObject, dumps

SYNC = b"s" * 16


def varint(value: int) -> bytes:
    """A long, as Avro writes it."""
    left, written = value << 1, bytearray()
    while left > 0x7F:
        written.append(left & 0x7F | 0x80)
        left >>= 7
    written.append(left)
    return bytes(written)


def avro_file(schema: JsonObject, blocks: Sequence[tuple[int, bytes]], codec: str = "null") -> bytes:
    """A file of blocks, each with the number of records that it states, and its data as the codec packs them."""
    header = {b"avro.schema": dumps(schema), b"avro.codec": codec.encode()}
    entries = b"".join(varint(len(part)) + part for pair in header.items() for part in pair)
    written = [b"Obj\x01" + varint(len(header)) + entries + b"\0" + SYNC]
    written += [varint(count) + varint(len(data)) + data + SYNC for count, data in blocks]
    return b"".join(written)
