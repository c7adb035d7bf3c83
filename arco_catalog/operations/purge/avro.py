"""Avro object container files, a block at a time: of a manifest of any length one block is in memory, and of each
record the fields that are asked for (Avro specification, "Object Container Files").

fastavro decodes; it is imported with the first file.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from io import BytesIO

from arco_catalog.iceberg.json import JsonObject, JsonValue, MalformedJson, loads

MAGIC = b"Obj\x01"
SYNC_SIZE = 16
CHUNK = 1 << 20
"""Bytes that are read at once."""
MAX_PIECE = 256 << 20
"""Bytes of the longest header or block that is taken: writers end a block at some 64 KB."""

ReadRange = Callable[[int, int], Awaitable[bytes]]
"""Bytes of a file from a place on: fewer at its end, none behind it."""

Fields = Mapping[str, "Fields | None"]
"""The fields of a record that are asked for; those of a field that is a record itself, else None."""


class Unreadable(Exception):
    """The file is no Avro file that can be read."""


async def read_blocks(read_range: ReadRange, fields: Fields) -> AsyncGenerator[Sequence[JsonObject], None]:
    """The records of a file, as many at once as its writer put into a block, with these fields of each: those that they
    have. Raises `Unreadable`, and what `read_range` does."""
    window = _Window(read_range)
    if await window.take(len(MAGIC)) != MAGIC:
        raise Unreadable("it does not begin as an Avro file does")
    metadata = await _metadata(window)
    sync = await window.take(SYNC_SIZE)
    reading = _Decoder(metadata, sync, fields)
    while not await window.at_end():
        count, size = await window.long(), await window.long()
        if count < 0 or not 0 <= size <= MAX_PIECE:
            raise Unreadable(f"a block has {count} records in {size} bytes")
        data = await window.take(size)
        if await window.take(SYNC_SIZE) != sync:
            raise Unreadable("a block does not end where it says")
        if count:
            yield reading.decode(count, data)


class _Window:
    """What has been read of a file, and not been taken yet."""

    def __init__(self, read_range: ReadRange) -> None:
        self._read_range = read_range
        self._held = b""
        self._place = 0
        self._next = 0
        self._ended = False

    async def at_end(self) -> bool:
        return not await self._have(1)

    async def take(self, size: int) -> bytes:
        if not await self._have(size):
            raise Unreadable("it is cut short")
        taken = self._held[self._place : self._place + size]
        self._place += size
        return taken

    async def long(self) -> int:
        """An integer in the variable-length zig-zag code."""
        value = 0
        for shift in range(0, 70, 7):
            [byte] = await self.take(1)
            value |= (byte & 0x7F) << shift
            if not byte & 0x80:
                return (value >> 1) ^ -(value & 1)
        raise Unreadable("an integer is too long")

    async def _have(self, size: int) -> bool:
        missing = size - (len(self._held) - self._place)
        if missing > 0 and not self._ended:
            parts = [self._held[self._place :]]
            while missing > 0 and not self._ended:
                wanted = max(CHUNK, missing)
                part = await self._read_range(self._next, wanted)
                self._next += len(part)
                self._ended = len(part) < wanted
                missing -= len(part)
                parts.append(part)
            self._held, self._place = b"".join(parts), 0
        return missing <= 0


async def _metadata(window: _Window) -> dict[str, bytes]:
    """The map in the header."""
    found: dict[str, bytes] = {}
    while (count := await window.long()) != 0:
        if count < 0:  # then the size of the entries follows
            count = -count
            await window.long()
        for _ in range(count):
            name = await _bytes(window)
            found[name.decode(errors="replace")] = await _bytes(window)
    return found


async def _bytes(window: _Window) -> bytes:
    size = await window.long()
    if not 0 <= size <= MAX_PIECE:
        raise Unreadable(f"a text has {size} bytes")
    return await window.take(size)


class _Decoder:
    """Decodes blocks of one file."""

    def __init__(self, metadata: Mapping[str, bytes], sync: bytes, fields: Fields) -> None:
        try:
            schema = loads(metadata.get("avro.schema", b""))
        except MalformedJson as error:
            raise Unreadable("its schema is no JSON") from error
        self._metadata = {name: metadata[name] for name in ("avro.schema", "avro.codec") if name in metadata}
        self._sync = sync
        self._asked = pruned(schema, fields)

    def decode(self, count: int, data: bytes) -> Sequence[JsonObject]:
        """The records of one block, read as a file of its own."""
        import fastavro

        header = b"".join(_encoded(name.encode()) + _encoded(value) for name, value in self._metadata.items())
        prefix = MAGIC + _varint(len(self._metadata)) + header + b"\0" + self._sync
        block = _varint(count) + _varint(len(data)) + data + self._sync
        try:
            return list(fastavro.reader(BytesIO(prefix + block), reader_schema=self._asked))  # type: ignore[arg-type]
        except Exception as error:  # whatever a damaged file makes of its decoder
            raise Unreadable(f"{type(error).__name__}: {error}") from error


def pruned(schema: JsonValue, fields: Fields) -> JsonValue:
    """The schema of the fields that are asked for: what their writer called things stays, whatever that is. Raises
    `Unreadable` for what is no record."""
    if not isinstance(schema, dict) or schema.get("type") != "record" or not isinstance(schema.get("fields"), list):
        raise Unreadable("its records have no fields")
    kept: list[JsonValue] = []
    listed = schema["fields"]
    assert isinstance(listed, list)
    for field in listed:
        if isinstance(field, dict) and isinstance(name := field.get("name"), str) and name in fields:
            inner = fields[name]
            kept.append(field if inner is None else {**field, "type": pruned(field.get("type"), inner)})
    return {**schema, "fields": kept}


def _varint(value: int) -> bytes:
    left, out = value << 1, bytearray()
    while left > 0x7F:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    out.append(left)
    return bytes(out)


def _encoded(value: bytes) -> bytes:
    return _varint(len(value)) + value
