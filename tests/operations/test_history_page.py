"""Pages of the history add up to the whole, within bounds of reads, and tell of each drop whether it can be undone."""

from collections.abc import Sequence

import pytest

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.operations.create import create_view
from arco_catalog.operations.drop import drop_table, drop_view
from arco_catalog.operations.history import HistoryCommit, history
from arco_catalog.operations.history_page import HistoryFilter, history_page
from arco_catalog.operations.listing import Paging
from arco_catalog.operations.namespaces import drop_namespace
from arco_catalog.operations.rename import rename_table
from arco_catalog.operations.undrop import undrop
from arco_catalog.operations.upgrade import upgrade
from arco_catalog.planning.upkeep_settings import DAY_MS, Retention
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state.registry import RECENT_COMMITS
from arco_catalog.state.spilling import Limits
from storage_backends.memory import MemoryStore
from tests.support.fake_runtime import FakeRuntime
from tests.support.page_tokens import encode_token
from tools.support.catalog_fixture import NS, CatalogFixture, CountingFixture
from tools.support.request_bodies import view_request
from tools.support.wrapped_stores import CountingStore

ALL = HistoryFilter()


async def pages(
    fixture: CatalogFixture, selection: HistoryFilter = ALL, size: int | None = None
) -> Sequence[Sequence[JsonObject]]:
    """All pages, each by a process that has nothing in memory."""
    found: list[Sequence[JsonObject]] = []
    token: str | None = None
    for _ in range(500):
        page = await history_page(fixture.another().session(), selection, Paging(token, size))
        found.append(page.operations)
        token = page.next_page_token
        if token is None:
            return found
    raise AssertionError("a history without an end")


async def operations(
    fixture: CatalogFixture, selection: HistoryFilter = ALL, size: int | None = None
) -> Sequence[JsonObject]:
    return [operation for page in await pages(fixture, selection, size) for operation in page]


@pytest.fixture
async def fixture() -> CatalogFixture:
    """Forty commits."""
    clock = FakeRuntime()
    made = CatalogFixture(MemoryStore(clock.now_ms), clock)
    await made.namespace("db")
    for number in range(39):
        await made.table(f"t{number:02}")
    return made


@pytest.mark.parametrize("size", [1, 3, 16, 50, None])
async def test_pages_of_any_size_add_up_to_the_whole(fixture: CatalogFixture, size: int | None) -> None:
    whole = [each["id"] async for each in history(fixture.session())]

    assert [each["id"] for each in await operations(fixture, size=size)] == whole
    assert len(whole) == 40


@pytest.mark.parametrize("version", [1, 2])
async def test_pages_go_on_beyond_the_commits_that_head_lists(version: int) -> None:
    fixture = CatalogFixture(CountingStore(MemoryStore()), runtime=FakeRuntime())
    await fixture.namespace("db")
    if version == 2:
        await upgrade(fixture.session(), force=True)
    for number in range(RECENT_COMMITS + 40):
        await fixture.namespace(f"n{number:03}")
    whole = [each["id"] async for each in history(fixture.session())]

    assert [each["id"] for each in await operations(fixture)] == whole


async def test_changes_between_pages_change_no_later_page(fixture: CatalogFixture) -> None:
    first = await history_page(fixture.session(), ALL, Paging(None, 5))
    whole = [each["id"] async for each in history(fixture.session())]
    for number in range(RECENT_COMMITS + 10):
        await fixture.namespace(f"n{number:03}")

    second = await history_page(fixture.session(), ALL, Paging(first.next_page_token, 5))

    assert [each["id"] for each in second.operations] == whole[5:10]


async def test_a_page_ends_within_the_operations_of_a_commit(
    fixture: CatalogFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = HistoryCommit.operations
    monkeypatch.setattr(
        HistoryCommit,
        "operations",
        lambda commit: [{**each, "id": f"{each['id']}-{n}"} for each in made(commit) for n in "abc"],
    )
    found = [each["id"] for each in await operations(fixture, size=4)]

    assert len(found) == len(set(found)) == 120


async def test_a_lost_commit_is_one_operation_of_its_own(fixture: CatalogFixture) -> None:
    head = await fixture.session().state.head()
    for name in head.listed_from(20)[:3]:
        await fixture.store.delete(fixture.catalog.paths.registry_commit(name))

    found = await operations(fixture, size=2)

    assert len(found) == 40
    assert [(each["sequence"], each["at-ms"], each["id"]) for each in found if each["kind"] == "lost"] == [
        (20, None, None),
        (19, None, None),
        (18, None, None),
    ]


async def test_one_name_is_selected_with_both_names_of_a_rename(fixture: CatalogFixture) -> None:
    await rename_table(fixture.session(), (NS, "t07"), (NS, "u"))
    await drop_table(fixture.session(), NS, "u", purge=False)

    by_name = {
        name: [each["kind"] for each in await operations(fixture, HistoryFilter(NS, name))]
        for name in ("t07", "u", "x")
    }

    assert by_name == {
        "t07": ["rename-table", "create-table"],
        "u": ["drop-table", "rename-table"],
        "x": [],
    }
    assert len(await operations(fixture, HistoryFilter(NS))) == 42
    assert await operations(fixture, HistoryFilter(("other",))) == []


async def test_an_empty_catalog_has_one_empty_page() -> None:
    assert await pages(CatalogFixture()) == [[]]


# Undo.


async def undo(fixture: CatalogFixture, name: str, kind: str = "drop-table") -> JsonValue:
    """Of the last drop of this name."""
    drops = [each for each in await operations(fixture, HistoryFilter(NS, name)) if each["kind"] == kind]
    return drops[0]["undo"]


def undone(**changed: JsonValue) -> JsonObject:
    base: JsonObject = {
        "possible": False,
        "state": "dropped",
        "until-ms": None,
        "purge-task": None,
        "blocked-by": None,
    }
    return {**base, **{name.replace("_", "-"): value for name, value in changed.items()}}


async def test_a_plain_drop_can_be_undone_while_its_tombstone_is_kept(fixture: CatalogFixture) -> None:
    dropped_ms = fixture.runtime.now_ms()
    await drop_table(fixture.session(), NS, "t01", purge=False)

    assert await undo(fixture, "t01") == undone(possible=True, until_ms=dropped_ms + Retention().undrop_ms)
    await undrop(fixture.session(), NS, "t01")
    assert await undo(fixture, "t01") == undone(state="restored")
    await drop_table(fixture.session(), NS, "t01", purge=False)
    dropped = [
        each["undo"] for each in await operations(fixture, HistoryFilter(NS, "t01")) if "drop-" in str(each["kind"])
    ]
    assert dropped == [
        undone(possible=True, until_ms=fixture.runtime.now_ms() + Retention().undrop_ms),
        undone(state="restored"),
    ]


async def test_a_drop_with_purge_can_be_undone_until_the_purge(fixture: CatalogFixture) -> None:
    dropped_ms = fixture.runtime.now_ms()
    await drop_table(fixture.session(), NS, "t01", purge=True)

    found = await undo(fixture, "t01")

    assert isinstance(found, dict)
    assert found == undone(possible=True, until_ms=dropped_ms + DAY_MS, purge_task=found["purge-task"])
    assert isinstance(found["purge-task"], str)


async def test_what_prevents_an_undrop_is_named(fixture: CatalogFixture) -> None:
    there: JsonObject = {"namespace": ["db"], "name": "t01"}
    await drop_table(fixture.session(), NS, "t01", purge=False)
    body = view_request("t01")
    await create_view(fixture.session(body), NS, body)
    assert await undo(fixture, "t01") == undone(blocked_by={"reason": "name-taken", "type": "view", **there})

    await drop_view(fixture.session(), NS, "t01")
    assert await undo(fixture, "t01") == undone(blocked_by={"reason": "dropped-later", "type": "view", **there})
    last = await undo(fixture, "t01", "drop-view")
    assert isinstance(last, dict)
    assert last["possible"]


async def test_a_drop_from_a_namespace_that_is_gone_is_blocked_by_it() -> None:
    fixture = CatalogFixture()
    await fixture.namespace("db")
    await fixture.table("t")
    await drop_table(fixture.session(), NS, "t", purge=False)
    await drop_namespace(fixture.session(), NS)

    missing: JsonObject = {"type": "namespace", "namespace": ["db"], "name": None}
    assert await undo(fixture, "t") == undone(blocked_by={"reason": "namespace-missing", **missing})


async def test_other_operations_have_no_undo(fixture: CatalogFixture) -> None:
    assert {str(each["undo"]) for each in await operations(fixture)} == {"None"}


# Bounds.


async def test_a_page_keeps_to_its_budget_in_a_spilled_catalog() -> None:
    fixture = CountingFixture(
        CountingStore(MemoryStore()), settings=Settings("wh", spill=Limits(embedded=300, segment=700))
    )
    await fixture.namespace("db")
    for number in range(30):
        await fixture.table(f"t{number:02}")
    for number in range(30):
        await drop_table(fixture.session(), NS, f"t{number:02}", purge=False)
    assert len((await fixture.session().state.head()).index.directory.refs) > 20

    token: str | None = None
    found = 0
    while True:
        session = fixture.another().session()
        with fixture.store.measure() as measured:
            page = await history_page(session, ALL, Paging(token, None))
        assert measured.calls <= 25
        found, token = found + len(page.operations), page.next_page_token
        if token is None:
            break
    assert found == 61


async def test_a_page_of_a_small_catalog_reads_sixteen_commits(fixture: CatalogFixture) -> None:
    assert [len(page) for page in await pages(fixture)] == [16, 16, 8]


@pytest.mark.parametrize("size", [1, 3, 5])
async def test_a_short_page_reads_as_many_commits_as_it_has_rows(size: int) -> None:
    """The first of them is HEAD itself."""
    fixture = CountingFixture(CountingStore(MemoryStore()))
    for number in range(20):
        await fixture.namespace(f"n{number:02}")

    session = fixture.another().session()
    with fixture.store.measure() as measured:
        page = await history_page(session, ALL, Paging(None, size))

    assert (len(page.operations), measured.calls) == (size, size)


async def test_a_short_page_of_one_name_reads_on_until_it_has_found_it(fixture: CatalogFixture) -> None:
    page = await history_page(fixture.session(), HistoryFilter(NS, "t30"), Paging(None, 1))

    assert [each["name"] for each in page.operations] == ["t30"]


@pytest.mark.parametrize(
    "position", [[], ["../x", 1, 0], ["0" * 26, 0, 0], ["0" * 26, 41, 0], ["0" * 26, 1, -1], ["0" * 26, 1], None]
)
async def test_a_token_of_another_listing_is_refused(fixture: CatalogFixture, position: JsonValue) -> None:
    token = encode_token(position)
    with pytest.raises(BadRequest, match="another listing"):
        await history_page(fixture.session(), ALL, Paging(token, None))


async def test_a_token_whose_commits_were_collected_has_expired(fixture: CatalogFixture) -> None:
    for number in range(RECENT_COMMITS + 10):
        await fixture.namespace(f"n{number:03}")
    token = encode_token(["0" * 26, 1, 0])
    with pytest.raises(BadRequest, match="expired"):
        await history_page(fixture.session(), ALL, Paging(token, None))
