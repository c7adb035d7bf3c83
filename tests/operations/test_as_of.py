"""The catalog shows of an earlier instant what it had then (docs/recovery.md#what-was-where)."""

import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace

import pytest

from arco_catalog.iceberg.errors import CatalogError, InternalError, NoSuchNamespace, NoSuchTable, NotFound, Refusal
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.as_of import HistoryCollected, Listing, registry_at, relation_at
from arco_catalog.operations.create import create_view
from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.governance import govern_relation
from arco_catalog.operations.history import history
from arco_catalog.operations.inspect import inspect_relation
from arco_catalog.operations.listing import Paging, list_namespaces, list_relations
from arco_catalog.operations.namespaces import create_namespace, drop_namespace
from arco_catalog.operations.register import register_table
from arco_catalog.operations.rename import rename_table
from arco_catalog.operations.transaction import commit_transaction
from arco_catalog.operations.undrop import undrop
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state import registry
from arco_catalog.state.index import Namespace
from arco_catalog.state.registry_floor import raise_registry_floor
from arco_catalog.state.spilling import Limits
from storage_backends import ANY
from storage_backends.memory import MemoryStore
from tests.support.fake_runtime import FakeRuntime
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.request_bodies import set_property, view_request

NAMES = ("a", "b", "c")
SHOWN = (
    "governance",
    "name",
    "type",
    "state",
    "entity",
    "uuid",
    "locations",
    "metadata_location",
    "metadata_ms",
    "base",
)
Seen = dict[str, object]


def a_catalog(spill: Limits | None = None) -> CatalogFixture:
    """A catalog in memory, whose clock is moved by hand."""
    clock = FakeRuntime()
    settings = Settings("wh") if spill is None else replace(Settings("wh"), spill=spill)
    return CatalogFixture(MemoryStore(now_ms=clock.now_ms), clock, settings)


async def report(reading: Awaitable[JsonObject]) -> object:
    """What a name means, as far as both kinds of looks tell; None where it means nothing."""
    try:
        shown = await reading
    except NoSuchTable:
        return None
    return {name: shown[name] for name in SHOWN}


async def seen_now(fixture: CatalogFixture) -> Seen:
    """What can be seen of the catalog: every name, every listing."""
    session = fixture.another().session
    seen: Seen = {name: await report(inspect_relation(session(), NS, name)) for name in NAMES}
    everything = Paging(None, None)
    listed: set[tuple[str, str]] = set()
    for kind in ("table", "view"):
        items = (await list_relations(session(), NS, kind, everything)).items
        listed |= {(kind, str(item["name"])) for item in items if isinstance(item, dict)}
    for each in (await list_namespaces(session(), NS, everything)).items:
        assert isinstance(each, list)
        listed.add(("namespace", str(each[-1])))
    return seen | {"listed": listed, "sequence": (await session().state.head()).sequence}


async def seen_at(fixture: CatalogFixture, at_ms: int) -> Seen:
    """Returns what the catalog shows of an instant."""
    session = fixture.another().session()
    seen: Seen = {name: await report(relation_at(session, NS, name, at_ms)) for name in NAMES}
    then = await registry_at(session, at_ms)
    listed = {each async for each in Listing(session, then, at_ms).level(NS)}
    return seen | {"listed": listed, "sequence": then.sequence}


@dataclass
class History:
    """A catalog to which drawn requests are made, and what was seen after each."""

    fixture: CatalogFixture
    chance: random.Random
    seen: list[tuple[int, Seen]] = field(default_factory=list)
    files: list[str] = field(default_factory=list)

    def request(self) -> Callable[[], Awaitable[object]]:
        """One request."""
        fixture, chance = self.fixture, self.chance
        name, other = chance.choice(NAMES), chance.choice(NAMES)
        value = str(chance.random())

        async def commit() -> None:
            self.files.append((await fixture.commit(set_property("p", value), name)).metadata_location)

        async def transaction() -> None:
            changes = [(NS, each, set_property("q", value)) for each in dict.fromkeys((name, other))]
            await commit_transaction(fixture.session({}, path="/transactions"), changes)

        async def register() -> None:
            await register_table(fixture.session(), NS, name, chance.choice(self.files), overwrite=False)

        async def inner() -> None:
            await create_namespace(fixture.session(), (*NS, value[:4]), {})

        async def no_inner() -> None:
            await drop_namespace(fixture.session(), (*NS, value[:4]))

        async def govern() -> None:
            await govern_relation(fixture.session(), NS, name, chance.choice(("table", "view")), {"arco.owner": value})

        requests: list[Callable[[], Awaitable[object]]] = [
            lambda: fixture.table(name),
            lambda: create_view(fixture.session(view_request(name), path="/views"), NS, view_request(name)),
            *([commit] * 4),
            transaction,
            govern,
            lambda: drop_table(fixture.session(), NS, name, purge=False),
            lambda: undrop(fixture.session(), NS, name),
            lambda: rename_table(fixture.session(), (NS, name), (NS, other)),
            *([register] if self.files else []),
            inner,
            no_inner,
        ]
        return chance.choice(requests)

    async def play(self, steps: int) -> None:
        """So many requests, some time apart; those that are refused change nothing."""
        await self.fixture.namespace(*NS)
        clock = self.fixture.runtime
        assert isinstance(clock, FakeRuntime)
        for _ in range(steps):
            with suppress(Refusal):
                await self.request()()
            self.seen.append((clock.ms, await seen_now(self.fixture)))
            clock.ms += self.chance.choice((1, 2, 900, 60_000, 86_400_000))


@pytest.mark.parametrize("seed", range(12))
async def test_every_instant_is_shown_as_it_was_seen(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "RECENT_COMMITS", 4)  # or one commit would tell all
    spill = Limits(embedded=1_500, segment=1_000, least=300) if seed % 2 else None
    lived = History(a_catalog(spill), random.Random(seed))
    await lived.play(40)

    for place, (at_ms, seen) in enumerate(lived.seen):
        assert await seen_at(lived.fixture, at_ms) == seen, f"step {place}"


async def test_between_two_changes_the_earlier_holds() -> None:
    fixture = a_catalog()
    await fixture.namespace(*NS)
    made = await fixture.table("a")
    clock = fixture.runtime
    assert isinstance(clock, FakeRuntime)
    made_ms = clock.ms
    clock.ms += 1_000
    await fixture.commit(set_property("p", "1"), "a")

    for at_ms in (made_ms, made_ms + 1, made_ms + 999):
        shown = await relation_at(fixture.session(), NS, "a", at_ms)
        assert shown["metadata_location"] == made.metadata_location
    after = await relation_at(fixture.session(), NS, "a", made_ms + 1_000)
    assert after["base"] == {"metadata_location": made.metadata_location, "metadata_ms": made_ms}
    assert after["principal"] == "tester"


async def test_before_anything_was_made_there_was_nothing() -> None:
    fixture = a_catalog()
    before_ms = fixture.runtime.now_ms() - 1
    await fixture.namespace(*NS)

    with pytest.raises(NotFound, match="The catalog had no commit yet"):
        await registry_at(fixture.session(), before_ms)


async def test_a_namespace_that_was_not_there_yet_is_not_listed() -> None:
    fixture = a_catalog()
    await fixture.namespace(*NS)
    session = fixture.session()
    now_ms = fixture.runtime.now_ms()
    listing = Listing(session, await registry_at(session, now_ms), now_ms)

    async def listed(namespace: Namespace) -> list[tuple[str, str]]:
        return [each async for each in listing.level(namespace)]

    assert await listed(()) == [("namespace", "db")]
    with pytest.raises(NoSuchNamespace):
        await listed(("later",))


async def test_history_ends_at_the_instant() -> None:
    fixture = a_catalog()
    await fixture.namespace(*NS)
    clock = fixture.runtime
    assert isinstance(clock, FakeRuntime)
    clock.ms += 10
    await fixture.table("a")
    then_ms = clock.ms
    clock.ms += 10
    await fixture.table("b")
    session = fixture.session()

    newest = await registry_at(session, then_ms)

    kinds = [operation["kind"] async for operation in history(session, newest=newest)]
    assert kinds == ["create-table", "create-namespace"]


@dataclass
class CollectedCase:
    """The objects that are removed from a store, and the expected error for the instant that they belong to."""

    folder: str
    message: str


@pytest.mark.parametrize(
    "gone",
    [
        CollectedCase("core/commits/", "old commits are deleted.*core/commits/"),
        CollectedCase("core/index/", "old segments of its index are deleted.*core/index/.* is gone"),
        CollectedCase("events/", "the receipt of .* was deleted by a cleanup"),
        CollectedCase("iceberg_pointers/", "has no pointer any more: it was dropped"),
    ],
    ids=lambda gone: gone.folder,
)
async def test_a_collected_time_is_reported_as_collected(gone: CollectedCase) -> None:
    fixture = a_catalog(Limits(embedded=600, segment=600, least=100))
    clock = fixture.runtime
    assert isinstance(clock, FakeRuntime)
    await fixture.namespace(*NS)
    for name in "abcdefgh":
        await fixture.table(name)
    then_ms = clock.ms
    clock.ms += 1_000
    await fixture.commit(set_property("p", "1"), "a")
    for name in "abcdefgh":
        await drop_table(fixture.session(), NS, name, purge=False)
    store = fixture.store
    assert isinstance(store, MemoryStore)
    await raise_registry_floor(fixture.session().state, 100)
    for key in store.keys(f"wh/_catalog/{gone.folder}"):
        await store.delete(key)

    with pytest.raises(HistoryCollected, match=gone.message) as refused:
        await relation_at(fixture.another().session(), NS, "a", then_ms)
    assert isinstance(refused.value, CatalogError)


@pytest.mark.parametrize("damage", [None, b"{", b'{"version": 1, "id": "another"}'])
async def test_a_lost_or_damaged_commit_is_not_reported_as_collected(damage: bytes | None) -> None:
    fixture = a_catalog()
    clock = fixture.runtime
    assert isinstance(clock, FakeRuntime)
    await fixture.namespace(*NS)
    await fixture.table("a")
    head, then_ms = await fixture.session().state.head(), clock.ms
    clock.ms += 1_000
    await fixture.table("b")
    key = fixture.catalog.paths.registry_commit(head.id or "")
    await fixture.store.delete(key)
    if damage is not None:
        await fixture.store.put(key, damage, ANY)

    with pytest.raises(InternalError, match=f"{key}, or one before it that it needs, is lost or corrupt: `arco fsck`"):
        await relation_at(fixture.another().session(), NS, "a", then_ms)


async def test_times_before_a_lost_list_of_commits_are_still_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A later commit lists the same ones."""
    monkeypatch.setattr(registry, "RECENT_COMMITS", 3)
    fixture = a_catalog()
    clock = fixture.runtime
    assert isinstance(clock, FakeRuntime)
    await fixture.namespace(*NS)
    await fixture.table("a")
    then_ms = clock.ms
    for name in "bcdef":
        clock.ms += 1_000
        await fixture.table(name)
    before = (await fixture.session().state.head()).before
    await fixture.store.delete(fixture.catalog.paths.registry_commit(before or ""))

    shown = await relation_at(fixture.another().session(), NS, "a", then_ms)

    assert shown["state"] == "live"


async def test_looking_back_writes_nothing() -> None:
    lived = History(a_catalog(), random.Random(1))
    await lived.play(10)
    store = lived.fixture.store
    assert isinstance(store, MemoryStore)
    before = {key: await store.get(key) for key in store.keys("")}

    await seen_at(lived.fixture, lived.seen[3][0])

    assert {key: await store.get(key) for key in store.keys("")} == before
