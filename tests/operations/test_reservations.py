"""A table holds every location that its metadata ever named, and none for a commit that never came
(docs/decisions/0023)."""

import pytest

from arco_catalog.iceberg.errors import BadRequest, CatalogError
from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps, loads
from arco_catalog.operations.create import create_table
from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.history import history
from arco_catalog.operations.namespaces import create_namespace
from arco_catalog.operations.register import register_table
from arco_catalog.operations.rename import rename_table
from arco_catalog.operations.transaction import commit_transaction
from arco_catalog.operations.undrop import undrop
from arco_catalog.planning.relation_change import MissingLocations
from arco_catalog.planning.reserved_locations import MAX_HELD, MAX_NAMED
from arco_catalog.protocol.catalog import Settings
from arco_catalog.protocol.evidence import fence_pointer
from arco_catalog.protocol.internal_commits import change_registry
from arco_catalog.protocol.reservations import Reservation, reserve_locations
from arco_catalog.state.borrowed import borrowed_key
from arco_catalog.state.entries import RelationEntry, find_relation
from arco_catalog.state.index import Edits, location_key
from arco_catalog.state.locations import Location
from arco_catalog.state.needs import Steps, immediately
from arco_catalog.state.registry import RegistryState
from storage_backends import ANY
from tests.simulation.clients import build_from_nothing
from tests.support.fake_runtime import FakeRuntime
from tests.support.scripted_store import Call, Nth, Rule, ScriptedStore
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.request_bodies import schema, set_property

WAREHOUSE = "memory:///wh/warehouse"


async def entry(fixture: CatalogFixture, name: str = "t") -> RelationEntry:
    found = find_relation((await fixture.another().session().state.head()).index, NS, name)
    assert found is not None
    return found


async def added(fixture: CatalogFixture, name: str = "t") -> list[str]:
    """What the table holds besides the place that it was made in."""
    return sorted(place.removeprefix(f"{WAREHOUSE}/") for place in (await entry(fixture, name)).locations[1:])


def data_in(place: str) -> JsonObject:
    return set_property("write.data.path", f"{WAREHOUSE}/{place}")


async def dead_writer(fixture: CatalogFixture, *places: str) -> None:
    """A writer that reserves locations for its commit, and dies before that."""
    held = await entry(fixture)
    wanted = [Location.parse(f"{WAREHOUSE}/{place}") for place in places]
    await reserve_locations(fixture.another().session(), NS, "t", MissingLocations(held.entity, wanted))


async def test_locations_of_commits_that_never_came_are_given_back(fixture: CatalogFixture) -> None:
    await fixture.table("t")
    for number in range(2 * MAX_HELD):
        await dead_writer(fixture, f"dead{number}", f"more{number}")
    assert len(await added(fixture)) == 2

    await fixture.commit(data_in("mine"))

    assert await added(fixture) == ["mine"]
    await fixture.table("u", location=f"{WAREHOUSE}/dead3")
    kinds = [operation["kind"] async for operation in history(fixture.session())]
    assert "release-locations" not in kinds


async def test_what_a_commit_has_named_is_held_for_good(fixture: CatalogFixture) -> None:
    await fixture.table("t")
    for number in range(5):
        await fixture.commit(data_in(f"data{number}"))
        await dead_writer(fixture, "dead")
    await fixture.commit(data_in("last"))
    assert await added(fixture) == ["data0", "data1", "data2", "data3", "data4", "last"]
    for taken in ("data0/x", "data4", "last"):
        with pytest.raises(BadRequest, match=r"overlaps the location of table db\.t: "):
            await fixture.table("u", location=f"{WAREHOUSE}/{taken}")


async def test_a_transaction_confirms_what_it_names(fixture: CatalogFixture) -> None:
    for name in "tu":
        await fixture.table(name)
    await commit_transaction(fixture.session(), [(NS, name, data_in(f"of-{name}")) for name in "tu"])
    for name in "tu":
        await fixture.commit(data_in(f"more-of-{name}"), name)
        assert await added(fixture, name) == [f"more-of-{name}", f"of-{name}"]


async def test_what_a_table_may_hold_is_bounded(fixture: CatalogFixture) -> None:
    await fixture.table("t")
    number = 0
    while len((await entry(fixture)).locations) < MAX_HELD:
        await fixture.commit(data_in(f"data{number}"))
        number += 1
    key = fixture.key()
    for _ in range(2):
        with pytest.raises(BadRequest, match=rf"db\.t would have {MAX_HELD + 1} locations .*at most {MAX_HELD}"):
            await fixture.another().commit(data_in("one-more"), key=key)
    await fixture.commit(data_in("data0/inside"))
    await fixture.commit(set_property("a", "1"))


async def test_a_commit_names_only_so_many_locations(fixture: CatalogFixture) -> None:
    await fixture.table("t")
    updates: list[JsonValue] = [
        {"action": "set-location", "location": f"{WAREHOUSE}/l{number}"} for number in range(MAX_NAMED + 1)
    ]
    with pytest.raises(BadRequest, match=f"at most {MAX_NAMED} locations"):
        await fixture.commit({"requirements": [], "updates": updates})


def requests(call: Call) -> bool:
    """Whether a call is about one object."""
    return call.method in ("get", "put", "delete")


async def interrupted() -> tuple[ScriptedStore, CatalogFixture]:
    """A catalog with two tables, and its store."""
    store = ScriptedStore()
    fixture = CatalogFixture(store, FakeRuntime())
    await fixture.namespace("db")
    for name in "tv":
        await fixture.table(name)
    return store, fixture


async def commit_wanted(fixture: CatalogFixture, transaction: bool) -> None:
    """Commits with the location that is wanted, alone or with another table's change."""
    if transaction:
        changes = [(NS, "t", data_in("wanted")), (NS, "v", set_property("a", "1"))]
        await commit_transaction(fixture.session(), changes)
    else:
        await fixture.commit(data_in("wanted"))


async def held_by_no_other(fixture: CatalogFixture, place: str) -> None:
    with pytest.raises(BadRequest, match=r"overlaps the location of table db\.t: "):
        await fixture.table("thief", location=f"{WAREHOUSE}/{place}")


@pytest.mark.parametrize("transaction", [False, True])
async def test_no_commit_loses_a_location_that_is_given_back_beside_it(transaction: bool) -> None:
    """A writer gives back what a dead one reserved, while a third commits with that very location: at every call."""
    longest = 0
    for at in range(1, 60):
        store, fixture = await interrupted()
        await dead_writer(fixture, "wanted")
        committing, giver = fixture.another(), fixture.another()

        async def act(committing: CatalogFixture = committing) -> None:
            await commit_wanted(committing, transaction)

        moment = Nth(at, requests)
        store.rules = [Rule(moment, first=act, times=1)]
        await giver.commit(data_in("other"))
        longest = moment.seen
        await held_by_no_other(fixture, "other")
        if moment.seen < at:
            break
        await held_by_no_other(fixture, "wanted")
    assert 10 < longest < 59


@pytest.mark.parametrize("transaction", [False, True])
async def test_no_commit_relies_on_a_location_that_was_given_back_under_it(transaction: bool) -> None:
    """The other way round: a commit that reserved its location is interrupted, at every call, by a writer that gives
    it back."""
    longest = 0
    for at in range(1, 80):
        store, fixture = await interrupted()
        committing, giver = fixture.another(), fixture.another()

        async def act(giver: CatalogFixture = giver) -> None:
            await dead_writer(giver, "other")

        moment = Nth(at, requests)
        store.rules = [Rule(moment, first=act, times=1)]
        await commit_wanted(committing, transaction)
        longest = moment.seen
        await held_by_no_other(fixture, "wanted")
        if moment.seen < at:
            break
    assert 10 < longest < 79


async def test_of_two_that_give_back_neither_releases_what_the_other_marked(fixture: CatalogFixture) -> None:
    """The first sleeps before its release. Meanwhile a commit takes the location back and names it, and a second, which
    had read it before, marks it once more."""
    entity = (await fixture.table("t")).entity
    await dead_writer(fixture, "wanted")
    place = f"{WAREHOUSE}/wanted"
    first, second = (Reservation(fixture.another().session(), NS, "t", entity, ()) for _ in range(2))
    await first.mark_leaving([place], "first")
    fenced = await fence_pointer(fixture.another().session(), entity)
    await fixture.another().commit(data_in("wanted"))
    await second.mark_leaving([place], "second")

    await first.remove_leaving("first", fenced.named_locations)

    await held_by_no_other(fixture, "wanted")
    await second.remove_leaving("second", (await fence_pointer(fixture.another().session(), entity)).named_locations)
    await held_by_no_other(fixture, "wanted")
    assert (await entry(fixture)).leaving == {}


async def test_a_location_that_is_reserved_again_keeps_the_fields_of_a_later_version(fixture: CatalogFixture) -> None:
    """As one is that was marked as leaving, when a commit names it again."""
    entity = (await fixture.table("t")).entity
    await dead_writer(fixture, "wanted")
    place, lent = f"{WAREHOUSE}/wanted", f"{WAREHOUSE}/lent"
    await Reservation(fixture.another().session(), NS, "t", entity, (), [Location.parse(lent)]).add(())
    keys = {location_key(place, entity), borrowed_key(lent, entity)}
    marked: Edits = {}

    def mark(head: RegistryState) -> Steps[Edits | None]:
        nonlocal marked
        before, marked = marked, {key: {**(head.index.get(key) or {}), "later": 1} for key in keys}
        return immediately(None if before else marked)

    await change_registry(fixture.another().session(), "a later version", {}, mark)
    places = [Location.parse(place)], [Location.parse(f"{WAREHOUSE}/more")]
    await Reservation(fixture.another().session(), NS, "t", entity, *places).add(())
    index = (await fixture.another().session().state.head()).index
    assert {key: index.get(key) for key in keys} == marked
    assert (await entry(fixture)).borrowed == (lent, f"{WAREHOUSE}/more")


async def test_a_release_that_died_half_way_is_made_good_by_the_next(fixture: CatalogFixture) -> None:
    await fixture.table("t")
    await dead_writer(fixture, "dead")
    store = fixture.store
    assert isinstance(store, ScriptedStore)

    class WriterDied(Exception):
        """The writer's process."""

    for at in range(1, 14):
        store.rules = [Rule(Nth(at, requests), fails=WriterDied())]
        writer = CatalogFixture(store)
        with pytest.raises((WriterDied, CatalogError)):
            await writer.commit(data_in("never"))
    store.rules = []
    await fixture.commit(data_in("mine"))
    assert set(await added(fixture)) == {"mine"}


# Who is in the way, and folders of namespaces.


async def test_the_table_in_the_way_has_its_present_name_in_the_error(fixture: CatalogFixture) -> None:
    await fixture.namespace("other")
    await fixture.table("t", location=f"{WAREHOUSE}/mine")
    await rename_table(fixture.session(), (NS, "t"), (("other",), "renamed"))
    with pytest.raises(BadRequest, match=r"overlaps the location of table other\.renamed: "):
        await fixture.table("u", location=f"{WAREHOUSE}/mine/x")
    await drop_table(fixture.session(), ("other",), "renamed", purge=False)
    await undrop(fixture.session(), ("other",), "renamed")
    with pytest.raises(BadRequest, match=r"overlaps the location of table other\.renamed: "):
        await fixture.table("u", location=f"{WAREHOUSE}/mine/x")


async def test_a_table_that_a_transaction_made_is_named_as_well(fixture: CatalogFixture) -> None:
    await fixture.table("t")
    build = build_from_nothing("other")
    updates = build["updates"]
    assert isinstance(updates, list)
    placed: JsonObject = {
        **build,
        "updates": [*updates, {"action": "set-location", "location": f"{WAREHOUSE}/made"}],
    }
    await commit_transaction(fixture.session(), [(NS, "t", set_property("a", "1")), (NS, "made", placed)])
    with pytest.raises(BadRequest, match=r"overlaps the location of table db\.made: "):
        await fixture.table("u", location=f"{WAREHOUSE}/made")


async def test_a_hold_without_a_name_is_reported_by_its_entity(fixture: CatalogFixture) -> None:
    entity = (await fixture.table("t", location=f"{WAREHOUSE}/mine")).entity
    place = f"{WAREHOUSE}/mine"

    def old(head: RegistryState) -> Steps[Edits | None]:
        key = location_key(place, entity)
        known = head.index.get(key)
        renamed = known is not None and "name" in known
        edits: Edits = {key: {"entity": entity, "state": "live"}}
        return immediately(edits if renamed else None)

    await change_registry(fixture.session(), "as of old", {}, old)
    with pytest.raises(BadRequest, match=rf"overlaps the location of another table or view \(entity {entity}\): "):
        await fixture.table("u", location=place)


async def test_a_registration_names_who_is_in_its_way(fixture: CatalogFixture) -> None:
    made = await fixture.table("t")
    with pytest.raises(BadRequest, match=r"overlaps the location of table db\.t: "):
        await register_table(fixture.session(), NS, "r", made.metadata_location, overwrite=False)


@pytest.fixture
async def folders(fixture: CatalogFixture) -> CatalogFixture:
    """Namespaces with folders of their own: `db` and `deeper` by default, `own` elsewhere."""
    await create_namespace(fixture.session(), ("own",), {"location": f"{WAREHOUSE}/chosen/place"})
    await create_namespace(fixture.session(), ("deeper",), {})
    return fixture


async def made(fixture: CatalogFixture, namespace: str, location: str) -> None:
    body: JsonObject = {"name": "t", "schema": schema("x"), "location": location}
    await create_table(fixture.session(body), (namespace,), body)


@pytest.mark.parametrize(
    ("namespace", "place", "whose"),
    [
        ("db", "/db", "db"),
        ("db", "/db/", "db"),
        ("db", "/d%62", "db"),
        ("db", "", "db"),
        ("db", "/deeper", "deeper"),
        ("own", "/chosen/place", "own"),
        ("own", "/chosen", "own"),
    ],
)
async def test_no_table_is_made_in_place_of_a_namespaces_folder(
    folders: CatalogFixture, namespace: str, place: str, whose: str
) -> None:
    message = rf"is, or contains, the folder of namespace {whose}: no other table could be created there by default"
    with pytest.raises(BadRequest, match=message):
        await made(folders, namespace, f"{WAREHOUSE}{place}")
    sharing = CatalogFixture(folders.store, settings=Settings("wh", allow_location_overlap=True))
    await made(sharing, namespace, f"{WAREHOUSE}{place}")


async def test_no_table_is_moved_or_registered_in_place_of_a_namespaces_folder(folders: CatalogFixture) -> None:
    document = loads((await folders.table("t")).metadata)
    assert isinstance(document, dict)
    location = f"{WAREHOUSE}/deeper"
    message = "is, or contains, the folder of namespace deeper"
    with pytest.raises(BadRequest, match=message):
        await folders.commit({"requirements": [], "updates": [{"action": "set-location", "location": location}]})
    file = "wh/warehouse/deeper/metadata/00001-x.metadata.json"
    await folders.store.put(file, dumps({**document, "location": location}), ANY)
    with pytest.raises(BadRequest, match=message):
        await register_table(folders.session(), NS, "r", f"memory:///{file}", overwrite=False)


async def test_a_table_lies_inside_a_namespaces_folder_or_beside_it(folders: CatalogFixture) -> None:
    await made(folders, "db", f"{WAREHOUSE}/db/inside")
    await made(folders, "own", f"{WAREHOUSE}/own")
