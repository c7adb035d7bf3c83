"""The registry's commits tell who did what to the catalog's names, as far back as they are kept."""

import asyncio

import pytest

from arco_catalog.iceberg.errors import NoSuchTable
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.history import history
from arco_catalog.operations.inspect import inspect_relation
from arco_catalog.operations.rename import rename_table
from arco_catalog.operations.transaction import commit_transaction
from arco_catalog.operations.undrop import undrop
from arco_catalog.protocol.evidence import fence_registry
from arco_catalog.state import registry
from arco_catalog.state.fields import integer
from arco_catalog.state.registry_floor import raise_registry_floor
from storage_backends import ABSENT
from storage_backends.memory import MemoryStore
from tests.operations.test_transactions import creation
from tools.support.catalog_fixture import NS, CatalogFixture


async def report(fixture: CatalogFixture, *, own: bool = False) -> list[JsonObject]:
    return [operation async for operation in history(fixture.another().session(), own=own)]


async def test_all_operations_on_a_name_are_listed_newest_first(fixture: CatalogFixture) -> None:
    made = await fixture.table("t")
    await rename_table(fixture.session(), (NS, "t"), (NS, "u"))
    await drop_table(fixture.session(), NS, "u", purge=False)
    await undrop(fixture.session(), NS, "u")

    happened = await report(fixture)

    kinds = [operation["kind"] for operation in happened]
    assert kinds == ["undrop", "drop-table", "rename-table", "create-table", "create-namespace"]
    assert {operation["entity"] for operation in happened[:-1]} == {made.entity}
    assert [operation["sequence"] for operation in happened] == [5, 4, 3, 2, 1]
    assert {operation["principal"] for operation in happened} == {"tester"}
    times = [operation["at_ms"] for operation in happened]
    assert times == sorted(times, key=lambda ms: ms if isinstance(ms, int) else 0, reverse=True)
    assert not [operation for operation in happened if "answer" in operation]


async def test_an_empty_catalog_has_no_history() -> None:
    assert await report(CatalogFixture()) == []


async def test_internal_commits_are_listed_only_on_request(fixture: CatalogFixture) -> None:
    await fence_registry(fixture.session())
    changes = [creation("a"), creation("b")]
    await commit_transaction(fixture.session([body for _, _, body in changes]), changes)

    assert [operation["kind"] for operation in await report(fixture)] == ["create-namespace"]
    every = [operation["kind"] for operation in await report(fixture, own=True)]
    assert every == ["settle-names", "lay-names", "fence", "create-namespace"]


async def test_it_reaches_beyond_what_one_commit_lists(
    fixture: CatalogFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "RECENT_COMMITS", 3)
    made = CatalogFixture()
    await made.namespace("db")
    for number in range(20):
        await made.table(f"t{number}")

    names = [operation.get("name") for operation in await report(made)]

    assert names == [*(f"t{number}" for number in reversed(range(20))), None]


async def test_commits_that_lost_their_race_are_no_history(fixture: CatalogFixture) -> None:
    await asyncio.gather(*(fixture.another().table(f"t{number}") for number in range(5)))

    happened = await report(fixture)

    assert sorted(str(operation.get("name")) for operation in happened) == ["None", "t0", "t1", "t2", "t3", "t4"]
    assert isinstance(fixture.store, MemoryStore)
    assert len(fixture.store.keys("wh/_catalog/core/commits/")) > len(happened)


async def test_it_ends_where_it_was_collected(fixture: CatalogFixture) -> None:
    for number in range(3):
        await fixture.table(f"t{number}")
    [newest, second, *_] = await report(fixture)
    await fixture.store.delete(fixture.catalog.paths.registry_commit(str(second["commit"])))
    await raise_registry_floor(fixture.session().state, integer(newest, "sequence"))

    assert [operation["name"] for operation in await report(fixture)] == ["t2"]


async def test_what_was_never_there_cannot_be_shown(fixture: CatalogFixture) -> None:
    with pytest.raises(NoSuchTable, match=r"Table does not exist: db\.t"):
        await inspect_relation(fixture.session(), NS, "t")


async def test_a_finished_marker_is_no_open_one(fixture: CatalogFixture) -> None:
    made = await fixture.table("t", key=fixture.key())
    assert (await inspect_relation(fixture.session(), NS, "t"))["open_markers"] == []

    assert isinstance(fixture.store, MemoryStore)
    [final] = [key for key in fixture.store.keys("wh/_catalog/iceberg_idempotency/") if key.endswith("/1.json")]
    await fixture.store.delete(final)

    markers = (await inspect_relation(fixture.session(), NS, "t"))["open_markers"]
    assert isinstance(markers, list)
    [marker] = markers
    assert isinstance(marker, dict)
    pointer = await fixture.session().state.pointer(made.entity)
    assert pointer is not None
    assert (marker["slot"], marker["attempt"]) == (0, pointer.recent[-1])


async def test_the_search_for_open_markers_is_bounded_and_reports_it(
    fixture: CatalogFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fixture.table("t")
    for number in range(5):
        await fixture.store.put(f"wh/_catalog/iceberg_idempotency/00/{number}/0.json", b"not read", ABSENT)
    monkeypatch.setattr("arco_catalog.operations.inspect.MAX_MARKERS", 0)

    shown = await inspect_relation(fixture.session(), NS, "t")

    assert (shown["open_markers"], shown["all_markers_seen"]) == ([], False)
