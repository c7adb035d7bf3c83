"""What an operation on names costs grows as the registry and the request do, and no faster: in steps, and in calls."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

import pytest

from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.history import history
from arco_catalog.operations.inspect import inspect_relation
from arco_catalog.operations.listing import ListingPage, Paging, list_namespaces, list_relations
from arco_catalog.operations.load import load_table
from arco_catalog.operations.namespaces import create_namespace, drop_namespace, load_namespace, update_properties
from arco_catalog.operations.receipts import entities_named, receipts_of
from arco_catalog.operations.rename import rename_table
from arco_catalog.operations.transaction import TableChange, commit_transaction
from arco_catalog.operations.undrop import undrop
from arco_catalog.planning.reserved_locations import locations_to_reserve
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state import registry
from arco_catalog.state.entries import RelationEntry
from arco_catalog.state.holds import location_holds
from arco_catalog.state.index import namespace_key, relation_key, tombstone_key
from arco_catalog.state.marker import Slot, WriteSet
from arco_catalog.state.registry import Operation
from arco_catalog.state.runtime import ulid_of
from arco_catalog.state.spilling import Limits
from arco_catalog.upkeep.reconcile import reconcile
from storage_backends.memory import MemoryStore
from tests.iceberg.counted import assert_linear, steps_of, steps_of_task
from tests.state.counting_index import count_indexes, keyed
from tests.support.fake_runtime import FakeRuntime
from tests.support.registry_builder import packed
from tests.support.steps import result
from tools.support.catalog_fixture import NS, CatalogFixture, CountingFixture
from tools.support.request_bodies import schema, set_property
from tools.support.wrapped_stores import CountingStore

SIZES = (20, 40, 80)
EMBEDDED = Limits(embedded=1 << 30, segment=1 << 30, least=1 << 30)
SPILLED = Limits(embedded=2_000, segment=1_500, least=2_000)


@pytest.fixture(autouse=True)
def counting(monkeypatch: pytest.MonkeyPatch) -> None:
    count_indexes(monkeypatch)


def desk_with(limits: Limits = EMBEDDED) -> CountingFixture:
    clock = FakeRuntime()
    store = CountingStore(MemoryStore(now_ms=clock.now_ms))
    return CountingFixture(store, clock, Settings("wh", spill=limits, max_transaction_tables=1_000))


def entity(number: int) -> str:
    return ulid_of(1, number.to_bytes(10, "big"))


def big_registry(size: int) -> dict[str, JsonObject | None]:
    """`size` of everything: namespaces, names in one, namespaces in that, tombstones of one name, and holds of each
    table, one of which has `size` of them."""
    entries: dict[str, JsonObject | None] = {}
    for number in range(size):
        place = f"memory:///wh/warehouse/db/t{number}-{entity(number)}"
        many = [f"memory:///wh/warehouse/many/{each}" for each in range(size)] if number == 0 else []
        entry = RelationEntry.new(kind="table", entity=entity(number), uuid=None, locations=[place, *many])
        namespace: JsonObject = {
            "entity": entity(number),
            "value": "v",
            "location": f"memory:///wh/warehouse/n{number}",
        }
        entries[namespace_key((f"n{number:04}",))] = namespace
        entries[namespace_key((*NS, f"n{number:04}"))] = namespace
        entries[relation_key(NS, f"t{number:04}")] = entry.json
        entries |= location_holds(entity(number), [place, *many])
        tombstone = entry.tombstone(
            namespace=NS,
            namespace_entity=None,
            name="gone",
            operation="o",
            sequence=number,
            place=0,
            at_ms=1,
            purge=False,
        )
        entries[tombstone_key(NS, "gone", entity(number))] = {**tombstone, "entity": entity(number)}
    return keyed(entries)


async def grown(fixture: CatalogFixture, entries: Mapping[str, JsonObject | None]) -> None:
    """Makes one commit after which these entries are there too, in segments where they are more than the limits say."""
    state, runtime = fixture.session().state, fixture.runtime
    head = await state.head()
    every = {key: entry for key, entry in {**head.index.edits, **entries}.items() if entry is not None}
    index, segments = packed(every, fixture.settings.spill, runtime)
    for segment in segments:
        await state.write_segment(segment)
    shown = replace(head, index=index.with_segments(state.loaded_segment))
    made = result(state.successor(shown, {}, [Operation(runtime.ulid(), "test", {}, None)]))
    await state.create(state.paths.registry_commit(str(made.id)), made.body)
    await state.move_head(made, head.version)


async def big_catalog(size: int, limits: Limits) -> CountingFixture:
    """A registry that is large in every dimension, and in it two tables that are whole, one of them dropped."""
    fixture = desk_with(EMBEDDED)
    await fixture.namespace("db")
    await fixture.namespace("empty")
    await fixture.table("t")
    await fixture.table("was")
    await drop_table(fixture.session(), NS, "was", purge=False)
    packing = CountingFixture(fixture.store, fixture.runtime, replace(fixture.settings, spill=limits))
    await grown(packing, big_registry(size))
    await load_table(packing.session(), NS, "t")
    return packing


async def page(fixture: CatalogFixture) -> None:
    first = await list_relations(fixture.session(), NS, "table", Paging("", 10))
    await list_relations(fixture.session(), NS, "table", Paging(first.next_page_token, 10))


OPERATIONS: dict[str, Callable[[CatalogFixture], Awaitable[object]]] = {
    "create a namespace": lambda fixture: create_namespace(fixture.session(), ("n0001", "new"), {}),
    "load a namespace": lambda fixture: load_namespace(fixture.session(), NS),
    "change a namespace": lambda fixture: update_properties(fixture.session(), NS, [], {"a": "b"}),
    "drop a namespace": lambda fixture: drop_namespace(fixture.session(), ("empty",)),
    "list namespaces": lambda fixture: list_namespaces(fixture.session(), (), Paging(None, None)),
    "list tables": lambda fixture: list_relations(fixture.session(), NS, "table", Paging(None, None)),
    "two pages": page,
    "create a table": lambda fixture: fixture.table("new"),
    "create a table somewhere": lambda fixture: fixture.table("new", location="memory:///wh/warehouse/a/b/c/d"),
    "load a table": lambda fixture: load_table(fixture.session(), NS, "t"),
    "commit": lambda fixture: fixture.commit(set_property("a", "b")),
    "add a location": lambda fixture: fixture.commit(
        {"requirements": [], "updates": [{"action": "set-location", "location": "memory:///wh/warehouse/elsewhere"}]}
    ),
    "rename a table": lambda fixture: rename_table(fixture.session(), (NS, "t"), (NS, "new")),
    "rename a table of many locations": lambda fixture: rename_table(fixture.session(), (NS, "t0000"), (NS, "new")),
    "drop a table": lambda fixture: drop_table(fixture.session(), NS, "t", purge=False),
    "undrop a table": lambda fixture: undrop(fixture.session(), NS, "was"),
    "look for what was dropped": lambda fixture: entities_named(fixture.session(), NS, "gone"),
    "show": lambda fixture: inspect_relation(fixture.session(), NS, "t"),
    "reconcile": lambda fixture: reconcile(fixture.session()),
}


@pytest.mark.parametrize("limits", [EMBEDDED, SPILLED], ids=["embedded", "spilled"])
@pytest.mark.parametrize("operation", OPERATIONS)
async def test_an_operation_costs_what_the_registry_is_large(operation: str, limits: Limits) -> None:
    steps: list[int] = []
    calls: list[int] = []
    # A commit flushes one segment more for each sixteen edits: few of them are no measure.
    for size in (40, 80, 160) if operation == "rename a table of many locations" else SIZES:
        fixture = await big_catalog(size, limits)
        with fixture.store.measure() as measured:
            steps.append(await steps_of_task(OPERATIONS[operation](fixture)))
        calls.append(measured.calls)

    assert_linear(steps, operation)
    if limits is EMBEDDED:
        assert len({*calls}) == 1, calls
    else:
        assert calls[2] - calls[1] <= 2 * max(calls[1] - calls[0], 1) + 1, calls


def pages_of(kind: str) -> Callable[[CatalogFixture, Paging], Awaitable[ListingPage]]:
    if kind == "namespaces":
        return lambda fixture, paging: list_namespaces(fixture.session(), (), paging)
    return lambda fixture, paging: list_relations(fixture.session(), NS, "table", paging)


@pytest.mark.parametrize("limits", [EMBEDDED, SPILLED], ids=["embedded", "spilled"])
@pytest.mark.parametrize("kind", ["namespaces", "tables"])
async def test_a_whole_listing_costs_what_it_is_long_and_each_page_the_same(kind: str, limits: Limits) -> None:
    """Beyond looking for intents among the edits, which each page does."""
    listing, whole, calls = pages_of(kind), list[int](), list[int]()
    for size in SIZES:
        fixture = await big_catalog(size, limits)
        last: list[ListingPage] = []

        async def walk(fixture: CatalogFixture = fixture, last: list[ListingPage] = last) -> None:
            token: str | None = ""
            for _ in range(1_000):
                last.append(await listing(fixture, Paging(token, max(4, size // 10) if limits is EMBEDDED else 4)))  # noqa: B023
                token = last[-1].next_page_token
                if token is None:
                    return
            raise AssertionError("a listing without an end")

        with fixture.store.measure() as measured:
            whole.append(await steps_of_task(walk()))
        calls.append(measured.calls)
        assert sum(len(each.items) for each in last) >= size
    assert_linear(whole, "a whole listing")
    assert calls[2] - calls[1] <= 2.4 * (calls[1] - calls[0]) + 2, calls


def columns(number: int) -> TableChange:
    """A table that a transaction creates."""
    updates: list[JsonValue] = [
        {"action": "add-schema", "schema": schema("x")},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"fields": []}},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
    ]
    return NS, f"new{number:04}", {"requirements": [{"type": "assert-create"}], "updates": updates}


@pytest.mark.parametrize("creating", [True, False], ids=["creating", "changing"])
async def test_a_transaction_costs_what_its_tables_and_the_registry_are(creating: bool) -> None:
    steps, calls = list[int](), list[int]()
    for size in (5, 10, 20):
        fixture = desk_with()
        await fixture.namespace("db")
        for number in range(size):
            await fixture.table(f"t{number}")
        await grown(fixture, big_registry(4 * size))
        changes = [columns(n) if creating else (NS, f"t{n}", set_property("a", "b")) for n in range(size)]
        with fixture.store.measure() as measured:
            steps.append(await steps_of_task(commit_transaction(fixture.session(), changes)))
        calls.append(measured.calls)
    assert_linear(steps, "a transaction")
    assert calls[2] - calls[1] <= 2 * (calls[1] - calls[0]), calls


@pytest.mark.parametrize("held", [1, 2], ids=["one table", "one each"])
async def test_a_takeover_costs_what_its_marker_is_long(held: int) -> None:
    """Of slots that name one table, or one each: a name may mean another table with every try."""
    steps, calls = list[int](), list[int]()
    for size in (8, 16, 32):
        fixture = desk_with()
        await fixture.namespace("db")
        tables = [(await fixture.table(f"t{number}")).entity for number in range(size if held > 1 else 1)]
        key, body = fixture.key(), set_property("a", "b")
        session = fixture.session(body, key=key, path="/commit/t0")
        marker = session.marker()
        assert marker is not None
        for number in range(size):
            identity = marker.identity.to_json() if number == 0 else {}
            binding = WriteSet(pointers={tables[number % len(tables)]: 1})
            assert await marker.put(Slot(fixture.runtime.ulid(), binding, identity, None))
        assert isinstance(fixture.runtime, FakeRuntime)
        fixture.runtime.ms += fixture.settings.in_progress_ms + 1
        with fixture.store.measure() as measured:
            steps.append(await steps_of_task(fixture.commit(body, "t0", key=key)))
        calls.append(measured.calls)
    assert_linear(steps, "a takeover")
    assert calls[2] - calls[1] <= 2 * (calls[1] - calls[0]), calls


async def test_receipts_and_history_cost_what_they_are_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "RECENT_COMMITS", 4)
    report: list[list[int]] = []
    for size in (10, 20, 40):
        fixture = desk_with()
        await fixture.namespace("db")
        made = await fixture.table("t", properties={"write.metadata.previous-versions-max": "1"})
        for number in range(size):
            await fixture.commit(set_property("a", str(number)))
            await update_properties(fixture.session(), NS, [], {"a": str(number)})

        async def everything(fixture: CatalogFixture = fixture) -> None:
            assert len([each async for each in history(fixture.session())]) >= size  # noqa: B023

        async def receipts(fixture: CatalogFixture = fixture, entity: str = made.entity) -> None:
            assert len(await receipts_of(fixture.session(), entity)) == size + 1  # noqa: B023

        costs: list[int] = []
        for work in (receipts, everything):
            with fixture.store.measure() as measured:
                costs.append(await steps_of_task(work()))
            costs.append(measured.calls)
        report.append(costs)
    for place, what in enumerate(("receipts", "calls for receipts", "history", "calls for history")):
        few, some, many = (costs[place] for costs in report)
        assert many - some <= 2.2 * (some - few), f"{what} grow beyond linear: {few}, {some}, {many}"


@pytest.mark.parametrize("levels", [4, 8, 16])
async def test_a_deep_namespace_costs_what_it_is_deep(levels: int) -> None:
    async def cost(depth: int) -> int:
        fixture = desk_with()
        path = tuple(f"n{number}" for number in range(depth))
        for number in range(1, depth + 1):
            await fixture.namespace(*path[:number])
        return await steps_of_task(create_namespace(fixture.session(), (*path, "new"), {}))

    assert await cost(levels) <= await cost(levels // 2) * 2


def test_which_locations_a_commit_adds_costs_what_there_are() -> None:
    """Of those that a commit names and those that the table holds."""
    session = desk_with().session()

    def asking(size: int) -> int:
        held = [f"memory:///wh/warehouse/h{number}" for number in range(8 * size)]
        entry = RelationEntry.new(kind="table", entity=entity(1), uuid=None, locations=held)
        return steps_of(
            lambda: locations_to_reserve(
                session.context, entry, [f"memory:///wh/warehouse/n{each}" for each in range(size)]
            )
        )

    assert_linear([asking(size) for size in (4, 8, 16)], "asking for locations")
