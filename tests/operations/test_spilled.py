"""What the index's segments mean for operations: nothing, but for what they cost."""

import asyncio
from collections.abc import Sequence

import pytest

from arco_catalog.iceberg.errors import BadRequest, InternalError, NamespaceNotEmpty, NoSuchTable
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.create import create_table
from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.inspect import inspect_relation
from arco_catalog.operations.load import load_table, require_table
from arco_catalog.operations.namespaces import drop_namespace, load_namespace, update_properties
from arco_catalog.operations.rename import rename_table
from arco_catalog.operations.transaction import commit_transaction
from arco_catalog.operations.undrop import undrop
from arco_catalog.protocol.catalog import Settings
from arco_catalog.protocol.concurrency import gather
from arco_catalog.protocol.lookup import load
from arco_catalog.state.index import Index
from arco_catalog.state.needs import Needs
from arco_catalog.state.spilling import Limits
from arco_catalog.upkeep.reconcile import named_entities, reconcile
from tests.simulation.clients import build_from_nothing
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.request_bodies import schema, set_property

TINY = Settings("wh", spill=Limits(embedded=0, segment=500))


@pytest.fixture
async def fixture() -> CatalogFixture:
    """Twelve tables in as many segments, and namespaces in segments of their own."""
    made = CatalogFixture(settings=TINY)
    for name in ("db", "other", "empty"):
        await made.namespace(name)
    for number in range(12):
        await made.table(f"t{number:02}")
    return made


async def segments(fixture: CatalogFixture) -> set[str]:
    return {ref.id for ref in (await fixture.session().state.head()).index.directory.refs}


async def test_a_drop_takes_the_name_away_and_an_undrop_brings_it_back(fixture: CatalogFixture) -> None:
    entity = (await load_table(fixture.another().session(), NS, "t05")).entity
    await drop_table(fixture.another().session(), NS, "t05", purge=False)
    with pytest.raises(NoSuchTable):
        await require_table(fixture.another().session(), NS, "t05")
    assert (await inspect_relation(fixture.another().session(), NS, "t05"))["state"] == "dropped"
    await undrop(fixture.another().session(), NS, "t05")
    assert (await load_table(fixture.another().session(), NS, "t05")).entity == entity


async def test_a_rename_moves_a_name_from_one_segment_to_another(fixture: CatalogFixture) -> None:
    entity = (await load_table(fixture.session(), NS, "t00")).entity
    await rename_table(fixture.another().session(), (NS, "t00"), (("other",), "z"))
    assert (await load_table(fixture.another().session(), ("other",), "z")).entity == entity
    with pytest.raises(NoSuchTable):
        await load_table(fixture.another().session(), NS, "t00")


async def test_a_namespace_is_dropped_if_no_segment_holds_a_table_of_it(fixture: CatalogFixture) -> None:
    with pytest.raises(NamespaceNotEmpty):
        await drop_namespace(fixture.another().session(), NS)
    for number in range(12):
        await drop_table(fixture.session(), NS, f"t{number:02}", purge=False)
    await drop_namespace(fixture.another().session(), NS)
    await drop_namespace(fixture.another().session(), ("empty",))


async def test_a_namespaces_properties_are_changed_where_they_are_spilled(fixture: CatalogFixture) -> None:
    await update_properties(fixture.another().session(), ("other",), [], {"a": "1"})
    properties = (await load_namespace(fixture.another().session(), ("other",)))["properties"]
    assert isinstance(properties, dict)
    assert properties["a"] == "1"


async def test_an_explicit_location_is_held_against_those_in_segments(fixture: CatalogFixture) -> None:
    held = "memory:///wh/warehouse/db/explicit"
    await fixture.table("explicit", location=held)
    for number in range(6):
        await fixture.table(f"more{number}")
    for wanted in (held, f"{held}/inside", "memory:///wh/warehouse/db"):
        body: JsonObject = {"name": "x", "schema": schema("x"), "location": wanted}
        with pytest.raises(BadRequest, match="overlaps"):
            await create_table(fixture.another().session(body), NS, body)


async def test_a_table_inside_a_held_folder_is_refused_though_its_own_place_is_fresh(fixture: CatalogFixture) -> None:
    await fixture.table("holder", location="memory:///wh/warehouse/held")
    await fixture.namespace("held")
    for number in range(6):
        await fixture.table(f"more{number}")
    body: JsonObject = {"name": "x", "schema": schema("x")}
    with pytest.raises(BadRequest, match=r"overlaps the location of table db\.holder: "):
        await create_table(fixture.another().session(body), ("held",), body)


async def test_transactions_find_their_tables_and_settle_the_names_that_they_make(fixture: CatalogFixture) -> None:
    changes = [(NS, f"t{number:02}", set_property("a", "1")) for number in range(4)]
    changes += [(NS, f"new{number}", build_from_nothing("tester")) for number in range(3)]
    await commit_transaction(fixture.another().session(), changes)
    for _, name, _ in changes:
        await load_table(fixture.another().session(), NS, name)
    head = await fixture.session().state.head()
    assert not any("transaction" in (entry or {}) for _, entry in [*head.index.edits.items()])


async def test_creates_beside_each_other_lose_no_table_to_a_flush(fixture: CatalogFixture) -> None:
    names = [f"n{number}" for number in range(12)]
    await gather(*(fixture.another().table(name) for name in names))
    await gather(*(load_table(fixture.another().session(), NS, name) for name in names))


async def test_a_reconciler_finds_every_entity_in_the_segments(fixture: CatalogFixture) -> None:
    live = {(await load_table(fixture.session(), NS, f"t{number:02}")).entity for number in range(12)}
    await drop_table(fixture.session(), NS, "t03", purge=False)
    assert {entity async for entity in named_entities(fixture.another().session(), [])} == live
    stats = await reconcile(fixture.another().session())
    assert (stats.pointers, stats.walked, stats.orphaned) == (12, 12, 0)


async def test_a_process_whose_remembered_head_was_collected_looks_again(fixture: CatalogFixture) -> None:
    idle = fixture.another()
    await idle.session().state.head()
    before = await segments(fixture)
    for number in range(12):
        await fixture.commit(set_property("a", "1"), f"t{number:02}")
        await drop_table(fixture.session(), NS, f"t{number:02}", purge=False)
        await fixture.table(f"t{number:02}")
    for segment in before - await segments(fixture):
        await fixture.store.delete(fixture.catalog.paths.index_segment(segment))
    await idle.table("t99")
    await load_table(fixture.another().session(), NS, "t99")


async def test_a_segment_that_is_gone_from_under_head_is_our_fault_and_no_missing_table(
    fixture: CatalogFixture,
) -> None:
    for segment in await segments(fixture):
        await fixture.store.delete(fixture.catalog.paths.index_segment(segment))
    with pytest.raises(InternalError, match="gone"):
        await load_table(fixture.another().session(), NS, "t05")
    with pytest.raises(InternalError, match="gone"):
        await fixture.another().table("fresh")


async def test_a_lookup_that_never_has_enough_ends(fixture: CatalogFixture) -> None:
    class Insatiable(Index):
        __slots__ = ()

        def missing(self, needs: Needs) -> Sequence[str]:
            return [ref.id for ref in self.directory.refs[:1]]

    index = (await fixture.session().state.head()).index
    insatiable = Insatiable(index.edits, index.directory, index.segment_lookup)
    async with asyncio.timeout(20):
        with pytest.raises(InternalError, match="made no progress"):
            await load(fixture.session().state, insatiable, Needs())
