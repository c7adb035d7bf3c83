"""A plan finds the delete files of its data files, and where they are many, reads few of them."""

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest

from arco_catalog.iceberg.content_files import FILE_BYTES, ContentFile, FileBatch, FileContent, FileStatistics
from arco_catalog.iceberg.delete_index import DeleteIndex
from arco_catalog.iceberg.errors import BadRequest, Unsupported
from arco_catalog.iceberg.manifests import ManifestFile
from arco_catalog.iceberg.partition import PartitionSpec
from arco_catalog.iceberg.schema import Column
from arco_catalog.operations.scans import delete_files, delete_memory, delete_row_reader, stored_parts
from arco_catalog.operations.scans.delete_files import DeleteFiles, runs_of
from arco_catalog.operations.scans.delete_memory import DeletesMemory, deletes_memory
from arco_catalog.operations.scans.manifest_source import ManifestSource, reading_memory
from arco_catalog.operations.scans.scan_deletes import ScanDeletes
from arco_catalog.protocol.catalog import Session
from arco_catalog.state import delete_parts, worker_threads
from arco_catalog.state.access import State
from arco_catalog.state.manifest_entries import EntrySelection
from arco_catalog.state.paths import Paths
from storage_backends import ABSENT, ANY, Found, StoreUnavailable
from storage_backends.memory import MemoryStore
from tools.support.catalog_fixture import CountingFixture
from tools.support.entry_files import entry, entry_file
from tools.support.wrapped_stores import CountingStore

FOLDER = "memory:///wh/t/metadata"
SPECS: Mapping[int, PartitionSpec] = {0: {"spec-id": 0, "fields": []}}
COLUMNS = {1: Column(1, "a", "int", False), 2: Column(2, "b", "int", False)}
PARTS = f"{Paths('wh').plan_requests}"


def data(number: int) -> ContentFile:
    return ContentFile(FileContent.DATA, f"data-{number}", "parquet", 0, (), FileStatistics(9), 9, 1)


def vector(number: int) -> Mapping[str, object]:
    """The entry of a deletion vector for a data file."""
    place = {"content_offset": 4, "content_size_in_bytes": 9, "referenced_data_file": f"data-{number}"}
    return entry(number, content=1, file_path=f"v{number}", file_format="PUFFIN", **place)


def equality(number: int, *columns: int) -> Mapping[str, object]:
    return entry(number, content=2, file_path=f"equality-{number}", equality_ids=[*columns])


@dataclass
class Table:
    """Delete manifests in a store whose calls are counted."""

    fixture: CountingFixture = field(default_factory=lambda: CountingFixture(CountingStore(MemoryStore())))
    manifests: list[ManifestFile] = field(default_factory=list)
    """The newest first, as writers list them."""
    lookups: list[tuple[int, int]] = field(default_factory=list)
    """Of each plan the parts of the index that existed, and those that it made."""

    async def add(self, *entries: Mapping[str, object]) -> None:
        body = entry_file(entries)
        name = f"m{len(self.manifests)}.avro"
        await self.fixture.store.put(f"wh/t/metadata/{name}", body, ABSENT)
        added = ManifestFile(f"{FOLDER}/{name}", len(body), 0, 1, 3, 3, 5, len(entries), 0, 0, 9, 0, 0)
        self.manifests.insert(0, added)

    async def found(
        self,
        *files: ContentFile,
        matching: Callable[[ManifestFile], bool] = lambda _: True,
        may_match: Callable[[ContentFile], bool] = lambda _: True,
        entity: str = "e",
        locations: Sequence[str] = (),
        session: Session | None = None,
    ) -> tuple[DeleteFiles, DeleteIndex]:
        """What a plan finds for these data files: one in a process of its own, unless a session is given."""
        session = session or self.fixture.another().session()
        selected = [*filter(matching, self.manifests)]
        scan = ScanDeletes(
            self.manifests,
            selected,
            SPECS,
            COLUMNS,
            frozenset(),
            lambda _: EntrySelection(SPECS[0], [], None),
            lambda _: [],
            may_match,
        )
        source = ManifestSource(session, {*locations} or None)
        deletes = DeleteFiles(session, entity, source, scan)
        await deletes.open()
        self.lookups.append((source.hits["delete_index"], source.misses["delete_index"]))
        return deletes, await deletes.index_for(files)

    async def parts(self) -> list[str]:
        return [each.key for each in (await self.fixture.store.list(PARTS)).entries]


@pytest.fixture
def table() -> Table:
    return Table()


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few delete files count as many, and two manifests make a part."""
    monkeypatch.setattr(delete_files, "FEW_FILES", 0)
    monkeypatch.setattr(delete_files, "RUN_MANIFESTS", 2)


def paths(index: DeleteIndex, file: ContentFile) -> list[str]:
    return [each.path for each in index.deletes_of(file)]


async def test_few_delete_files_are_read_from_their_manifests_and_nothing_is_written(table: Table) -> None:
    await table.add(vector(1), vector(2), equality(3, 1))
    deletes, index = await table.found(data(1))
    assert [paths(index, data(number)) for number in (1, 2, 9)] == [
        ["equality-3", "v1"],
        ["equality-3", "v2"],
        ["equality-3"],
    ]
    assert deletes.column_ids == {1}
    assert await table.parts() == []


@pytest.mark.usefixtures("many")
async def test_the_parts_of_an_index_are_made_by_the_first_plan_and_read_by_the_next(table: Table) -> None:
    for number in range(5):
        await table.add(vector(number), equality(number, 1 + number % 2))
    everywhere = [f"equality-{number}" for number in range(5)]
    first = await table.fixture.cost(table.found(data(0)))
    second = await table.fixture.cost(table.found(data(0)))
    deletes, index = await table.found(data(0), data(3))
    assert sorted(paths(index, data(0))) == [*everywhere, "v0"]
    assert sorted(paths(index, data(3))) == [*everywhere, "v3"]
    assert deletes.column_ids == {1, 2}
    assert len(await table.parts()) == 3
    assert first.calls == 3 + 5 + 3  # what is there of the parts, the manifests, the parts
    assert second.calls == 3
    assert table.lookups == [(0, 3), (3, 0), (3, 0)]
    assert reading_memory().used == 0


@pytest.mark.usefixtures("many")
async def test_a_plan_reads_the_beginning_of_a_part_and_the_blocks_with_its_deletes(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two thousand vectors, of which the plan needs two, far apart, and the equality deletes, which are for all."""
    monkeypatch.setattr(stored_parts, "BEGIN_BYTES", 12_000)
    monkeypatch.setattr(stored_parts, "MAX_GAP", 0)
    monkeypatch.setattr(delete_parts, "BLOCK_BYTES", 2_000)
    await table.add(*map(vector, range(1_000)), equality(0, 1))
    await table.add(*map(vector, range(1_000, 2_000)))
    await table.found(data(0))
    [part] = await table.parts()
    stored = await table.fixture.store.get(part)
    assert isinstance(stored, Found)
    needed = data(5), data(1_900)
    monkeypatch.setattr(delete_files, "KEPT_BYTES", 0)
    cost = await table.fixture.cost(table.found(*needed))
    assert cost.calls == 1 + 1 + 3  # the beginning, the table of hashes as none of it is kept, the blocks
    assert cost.bytes_read < 12_000 + 4 * 2_001 + 1_000
    assert len(stored.body) > 30_000
    _, index = await table.found(*needed)
    assert [paths(index, each) for each in needed] == [["equality-0", "v5"], ["equality-0", "v1900"]]
    monkeypatch.setattr(delete_files, "KEPT_BYTES", 1 << 20)
    assert (await table.fixture.cost(table.found(*needed))).calls == 1 + 2  # equality deletes are at the beginning


@pytest.mark.usefixtures("many")
async def test_blocks_that_are_near_are_read_by_one_call(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_parts, "BEGIN_BYTES", 6_000)
    monkeypatch.setattr(delete_parts, "BLOCK_BYTES", 2_000)
    await table.add(*map(vector, range(1_000)))
    await table.found(data(0))
    assert (await table.fixture.cost(table.found(*map(data, range(1_000))))).calls == 2


@pytest.mark.usefixtures("many")
async def test_a_thread_names_the_parts_of_many_manifests(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hash of what the list states of 3,000 manifests is tens of milliseconds, for each answer."""
    for number in range(4):
        await table.add(vector(number))
    in_loop: list[bool] = []
    runs = delete_files.runs_of

    def observed(manifests: Sequence[ManifestFile]) -> Sequence[Sequence[ManifestFile]]:
        in_loop.append(threading.current_thread() is threading.main_thread())
        return runs(manifests)

    monkeypatch.setattr(delete_files, "runs_of", observed)
    for count in (worker_threads.SMALL_BYTES, 4 * delete_files.MANIFEST_WORK):
        monkeypatch.setattr(worker_threads, "SMALL_BYTES", count)
        await table.found(data(1))
    assert in_loop == [True, False]


@pytest.mark.usefixtures("many")
async def test_a_new_snapshot_makes_parts_for_its_new_manifests_alone(table: Table) -> None:
    for number in range(4):
        await table.add(vector(number))
    await table.found(data(0))
    before = {*await table.parts()}
    await table.add(vector(9))
    _, index = await table.found(data(0), data(9))
    assert (paths(index, data(0)), paths(index, data(9))) == (["v0"], ["v9"])
    assert len({*await table.parts()} - before) == 1


@pytest.mark.usefixtures("many")
async def test_parts_in_which_no_deletes_may_match_are_neither_made_nor_read(table: Table) -> None:
    for number in range(4):
        await table.add(vector(number))
    oldest = table.manifests[-1]
    cost = await table.fixture.cost(table.found(data(0), matching=lambda each: each == oldest))
    assert len(await table.parts()) == 1
    assert cost.calls == 1 + 2 + 1
    assert (await table.fixture.cost(table.found(data(0), matching=lambda _: False))).calls == 0


@pytest.mark.usefixtures("many")
async def test_deletes_that_cannot_match_the_filter_are_left_out(table: Table) -> None:
    await table.add(equality(1, 1), equality(2, 2))
    _, index = await table.found(data(0), may_match=lambda each: each.equality_ids == [2])
    assert paths(index, data(0)) == ["equality-2"]


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("body", [None, b"", b"x\n", b'{"version":3,"columns":[],"blocks":[[1,9]]}\nx'])
async def test_a_part_that_is_gone_or_corrupt_is_read_from_its_manifests(table: Table, body: bytes | None) -> None:
    await table.add(vector(1))
    await table.found(data(1))
    store, [part] = table.fixture.store, await table.parts()
    if body is None:
        await store.delete(part)
    else:
        await store.put(part, body, ANY)
    _, index = await table.found(data(1))
    assert paths(index, data(1)) == ["v1"]


@pytest.mark.usefixtures("many")
async def test_a_read_only_catalog_writes_no_part(table: Table) -> None:
    await table.add(vector(1))
    table.fixture = replace(table.fixture, settings=replace(table.fixture.settings, read_only_because="of this test"))
    _, index = await table.found(data(1))
    assert paths(index, data(1)) == ["v1"]
    assert await table.parts() == []


@pytest.mark.usefixtures("many")
async def test_a_part_that_could_not_be_stored_is_kept_whatever_the_plan_keeps(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(self: State, key: str, body: bytes) -> None:
        raise StoreUnavailable("down")

    monkeypatch.setattr(State, "create", fail)
    monkeypatch.setattr(delete_files, "KEPT_BYTES", 0)
    await table.add(vector(1))
    deletes, _ = await table.found(data(1))
    with table.fixture.store.measure() as measured:
        assert paths(await deletes.index_for([data(1)]), data(1)) == ["v1"]
    assert measured.calls == 0


@pytest.mark.usefixtures("many")
async def test_no_table_gets_at_the_deletes_of_another_one_by_its_parts(table: Table) -> None:
    """A writer can name another table's manifests in a list, and may not see what is in them."""
    await table.add(vector(1))
    await table.found(data(1), locations=["memory:///wh/t"])
    with pytest.raises(BadRequest, match="outside of its locations"):
        await table.found(data(1), entity="other", locations=["memory:///wh/other"])
    assert len(await table.parts()) == 1


@pytest.mark.parametrize("few", [1_000, 0], ids=["without_an_index", "with_an_index"])
async def test_delete_files_that_take_too_much_memory_are_for_clients_to_plan(
    table: Table, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their counts are what the list claims, which may be wrong."""
    await table.add(*(equality(number, 1) for number in range(20)))
    table.manifests[0] = table.manifests[0]._replace(added_files_count=1)
    monkeypatch.setattr(delete_files, "FEW_FILES", few)
    monkeypatch.setattr(delete_memory, "MAX_BYTES", 10_000)
    with pytest.raises(Unsupported, match="too many"):
        await table.found(data(1))


def test_runs_are_bounded_by_manifests_and_by_files() -> None:
    def listed(number: int, files: int) -> ManifestFile:
        return ManifestFile(f"m{number}", 9, 0, 1, 1, 1, 1, files, 0, 0, 0, 0, 0)

    many_small = [listed(number, 1) for number in range(200)]
    runs = runs_of(many_small)
    assert [len(run) for run in runs] == [64, 64, 64, 8]
    assert [each for run in runs for each in run] == many_small[::-1]
    assert [len(run) for run in runs_of([listed(number, 3_000) for number in range(7)])] == [3, 3, 1]
    assert [len(run) for run in runs_of([listed(number, 50_000) for number in range(2)])] == [1, 1]
    assert runs_of([]) == []


async def test_the_delete_files_of_all_plans_of_a_process_have_one_memory(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their counts and lengths in the list are lies, so nothing was taken for them before they were decoded."""
    statistics = {"lower_bounds": {1: b"x" * 40_000}, "upper_bounds": {1: b"x" * 40_000}}
    for _ in range(3):
        await table.add(
            *(entry(each, content=2, file_path=f"e{each}", equality_ids=[1], **statistics) for each in range(40))
        )
    table.manifests = [each._replace(added_files_count=1, manifest_length=1) for each in table.manifests]
    used: list[int] = []
    add = DeletesMemory.add

    async def observed(self: DeletesMemory, batch: FileBatch) -> None:
        await add(self, batch)
        used.append(deletes_memory().used)

    monkeypatch.setattr(DeletesMemory, "add", observed)

    async def plan() -> int:
        deletes, index = await table.found(data(1))
        found = len(index.deletes_of(data(1)))
        await asyncio.sleep(0)
        deletes.close()
        return found

    assert await asyncio.gather(*(plan() for _ in range(8))) == [120] * 8
    assert {each for each in used if each} == {delete_memory.MAX_BYTES}
    assert deletes_memory().used == 0


@pytest.mark.usefixtures("many")
async def test_the_table_of_hashes_is_read_in_the_memory_of_manifests(table: Table) -> None:
    """Of half a million delete files it has two megabytes, in each of eight parts and four plans."""
    await table.add(vector(1))
    await table.found(data(1))
    with reading_memory().hold() as hold:
        for size in (reading_memory().max_bytes, 1 << 20, *[1 << 20] * 7):
            await hold.take(size)
        waiting = asyncio.create_task(table.found(data(1)))
        for _ in range(50):
            await asyncio.sleep(0)
        assert not waiting.done()
    _, index = await waiting
    assert paths(index, data(1)) == ["v1"]


@pytest.mark.usefixtures("many")
async def test_rows_for_which_a_plan_has_no_memory_are_not_decoded(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    await table.add(*(equality(number, 1) for number in range(20)))
    await table.found(data(1))
    decoded: list[int] = []
    read_rows = delete_parts.read_rows

    def observed(packed: bytes, rows: Sequence[int]) -> Sequence[ContentFile]:
        decoded.append(len(rows))
        return read_rows(packed, rows)

    monkeypatch.setattr(delete_row_reader, "read_rows", observed)
    await table.found(data(1))
    assert sum(decoded) == 20
    monkeypatch.setattr(delete_memory, "MAX_BYTES", 20 * FILE_BYTES - 1)
    with pytest.raises(Unsupported, match="too many"):
        await table.found(data(1))
    assert sum(decoded) == 20
