"""A drop is undone: the tombstone becomes the name again, as it was, if its files are there
(docs/design/registry.md#rule-5)."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from functools import partial

import pytest

from arco_catalog.iceberg.errors import (
    AlreadyExists,
    BadRequest,
    CommitFailed,
    CommitStateUnknown,
    NoSuchNamespace,
    NoSuchTable,
    NotFound,
)
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.operations.create import create_view
from arco_catalog.operations.drop import drop_table, drop_view
from arco_catalog.operations.inspect import inspect_relation
from arco_catalog.operations.load import load_table, load_view, require_view
from arco_catalog.operations.namespaces import drop_namespace
from arco_catalog.operations.receipts import receipts
from arco_catalog.operations.register import register_table
from arco_catalog.operations.rename import rename_table
from arco_catalog.operations.undrop import undrop
from arco_catalog.planning import borrowing
from arco_catalog.planning.answers import Answer, Document
from arco_catalog.protocol import evidence, group_commit
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.evidence import mark_dropped
from arco_catalog.protocol.group_commit import GroupCommitter
from arco_catalog.protocol.internal_commits import change_registry
from arco_catalog.state.entries import newest_tombstone
from arco_catalog.state.index import Edits, location_key, released_key, tombstones_of
from arco_catalog.state.needs import immediately
from arco_catalog.state.registry import RegistryState
from storage_backends import ABSENT
from storage_backends.memory import MemoryStore
from tests.operations.test_group_commit import until
from tests.support.fake_runtime import FakeRuntime
from tests.support.scripted_store import Rule, ScriptedStore, put
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.request_bodies import set_property, view_request

PLACE = "memory:///wh/warehouse/place"


class SlowedStore(ScriptedStore):
    """Holds the first slot of requests back, by their path."""

    def __init__(self) -> None:
        super().__init__()
        self.held: dict[str, asyncio.Event] = {}
        self.arrived: set[str] = set()

    def start(
        self, fixture: CatalogFixture, path: str, request: Callable[[Session], Awaitable[Answer]]
    ) -> asyncio.Task[Answer]:
        """A request whose claim is held back until its event is set."""
        self.held[path] = asyncio.Event()

        async def hold() -> None:
            self.arrived.add(path)
            await self.held[path].wait()

        self.rules.append(Rule(put("/iceberg_idempotency/", f'"path":"{path}"'.encode()), first=hold))

        async def run() -> Answer:
            return await request(fixture.session(key=fixture.key(), path=path))

        return asyncio.create_task(run())

    async def arrives(self, path: str) -> None:
        await until(lambda: path in self.arrived)


@pytest.fixture
async def fixture(clock: FakeRuntime) -> CatalogFixture:
    """A catalog in memory, with the namespace `db`, whose clock is moved by hand."""
    made = CatalogFixture(MemoryStore(clock.now_ms), clock)
    await made.namespace("db")
    return made


@pytest.fixture
def clock() -> FakeRuntime:
    return FakeRuntime()


async def drop(fixture: CatalogFixture, name: str = "t", *, purge: bool = False) -> None:
    """Drops a table, a millisecond after the one before: the clock decides which drop was last."""
    await fixture.runtime.sleep(0.001)
    await drop_table(fixture.session(), NS, name, purge=purge)


async def entry(fixture: CatalogFixture, name: str = "t") -> object:
    """Returns the registry's entry of a name."""
    head = await fixture.another().session().state.head()
    return head.index.get(f"relation\ndb\n{name}")


async def test_a_table_comes_back_as_it_was(fixture: CatalogFixture) -> None:
    await fixture.table("t")
    last = await fixture.commit(set_property("a", "1"))
    before, history = await entry(fixture), await receipts(fixture.session(), NS, "t")
    index = (await fixture.session().state.head()).index
    await drop(fixture)

    assert await undrop(fixture.another().session(), NS, "t") == Document(204)

    loaded = await load_table(fixture.another().session(), NS, "t")
    assert (loaded.entity, loaded.metadata_location, loaded.metadata) == (
        last.entity,
        last.metadata_location,
        last.metadata,
    )
    assert await entry(fixture) == before
    assert await receipts(fixture.session(), NS, "t") == history
    assert (await fixture.another().session().state.head()).index.to_json() == index.to_json()


async def test_the_mark_of_the_drop_is_ignored_and_goes_with_the_next_commit(fixture: CatalogFixture) -> None:
    made = await fixture.table("t")
    await drop(fixture)
    await undrop(fixture.session(), NS, "t")
    marked = await fixture.session().state.pointer(made.entity)
    assert marked is not None
    assert marked.dropped_by is not None

    await fixture.another().commit(set_property("a", "1"))
    await fixture.commit(set_property("b", "1"))

    pointer = await fixture.session().state.pointer(made.entity)
    assert pointer is not None
    assert pointer.dropped_by is None
    assert len(await receipts(fixture.session(), NS, "t")) == 3


async def test_a_mark_that_comes_late_does_no_harm(fixture: CatalogFixture) -> None:
    made = await fixture.table("t")
    await drop(fixture)
    await undrop(fixture.session(), NS, "t")

    await mark_dropped(fixture.session(), made.entity, "the drop, from a dropper that slept")

    await fixture.commit(set_property("a", "1"))
    assert (await load_table(fixture.another().session(), NS, "t")).entity == made.entity


async def test_a_table_can_be_dropped_and_brought_back_again_and_again(fixture: CatalogFixture) -> None:
    made = await fixture.table("t")
    for _ in range(3):
        await drop(fixture)
        await undrop(fixture.session(), NS, "t")

    assert (await load_table(fixture.another().session(), NS, "t")).entity == made.entity
    await drop(fixture)
    with pytest.raises(NoSuchTable):
        await load_table(fixture.another().session(), NS, "t")


async def test_of_several_the_one_that_was_dropped_last_comes_back(fixture: CatalogFixture) -> None:
    await fixture.table("t")
    await drop(fixture)
    second = await fixture.table("t")
    await drop(fixture)

    await undrop(fixture.session(), NS, "t")

    assert (await load_table(fixture.session(), NS, "t")).entity == second.entity
    head = await fixture.session().state.head()
    assert len(list(head.index.scan(tombstones_of(NS, "t")))) == 1


async def test_the_registry_decides_which_was_dropped_last_and_not_the_clock(
    fixture: CatalogFixture, clock: FakeRuntime
) -> None:
    await fixture.table("t")
    await drop(fixture)
    clock.ms -= 3_600_000
    second = await fixture.table("t")
    await drop(fixture)

    await undrop(fixture.session(), NS, "t")

    assert (await load_table(fixture.session(), NS, "t")).entity == second.entity


def more_wait(group_committer: GroupCommitter, before: int) -> bool:
    return len(group_committer._queue) > before


async def test_two_that_one_commit_dropped_under_a_name_come_back_in_the_order_of_their_drops(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A drop, a rename to the name that it left, and a drop of that: requests beside each other, each of which was
    planned when it could be made alone, and all of which become one registry commit."""
    monkeypatch.setattr(group_commit, "LOCK_TIMEOUT_SECONDS", 60.0)
    slow = SlowedStore()
    fixture, other = CatalogFixture(slow), CatalogFixture(slow)
    await fixture.namespace("db")
    first = await fixture.table("s")
    second = await fixture.table("t")
    group_committer = fixture.catalog.group_committer
    assert group_committer is not None

    async with group_committer.lock(lambda: 60.0):
        drop_of_second = slow.start(fixture, "/c", lambda session: drop_table(session, NS, "t", purge=False))
        await slow.arrives("/c")
        await rename_table(other.session(), (NS, "t"), (NS, "u"))
        rename = slow.start(fixture, "/d", lambda session: rename_table(session, (NS, "u"), (NS, "t")))
        await slow.arrives("/d")
        await rename_table(other.session(), (NS, "s"), (NS, "t"))
        drop_of_first = slow.start(fixture, "/b", lambda session: drop_table(session, NS, "t", purge=False))
        for path in ("/b", "/d", "/c"):
            await slow.arrives(path)
            before = len(group_committer._queue)
            slow.held[path].set()
            await until(partial(more_wait, group_committer, before))
    await asyncio.gather(drop_of_first, rename, drop_of_second)
    tombstones = [
        tombstone for _, tombstone in (await fixture.session().state.head()).index.scan(tombstones_of(NS, "t"))
    ]
    assert len({tombstone["sequence"] for tombstone in tombstones}) == 1
    assert {tombstone["entity"]: tombstone["place"] for tombstone in tombstones} == {first.entity: 0, second.entity: 2}

    assert (await inspect_relation(fixture.session(), NS, "t"))["entity"] == second.entity
    await undrop(fixture.session(), NS, "t")
    assert (await load_table(fixture.session(), NS, "t")).entity == second.entity
    await rename_table(fixture.session(), (NS, "t"), (NS, "newest"))
    await undrop(fixture.session(), NS, "t")
    assert (await load_table(fixture.session(), NS, "t")).entity == first.entity
    entries = [await entry(fixture, name) for name in ("t", "newest")]
    assert all(isinstance(each, dict) and "place" not in each for each in entries)


def tombstone(entity: str, sequence: int, dropped_ms: int, place: int | None = None) -> JsonObject:
    known: JsonObject = {} if place is None else {"place": place}
    return {"entity": entity, "sequence": sequence, "dropped_ms": dropped_ms, **known}


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        (tombstone("B", 7, 9_000), tombstone("A", 8, 1_000)),
        (tombstone("B", 7, 9_000, 1), tombstone("A", 7, 1_000, 2)),
        (tombstone("B", 7, 9_000), tombstone("A", 8, 1_000, 0)),
        (tombstone("B", 7, 1_000), tombstone("A", 7, 1_001)),
        (tombstone("A", 7, 1_000), tombstone("B", 7, 1_000)),
    ],
    ids=["sequence", "place", "sequence, one without place", "clock, both without place", "entity"],
)
def test_the_newest_tombstone_is_found_by_sequence_then_place_and_in_old_stores_by_time(
    older: JsonObject, newer: JsonObject
) -> None:
    assert newest_tombstone([older, newer]) == newest_tombstone([newer, older]) == newer
    assert newest_tombstone([]) is None


async def test_a_name_that_is_taken_refuses_it(fixture: CatalogFixture) -> None:
    await fixture.table("t")
    await drop(fixture)
    await fixture.table("t")
    with pytest.raises(AlreadyExists, match=r"^Table already exists: db\.t$"):
        await undrop(fixture.session(), NS, "t")
    await drop(fixture)
    await create_view(fixture.session(), NS, view_request("t"))
    with pytest.raises(AlreadyExists, match=r"^View with same name already exists: db\.t$"):
        await undrop(fixture.session(), NS, "t")


async def test_a_location_that_is_taken_refuses_it(fixture: CatalogFixture) -> None:
    place = "memory:///wh/warehouse/shared"
    await fixture.table("t", location=place)
    await drop(fixture)
    await fixture.table("u", location=f"{place}/inner")

    with pytest.raises(BadRequest, match=r"overlaps the location of table db\.u: "):
        await undrop(fixture.session(), NS, "t")

    await drop(fixture, "u")
    await undrop(fixture.session(), NS, "t")
    with pytest.raises(BadRequest, match="overlaps"):
        await undrop(fixture.session(), NS, "u")


@pytest.mark.parametrize("folder", ["a%3Fb", "a%23b", "a%25b", "a%E4b"])
async def test_a_place_whose_name_is_escaped_can_be_added_to_dropped_and_brought_back(
    fixture: CatalogFixture, folder: str
) -> None:
    place = f"memory:///wh/warehouse/{folder}"
    await fixture.table("t", location=place)
    await fixture.commit(set_property("write.data.path", f"{place}/data"))
    await fixture.commit(set_property("write.data.path", "memory:///wh/warehouse/elsewhere"))
    await drop(fixture)

    await undrop(fixture.session(), NS, "t")

    with pytest.raises(BadRequest, match="overlaps"):
        await fixture.table("u", location=f"{place}/inner")


async def test_a_drop_that_requested_a_purge_is_undone_like_any_other(fixture: CatalogFixture) -> None:
    made = await fixture.table("t")
    before = await entry(fixture)
    await drop(fixture, purge=True)
    [(_, tombstone)] = list((await fixture.session().state.head()).index.scan(tombstones_of(NS, "t")))
    assert (tombstone["state"], tombstone["purge_requested"]) == ("dropped", True)

    await undrop(fixture.session(), NS, "t")

    assert (await load_table(fixture.session(), NS, "t")).entity == made.entity
    assert await entry(fixture) == before


async def with_stone_of_a_purge(fixture: CatalogFixture, **more: str) -> None:
    """Drops `t`, and gives the tombstone and the hold the form that an earlier version wrote at a purge."""
    made = await fixture.table("t", location=PLACE)
    await drop(fixture)
    head = await fixture.session().state.head()
    [(key, tombstone)] = list(head.index.scan(tombstones_of(NS, "t")))
    old = {name: value for name, value in tombstone.items() if name != "purge_requested"}
    hold: JsonObject = {"entity": made.entity, "state": "purging", **more}
    edits: Edits = {
        key: {**old, "state": "purging", **more},
        location_key(PLACE, made.entity): hold,
        released_key(PLACE, made.entity): None,
    }
    once = Once(edits)
    await change_registry(fixture.session(), "as of old", {}, lambda head: immediately(once.edit(head)))


class Once:
    """An edit that is made once."""

    def __init__(self, edits: Edits) -> None:
        self.edits: Edits | None = edits

    def edit(self, _: RegistryState) -> Edits | None:
        edits, self.edits = self.edits, None
        return edits


async def test_a_purge_that_an_earlier_version_recorded_is_a_plain_drop(fixture: CatalogFixture) -> None:
    await with_stone_of_a_purge(fixture)
    assert (await inspect_relation(fixture.session(), NS, "t"))["state"] == "dropped"
    await fixture.table("u", location=PLACE)
    with pytest.raises(BadRequest, match="overlaps"):
        await undrop(fixture.another().session(), NS, "t")
    await drop(fixture, "u")

    await undrop(fixture.another().session(), NS, "t")

    with pytest.raises(BadRequest, match=r"overlaps the location of table db\.t: "):
        await fixture.table("u", location=PLACE)
    await drop(fixture)
    await fixture.table("u", location=PLACE)


async def test_a_purge_that_has_begun_is_not_undone(fixture: CatalogFixture) -> None:
    await with_stone_of_a_purge(fixture, task="01J00000000000000000000000")
    with pytest.raises(CommitFailed, match=r"db\.t cannot be restored: a purge of it has begun"):
        await undrop(fixture.session(), NS, "t")
    with pytest.raises(BadRequest, match="overlaps"):
        await fixture.table("u", location=PLACE)


async def test_undrop_takes_the_locations_back(fixture: CatalogFixture) -> None:
    await fixture.table("t", location=PLACE)
    await fixture.commit(set_property("write.data.path", f"{PLACE}-data"))
    await drop(fixture)

    await undrop(fixture.session(), NS, "t")

    for place in (PLACE, f"{PLACE}/inner", f"{PLACE}-data"):
        with pytest.raises(BadRequest, match="overlaps"):
            await fixture.table("u", location=place)


async def test_a_table_whose_metadata_file_is_gone_does_not_come_back(fixture: CatalogFixture) -> None:
    made = await fixture.table("t")
    await drop(fixture)
    await fixture.store.delete(made.metadata_location.removeprefix("memory:///"))

    for force in (False, True):
        with pytest.raises(NotFound, match=re.escape(made.metadata_location)):
            await undrop(fixture.another().session(), NS, "t", force=force)
    with pytest.raises(NoSuchTable):
        await load_table(fixture.session(), NS, "t")


def appended(*manifest_lists: str) -> JsonObject:
    """A commit that adds a snapshot for each manifest list, each the current one for a while."""
    updates: list[JsonValue] = []
    for number, place in enumerate(manifest_lists, 1):
        snapshot: JsonObject = {
            "snapshot-id": number,
            "sequence-number": number,
            "timestamp-ms": 1_767_225_600_000 + number,
            "manifest-list": place,
            "summary": {"operation": "append"},
            "schema-id": 0,
        }
        if number > 1:
            snapshot["parent-snapshot-id"] = number - 1
        ref: JsonObject = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": number}
        updates += [{"action": "add-snapshot", "snapshot": snapshot}, ref]
    return {"requirements": [], "updates": updates}


async def test_a_table_that_its_engine_purged_does_not_come_back_whole(fixture: CatalogFixture) -> None:
    """Spark deletes the files of `DROP TABLE ... PURGE` itself, and sends a plain drop."""
    folder = "memory:///wh/warehouse/lists"
    lists = [f"{folder}/snap-{number}.avro" for number in range(1, 40)]
    for place in lists:
        await fixture.store.put(place.removeprefix("memory:///"), b"list", ABSENT)
    await fixture.table("t")
    await fixture.commit(appended(*lists))
    await drop(fixture)
    await undrop(fixture.session(), NS, "t")
    await drop(fixture)
    await fixture.store.delete(lists[30].removeprefix("memory:///"))

    with pytest.raises(NotFound, match=rf"the manifest list {re.escape(lists[30])} is missing"):
        await undrop(fixture.session(), NS, "t")

    await undrop(fixture.session(), NS, "t", force=True)
    await load_table(fixture.session(), NS, "t")


async def test_files_that_the_catalog_cannot_see_are_not_promised(
    fixture: CatalogFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fixture.table("t")
    with monkeypatch.context() as patch:  # an earlier version took any list
        patch.setattr(borrowing, "check_allowed", lambda allowed, folders: None)
        await fixture.commit(appended("s3://elsewhere/lists/snap-1.avro"))
    await drop(fixture)
    with pytest.raises(BadRequest, match=r"whether s3://elsewhere/lists/snap-1\.avro still exists cannot be checked"):
        await undrop(fixture.session(), NS, "t")
    await undrop(fixture.session(), NS, "t", force=True)


async def test_what_was_never_dropped_cannot_come_back(fixture: CatalogFixture) -> None:
    with pytest.raises(NoSuchTable, match=r"No dropped table or view has the name db\.t"):
        await undrop(fixture.session(), NS, "t")
    with pytest.raises(NoSuchNamespace):
        await undrop(fixture.session(), ("nowhere",), "t")
    await fixture.table("t")
    await drop(fixture)
    await drop_namespace(fixture.session(), NS)
    with pytest.raises(NoSuchNamespace):
        await undrop(fixture.session(), NS, "t")


async def test_it_comes_back_under_the_name_that_it_had_last(fixture: CatalogFixture) -> None:
    await fixture.table("t")
    await rename_table(fixture.session(), (NS, "t"), (NS, "u"))
    await drop(fixture, "u")
    with pytest.raises(NoSuchTable):
        await undrop(fixture.session(), NS, "t")
    assert await undrop(fixture.session(), NS, "u") == Document(204)


async def test_what_a_registration_buried_comes_back(fixture: CatalogFixture) -> None:
    await fixture.table("old")
    file = (await load_table(fixture.session(), NS, "old")).metadata_location
    await drop(fixture, "old")
    tombstone = await fixture.table("t")
    await register_table(fixture.session(), NS, "t", file, overwrite=True)
    await drop(fixture)
    tombstones = [
        tombstone for _, tombstone in (await fixture.session().state.head()).index.scan(tombstones_of(NS, "t"))
    ]
    assert len(tombstones) == 2

    await rename_after_undrop(fixture)

    await undrop(fixture.session(), NS, "t")
    assert (await load_table(fixture.session(), NS, "t")).entity == tombstone.entity


async def rename_after_undrop(fixture: CatalogFixture) -> None:
    """Brings back the newest of the name, and moves it out of the way."""
    await undrop(fixture.session(), NS, "t")
    await rename_table(fixture.session(), (NS, "t"), (NS, "newest"))


async def test_what_comes_back_takes_its_locations_back(fixture: CatalogFixture) -> None:
    place = "memory:///wh/warehouse/explicit"
    await fixture.table("t", location=place)
    await fixture.commit(set_property("write.data.path", "memory:///wh/warehouse/data"))
    await drop(fixture)
    await undrop(fixture.session(), NS, "t")

    for inside in (place, f"{place}/inner", "memory:///wh/warehouse/data"):
        with pytest.raises(BadRequest, match="overlaps"):
            await fixture.another().table("u", location=inside)


async def test_a_drop_after_an_undrop_leaves_a_mark_of_its_own(fixture: CatalogFixture) -> None:
    """The mark of the first drop fences nothing that began after the undrop."""
    made = await fixture.table("t")
    await drop(fixture)
    before = await fixture.session().state.pointer(made.entity)
    await undrop(fixture.session(), NS, "t")
    await drop(fixture)

    pointer = await fixture.session().state.pointer(made.entity)
    assert before is not None
    assert pointer is not None
    assert pointer.sequence == before.sequence + 1
    (tombstone,) = [
        tombstone for _, tombstone in (await fixture.session().state.head()).index.scan(tombstones_of(NS, "t"))
    ]
    assert pointer.dropped_by == tombstone["operation"] != before.dropped_by


async def test_a_commit_that_slept_through_drop_undrop_and_drop_does_not_land(clock: FakeRuntime) -> None:
    """It was planned between the undrop and the second drop: only the mark of that one stops it."""
    slow = ScriptedStore()
    fixture = CatalogFixture(slow, clock)
    await fixture.namespace("db")
    made = await fixture.table("t")
    await drop(fixture)
    await undrop(fixture.session(), NS, "t")

    async def drop_again() -> None:
        await drop_table(fixture.another().session(), NS, "t", purge=False)

    slow.rules = [Rule(put("/iceberg_pointers/"), first=drop_again, times=1)]
    with pytest.raises(NoSuchTable):
        await fixture.another().commit(set_property("a", "1"))

    pointer = await fixture.another().session().state.pointer(made.entity)
    assert pointer is not None
    assert pointer.metadata.location == made.metadata_location


async def test_a_drop_that_is_answered_on_evidence_leaves_its_mark_first(fixture: CatalogFixture) -> None:
    made = await fixture.table("t")
    key = fixture.key()

    async def die(*_: object) -> None:
        raise CommitStateUnknown("died", "internal")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evidence, "mark_dropped", die)
        with pytest.raises(CommitStateUnknown):
            await drop_table(fixture.another().session(key=key), NS, "t", purge=False)
    unmarked = await fixture.another().session().state.pointer(made.entity)
    assert unmarked is not None
    assert unmarked.dropped_by is None

    assert await drop_table(fixture.another().session(key=key), NS, "t", purge=False) == Document(204)

    marked = await fixture.another().session().state.pointer(made.entity)
    assert marked is not None
    assert marked.dropped_by is not None


async def test_a_key_replays_it(fixture: CatalogFixture) -> None:
    await fixture.table("t")
    await drop(fixture)
    key = fixture.key()

    first = await undrop(fixture.session(key=key), NS, "t")
    await drop(fixture)
    again = await undrop(fixture.another().session(key=key), NS, "t")

    assert first == again == Document(204)
    with pytest.raises(NoSuchTable):
        await load_table(fixture.session(), NS, "t")


async def test_views_come_back_too(fixture: CatalogFixture) -> None:
    body = view_request()
    made = await create_view(fixture.session(body), NS, body)
    await drop_view(fixture.session(), NS, "v")

    await undrop(fixture.session(), NS, "v")

    await require_view(fixture.another().session(), NS, "v")
    assert getattr(made, "metadata", None) == (await load_view(fixture.session(), NS, "v")).metadata
