"""Tables that refer to files elsewhere: the registry records the folders, and no purge deletes a table's files there
(docs/design/purge.md#rule-16)."""

import re

import pytest

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.json import JsonObject, dumps, loads
from arco_catalog.operations.commit import commit_table
from arco_catalog.operations.register import register_table
from arco_catalog.operations.rename import rename_table
from arco_catalog.operations.tasks import retry_task
from arco_catalog.operations.transaction import commit_transaction
from arco_catalog.operations.undrop import undrop
from arco_catalog.planning import relation_change
from arco_catalog.planning.answers import TableState
from arco_catalog.planning.purge import begin
from arco_catalog.planning.upkeep_settings import PurgeSettings
from arco_catalog.protocol.catalog import Settings
from arco_catalog.protocol.lookup import carry_out, entries_in
from arco_catalog.state.borrowed import Loans, borrowed_holds, borrowed_key, borrower_of
from arco_catalog.state.entries import PendingTransaction, find_relation
from arco_catalog.state.locations import Location
from arco_catalog.state.task import Status
from arco_catalog.state.tombstone import DROPPED, PURGED
from tests.support.scripted_store import Rule, delete
from tests.support.table_files import append, write
from tests.upkeep.purge.conftest import DAY_MS, Purges
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.request_bodies import creation_updates, set_property

HOUR_MS = DAY_MS // 24


@pytest.fixture
async def purges() -> Purges:
    """One that does not read what other tables name: only what the registry knows stands between them."""
    made = Purges(Settings("wh", purge=PurgeSettings(trust_locations=True)))
    await made.fixture.namespace("db")
    return made


def place_of(state: TableState) -> str:
    return state.metadata_location.partition("/metadata/")[0]


def snapshot(manifest_list: str, number: int = 1) -> list[JsonObject]:
    """Updates that add a snapshot with this manifest list."""
    added: JsonObject = {
        "snapshot-id": number,
        "sequence-number": number,
        "timestamp-ms": 1_770_000_000_000 + number,
        "manifest-list": manifest_list,
        "summary": {"operation": "append"},
        "schema-id": 0,
    }
    return [{"action": "add-snapshot", "snapshot": added}]


def adding(manifest_list: str, number: int = 1) -> JsonObject:
    return {"requirements": [], "updates": [*snapshot(manifest_list, number)]}


async def borrowed(purges: Purges, name: str = "other") -> tuple[str, ...]:
    index = (await purges.fixture.another().session().state.head()).index
    entry = find_relation(index, NS, name)
    assert entry is not None
    loans = {key.split("\n")[1] async for key, _ in entries_in(purges.fixture.session().state, index, "borrowed\n")}
    assert {f"{folder}/" for folder in entry.borrowed} <= loans
    return entry.borrowed


async def source(purges: Purges) -> TableState:
    return await append(purges.fixture, await purges.table(), "a")


async def refused(purges: Purges) -> None:
    """The purge of `t`, which must leave everything as it is, and name the other table."""
    before = purges.files()
    task = await purges.purge()
    assert task.status is Status.FAILURE
    assert re.search(r"db\.other \(entity \S+\) takes files from", str(task.summary))
    assert purges.files() == before
    assert (await purges.tombstone()).state == DROPPED


async def test_a_commit_that_takes_a_manifest_list_from_elsewhere_stands_in_the_way(purges: Purges) -> None:
    place = place_of(await source(purges))
    await purges.table("other")
    await purges.fixture.commit(adding(f"{place}/metadata/snap-1.avro"), "other")
    assert await borrowed(purges) == (f"{place}/metadata",)
    await refused(purges)
    await undrop(purges.fixture.session(), NS, "t")


async def test_a_file_of_statistics_does_so_too(purges: Purges) -> None:
    place = place_of(await source(purges))
    other = await append(purges.fixture, await purges.table("other"), "b", name="other")
    document = loads(other.metadata)
    assert isinstance(document, dict)
    statistics: JsonObject = {
        "snapshot-id": document["current-snapshot-id"],
        "statistics-path": f"{place}/metadata/x.puffin",
        "file-size-in-bytes": 1,
        "file-footer-size-in-bytes": 1,
        "blob-metadata": [],
    }
    await purges.fixture.commit(
        {"requirements": [], "updates": [{"action": "set-statistics", "statistics": statistics}]}, "other"
    )
    await refused(purges)


async def test_a_transaction_does_so_too(purges: Purges) -> None:
    place = place_of(await source(purges))
    await purges.table("other")
    changes = [(NS, "other", adding(f"{place}/metadata/snap-1.avro"))]
    await commit_transaction(purges.fixture.session({}), changes)
    assert await borrowed(purges) == (f"{place}/metadata",)
    await refused(purges)


def making(*files: str) -> JsonObject:
    """The body of a commit that makes a table with these manifest lists."""
    return {
        "requirements": [{"type": "assert-create"}],
        "updates": [
            {"action": "upgrade-format-version", "format-version": 2},
            *creation_updates(),
            *(update for number, file in enumerate(files, 1) for update in snapshot(file, number)),
        ],
    }


@pytest.mark.parametrize("in_a_transaction", [False, True])
async def test_a_table_that_a_commit_makes_does_so_too(purges: Purges, in_a_transaction: bool) -> None:
    place = place_of(await source(purges))
    body = making(f"{place}/metadata/snap-1.avro")
    if in_a_transaction:
        await commit_transaction(purges.fixture.session({}), [(NS, "other", body)])
    else:
        await purges.fixture.commit(body, "other")
    assert await borrowed(purges) == (f"{place}/metadata",)
    await refused(purges)


async def copied(purges: Purges, state: TableState, location: str, file: str) -> str:
    """A copy of a table's metadata with another location of the table."""
    document = loads(state.metadata)
    assert isinstance(document, dict)
    return await write(purges.store, file, dumps({**document, "location": location}))


async def test_a_registered_copy_of_the_metadata_stands_in_the_way(purges: Purges) -> None:
    state = await source(purges)
    elsewhere = "memory:///wh/warehouse/elsewhere"
    file = await copied(purges, state, elsewhere, f"{elsewhere}/metadata/00000-copy.metadata.json")
    await register_table(purges.fixture.session(), NS, "other", file, overwrite=False)
    assert await borrowed(purges) == (f"{place_of(state)}/metadata",)
    await refused(purges)


async def test_a_metadata_file_that_lies_in_another_table_stands_in_the_way(purges: Purges) -> None:
    state = await purges.table()
    file = await copied(
        purges, state, "memory:///wh/warehouse/elsewhere", f"{place_of(state)}/metadata/00009-copy.metadata.json"
    )
    await register_table(purges.fixture.session(), NS, "other", file, overwrite=False)
    await refused(purges)


async def test_what_takes_files_stands_in_the_way_until_it_is_purged_itself(purges: Purges) -> None:
    place = place_of(await source(purges))
    await purges.table("other")
    await purges.fixture.commit(adding(f"{place}/metadata/snap-1.avro"), "other")
    await purges.drop()
    purges.runtime.ms += HOUR_MS
    await purges.drop("other")
    purges.runtime.ms += DAY_MS - HOUR_MS
    assert await purges.run() == 1
    assert [(await purges.tombstone(name)).state for name in ("t", "other")] == [DROPPED, DROPPED]
    purges.runtime.ms += HOUR_MS
    assert await purges.run() == 1
    assert (await purges.tombstone("other")).state == PURGED
    await retry_task(purges.fixture.session(), str((await purges.tombstone()).task), purges.runtime)
    assert await purges.run() == 1
    assert (await purges.tombstone()).state == PURGED


async def test_a_renamed_and_restored_table_still_takes_its_files(purges: Purges) -> None:
    place = place_of(await source(purges))
    await purges.table("first")
    await purges.fixture.commit(adding(await write(purges.store, f"{place}/metadata/snap-1.avro")), "first")
    await rename_table(purges.fixture.session(), (NS, "first"), (NS, "other"))
    await purges.drop("other", purge=False)
    await undrop(purges.fixture.session(), NS, "other")
    assert await borrowed(purges) == (f"{place}/metadata",)
    await purges.fixture.commit(adding(f"{place}/metadata/snap-2.avro", 2), "other")
    await refused(purges)


async def test_files_that_are_being_deleted_can_not_be_registered(purges: Purges) -> None:
    state = await source(purges)
    elsewhere, met = "memory:///wh/warehouse/elsewhere", list[str]()
    file = await copied(purges, state, elsewhere, f"{elsewhere}/metadata/00000-copy.metadata.json")
    await purges.table("other")

    async def try_all() -> None:
        there: CatalogFixture = purges.fixture.another()
        taking = adding(f"{place_of(state)}/metadata/snap-1.avro")
        with pytest.raises(BadRequest) as raised:
            await commit_table(there.session(taking, deadline_ms=DAY_MS), NS, "other", taking)
        met.append(raised.value.message)
        with pytest.raises(BadRequest) as raised:
            await register_table(there.session(deadline_ms=DAY_MS), NS, "copy", file, overwrite=False)
        met.append(raised.value.message)

    purges.store.rules = [Rule(delete("/data/"), first=try_all, times=1)]
    assert (await purges.purge()).status is Status.SUCCESS
    folder = f"{place_of(state)}/metadata"
    report = (
        f"Files in {folder} belong to a dropped table and are being deleted: no other table may refer to "
        "manifest lists or statistics there"
    )
    assert met == [report, report]


async def test_of_many_folders_in_its_namespace_those_around_them_are_borrowed(purges: Purges) -> None:
    await purges.table("other")
    for number in range(1, 41):
        await purges.fixture.commit(adding(f"memory:///wh/warehouse/db/x/{number}/snap.avro", number), "other")
    folders = await borrowed(purges)
    assert 1 <= len(folders) <= 32
    assert "memory:///wh/warehouse/db/x" in folders
    await append(purges.fixture, await purges.table(location="memory:///wh/warehouse/db/x/y"), "a")
    await refused(purges)


@pytest.mark.parametrize("in_a_transaction", [False, True])
async def test_so_are_those_of_a_table_that_is_made_with_many(purges: Purges, in_a_transaction: bool) -> None:
    body = making(*(f"memory:///wh/warehouse/db/x/{number}/snap.avro" for number in range(1, 41)))
    if in_a_transaction:
        await commit_transaction(purges.fixture.session({}), [(NS, "other", body)])
    else:
        await purges.fixture.commit(body, "other")
    assert await borrowed(purges) == ("memory:///wh/warehouse/db/x",)
    await append(purges.fixture, await purges.table(location="memory:///wh/warehouse/db/x/y"), "a")
    await refused(purges)


async def test_many_folders_outside_of_its_namespace_are_refused_and_block_nothing_around_them(purges: Purges) -> None:
    await purges.table("other")
    for number in range(1, 33):
        await purges.fixture.commit(adding(f"memory:///wh/warehouse/x/{number}/snap.avro", number), "other")
    with pytest.raises(BadRequest, match="more than 32 folders"):
        await purges.fixture.commit(adding("memory:///wh/warehouse/x/33/snap.avro", 33), "other")
    assert len(await borrowed(purges)) == 32


@pytest.mark.parametrize("folder", ["memory:///wh/warehouse", "memory:///wh/warehouse/db"])
async def test_a_list_in_a_folder_around_all_tables_stops_no_purge(purges: Purges, folder: str) -> None:
    await source(purges)
    await purges.table("other")
    await purges.fixture.commit(adding(f"{folder}/snap-1.avro"), "other")
    assert await borrowed(purges) == (folder,)
    assert (await purges.purge()).status is Status.SUCCESS


async def test_a_folder_inside_a_borrowed_one_is_borrowed_itself(purges: Purges) -> None:
    place = place_of(await source(purges))
    await purges.table("other")
    await purges.fixture.commit(adding("memory:///wh/warehouse/snap-1.avro"), "other")
    await purges.fixture.commit(adding(f"{place}/metadata/snap-2.avro", 2), "other")
    assert await borrowed(purges) == ("memory:///wh/warehouse", f"{place}/metadata")
    await refused(purges)


async def test_what_an_earlier_version_wrote_stands_for_all_below(purges: Purges) -> None:
    await source(purges)
    await purges.table("other")
    borrower = "01KAN0Y7Q2M3C4D5E6F7G8H9JK"
    state = purges.fixture.session().state
    head = await state.head()
    assert Loans.parse({"borrowed": ["memory:///wh/warehouse"]}).widened == {"memory:///wh/warehouse"}
    index = head.index.edited({borrowed_key("memory:///wh/warehouse", borrower): {"entity": borrower}})
    place = Location.parse("memory:///wh/warehouse/db/t")
    assert await carry_out(state, index, borrower_of(index, place, "another")) == borrower


async def test_a_purge_waits_for_the_transaction_by_which_another_may_borrow(purges: Purges) -> None:
    place = place_of(await source(purges))
    await purges.make_due()
    tombstone = await purges.tombstone()
    state = purges.fixture.session().state
    loan = borrowed_holds("01KAN0Y7Q2M3C4D5E6F7G8H9JK", Loans((place,)), "open")
    index = (await state.head()).index.edited(loan)

    with pytest.raises(PendingTransaction, match="open"):
        await carry_out(state, index, begin(index, tombstone, 1, tombstone.purge_after_ms))


async def test_files_in_its_own_places_are_not_borrowed(purges: Purges) -> None:
    await append(purges.fixture, await purges.table("other"), "b", name="other")
    await purges.fixture.commit(
        {
            "requirements": [],
            "updates": [
                *set_property("write.metadata.path", "memory:///wh/warehouse/m")["updates"],  # type: ignore[misc]
                *snapshot("memory:///wh/warehouse/m/snap-2.avro", 2),
            ],
        },
        "other",
    )
    assert await borrowed(purges) == ()


NOWHERE = [
    "snap.avro",
    "metadata/snap.avro",
    "file:snap",
    "s3://other-bucket/m/snap.avro",
    "s3://other-bucket/snap.avro",
    "https://example.com/snap.avro",
    "file:///etc/passwd",
    "memory:///wh/snap.avro",
    "memory:///wh/_catalog/core/snap.avro",
    "memory:///wh/warehouse/_realm/snap.avro",
    "memory:///wh/warehouse/%5fcatalog/snap.avro",
    "memory:///wh/warehouse/../_catalog/snap.avro",
    "memory:///wh/warehouse/db/a%2fb/snap.avro",
    "memory:///wh/warehouse/db//snap.avro",
    "memory:///wh/warehouse/db/other/../t/snap.avro",
]
"""Files in folders where no table may lie."""


@pytest.mark.parametrize("path", NOWHERE)
async def test_a_manifest_list_where_no_table_may_lie_is_refused(purges: Purges, path: str) -> None:
    await purges.table("other")
    with pytest.raises(BadRequest) as raised:
        await purges.fixture.commit(adding(path), "other")
    assert raised.value.message.startswith(("Not a valid location of a file", "Manifest lists and statistics in"))
    assert await borrowed(purges) == ()


@pytest.mark.parametrize("update", ["set-statistics", "set-partition-statistics"])
@pytest.mark.parametrize("path", NOWHERE[:6])
async def test_statistics_where_no_table_may_lie_are_refused(purges: Purges, update: str, path: str) -> None:
    await append(purges.fixture, await purges.table("other"), "b", name="other")
    file: JsonObject = {"snapshot-id": 1, "statistics-path": path, "file-size-in-bytes": 1}
    more: JsonObject = {"file-footer-size-in-bytes": 1, "blob-metadata": []} if update == "set-statistics" else {}
    name = update.removeprefix("set-")
    with pytest.raises(BadRequest):
        await purges.fixture.commit(
            {"requirements": [], "updates": [{"action": update, name: {**file, **more}}]}, "other"
        )
    assert await borrowed(purges) == ()


@pytest.mark.parametrize("path", NOWHERE)
async def test_metadata_whose_manifest_list_is_where_no_table_may_lie_is_not_registered(
    purges: Purges, path: str
) -> None:
    state = await purges.table()
    document = loads(state.metadata)
    assert isinstance(document, dict)
    [added] = snapshot(path)
    elsewhere = "memory:///wh/warehouse/elsewhere"
    changed = {**document, "location": elsewhere, "snapshots": [added["snapshot"]], "last-sequence-number": 1}
    file = await write(purges.store, f"{elsewhere}/metadata/00000-copy.metadata.json", dumps(changed))
    with pytest.raises(BadRequest):
        await register_table(purges.fixture.session(), NS, "other", file, overwrite=False)


@pytest.mark.parametrize(
    "path",
    [
        "{place}/metadata/snap-1-0-a.avro",
        "{place}/snap.avro",
        "{place}//metadata/snap.avro",
        "memory:{path}/metadata/snap.avro",
        "{place}/branches/audit/metadata/snap%20a.avro",
    ],
)
async def test_a_manifest_list_of_any_name_at_the_tables_own_location_is_committed(purges: Purges, path: str) -> None:
    place = place_of(await purges.table("other"))
    where = path.format(place=place, path=place.removeprefix("memory://"))
    await purges.fixture.commit(adding(where), "other")
    assert await borrowed(purges) == ()


async def test_a_folder_that_an_earlier_version_took_stays_borrowed(
    purges: Purges, monkeypatch: pytest.MonkeyPatch
) -> None:
    await purges.table("other")
    with monkeypatch.context() as patch:
        patch.setattr(relation_change, "check_added", lambda allowed, folders: None)
        await purges.fixture.commit(adding("s3://other-bucket/m/snap-1.avro"), "other")
    await purges.fixture.commit(adding("s3://other-bucket/m/snap-2.avro", 2), "other")
    assert await borrowed(purges) == ("s3://other-bucket/m",)
