"""Plans that read manifests again find their files in memory, and find there what the manifests have."""

from contextlib import aclosing
from dataclasses import replace

import pytest

from arco_catalog.iceberg.content_files import ContentFile, FileBatch, FileStatistics
from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.manifests import DATA, ManifestFile
from arco_catalog.iceberg.partition import PartitionSpec
from arco_catalog.operations.scans import manifest_source, packing
from arco_catalog.operations.scans.manifest_source import ManifestSource, reading_memory
from arco_catalog.state import cache, file_blocks
from arco_catalog.state.cache import SelectiveCache
from arco_catalog.state.file_blocks import FileBlock
from arco_catalog.state.manifest_entries import EntrySelection
from storage_backends import ABSENT
from storage_backends.memory import MemoryStore
from tools.support.catalog_fixture import CountingFixture
from tools.support.entry_files import entry, entry_file, entry_schema, identity_spec, optional
from tools.support.wrapped_stores import CountingStore

FOLDER = "memory:///wh/t/metadata"
SPEC = identity_spec("p")
EVERY = EntrySelection(SPEC, ["int"], frozenset({1}))
BLOCK = 8


class Manifests:
    """Manifests in a store whose calls are counted. Each entry has its own number as partition and as bounds."""

    def __init__(self) -> None:
        self.fixture = CountingFixture(CountingStore(MemoryStore()))

    async def write(self, name: str, count: int, deleted: range = range(0)) -> ManifestFile:
        entries = [
            entry(
                number,
                2 if number in deleted else 1,
                partition={"p": number},
                sequence_number=4,
                value_counts={1: number, 2: 2 * number},
                lower_bounds={1: bytes([number]), 2: b"x"},
            )
            for number in range(count)
        ]
        body = entry_file(entries, entry_schema([optional(1000, "p", "int")]))
        await self.fixture.store.put(f"wh/t/metadata/{name}", body, ABSENT)
        return ManifestFile(f"{FOLDER}/{name}", len(body), 0, DATA, 3, 1, 5, count, 0, 0, 1, 0, 0)

    async def read(self, manifest: ManifestFile, selection: EntrySelection = EVERY) -> list[ContentFile]:
        found: list[ContentFile] = []
        async with aclosing(ManifestSource(self.fixture.session()).entries(manifest, selection)) as blocks:
            async for batch in blocks:
                found += batch.files
        return [file._replace(written=None) for file in found]

    async def calls(self, manifest: ManifestFile, selection: EntrySelection = EVERY) -> int:
        """How many calls of the store a reading takes; no bytes of small manifests are in memory for it."""
        self.fixture.catalog.caches.manifests.drop(manifest.manifest_path)
        return (await self.fixture.cost(self.read(manifest, selection))).calls


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (packing, manifest_source, file_blocks):
        monkeypatch.setattr(module, "BLOCK_ENTRIES", BLOCK)


async def test_a_manifest_is_packed_when_it_is_read_again_and_then_not_read_any_more() -> None:
    made = Manifests()
    manifest = await made.write("a", 3 * BLOCK)
    first = await made.read(manifest)
    assert [await made.calls(manifest) for _ in range(3)] == [1, 0, 0]
    assert await made.read(manifest) == first


@pytest.mark.parametrize("count", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK])
@pytest.mark.parametrize("deleted", [range(0), range(BLOCK), range(5, 2 * BLOCK + 3), range(BLOCK - 1, 99)])
async def test_each_part_of_a_manifest_has_the_same_files_in_memory(count: int, deleted: range) -> None:
    made, other = Manifests(), Manifests()
    manifest, unknown = await made.write("a", count, deleted), await other.write("a", count, deleted)
    other.fixture.catalog.caches.file_blocks = SelectiveCache(0)
    for first, end in ((0, 5), (0, 5), (5, BLOCK), (5, BLOCK), (3, None), (3, None), (0, None), (BLOCK, None)):
        part = replace(EVERY, first=first, end=end)
        for _ in range(2):
            assert await made.read(manifest, part) == await other.read(unknown, part)
    assert await made.calls(manifest) == 0


async def test_statistics_of_further_columns_are_read_once_and_kept_with_the_others() -> None:
    made = Manifests()
    manifest = await made.write("a", 5)
    second = replace(EVERY, columns=frozenset({2}))
    assert [await made.calls(manifest) for _ in range(3)] == [1, 1, 0]
    found = await made.read(manifest, second)
    assert [each.statistics.lower_bounds for each in found] == [{1: bytes([number]), 2: b"x"} for number in range(5)]
    assert [await made.calls(manifest, each) for each in (second, EVERY, second)] == [0, 0, 0]
    assert await made.calls(manifest, replace(EVERY, columns=frozenset(range(20)))) == 1


async def test_what_a_plan_selects_changes_nothing_of_what_is_packed() -> None:
    made = Manifests()
    manifest = await made.write("a", 20)
    narrow = replace(EVERY, may_match=lambda partition: partition == (7,), added_only=True)
    none = replace(EVERY, statistics_may_match=lambda statistics: False)
    for _ in range(2):
        assert [each.partition for each in await made.read(manifest, narrow)] == [(7,)]
    assert await made.read(manifest, none) == []
    assert await made.calls(manifest) == 0
    assert len(await made.read(manifest)) == 20


async def test_files_that_are_unpacked_are_in_the_memory_for_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Manifests()
    manifest = await made.write("a", 3 * BLOCK)
    files = [await made.read(manifest) for _ in range(3)][-1]
    used: list[int] = []
    select = FileBlock.select

    def observed(block: FileBlock, selection: EntrySelection) -> FileBatch:
        used.append(memory.used)
        return select(block, selection)

    memory = reading_memory()
    monkeypatch.setattr(FileBlock, "select", observed)
    assert await made.read(manifest) == files
    sizes = [sum(file.memory for file in files[first : first + BLOCK]) for first in range(0, 3 * BLOCK, BLOCK)]
    assert used == sizes
    assert memory.used == 0


async def test_no_files_are_shared_by_readers_that_would_read_others() -> None:
    """Two manifest lists may name one manifest, and two schemas have other types for its partitions."""
    made = Manifests()
    manifest = await made.write("a", 5)
    for _ in range(3):
        await made.read(manifest)
    others = [
        manifest._replace(sequence_number=9),
        manifest._replace(added_snapshot_id=9),
        manifest._replace(first_row_id=9),
        manifest._replace(manifest_length=9),
        manifest._replace(partition_spec_id=9),
    ]
    assert [await made.calls(each) for each in others] == [1] * len(others)
    renamed: PartitionSpec = {**SPEC, "fields": [{**SPEC["fields"][0], "field-id": 1001}]}
    selections = (replace(EVERY, partition_types=["long"]), replace(EVERY, spec=renamed))
    assert [await made.calls(manifest, each) for each in selections] == [1, 1]


async def test_file_blocks_are_given_to_no_table_in_whose_locations_they_are_not() -> None:
    made = Manifests()
    manifest = await made.write("a", 5)
    for _ in range(3):
        await made.read(manifest)
    with pytest.raises(BadRequest, match="outside of its locations"):
        async for _ in ManifestSource(made.fixture.session(), {"memory:///wh/u"}).entries(manifest, EVERY):
            pass


async def test_a_plan_that_stops_early_leaves_whole_blocks_or_none() -> None:
    made = Manifests()
    manifest = await made.write("a", 3 * BLOCK)
    for _ in range(3):
        async with aclosing(ManifestSource(made.fixture.session()).entries(manifest, EVERY)) as blocks:
            await anext(blocks)
    assert len(await made.read(manifest)) == 3 * BLOCK


async def test_a_manifest_that_is_corrupt_behind_its_first_block_is_read_as_such_each_time() -> None:
    made = Manifests()
    manifest = await made.write("a", 100)
    body = (await made.fixture.store.get("wh/t/metadata/a")).body  # type: ignore[union-attr]
    await made.fixture.store.put("wh/t/metadata/b", body[:-20], ABSENT)
    damaged = manifest._replace(manifest_path=f"{FOLDER}/b")
    for _ in range(4):
        with pytest.raises(BadRequest, match="can't be read"):
            await made.read(damaged)


async def test_files_with_long_statistics_are_not_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest_source, "MAX_BLOCK_MEMORY", 1_000)
    made = Manifests()
    manifest = await made.write("a", 5)
    assert [await made.calls(manifest) for _ in range(3)] == [1, 1, 1]
    assert len(made.fixture.catalog.caches.file_blocks) == 0


async def test_a_table_larger_than_the_cache_has_a_part_of_its_manifests_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    places: dict[object, int] = {}  # by their hashes two of these keys count as one in one run of 170
    monkeypatch.setattr(cache, "hash", lambda key: places.setdefault(key, len(places)), raising=False)
    made = Manifests()
    manifests = [await made.write(str(number), BLOCK) for number in range(20)]
    for each in manifests[:2]:
        await made.read(each)
        await made.read(each)
    made.fixture.catalog.caches.file_blocks = SelectiveCache(made.fixture.catalog.caches.file_blocks.size * 5)
    rounds = [[await made.calls(each) for each in manifests] for _ in range(5)]
    assert sum(rounds[0]) == sum(rounds[1]) == 20
    assert [sum(calls) for calls in rounds[2:]] == [10] * 3


async def test_the_statistics_that_are_tested_are_those_of_the_file() -> None:
    made = Manifests()
    manifest = await made.write("a", 9)
    tested: list[FileStatistics] = []

    def test(statistics: FileStatistics) -> bool:
        tested.append(statistics)
        return True

    for _ in range(3):
        await made.read(manifest, replace(EVERY, statistics_may_match=test))
    assert tested[:9] == tested[9:18] == tested[18:]
