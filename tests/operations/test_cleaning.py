"""Old metadata files are removed if the table has the property, and never one that another table may need
(docs/decisions/0022)."""

import pytest

from arco_catalog.iceberg.errors import BadRequest, NotFound
from arco_catalog.iceberg.json import JsonObject, dumps, loads
from arco_catalog.operations.commit import commit_table
from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.load import load_table
from arco_catalog.operations.register import register_table
from arco_catalog.operations.transaction import commit_transaction
from arco_catalog.operations.undrop import undrop
from arco_catalog.planning.answers import TableState
from arco_catalog.planning.old_files import own_files
from arco_catalog.state.locations import Location
from storage_backends import ABSENT, ANY, Found
from tests.support.scripted_store import DOWN, Rule, ScriptedStore, anything, delete, put
from tools.support.catalog_fixture import NS, CatalogFixture, state
from tools.support.request_bodies import set_property

WAREHOUSE = "memory:///wh/warehouse"
CLEANED: JsonObject = {
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "1",
}


async def there(fixture: CatalogFixture, location: str) -> bool:
    return isinstance(await fixture.store.get(location.removeprefix("memory:///")), Found)


async def commits(fixture: CatalogFixture, name: str, times: int) -> list[str]:
    """Commits so often, and returns the files made."""
    return [(await fixture.commit(set_property("n", str(number)), name)).metadata_location for number in range(times)]


async def registered(fixture: CatalogFixture, name: str, file: str) -> TableState:
    return state(await register_table(fixture.session(path=f"/register/{name}"), NS, name, file, overwrite=False))


async def test_what_left_the_log_is_removed(fixture: CatalogFixture) -> None:
    first = (await fixture.table("t", properties=CLEANED)).metadata_location
    files = [first, *await commits(fixture, "t", 3)]
    assert [await there(fixture, file) for file in files] == [False, False, True, True]


async def test_what_left_the_log_in_a_transaction_is_removed(fixture: CatalogFixture) -> None:
    files = [(await fixture.table(name, properties=CLEANED)).metadata_location for name in "ab"]
    for value in "12":
        await commit_transaction(fixture.session(), [(NS, name, set_property("n", value)) for name in "ab"])
    assert [await there(fixture, file) for file in files] == [False, False]


async def test_a_dropped_table_comes_back_after_another_was_registered_from_its_file_and_cleaned(
    fixture: CatalogFixture,
) -> None:
    await fixture.table("t", properties=CLEANED)
    old = await fixture.commit(set_property("important", "yes"))
    await drop_table(fixture.session(), NS, "t", purge=False)
    await registered(fixture, "t2", old.metadata_location)
    await commits(fixture, "t2", 4)
    await drop_table(fixture.session(), NS, "t2", purge=False)

    await undrop(fixture.session(), NS, "t")

    assert (await load_table(fixture.another().session(), NS, "t")).metadata == old.metadata


async def test_the_file_that_another_was_registered_from_is_kept_by_the_table_that_made_it(
    fixture: CatalogFixture,
) -> None:
    await fixture.table("t", properties=CLEANED)
    shared = await fixture.commit(set_property("n", "shared"))
    await drop_table(fixture.session(), NS, "t", purge=False)
    await registered(fixture, "t2", shared.metadata_location)
    await drop_table(fixture.session(), NS, "t2", purge=False)
    await undrop(fixture.session(), NS, "t")
    await commits(fixture, "t", 4)
    await drop_table(fixture.session(), NS, "t", purge=False)

    await undrop(fixture.session(), NS, "t2")

    assert (await load_table(fixture.another().session(), NS, "t2")).metadata == shared.metadata


async def test_what_was_registered_before_there_were_claims_is_kept_as_well(fixture: CatalogFixture) -> None:
    await fixture.table("t", properties=CLEANED)
    shared = await fixture.commit(set_property("n", "shared"))
    await drop_table(fixture.session(), NS, "t", purge=False)
    await registered(fixture, "t2", shared.metadata_location)
    await fixture.store.delete(fixture.session().state.paths.metadata_claim(shared.metadata_location))
    await drop_table(fixture.session(), NS, "t2", purge=False)
    await undrop(fixture.session(), NS, "t")
    await commits(fixture, "t", 4)
    assert await there(fixture, shared.metadata_location)


async def test_a_tables_files_are_removed_again_when_no_other_has_files_around_them(fixture: CatalogFixture) -> None:
    moved = loads((await fixture.table("t")).metadata)
    assert isinstance(moved, dict)
    foreign = f"{WAREHOUSE}/z/metadata/00003-00000000-0000-4000-8000-000000000003.metadata.json"
    older = f"{WAREHOUSE}/z/metadata/00002-00000000-0000-4000-8000-000000000002.metadata.json"
    moved |= {"location": f"{WAREHOUSE}/z", "properties": CLEANED}
    await fixture.store.put(older.removeprefix("memory:///"), dumps(moved), ABSENT)
    moved["metadata-log"] = [{"timestamp-ms": moved["last-updated-ms"], "metadata-file": older}]
    await fixture.store.put(foreign.removeprefix("memory:///"), dumps(moved), ABSENT)
    await registered(fixture, "r", foreign)

    own = await commits(fixture, "r", 4)

    assert [await there(fixture, file) for file in (older, foreign)] == [True, True]
    assert [await there(fixture, file) for file in own] == [False, False, True, True]


@pytest.mark.parametrize(
    "logged",
    [
        "/data/wh/db/t/metadata/v1.metadata.json",
        "",
        "no location",
        "s3://",
        f"{WAREHOUSE}/db/t/%2e%2e/x",
        "hdfs://n/x" * 200,
        "memory:///",
    ],
)
async def test_an_entry_of_the_log_that_is_no_location_decides_over_no_commit(
    fixture: CatalogFixture, logged: str
) -> None:
    made = await fixture.table("t", properties=CLEANED)
    document = loads(made.metadata)
    assert isinstance(document, dict)
    await drop_table(fixture.session(), NS, "t", purge=False)
    document["metadata-log"] = [{"timestamp-ms": document["last-updated-ms"], "metadata-file": logged}]
    file = made.metadata_location.replace("00000-", "00001-")
    await fixture.store.put(file.removeprefix("memory:///"), dumps(document), ABSENT)
    await registered(fixture, "r", file)
    assert len(await commits(fixture, "r", 3)) == 3


@pytest.mark.parametrize("folder", ["_catalog", "_probe", "_realm", ".arco-store", "%5Fcatalog", "_CATALOG"])
async def test_a_log_that_names_another_catalogs_state_is_not_registered(fixture: CatalogFixture, folder: str) -> None:
    document = loads((await fixture.table("t")).metadata)
    assert isinstance(document, dict)
    file = f"{WAREHOUSE}/r/metadata/00001-x.metadata.json"
    document["location"] = f"{WAREHOUSE}/r"
    for logged in (f"memory:///other/{folder}/core/manifest.json", f"/other/{folder}/core/manifest.json"):
        document["metadata-log"] = [{"timestamp-ms": document["last-updated-ms"], "metadata-file": logged}]
        await fixture.store.put(file.removeprefix("memory:///"), dumps(document), ANY)
        with pytest.raises(BadRequest, match=f"folders named {folder} hold a catalog's own state"):
            await registered(fixture, "r", file)


async def test_no_file_in_a_catalogs_state_is_ever_removed(fixture: CatalogFixture) -> None:
    key = "other/_catalog/core/manifest.json"
    await fixture.store.put(key, b"{}", ABSENT)
    with pytest.raises(BadRequest, match="folders named _catalog hold a catalog's own state"):
        await fixture.session().files.remove(f"memory:///{key}")
    assert await there(fixture, key)


OWN = "00001-01J00000000000000000000000-1.metadata.json"


@pytest.mark.parametrize(
    ("file", "own"),
    [
        (f"s3://b/t/metadata/{OWN}", True),
        ("s3://b/t/metadata/00001-00000000-0000-4000-8000-000000000001.gz.metadata.json", True),
        (f"s3a://b/t/metadata/{OWN}", True),
        (f"s3://b/t/metadata/deeper/{OWN}", False),
        (f"s3://b/t/{OWN}", False),
        (f"s3://other/t/metadata/{OWN}", False),
        ("s3://b/t/metadata/snap-1-1-x.avro", False),
        ("s3://b/t/metadata/manifest.json", False),
        ("s3://b/t/metadata/v1.metadata.json", False),
        ("s3://b/t/metadata", False),
        ("s3://b", False),
        (f"/t/metadata/{OWN}", False),
        (f"s3://b/_catalog/t/metadata/{OWN}", False),
    ],
)
def test_a_tables_own_files_are_reported_by_name_and_place(file: str, own: bool) -> None:
    assert [*own_files("s3://b/t/metadata", [file])] == ([Location.parse(file)] if own else [])
    assert [*own_files("no folder", [file])] == []
    assert [*own_files("s3://b/_catalog/t/metadata", [file])] == []


@pytest.fixture
async def pausing() -> ScriptedStore:
    return ScriptedStore()


@pytest.fixture
async def paused(pausing: ScriptedStore) -> CatalogFixture:
    fixture = CatalogFixture(pausing)
    await fixture.namespace("db")
    return fixture


async def test_a_file_that_is_registered_while_it_is_being_removed_is_kept_or_refused(
    pausing: ScriptedStore, paused: CatalogFixture
) -> None:
    """Whatever call of the cleaning the register comes before."""
    kept = []
    for number, moment in enumerate([put("metadata_claims"), delete("/metadata/"), None]):
        name = f"t{number}"
        await paused.table(name, properties=CLEANED)
        early = (await paused.commit(set_property("n", "1"), name)).metadata_location
        await paused.commit(set_property("n", "2"), name)
        outcomes: list[bool] = []

        async def take_over(name: str = name, early: str = early, outcomes: list[bool] = outcomes) -> None:
            await drop_table(paused.another().session(), NS, name, purge=False)
            try:
                await registered(paused.another(), f"{name}-again", early)
                outcomes.append(True)
            except (BadRequest, NotFound):
                outcomes.append(False)

        # The drop comes behind the commit: its cleaning is what is left of it.
        if moment is None:
            await take_over()
            with pytest.raises(Exception, match="does not exist"):
                await paused.commit(set_property("n", "3"), name)
        else:
            pausing.rules = [Rule(moment, first=take_over, times=1)]
            await paused.commit(set_property("n", "3"), name)
        assert len(outcomes) == 1
        assert await there(paused, early) or not outcomes[0]
        if outcomes[0]:
            await load_table(paused.another().session(), NS, f"{name}-again")
        kept.append(outcomes[0])
    assert kept == [True, False, True]


async def test_a_register_that_read_its_file_before_it_was_removed_is_refused(
    pausing: ScriptedStore, paused: CatalogFixture
) -> None:
    await paused.table("t", properties=CLEANED)
    early = (await paused.commit(set_property("n", "1"))).metadata_location
    await paused.commit(set_property("n", "2"))
    await drop_table(paused.session(), NS, "t", purge=False)

    async def come_back_and_clean() -> None:
        other = paused.another()
        await undrop(other.session(), NS, "t")
        await other.commit(set_property("n", "3"))
        await drop_table(other.session(), NS, "t", purge=False)

    pausing.rules = [Rule(put("metadata_claims"), first=come_back_and_clean, times=1)]
    key = paused.key()
    for _ in range(2):
        with pytest.raises(BadRequest, match="it is deleted, because it left the metadata log of a table"):
            await register_table(paused.another().session(key=key), NS, "r", early, overwrite=False)
    assert not await there(paused, early)


@pytest.mark.parametrize("part", ["metadata_claims", "core/index"])
async def test_a_store_that_fails_the_cleaning_fails_no_commit(
    pausing: ScriptedStore, paused: CatalogFixture, part: str
) -> None:
    await paused.table("t", properties=CLEANED)
    pausing.rules = [Rule(anything(part), fails=DOWN)]
    body = set_property("n", "x")
    await commits(paused, "t", 2)
    session = paused.session(body)
    await commit_table(session, NS, "t", body)
    assert session.stats.dropped_writes == (1 if part == "metadata_claims" else 0)
