"""Avro files are read a block at a time, and what is damaged is never taken for what is empty."""

from collections.abc import Sequence

import pytest

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.purge import avro
from arco_catalog.operations.purge.avro import Fields, Unreadable, read_blocks
from arco_catalog.operations.purge.reach import ENTRY_FIELDS, MANIFEST_FIELDS
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
    assert max(sizes) < 50
    assert max(file.reads) <= 4_096
    assert sum(file.reads) == len(file.body)


async def test_a_manifest_list_names_manifests() -> None:
    [[one, two]] = await blocks(manifest_list(["a", "b"]), MANIFEST_FIELDS)
    assert (one, two) == ({"manifest_path": "a", "manifest_length": 99}, {"manifest_path": "b", "manifest_length": 99})


async def test_an_empty_manifest_names_nothing() -> None:
    assert await blocks(manifest([])) == []


@pytest.mark.parametrize("cut", [0, 1, 3, 10, 200, -1, -17, -40])
async def test_a_file_that_is_cut_short_is_an_error(cut: int) -> None:
    with pytest.raises(Unreadable):
        await blocks(manifest(PATHS[:10])[:cut])


@pytest.mark.parametrize("place", [*range(0, 60, 7), -1, -8, -20])
async def test_a_damaged_byte_is_an_error_or_changes_nothing_that_is_asked_for(place: int) -> None:
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
