"""A check with `--data` checks the files of tables: it follows metadata to manifests, and these to data files."""

import pytest

from arco_catalog.operations.drop import drop_table
from arco_catalog.planning.answers import TableState
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state.memory import PARSED_WEIGHT, SMALL_BYTES, Hold, background_memory
from arco_catalog.upkeep.fsck.check import check
from arco_catalog.upkeep.fsck.codes import Code
from arco_catalog.upkeep.fsck.examination import Examination
from arco_catalog.upkeep.fsck.files import Scope
from arco_catalog.upkeep.fsck.findings import Finding
from arco_catalog.upkeep.fsck.tally import MAX_FINDINGS
from storage_backends import ANY, Found
from tests.support.fake_runtime import FakeRuntime
from tests.support.scripted_store import Rule, ScriptedStore, get
from tests.support.table_files import append, commit_files, key_of
from tests.upkeep.fsck.conftest import statistics, tell_lengths, write_statistics
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.manifests import ENTRY_SCHEMA, avro, manifest
from tools.support.request_bodies import set_property


class Tables:
    """A catalog with a table of two snapshots, and statistics."""

    def __init__(self) -> None:
        self.runtime = FakeRuntime()
        self.store = ScriptedStore(self.runtime.now_ms)
        self.fixture = CatalogFixture(self.store, self.runtime, Settings("wh"))

    async def made(self) -> TableState:
        await self.fixture.namespace("db")
        state = await append(self.fixture, await self.fixture.table(), "a.parquet", "b.parquet")
        state = await append(self.fixture, state, "c.parquet")
        state = await self.fixture.commit(statistics(await write_statistics(self.store, state)))
        await self.tell_lengths()
        return state

    async def tell_lengths(self) -> None:
        """Makes each manifest list say how long its manifests are."""
        await tell_lengths(self.store)

    def keys(self, part: str) -> list[str]:
        return [key for key in self.store.keys("wh/warehouse/") if part in key]

    async def body(self, key: str) -> bytes:
        found = await self.store.get(key)
        assert isinstance(found, Found)
        return found.body

    async def found(self, scope: Scope | None = None) -> list[Finding]:
        examination = Examination(self.fixture.another().session())
        return [each async for each in check(examination, scope or Scope())]

    async def codes(self) -> list[Code]:
        return [finding.code for finding in await self.found()]


@pytest.fixture
async def tables() -> Tables:
    made = Tables()
    await made.made()
    return made


async def test_nothing_is_wrong_with_sound_files_and_each_is_read(tables: Tables) -> None:
    examination = Examination(tables.fixture.another().session())
    before = Examination(tables.fixture.another().session())

    assert [each async for each in check(examination, Scope())] == []
    assert [each async for each in check(before)] == []
    # Two lists and two manifests, three data files, one of statistics, three earlier metadata files.
    assert examination.examined - before.examined == 11


async def test_files_are_read_only_where_that_is_requested(tables: Tables) -> None:
    await tables.store.delete(tables.keys("/a.parquet")[0])

    examination = Examination(tables.fixture.another().session())
    assert [each async for each in check(examination)] == []


@pytest.mark.parametrize(
    ("part", "gone", "cut"),
    [
        ("/a.parquet", Code.DATA_FILE_MISSING, Code.DATA_FILE_FOREIGN),
        ("/c.parquet", Code.DATA_FILE_MISSING, Code.DATA_FILE_FOREIGN),
        ("-m0.avro", Code.MANIFEST_FILE_MISSING, Code.MANIFEST_FILE_UNREADABLE),
        ("stats.puffin", Code.STATISTICS_MISSING, Code.STATISTICS_FOREIGN),
        ("snap-", Code.MANIFEST_LIST_MISSING, Code.MANIFEST_LIST_UNREADABLE),
    ],
)
async def test_a_file_that_is_gone_or_cut_is_reported(tables: Tables, part: str, gone: Code, cut: Code) -> None:
    key = tables.keys(part)[0]
    whole = await tables.body(key)
    await tables.store.delete(key)
    [finding] = await tables.found()
    assert (finding.code, finding.where) == (gone, f"memory:///{key}")
    assert "table db.t" in finding.found
    await tables.store.put(key, whole[: len(whole) // 2], ANY)
    assert await tables.codes() == [cut]
    await tables.store.put(key, whole, ANY)
    assert await tables.codes() == []


async def test_a_data_file_that_grew_is_reported(tables: Tables) -> None:
    key = tables.keys("/a.parquet")[0]
    await tables.store.put(key, b"0123456789+", ANY)

    assert await tables.codes() == [Code.DATA_FILE_FOREIGN]


async def test_a_manifest_of_another_length_than_in_its_list_is_reported(tables: Tables) -> None:
    key = tables.keys("-m0.avro")[0]
    file = f"memory:///{tables.keys('/a.parquet')[0]}"
    await tables.store.put(key, manifest([file]), ANY)

    assert await tables.codes() == [Code.MANIFEST_FILE_FOREIGN]


async def test_an_earlier_metadata_file_that_the_log_names_is_reported(tables: Tables) -> None:
    earlier = sorted(tables.keys(".metadata.json"))[0]
    await tables.store.delete(earlier)

    assert await tables.codes() == [Code.LOGGED_FILE_MISSING]


async def test_a_file_that_its_snapshot_deleted_may_be_gone(tables: Tables) -> None:
    key = tables.keys("-m0.avro")[0]
    files = [f"memory:///{each}" for each in (*tables.keys("/a.parquet"), *tables.keys("/b.parquet"))]
    entries = [
        {
            "status": status,
            "snapshot_id": 1,
            "data_file": {"content": 0, "file_path": file, "partition": {}, "file_size_in_bytes": 10},
        }
        for status, file in zip((2, 1), files, strict=True)
    ]
    await tables.store.put(key, avro(ENTRY_SCHEMA, entries), ANY)
    await tables.tell_lengths()
    await tables.store.delete(key_of(files[0]))

    assert await tables.codes() == []


async def test_files_outside_of_the_locations_of_a_table_are_reported_by_their_folders(tables: Tables) -> None:
    other = await tables.fixture.table("other")
    await commit_files(tables.fixture, other, [f"memory:///{key}" for key in tables.keys("/a.parquet")], name="other")
    await tables.tell_lengths()

    [finding] = await tables.found()
    assert finding.code is Code.FILES_ELSEWHERE
    assert finding.where == f"memory:///{tables.keys('/a.parquet')[0].partition('/data/')[0]}"
    assert finding.found == "table db.other: 1 files of the table are in this folder, outside of the table's locations"


async def test_files_in_no_store_of_the_catalog_are_reported_and_not_taken_for_gone(tables: Tables) -> None:
    other = await tables.fixture.table("other")
    await commit_files(tables.fixture, other, ["s3://theirs/t/data/x.parquet"], name="other")
    await tables.tell_lengths()

    assert await tables.codes() == [Code.FILES_ELSEWHERE, Code.FILES_OUT_OF_REACH]


async def test_names_that_engines_give_to_partitions_are_taken_by_their_letters(tables: Tables) -> None:
    other = await tables.fixture.table("other")
    await append(tables.fixture, other, "p=a%2Fb/x#1.parquet", name="other")
    await tables.tell_lengths()

    assert await tables.codes() == []


async def test_many_files_that_are_gone_are_counted(tables: Tables) -> None:
    other = await tables.fixture.table("other")
    await append(tables.fixture, other, *(f"{number}.parquet" for number in range(MAX_FINDINGS + 5)), name="other")
    await tables.tell_lengths()
    for key in tables.keys(str(other.metadata_location).partition("/metadata/")[0].rpartition("/")[2]):
        if key.endswith(".parquet"):
            await tables.store.delete(key)

    found = await tables.found()
    assert [each.code for each in found] == [Code.DATA_FILE_MISSING] * (MAX_FINDINGS + 1)
    assert found[-1].found == "table db.other: and 5 more findings of this code"


async def test_only_the_files_of_tables_that_are_requested_are_read(tables: Tables) -> None:
    await append(tables.fixture, await tables.fixture.table("u"), "u.parquet", name="u")
    await tables.tell_lengths()
    for key in (*tables.keys("/a.parquet"), *tables.keys("/u.parquet")):
        await tables.store.delete(key)

    async def places(scope: Scope) -> list[str]:
        examination = Examination(tables.fixture.another().session())
        return [each.where.rpartition("/")[2] async for each in check(examination, scope)]

    assert await places(Scope()) == ["a.parquet", "u.parquet"]
    assert await places(Scope(frozenset({"db.u"}))) == ["u.parquet"]
    assert await places(Scope(after="db.t")) == ["u.parquet"]


async def test_a_dropped_table_is_not_read(tables: Tables) -> None:
    await drop_table(tables.fixture.session(), NS, "t", purge=False)
    await tables.store.delete(tables.keys("/a.parquet")[0])

    assert await tables.codes() == []


async def test_a_table_that_is_changed_meanwhile_is_read_again(tables: Tables) -> None:
    """A snapshot expires, and its files go, after its metadata was read."""
    manifests = tables.keys("-m0.avro")

    async def expire() -> None:
        tables.store.rules = []
        await tables.fixture.commit(
            {"requirements": [], "updates": [{"action": "remove-snapshots", "snapshot-ids": [1]}]}
        )
        for key in (*tables.keys("/a.parquet"), *tables.keys("/b.parquet")):
            await tables.store.delete(key)

    tables.store.rules = [Rule(get(manifests[0]), first=expire)]

    assert await tables.codes() == []


async def test_a_table_that_is_dropped_meanwhile_has_no_findings(tables: Tables) -> None:
    async def drop() -> None:
        tables.store.rules = []
        await drop_table(tables.fixture.session(), NS, "t", purge=True)
        for key in tables.keys(".parquet"):
            await tables.store.delete(key)

    tables.store.rules = [Rule(get(tables.keys("-m0.avro")[0]), first=drop)]

    assert await tables.codes() == []


async def test_files_with_an_empty_level_in_their_names_are_not_called_missing(tables: Tables) -> None:
    state = await tables.fixture.commit({"requirements": [], "updates": []})
    place = state.metadata_location.partition("/metadata/")[0]
    await commit_files(tables.fixture, state, [f"{place}/data//x.parquet", f"{place}/data/./y.parquet"])
    await tables.tell_lengths()
    [finding] = await tables.found()
    assert finding.code is Code.FILES_OUT_OF_REACH
    assert "2 " in finding.found


async def test_metadata_is_read_within_the_memory_for_background_work(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = await tables.fixture.commit(set_property("long", "x" * SMALL_BYTES))
    taken: list[int] = []
    take_now = Hold.take_now

    def recorded(self: Hold, size: int) -> None:
        assert self.counts
        taken.append(size)
        take_now(self, size)

    monkeypatch.setattr(Hold, "take_now", recorded)
    assert await tables.found() == []
    assert taken.count(PARSED_WEIGHT * len(state.metadata)) == 2, "of the examination of metadata, and of that of files"
    assert background_memory().used == 0
