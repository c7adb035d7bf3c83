"""A metadata file is believed to be gone only if the pointer, read again, still leads to it."""

from itertools import count

import pytest

from arco_catalog.iceberg.errors import InternalError, NotFound
from arco_catalog.iceberg.json import JsonObject, loads
from arco_catalog.operations.drop import unregister_table
from arco_catalog.operations.load import load_table
from arco_catalog.operations.register import register_table
from arco_catalog.operations.transaction import commit_transaction
from arco_catalog.operations.undrop import undrop
from arco_catalog.planning.answers import TableState
from tests.operations.test_cleaning import CLEANED
from tests.support.scripted_store import Rule, ScriptedStore, get
from tools.support.catalog_fixture import NS, CatalogFixture, state
from tools.support.request_bodies import set_property


@pytest.fixture
async def writer() -> CatalogFixture:
    """A table `t` that is cleaned at each commit."""
    fixture = CatalogFixture(ScriptedStore())
    await fixture.namespace("db")
    await fixture.table("t", properties=CLEANED)
    await fixture.commit(set_property("n", "0"))
    return fixture


def overtake(fixture: CatalogFixture, times: int) -> None:
    """The next reads of a metadata file each come just behind two commits."""

    store, other = fixture.store, fixture.another()
    assert isinstance(store, ScriptedStore)
    commits = count(times - 1, -1)

    async def two_commits() -> None:
        number = next(commits)
        for half in "ab":
            await other.commit(set_property("n", f"{number}{half}"))

    store.rules = [Rule(get(".metadata.json"), first=two_commits, times=times)]


def properties(report: TableState) -> JsonObject:
    document = loads(report.metadata)
    assert isinstance(document, dict)
    found = document["properties"]
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("times", [1, 3])
async def test_a_load_during_cleaning_returns_the_table_as_it_is_then(writer: CatalogFixture, times: int) -> None:
    overtake(writer, times)
    assert properties(await load_table(writer.another().session(), NS, "t"))["n"] == "0b"


@pytest.mark.parametrize("key", [False, True])
async def test_a_commit_beside_cleaning_is_planned_on_what_the_table_is_then(writer: CatalogFixture, key: bool) -> None:
    overtake(writer, 2)
    cold = writer.another()
    done = await cold.commit(set_property("mine", "1"), key=cold.key() if key else None)
    assert (properties(done)["mine"], properties(done)["n"]) == ("1", "0b")


async def test_a_transaction_beside_cleaning_is_planned_on_what_its_tables_are_then(writer: CatalogFixture) -> None:
    await writer.table("u")
    overtake(writer, 2)
    cold = writer.another()
    await commit_transaction(cold.session(), [(NS, name, set_property("mine", "1")) for name in "tu"])
    assert properties(await load_table(writer.another().session(), NS, "t"))["mine"] == "1"


async def test_an_answer_whose_file_was_removed_is_replayed_from_what_the_table_is_now(writer: CatalogFixture) -> None:
    key = writer.key()
    mine = await writer.commit(set_property("mine", "1"), key=key)
    for number in "12":
        await writer.commit(set_property("n", number))

    again = await writer.another().commit(set_property("mine", "1"), key=key)

    assert again.entity == mine.entity
    assert (properties(again)["mine"], properties(again)["n"]) == ("1", "2")


async def test_a_registration_whose_table_moved_on_is_replayed(writer: CatalogFixture) -> None:
    last = await unregister_table(writer.session(), NS, "t")
    key = writer.key()
    made = state(await register_table(writer.session(key=key), NS, "r", last.metadata_location, overwrite=False))
    for number in "123":
        await writer.commit(set_property("n", number), "r")
    again = state(await register_table(writer.another().session(key=key), NS, "r", last.metadata_location, False))
    assert again == made


async def test_an_unregistered_table_is_reported_as_it_was_left(writer: CatalogFixture) -> None:
    last = await writer.commit(set_property("mine", "1"))
    assert (await unregister_table(writer.another().session(), NS, "t")).metadata == last.metadata


async def test_undrop_reads_what_the_pointer_leads_to(writer: CatalogFixture) -> None:
    last = await unregister_table(writer.session(), NS, "t")
    await undrop(writer.another().session(), NS, "t")
    assert (await load_table(writer.another().session(), NS, "t")).metadata == last.metadata


@pytest.mark.parametrize("key", [False, True])
async def test_a_file_that_is_gone_is_reported_as_missing(writer: CatalogFixture, key: bool) -> None:
    current = await load_table(writer.session(), NS, "t")
    await writer.store.delete(current.metadata_location.removeprefix("memory:///"))
    cold = writer.another()
    with pytest.raises(NotFound, match="Failed to open input stream for file: memory:///"):
        await load_table(cold.session(), NS, "t")
    with pytest.raises(NotFound, match="Failed to open input stream for file: memory:///"):
        await writer.another().commit(set_property("n", "1"), key=cold.key() if key else None)


async def test_a_load_whose_pointer_is_missing_names_the_object_to_restore(writer: CatalogFixture) -> None:
    entity = (await load_table(writer.session(), NS, "t")).entity
    pointer = writer.catalog.paths.pointer(entity)
    await writer.store.delete(pointer)
    with pytest.raises(InternalError, match="is missing, but the registry names") as caught:
        await load_table(writer.another().session(), NS, "t")
    assert caught.value.message.startswith(f"The pointer {pointer} ")
