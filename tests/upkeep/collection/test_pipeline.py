"""What the pipeline is yet to read is kept (docs/design/collection.md#rule-14)."""

import pytest

from arco_catalog.operations.commit import commit_table
from arco_catalog.operations.create import create_table
from arco_catalog.operations.namespaces import create_namespace
from arco_catalog.planning.collection import Kind
from arco_catalog.planning.upkeep_settings import DAY_MS
from arco_catalog.state.late_receipts import late_marks, mark_late, unmark
from arco_catalog.state.paths import day_of
from arco_catalog.state.watermarks import BATCH, CATALOG_EVENTS, CLOSED_BEFORE, COMMITS, NAMESPACE, REGISTRY_SEQUENCE
from arco_catalog.upkeep.reconcile import reconcile
from storage_backends import Found
from tests.upkeep.collection.conftest import PATHS, Collections
from tools.support.request_bodies import schema, set_property

SYSTEM = (NAMESPACE,)
LONG_AGO, FAR_AHEAD = "2020-01-01", "2036-01-01"


async def pipeline_at(collections: Collections, closed_before: str | None, sequence: int = 0) -> None:
    """The tables of a pipeline that is so far."""
    fixture = collections.fixture
    await create_namespace(fixture.session(), SYSTEM, {})
    report = [(COMMITS, BATCH, "0"), (CATALOG_EVENTS, REGISTRY_SEQUENCE, str(sequence))]
    if closed_before is not None:
        report.append((COMMITS, CLOSED_BEFORE, closed_before))
    for name in (COMMITS, CATALOG_EVENTS):
        await create_table(fixture.session(), SYSTEM, {"name": name, "schema": schema("x")})
    for name, watermark, value in report:
        body = set_property(watermark, value)
        await commit_table(fixture.session(body), SYSTEM, name, body)


async def pipeline_before_its_first_batch(collections: Collections, *tables: str) -> None:
    """Tables of a pipeline that has been set up, and has not run to the end of a batch."""
    await create_namespace(collections.fixture.session(), SYSTEM, {})
    for name in tables:
        await create_table(collections.fixture.session(), SYSTEM, {"name": name, "schema": schema("x")})


async def old_commits(collections: Collections) -> None:
    """Commits whose receipts are older than they are kept, and have no pending ones any more."""
    for _ in range(3):
        await collections.commit()
    collections.days(8)
    await collections.collect()
    collections.days(90)


@pytest.mark.parametrize("closed_before", [None, LONG_AGO, "whatever"])
async def test_receipts_that_the_pipeline_has_not_passed_are_kept(
    collections: Collections, closed_before: str | None
) -> None:
    await pipeline_at(collections, closed_before)
    await old_commits(collections)
    assert Kind.COMMITTED_RECEIPT not in await collections.collected()


@pytest.mark.parametrize("tables", [(COMMITS, CATALOG_EVENTS), (COMMITS,), (CATALOG_EVENTS,)])
async def test_a_pipeline_without_a_batch_has_read_nothing(collections: Collections, tables: tuple[str, ...]) -> None:
    await pipeline_before_its_first_batch(collections, *tables)
    await old_commits(collections)
    collections.days(8)
    await collections.fixture.another().namespace("moves_head")
    collections.days(8)
    counts = await collections.collected()
    assert Kind.COMMITTED_RECEIPT not in counts
    assert Kind.REGISTRY_COMMIT not in counts


async def test_receipts_that_it_has_passed_go(collections: Collections) -> None:
    await pipeline_at(collections, FAR_AHEAD)
    await old_commits(collections)
    assert (await collections.collected())[Kind.COMMITTED_RECEIPT] > 3


async def test_receipts_of_a_marked_day_are_kept(collections: Collections) -> None:
    await pipeline_at(collections, FAR_AHEAD)
    day = day_of(collections.runtime.ms)
    await old_commits(collections)
    state = collections.fixture.another().session().state
    await mark_late(state, day, "first")
    assert Kind.COMMITTED_RECEIPT not in await collections.collected()

    [mark], _ = await late_marks(state)
    await unmark(state, mark)
    assert (await collections.collected())[Kind.COMMITTED_RECEIPT] > 3


async def test_nothing_goes_while_the_tables_of_the_pipeline_cannot_be_read(collections: Collections) -> None:
    await pipeline_at(collections, FAR_AHEAD)
    await old_commits(collections)
    files = [key for key in collections.listed("wh/warehouse/system/commits-") if key.endswith(".metadata.json")]
    await collections.store.delete(sorted(files)[-1])
    stats = await collections.collect()
    assert Kind.COMMITTED_RECEIPT not in stats.kinds
    assert stats.unreadable_count


async def test_commits_of_the_registry_that_it_has_not_read_are_kept(collections: Collections) -> None:
    await pipeline_at(collections, FAR_AHEAD, sequence=2)
    collections.days(100)
    await collections.fixture.another().namespace("later")
    collections.days(8)
    await collections.fixture.another().namespace("newest")
    assert (await collections.collected())[Kind.REGISTRY_COMMIT] == 2


async def test_the_reconciler_marks_the_day_before_it_writes_a_receipt_into_it(collections: Collections) -> None:
    await collections.commit()
    day = day_of(collections.runtime.ms)
    for key in [key for key in collections.listed(PATHS.events) if "/committed/" in key]:
        await collections.store.delete(key)

    await reconcile(collections.fixture.another().session(deadline_ms=DAY_MS))
    assert collections.listed(PATHS.late_marks) == []  # it is open today

    for key in [key for key in collections.listed(PATHS.events) if "/committed/" in key]:
        await collections.store.delete(key)
    for key in collections.listed(f"{PATHS.operational}reconciler/"):
        await collections.store.delete(key)
    collections.days(3)
    await reconcile(collections.fixture.another().session(deadline_ms=DAY_MS))
    assert collections.listed(PATHS.late_marks) == [PATHS.late_mark(day)]
    assert await collections.codes() == []


async def test_a_mark_that_was_renewed_is_not_removed(collections: Collections) -> None:
    state = collections.fixture.session(deadline_ms=3 * DAY_MS).state
    day = day_of(collections.runtime.ms)
    await mark_late(state, day, "first")
    [mark], _ = await late_marks(state)
    assert not mark.old
    await mark_late(state, day, "second")
    await unmark(state, mark)
    assert isinstance(await state.store.get(mark.key), Found)
    collections.days(1)
    [mark], _ = await late_marks(state)
    assert mark.old
    await unmark(state, mark)
    assert await late_marks(state) == ([], collections.runtime.ms)
