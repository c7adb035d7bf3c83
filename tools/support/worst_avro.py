"""Makes the worst manifest lists that the bounds of docs/bounds.md let through, and some beyond them."""

import bz2
import lzma
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path

from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps, loads
from arco_catalog.state.avro import MAX_BLOCK_BYTES, MAX_FILE_RECORDS
from arco_catalog.state.avro_schema import MAX_TYPES
from tools.support.avro_files import SYNC, avro_file, varint

Make = Callable[[], bytes]

MANIFESTS: JsonObject = {
    "type": "record",
    "name": "manifest_file",
    "fields": [{"name": "manifest_path", "type": "string"}, {"name": "manifest_length", "type": "long"}],
}
RECORD = (4 << 20) - 5
"""Bytes of the path in the longest record."""


def avro(schema: JsonObject, blocks: list[tuple[int, bytes]]) -> bytes:
    """A file of blocks packed with deflate, each with the number of records that it states."""
    return avro_file(schema, [(count, _deflated(data)) for count, data in blocks], "deflate")


def _deflated(data: bytes) -> bytes:
    packer = zlib.compressobj(1, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


def _bomb(codec: str, pack: Callable[[bytes], bytes]) -> Make:
    return lambda: avro_file(MANIFESTS, [(1, pack(bytes(2 * MAX_BLOCK_BYTES)))], codec)


def _snappy(data: bytes) -> bytes:
    """A block that states a length of 4 GiB, and has a few bytes."""
    return b"\xff\xff\xff\xff\x0f" + b"\xfe\x01\x00" * 1_000 + b"\0\0\0\0"


def _zstandard(data: bytes) -> bytes:
    """A frame whose window is 2 GiB, and whose blocks each repeat one byte 128 KiB times."""
    block = (1 | (1 << 1) | ((128 << 10) << 3)).to_bytes(3, "little") + b"\0"
    return b"\x28\xb5\x2f\xfd\x00\xa8" + block * (len(data) // (128 << 10))


def _nested(levels: int) -> JsonValue:
    kind: JsonValue = "long"
    for _ in range(levels):
        kind = {"type": "array", "items": kind}
    return kind


def _with_schema(kind: JsonValue) -> Make:
    fields: list[JsonValue] = [{"name": "manifest_path", "type": kind}]
    return lambda: avro_file({"type": "record", "name": "r", "fields": fields}, [(1, b"\x02" * 64)])


def _wide() -> bytes:
    fields: list[JsonValue] = [{"name": f"f{number}", "type": "long"} for number in range(MAX_TYPES + 1)]
    return avro_file({"type": "record", "name": "r", "fields": fields}, [(1, bytes(MAX_TYPES + 1))])


def _raw_block(count: bytes, size: bytes) -> Make:
    """A file whose only block states a count and a size in these bytes."""
    return lambda: avro_file(MANIFESTS, []) + count + size + b"\0\0" + SYNC


LARGEST: Mapping[str, Make] = {
    "as many records as a file may have, of three bytes": lambda: avro(
        MANIFESTS, [(1_000_000, b"\x02x\0" * 1_000_000)] * (MAX_FILE_RECORDS // 1_000_000)
    ),
    "blocks of 64 MB in records of 4 MB": lambda: avro(
        MANIFESTS, [(16, (varint(RECORD) + b"x" * RECORD + b"\0") * 16)] * 8
    ),
}
"""Lists that are read to their end, in seconds."""
REFUSED: Mapping[str, Make] = {
    "a deflate block that unpacks to more than it may": _bomb("deflate", _deflated),
    "a bzip2 block that unpacks to more than it may": _bomb("bzip2", bz2.compress),
    "an xz block that unpacks to more than it may": _bomb("xz", lzma.compress),
    "a snappy block of 4 GiB by its own word": _bomb("snappy", _snappy),
    "a zstandard block with a window of 2 GiB": _bomb("zstandard", _zstandard),
    "a count of a billion": lambda: avro(MANIFESTS, [(10**9, b"\0\0")]),
    "a count of 2^60": _raw_block(varint(1 << 60), varint(2)),
    "a size of 2^60": _raw_block(varint(1), varint(1 << 60)),
    "a count below zero": _raw_block(b"\x01", varint(2)),
    "a count of endless bytes": _raw_block(b"\xff" * 64, varint(2)),
    "a record that holds itself": _with_schema("r"),
    "types within each other": _with_schema(_nested(400)),
    "more types than a schema may have": _wide,
    "a header that never ends": lambda: b"Obj\x01" + varint(1 << 40) + b"\x02k\x02v" * 100_000,
    "no Avro at all": lambda: b"\0" * 1_000_000,
}
"""Lists that are refused, each for its own reason."""
LISTS: Mapping[str, Make] = {**LARGEST, **REFUSED}
"""Manifest lists of a table whose files are purged."""
MANY_LISTS = 20_000
LISTED = 100
"""Of these lists so many exist."""
MANIFESTS_EACH = 1_000


def many_lists(metadata: bytes, folder: Path) -> bytes:
    """A metadata file with as many snapshots, each with a list of its own in the folder; writes the lists. None of the
    manifests exists."""
    for number in range(LISTED):
        names = [f"file://{folder}/m{number}-{each}.avro".encode() for each in range(MANIFESTS_EACH)]
        records = b"".join(varint(len(name)) + name + b"\0" for name in names)
        (folder / f"l{number}.avro").write_bytes(avro(MANIFESTS, [(len(names), records)]))
    snapshots: list[JsonValue] = [
        {
            "snapshot-id": number + 1,
            "sequence-number": number + 1,
            "timestamp-ms": 1_767_225_600_000,
            "manifest-list": f"file://{folder}/l{number}.avro",
            "summary": {"operation": "append"},
        }
        for number in range(MANY_LISTS)
    ]
    document = loads(metadata)
    assert isinstance(document, dict)
    return dumps({**document, "snapshots": snapshots, "last-sequence-number": MANY_LISTS})
