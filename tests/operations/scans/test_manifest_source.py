"""Plans read the manifests of a snapshot once, within bounds, and no file that is not the table's."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

import pytest

from arco_catalog.iceberg.content_files import ContentFile
from arco_catalog.iceberg.errors import BadRequest, NotFound, Unsupported
from arco_catalog.iceberg.json import dumps, loads
from arco_catalog.iceberg.manifests import DATA, ManifestFile
from arco_catalog.iceberg.partition import PartitionSpec
from arco_catalog.iceberg.snapshots import Snapshot
from arco_catalog.operations.scans import listed_manifests, manifest_source
from arco_catalog.operations.scans.listed_manifests import MAX_LISTED
from arco_catalog.operations.scans.manifest_source import ManifestSource, reading_memory
from arco_catalog.state.manifest_entries import EntrySelection
from arco_catalog.state.memory import Allocation, Hold, Memory
from storage_backends import ABSENT
from storage_backends.memory import MemoryStore
from tools.support.appended_files import list_schema
from tools.support.catalog_fixture import CountingFixture
from tools.support.entry_files import entry, entry_file
from tools.support.manifests import avro
from tools.support.wrapped_stores import CountingStore

FOLDER = "memory:///wh/t/metadata"
LIST = f"{FOLDER}/snap-1.avro"
EVERY = EntrySelection(PartitionSpec(fields=[]), [])


def snapshot(**more: object) -> Snapshot:
    return {"snapshot-id": 5, "timestamp-ms": 0, "manifest-list": LIST, **more}  # type: ignore[typeddict-item]


def listed(name: str, length: int = 1_000, **more: object) -> dict[str, object]:
    """An entry of a manifest list, as Avro has it."""
    counts = {f"{what}_{of}_count": 1 for of in ("files", "rows") for what in ("added", "existing", "deleted")}
    numbers = {
        "content": 0,
        "partition_spec_id": 0,
        "sequence_number": 3,
        "min_sequence_number": 1,
        "added_snapshot_id": 5,
    }
    return {"manifest_path": f"{FOLDER}/{name}", "manifest_length": length, **numbers, **counts, **more}


@dataclass
class Table:
    """The files of a table in a store whose calls are counted."""

    fixture: CountingFixture = field(default_factory=lambda: CountingFixture(CountingStore(MemoryStore())))

    async def write(self, location: str, body: bytes) -> None:
        await self.fixture.store.put(location.removeprefix("memory:///"), body, ABSENT)

    async def write_list(self, entries: Sequence[Mapping[str, object]], schema: object = None) -> None:
        await self.write(LIST, avro(schema or list_schema(2), entries))  # type: ignore[arg-type]

    def source(self, *locations: str) -> ManifestSource:
        return ManifestSource(self.fixture.session(), {*locations} if locations else None)

    async def entries(self, manifest: ManifestFile) -> list[ContentFile]:
        found: list[ContentFile] = []
        async with aclosing(self.source().entries(manifest, EVERY)) as blocks:
            async for batch in blocks:
                found += batch.files
        return found


@pytest.fixture
def table() -> Table:
    return Table()


def manifest(name: str, length: int, **more: object) -> ManifestFile:
    return ManifestFile(f"{FOLDER}/{name}", length, 0, DATA, 3, 1, 5, 1, 0, 0, 1, 0, 0, **more)  # type: ignore[arg-type]


async def test_a_manifest_list_is_read_once_by_a_process(table: Table) -> None:
    await table.write_list([listed("a"), listed("b")])
    first = await table.fixture.cost(table.source().manifests(snapshot()))
    second = await table.fixture.cost(table.source().manifests(snapshot()))
    assert [each.manifest_path for each in (await table.source().manifests(snapshot())).all()] == [
        f"{FOLDER}/a",
        f"{FOLDER}/b",
    ]
    assert (first.calls, second.calls) == (1, 0)


async def test_a_snapshot_of_an_old_table_may_name_its_manifests_itself(table: Table) -> None:
    old: Snapshot = {"snapshot-id": 5, "timestamp-ms": 0, "manifests": [f"{FOLDER}/a"]}
    [found] = (await table.source().manifests(old)).all()
    assert (found.manifest_path, found.partition_spec_id, found.added_snapshot_id) == (f"{FOLDER}/a", 0, 5)
    assert found.added_files_count > 0
    assert found.partitions is None


async def test_a_snapshot_that_names_too_many_manifests_is_planned_by_no_part_of_them(table: Table) -> None:
    names = [f"{FOLDER}/a"] * MAX_LISTED
    old: Snapshot = {"snapshot-id": 5, "timestamp-ms": 0, "manifests": names}
    assert len(await table.source().manifests(old)) == MAX_LISTED
    with pytest.raises(BadRequest, match="more than 50,000 manifests"):
        await table.source().manifests({**old, "manifests": [*names, f"{FOLDER}/b"]})


async def test_counts_that_an_old_list_has_not_are_estimated_so_that_the_manifest_is_read(table: Table) -> None:
    schema = list_schema(2)
    fields = [each for each in schema["fields"] if not each["name"].endswith("_count")]  # type: ignore[index, call-overload, union-attr]
    await table.write_list([listed("a", 64_000)], {**schema, "fields": fields})
    [found] = (await table.source().manifests(snapshot())).all()
    assert found.added_files_count > 100
    assert found.existing_files_count == 0


async def test_counts_of_an_older_name_are_read(table: Table) -> None:
    older = loads(dumps(list_schema(2)).replace(b"_files_count", b"_data_files_count"))
    counts = {f"{what}_data_files_count": number for number, what in enumerate(("added", "existing", "deleted"))}
    await table.write_list([{**listed("a"), **counts}], older)
    [found] = (await table.source().manifests(snapshot())).all()
    assert (found.added_files_count, found.existing_files_count, found.deleted_files_count) == (0, 1, 2)


async def test_encrypted_manifests_are_for_clients_to_plan(table: Table) -> None:
    await table.write_list([listed("a", key_metadata=b"k")])
    with pytest.raises(Unsupported, match="plan scans of this table in the client"):
        await table.source().manifests(snapshot())
    with pytest.raises(Unsupported):
        await table.source().manifests(snapshot(**{"key-id": "k"}))
    with pytest.raises(Unsupported):
        await table.entries(manifest("a", 9, key_metadata=b"k"))


async def test_files_outside_of_the_table_s_locations_are_not_read(table: Table) -> None:
    await table.write_list([])
    assert len(await table.source("memory:///wh/t").manifests(snapshot())) == 0
    for location in ("memory:///wh/u", "memory:///wh/t/metadata/snap"):
        with pytest.raises(BadRequest, match="outside of its locations"):
            await table.source(location).manifests(snapshot())
    outside = manifest("../../u/a", 9)
    with pytest.raises(BadRequest):
        async for _ in table.source("memory:///wh/t").entries(outside, EVERY):
            pass


async def test_a_missing_file_and_one_that_cannot_be_read_are_definite_errors(table: Table) -> None:
    with pytest.raises(NotFound):
        await table.source().manifests(snapshot())
    await table.write(LIST, b"no Avro")
    with pytest.raises(BadRequest, match="can't be read"):
        await table.source().manifests(snapshot())
    await table.write(f"{FOLDER}/a", b"Obj\1")
    with pytest.raises(BadRequest, match="can't be read"):
        await table.entries(manifest("a", 4))


async def test_memory_is_taken_for_what_a_list_unpacks_to(table: Table) -> None:
    """Also if a list of a few kilobytes has long names, which are compressed in the cache."""
    entries = [listed(f"{number}{'x' * 15_000}") for number in range(400)]
    await table.write(LIST, avro(list_schema(2), entries))
    memory = Memory(64 << 20)
    session = table.fixture.session()
    with memory.hold() as hold:
        session.hold = hold
        source = ManifestSource(session)
        assert len(await source.manifests(snapshot())) == 400
        assert memory.used > 6 << 20
    assert table.fixture.catalog.caches.manifests.size < 1 << 20


async def test_a_list_beyond_the_bound_is_refused(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listed_manifests, "MAX_LIST_BYTES", 100)
    await table.write_list([listed("a")])
    with pytest.raises(BadRequest, match="more than 100 bytes"):
        await table.source().manifests(snapshot())


@pytest.mark.parametrize("stated", [0, 100, 50_000, 10_000_000], ids=["none", "too_few", "near", "too_many"])
async def test_a_manifest_is_read_to_its_end_whatever_length_its_list_states(table: Table, stated: int) -> None:
    body = entry_file([entry(number) for number in range(2_000)], codec="null")
    await table.write(f"{FOLDER}/a", body)
    found = await table.entries(manifest("a", stated))
    assert [each.position for each in found] == [*range(2_000)]


async def test_a_manifest_of_the_stated_length_takes_one_call(table: Table) -> None:
    body = entry_file([entry(number) for number in range(20_000)], codec="null")
    await table.write(f"{FOLDER}/a", body)
    assert len(body) > 1 << 20
    cost = await table.fixture.cost(table.entries(manifest("a", len(body))))
    assert cost.calls == 1


async def test_a_small_manifest_is_read_once_by_a_process_and_a_large_one_each_time(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    small, large = (entry_file([entry(number) for number in range(count)]) for count in (10, 2_000))
    monkeypatch.setattr(manifest_source, "CACHED_BYTES", len(small))
    await table.write(f"{FOLDER}/small", small)
    await table.write(f"{FOLDER}/large", large)
    for name, body, calls in (("small", small, [1, 0]), ("large", large, [1, 1])):
        costs = [await table.fixture.cost(table.entries(manifest(name, len(body)))) for _ in range(2)]
        assert [cost.calls for cost in costs] == calls
    assert len(await table.entries(manifest("small", 5))) == 10


async def test_manifests_that_are_read_at_one_time_share_the_memory_of_the_process(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = entry_file([entry(number) for number in range(100)])
    await table.write(f"{FOLDER}/a", body)
    used: list[int] = []
    take = Memory.take

    async def observed(self: Memory, *args: object, **more: object) -> None:
        used.append(self.used)
        await take(self, *args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Memory, "take", observed)
    found = await asyncio.gather(*(table.entries(manifest("a", 9 << 20)) for _ in range(6)))
    assert [len(each) for each in found] == [100] * 6
    assert len(used) >= 4  # so many had to wait
    assert reading_memory().used == 0


@pytest.mark.parametrize("stated", [None, 1], ids=["long_blocks", "a_wrong_length"])
async def test_an_unusual_manifest_is_read_alone_from_where_it_was_noticed(
    table: Table, stated: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A block of kilobytes unpacked to 16 MB, of which nothing was counted."""
    usual = [entry(number) for number in range(1_000)]
    long = [entry(number, file_path=f"{number}" + "x" * 10_000) for number in range(1_000, 1_100)]
    body = entry_file([*usual, *long], block=1_000_000)
    await table.write(f"{FOLDER}/a", body)
    used: list[int] = []
    take = Hold.take

    async def observed(self: Hold, size: int) -> Allocation:
        taken = await take(self, size)
        used.append(reading_memory().used)
        return taken

    monkeypatch.setattr(Hold, "take", observed)
    found = await table.entries(manifest("a", len(body) if stated is None else stated))
    assert [each.position for each in found] == [*range(1_100)]
    assert used[0] < 3 << 20
    assert used[-1] == reading_memory().max_bytes
    assert reading_memory().used == 0


async def test_a_usual_manifest_takes_little_memory(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    body = entry_file([entry(number) for number in range(5_000)])
    await table.write(f"{FOLDER}/a", body)
    sizes: list[int] = []
    take = Hold.take

    async def observed(self: Hold, size: int) -> Allocation:
        sizes.append(size)
        return await take(self, size)

    monkeypatch.setattr(Hold, "take", observed)
    assert len(await table.entries(manifest("a", len(body)))) == 5_000
    assert max(sizes) < 3 << 20
