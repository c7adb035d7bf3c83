"""Objects of the registry that nothing leads to (docs/design/collection.md#rule-9)."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial

import pytest

from arco_catalog.iceberg.errors import CatalogError
from arco_catalog.operations.history import history
from arco_catalog.operations.listing import Paging, list_relations
from arco_catalog.operations.namespaces import load_namespace, update_properties
from arco_catalog.planning.collection import Kind
from arco_catalog.planning.upkeep_settings import DAY_MS
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state.registry import RegistryState
from arco_catalog.state.spilling import Limits
from arco_catalog.upkeep.collection.collect import collect
from arco_catalog.upkeep.fsck.repairs import CopyHead
from storage_backends import ABSENT, Cursor, Found, Page, StoreUnavailable
from tests.support.fake_runtime import WrongClock
from tests.support.scripted_store import DOWN, Rule, swap
from tests.upkeep.collection.conftest import PATHS, Collections
from tools.support.catalog_fixture import NS, CatalogFixture


async def test_a_commit_that_never_became_head_goes(collections: Collections) -> None:
    collections.store.rules = [Rule(swap("/core/manifest.json"), fails=DOWN)]
    with pytest.raises(CatalogError):
        await collections.fixture.another().namespace("other")
    collections.store.rules = []
    before = collections.listed(PATHS.registry_commits)
    collections.days(8)
    counts = await collections.collected()
    assert counts[Kind.REGISTRY_COMMIT] == 1
    assert before[-1] not in collections.listed(PATHS.registry_commits)
    assert await collections.codes() == []


async def test_history_is_kept_as_long_as_receipts_and_ends_there(collections: Collections) -> None:
    for number in range(5):
        await collections.fixture.namespace(f"n{number}")
    collections.days(89)
    await collections.collect()
    kept = len(collections.listed(PATHS.registry_commits))
    assert kept >= 7
    collections.days(2)
    await collections.collect()
    assert len(collections.listed(PATHS.registry_commits)) < kept
    assert await collections.codes() == []
    assert [item async for item in history(collections.fixture.another().session(), own=True)]
    await collections.fixture.another().namespace("later")
    await collections.fixture.another().table("later")
    assert await collections.codes() == []


async def spilling() -> Collections:
    made = Collections(Settings("wh", spill=Limits(embedded=1_500, segment=1_500, least=1_000)))
    await made.fixture.namespace("db")
    return made


async def test_segments_that_were_replaced_go_and_pages_of_this_week_stay() -> None:
    collections = await spilling()
    for number in range(12):
        await collections.fixture.table(f"a{number}")
    collections.days(9)
    first = await list_relations(collections.fixture.session(), NS, "table", Paging("", 3))
    assert first.next_page_token is not None
    for number in range(12):
        await collections.fixture.table(f"b{number}")
    collections.days(6.5)
    await collections.collect()
    listed = [*first.items]
    token: str | None = first.next_page_token
    while token is not None:
        page = await list_relations(collections.fixture.another().session(), NS, "table", Paging(token, 3))
        listed += page.items
        token = page.next_page_token
    assert len(listed) == 12
    collections.days(3)
    assert (await collections.collected())[Kind.REGISTRY_SEGMENT] > 0
    everything = await list_relations(collections.fixture.another().session(), NS, "table", Paging(None, None))
    assert len(everything.items) == 24
    assert await collections.codes() == []


async def list_latest_first(listed: Callable[..., Awaitable[Page]], prefix: str, after: Cursor | None = None) -> Page:
    """A listing whose pages are not in the order of keys, as those of S3's directory buckets."""
    page = await listed(prefix, after)
    return replace(page, entries=sorted(page.entries, key=lambda each: -each.written_ms), in_order=False)


async def write_again(collections: Collections, key: str) -> None:
    found = await collections.store.get(key)
    assert isinstance(found, Found)
    await collections.store.delete(key)
    await collections.store.put(key, found.body, ABSENT)


def segments_of(head: RegistryState) -> set[str]:
    """The keys of the segments to which a HEAD refers."""
    return {PATHS.index_segment(each.ref.id) for each in head.index.key_ranges("") if each.ref is not None}


@pytest.mark.parametrize("order", ["by key", "latest first"])
async def test_segments_of_a_page_of_this_week_stay_where_the_commit_of_head_was_written_again(
    monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    """By a repair (`CopyHead`), when it had been HEAD for days. It is the last to refer to one of its segments. An
    operator has put the first commit back, too."""
    collections = await spilling()
    first = await collections.fixture.session().state.head()
    for number in range(12):
        await collections.fixture.table(f"a{number}")
    head = await collections.fixture.session().state.head()
    collections.days(9)
    if order == "latest first":
        monkeypatch.setattr(collections.store, "list", partial(list_latest_first, collections.store.list))
    await write_again(collections, PATHS.registry_commit(first.id or ""))
    await collections.store.delete(PATHS.registry_commit(head.id or ""))
    assert await CopyHead(head.id or "")(collections.fixture.another().session())
    for number in range(12):
        await collections.fixture.table(f"b{number}")
    now = await collections.fixture.session().state.head()
    assert segments_of(head) - segments_of(now)
    collections.days(6.5)

    await collections.collect()

    assert segments_of(head) <= {*collections.listed(PATHS.index_segments)}


async def test_a_collection_that_slept_for_weeks_deletes_nothing_though_its_clock_was_set_back() -> None:
    collections = await spilling()
    await collections.fixture.table("a")
    collections.days(9)
    await collections.fixture.table("b")
    collections.days(9)
    machine = WrongClock(collections.runtime, ahead_ms=1)
    collector = CatalogFixture(collections.store, machine, collections.fixture.catalog.settings)

    async def sleep() -> None:
        for number in range(12):
            await collections.fixture.another().table(f"c{number}")
        collections.days(30)
        machine.ahead_ms = -30 * DAY_MS

    collections.store.rules = [
        Rule(lambda call: call.method == "list" and call.key == PATHS.index_segments, first=sleep, times=1)
    ]
    with pytest.raises(StoreUnavailable, match=r"deadline of the .* has passed"):
        await collect(collector.session(deadline_ms=DAY_MS), delete=True)
    collections.store.rules = []
    assert await collections.codes() == []


async def test_values_of_namespaces_that_were_replaced_go(collections: Collections) -> None:
    for number in range(3):
        await update_properties(collections.fixture.session(), NS, [], {"n": str(number)})
    collections.days(9)
    await collections.collect()
    collections.days(9)
    await collections.collect()
    assert len(collections.listed(PATHS.namespace_values)) == 1
    assert (await load_namespace(collections.fixture.another().session(), NS))["properties"]
    assert await collections.codes() == []


async def test_an_idle_catalog_does_not_grow(collections: Collections) -> None:
    sizes = []
    for _ in range(40):
        collections.days(7)
        await collections.collect()
        sizes.append(len(collections.listed()))
    assert max(sizes[20:]) == max(sizes[20:30])
