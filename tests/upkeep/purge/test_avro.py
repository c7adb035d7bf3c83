"""Avro files are read a block at a time, and what is damaged is never taken for what is empty."""

import asyncio
import bz2
import lzma
import random
import sys
import threading
import tracemalloc
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import cast

import pytest

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state import avro
from arco_catalog.state.avro import Fields, Unreadable, read_blocks
from arco_catalog.state.avro_codecs import PIECE_BYTES, pieces, unpack_with
from arco_catalog.state.refused_files import RefusedFiles
from arco_catalog.tasks.execution import Sessions
from arco_catalog.upkeep.purge import reach
from arco_catalog.upkeep.purge.corruption import CorruptFile
from arco_catalog.upkeep.purge.reach import ENTRY_FIELDS, MANIFEST_FIELDS, manifests_in
from storage_backends import Found, Version
from tools.support import worst_avro
from tools.support.avro_files import avro_file, varint
from tools.support.manifests import manifest, manifest_list

PATHS = [f"s3://bucket/t/data/part={number}/{number:05}.parquet" for number in range(2_000)]


class File:
    """A file whose reads are counted."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.reads: list[int] = []

    async def read_range(self, start: int, length: int) -> bytes:
        part = self.body[start : start + length]
        self.reads.append(len(part))
        return part


async def blocks(body: bytes, fields: Fields = ENTRY_FIELDS) -> list[Sequence[JsonObject]]:
    return [block async for block in read_blocks(File(body).read_range, fields)]


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz"])
async def test_all_records_are_read_whatever_the_codec(codec: str) -> None:
    found = [record for block in await blocks(manifest(PATHS, codec=codec)) for record in block]
    assert found == [{"data_file": {"file_path": path, "file_size_in_bytes": 10}} for path in PATHS]


async def test_a_long_file_is_read_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(avro, "CHUNK", 4_096)
    file = File(manifest(PATHS, codec="null", block=2_000))
    sizes = [len(block) async for block in read_blocks(file.read_range, ENTRY_FIELDS)]
    assert sum(sizes) == len(PATHS)
    assert max(sizes) < 100
    assert max(file.reads) <= 4_096
    assert sum(file.reads) == len(file.body)


async def test_a_manifest_list_names_manifests() -> None:
    [[one, two]] = await blocks(manifest_list(["a", "b"]), MANIFEST_FIELDS)
    assert (one, two) == ({"manifest_path": "a", "manifest_length": 99}, {"manifest_path": "b", "manifest_length": 99})


def one_block(schema: JsonObject, count: int, data: bytes, codec: str = "null") -> bytes:
    """A file of one block whose figures are as given."""
    return avro_file(schema, [(count, data)], codec)


def _record(*fields: JsonObject) -> JsonObject:
    return {"type": "record", "name": "r", "fields": list(fields)}


def _deflated(mebibytes: int) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return b"".join(packer.compress(bytes(1 << 20)) for _ in range(mebibytes)) + packer.flush()


PATH: JsonObject = {"name": "manifest_path", "type": "string"}
NOTHING: list[JsonObject] = [{"name": f"n{number}", "type": "null"} for number in range(99)]
HOSTILE = {
    "records_without_bytes": one_block(_record({"name": "manifest_path", "type": "null"}), 50_000_000, b""),
    "more_records_than_bytes": one_block(_record(PATH), 50_000_000, b"\0" * 10),
    "a_block_that_unpacks_to_much": one_block(_record(PATH), 1, _deflated(200), "deflate"),
    "a_record_that_is_long": one_block(_record(PATH), 1, varint(5 << 20) + bytes(5 << 20)),
    "a_record_in_itself": one_block(_record(PATH, {"name": "x", "type": "r"}), 1, bytes(1 << 20)),
    "an_array_of_nulls": one_block(
        _record(PATH, {"name": "x", "type": {"type": "array", "items": "null"}}), 1, b"\0" + varint(1 << 40) + b"\0"
    ),
    "fields_without_bytes": one_block(_record(PATH, *NOTHING), 1, b"\0"),
    "a_size_below_zero": one_block(_record(PATH), 1, b"\x01"),
}


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE)
async def test_a_file_beyond_its_bounds_is_an_error_and_takes_little_memory(body: bytes) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(Unreadable):
            await blocks(body, MANIFEST_FIELDS)
        assert tracemalloc.get_traced_memory()[1] < (200 << 20)
    finally:
        tracemalloc.stop()


async def test_the_event_loop_turns_while_a_large_block_is_decoded() -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    found = await blocks(one_block(_record(PATH), 200_000, bytes(200_000), "null"), MANIFEST_FIELDS)
    counting.cancel()
    assert sum(len(block) for block in found) == 200_000
    assert max(len(block) for block in found) <= avro.SLICE_RECORDS
    assert turns > len(found)


async def test_an_empty_manifest_names_nothing() -> None:
    assert await blocks(manifest([])) == []


@pytest.mark.parametrize("cut", [0, 1, 3, 10, 200, -1, -17, -40])
async def test_a_file_that_is_cut_short_is_an_error(cut: int) -> None:
    with pytest.raises(Unreadable):
        await blocks(manifest(PATHS[:10])[:cut])


@pytest.mark.parametrize("place", [*range(0, 60, 7), -1, -8, -20])
async def test_a_damaged_byte_is_an_error_or_changes_no_field_that_is_read(place: int) -> None:
    sound = manifest(PATHS[:10])
    damaged = bytearray(sound)
    damaged[place] ^= 0xFF
    try:
        found = await blocks(bytes(damaged))
    except Unreadable:
        return
    assert found == await blocks(sound)


@pytest.mark.parametrize("body", [b"PAR1" + b"\0" * 100, b"{}", b""])
async def test_what_is_no_avro_file_is_an_error(body: bytes) -> None:
    with pytest.raises(Unreadable):
        await blocks(body)


@pytest.mark.parametrize(("codec", "package"), [("snappy", "cramjam"), ("zstandard", "backports"), ("lz4", "lz4")])
async def test_a_codec_that_is_not_installed_is_an_error_that_names_it(
    codec: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    if codec == "zstandard" and sys.version_info >= (3, 14):
        pytest.skip("this Python has the codec itself")
    with pytest.raises(Unreadable, match=f"the Avro codec '?{codec}"):
        await blocks(one_block(_record(PATH), 1, b"\0", codec), MANIFEST_FIELDS)


@pytest.mark.parametrize("name", worst_avro.REFUSED)
async def test_hostile_files_are_refused_for_their_own_reason(name: str) -> None:
    body = worst_avro.REFUSED[name]()
    tracemalloc.start()
    try:
        with pytest.raises(Unreadable):
            await blocks(body, MANIFEST_FIELDS)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak <= 3 * avro.MAX_BLOCK_BYTES


async def test_blocks_are_unpacked_by_a_thread_however_few_bytes_they_have(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: set[threading.Thread] = set()
    unpack = unpack_with("bzip2")

    def noted(data: bytes, limit: int) -> bytes:
        threads.add(threading.current_thread())
        return unpack(data, limit)

    monkeypatch.setattr(avro, "unpack_with", lambda codec: noted)
    assert await blocks(manifest(PATHS[:3], codec="bzip2"))
    assert threads
    assert threading.main_thread() not in threads


def deflated(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize("fill", [bytes, random.Random(1).randbytes], ids=["zeros", "noise"])
@pytest.mark.parametrize("size", [0, PIECE_BYTES - 1, PIECE_BYTES, 2 * PIECE_BYTES + 1])
@pytest.mark.parametrize(("codec", "pack"), [("deflate", deflated), ("bzip2", bz2.compress), ("xz", lzma.compress)])
def test_a_block_may_unpack_to_its_limit_and_no_further(
    codec: str, pack: Callable[[bytes], bytes], size: int, fill: Callable[[int], bytes]
) -> None:
    data = fill(size)
    packed = pack(data)
    unpack = unpack_with(codec)
    assert unpack(packed, size) == data
    if size:
        with pytest.raises(Unreadable, match="unpacks to more than"):
            unpack(packed, size - 1)
    with pytest.raises(Unreadable, match="ends before its compressed data"):
        unpack(packed[: len(packed) // 2], size)


def test_no_call_of_a_decompressor_returns_more_than_a_piece() -> None:
    """A call copies what it returns while no other thread can run."""
    size = 5 * PIECE_BYTES + 1
    lengths = [len(piece) for piece in pieces(bz2.BZ2Decompressor(), bz2.compress(bytes(size)), size)]
    assert sum(lengths) == size
    assert max(lengths) <= PIECE_BYTES


@dataclass
class OneFile:
    """What reads one file, as a purge does."""

    body: bytes
    version: str = "1"
    reads: int = 0

    async def read_range(self, location: str, start: int, length: int) -> Found:
        self.reads += 1
        return Found(self.body[start : start + length], Version(self.version), 0, 0)

    def execution(self) -> Sessions:
        """Of one process."""
        session = SimpleNamespace(files=self, catalog=SimpleNamespace(refused_files=RefusedFiles()))
        return cast(Sessions, SimpleNamespace(session=lambda: session))


@pytest.mark.parametrize(
    ("limit", "reason"),
    [("MAX_LIST_BYTES", "names of the manifests in it take more than"), ("MAX_NAME_LENGTH", "has 9 characters")],
)
async def test_the_names_in_a_manifest_list_are_bounded(
    monkeypatch: pytest.MonkeyPatch, limit: str, reason: str
) -> None:
    execution = OneFile(manifest_list([f"{each}" * 9 for each in range(10)])).execution()
    assert len(await manifests_in(execution, "s3://b/list.avro")) == 10
    monkeypatch.setattr(reach, limit, 8)

    with pytest.raises(CorruptFile, match=reason):
        await manifests_in(execution, "s3://b/list.avro")


async def test_a_file_that_cannot_be_read_is_not_read_to_its_end_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every purge reads the files of all other tables: one hostile list must not cost each of them as much."""
    monkeypatch.setattr(avro, "CHUNK", 100)
    file = OneFile(manifest_list(["a"] * 200 + [""]))
    execution = file.execution()
    reads, reasons = list[int](), set[str]()
    for _ in range(3):
        with pytest.raises(CorruptFile, match="is empty") as raised:
            await manifests_in(execution, "s3://b/list.avro")
        reasons.add(str(raised.value))
        reads.append(file.reads)
    assert len(reasons) == 1
    assert reads == [reads[0], reads[0] + 1, reads[0] + 2]
    assert reads[0] > 1

    file.body, file.version = manifest_list(["a", "b"]), "2"
    assert [*await manifests_in(execution, "s3://b/list.avro")] == ["a", "b"]


async def test_a_file_that_is_replaced_while_it_is_read_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    class Replaced(OneFile):
        async def read_range(self, location: str, start: int, length: int) -> Found:
            self.version = str(min(self.reads, 1))
            return await super().read_range(location, start, length)

    monkeypatch.setattr(avro, "CHUNK", 100)
    file = Replaced(manifest_list(["a"] * 200 + [""]))
    execution = file.execution()
    for _ in range(2):
        file.reads = 0
        with pytest.raises(CorruptFile, match="is empty"):
            await manifests_in(execution, "s3://b/list.avro")
        assert file.reads > 1
