"""Collections, checks and backups of the event feed, and tokens after them (docs/design/events.md#rule-11)."""

from dataclasses import replace
from pathlib import Path

import pytest

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.operations.feed import NoSuchFeed, newest_token, read_feed
from arco_catalog.planning.collection import Kind
from arco_catalog.planning.upkeep_settings import DAY_MS
from arco_catalog.state import feed_cursors
from arco_catalog.state.feed_floor import read_feed_floor
from arco_catalog.upkeep.collection.collect import collect
from arco_catalog.upkeep.feed.sequencer import Sequencer
from arco_catalog.upkeep.fsck.check import check
from arco_catalog.upkeep.fsck.examination import Examination
from storage_backends import ANY
from tests.support.feeding import feed
from tests.upkeep.feed.conftest import FeedScenario
from tests.upkeep.recovery.test_backup import backed_up, restored
from tools.support.request_bodies import set_property

SEGMENTS = "wh/_catalog/feed/segments/"


async def segments(scenario: FeedScenario) -> list[int]:
    """The numbers of the first records of the stored segments."""
    keys = scenario.store.keys(SEGMENTS)
    return sorted(int(key.removeprefix(SEGMENTS).removesuffix(".json")) for key in keys)


async def collected(scenario: FeedScenario) -> int:
    """How many segments a collection deletes."""
    stats = await collect(scenario.fixture.another().session(), delete=True)
    return stats.kinds[Kind.FEED_SEGMENT].count if Kind.FEED_SEGMENT in stats.kinds else 0


async def days_of_changes(scenario: FeedScenario, days: int) -> None:
    """A change a day."""
    for _ in range(days):
        scenario.clock.ms += DAY_MS
        await scenario.change()
        await scenario.run()


async def found(scenario: FeedScenario) -> set[str]:
    """The codes that a check reports."""
    examination = Examination(scenario.fixture.another().session())
    return {finding.code.value async for finding in check(examination)}


async def test_old_segments_go_and_consumers_keep_their_places(
    scenario: FeedScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_cursors, "MAX_BEHIND", 1)
    state = scenario.fixture.session().state
    first = await newest_token(state)
    await days_of_changes(scenario, 3)
    all_read = await newest_token(scenario.fixture.session().state)
    scenario.clock.ms += 200 * DAY_MS
    await scenario.change()
    await scenario.run()
    before = await segments(scenario)

    assert await collected(scenario) == 3

    assert await segments(scenario) == before[3:]
    assert await read_feed_floor(scenario.fixture.session().state) == before[3]
    assert [record.number for record in await scenario.records(all_read)] == [before[-1]]
    assert [record.number for record in await scenario.records()] == before[3:]
    with pytest.raises(BadRequest, match="no longer has record"):
        await scenario.records(first)
    await scenario.change()
    await scenario.run(Sequencer())
    assert await scenario.shown() == ["commit t", "commit t", "fence", "commit t"]
    assert await found(scenario) == set()


async def test_what_was_collected_is_no_gap_of_a_feed_whose_floor_is_corrupt(
    scenario: FeedScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_cursors, "MAX_BEHIND", 1)
    await days_of_changes(scenario, 3)
    scenario.clock.ms += 200 * DAY_MS
    await scenario.change()
    await scenario.run()
    assert await collected(scenario) == 3

    await scenario.store.put("wh/_catalog/feed/floor.json", b"{}", ANY)

    assert await found(scenario) == {"feed-unreadable"}


async def test_segments_stay_that_a_stored_cursor_does_not_include(scenario: FeedScenario) -> None:
    await days_of_changes(scenario, 3)
    scenario.clock.ms += 200 * DAY_MS
    before = await segments(scenario)

    assert await collected(scenario) == 0

    assert await segments(scenario) == before


async def test_a_feed_that_was_never_started_is_named(scenario: FeedScenario) -> None:
    another = FeedScenario()
    await another.fixture.namespace("db")

    with pytest.raises(NoSuchFeed, match="ARCO_EVENTS"):
        await another.records()


@pytest.mark.parametrize(
    "token", ["", "1", "1-1-x", "9-1-01ARZ3NDEKTSV4RRFFQ69G5FAV", "-1-1-01ARZ3NDEKTSV4RRFFQ69G5FAV"]
)
async def test_a_token_of_nothing_is_refused(scenario: FeedScenario, token: str) -> None:
    with pytest.raises(BadRequest):
        await scenario.records(token)


async def test_a_token_of_another_history_is_refused(scenario: FeedScenario) -> None:
    before = {key: await scenario.store.get(key) for key in scenario.store.keys("")}
    await scenario.change()
    await scenario.run()
    token = await newest_token(scenario.fixture.session().state)
    for key in scenario.store.keys(""):
        await scenario.store.delete(key)
    for key, answer in before.items():
        await scenario.store.put(key, answer.body, ANY)  # type: ignore[union-attr]
    scenario.fixture = scenario.fixture.another()
    await scenario.change()
    await scenario.run(Sequencer())
    assert (await scenario.records())[-1].number == int(token.partition("-")[0])

    with pytest.raises(BadRequest, match="restored to an earlier state"):
        await scenario.records(token)


async def test_a_copy_that_is_restored_beside_its_original_has_a_feed_that_goes_on_by_itself(
    scenario: FeedScenario, tmp_path: Path
) -> None:
    """A token of what both have leads on in both; a later one of the original is refused by the copy."""
    await scenario.change()
    await scenario.run()
    common = await newest_token(scenario.fixture.session().state)
    await backed_up(scenario.fixture, tmp_path / "backup")
    copy = await restored(tmp_path / "backup", replace(scenario.fixture, store=scenario.store), "beside")
    await scenario.change()
    await scenario.run(Sequencer())
    later = await newest_token(scenario.fixture.session().state)

    await copy.commit(set_property("in", "copy"))
    await feed(copy.session())

    state = copy.another().session().state
    entered = (await read_feed(state, common, 100)).records
    assert [record.kind for record in entered] == ["operation", "commit"]
    assert entered[0].details["kind"] == "restore"
    assert [record.kind for record in await scenario.records(common)] == ["commit"]
    with pytest.raises(BadRequest, match="restored to an earlier state"):
        await read_feed(state, later, 100)


async def test_pages_follow_each_other(scenario: FeedScenario) -> None:
    for _ in range(5):
        await scenario.change()
        await scenario.run()
    token, numbers = None, []
    for _ in range(20):
        page = await read_feed(scenario.fixture.session().state, token, 2)
        token = page.token
        numbers += [record.number for record in page.records]
        if page.is_end:
            break

    assert numbers == [*range(1, 8)]


async def test_a_check_finds_what_is_wrong_with_a_feed(scenario: FeedScenario) -> None:
    await scenario.change()
    await scenario.run()
    await scenario.change()
    await scenario.run()
    assert await found(scenario) == set()
    keys = {key: await scenario.store.get(key) for key in scenario.store.keys("wh/_catalog/feed/")}
    cursors = next(key for key in keys if "/cursors/" in key)
    for key, body, expected in (
        (f"{SEGMENTS}{3:016d}.json", None, {"feed-gap"}),
        (f"{SEGMENTS}{3:016d}.json", b"{}", {"feed-unreadable"}),
        (cursors, b"{}", {"feed-unreadable"}),
        ("wh/_catalog/feed/floor.json", b"{}", {"feed-unreadable"}),
        ("wh/_catalog/feed/other", b"", {"object-unknown"}),
    ):
        await scenario.store.delete(key)
        if body is not None:
            await scenario.store.put(key, body, ANY)
        assert await found(scenario) == expected, key
        await scenario.store.delete(key)
        if key in keys:
            await scenario.store.put(key, keys[key].body, ANY)  # type: ignore[union-attr]
