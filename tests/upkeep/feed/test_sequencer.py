"""The sequencer enters every change once, after its predecessor, whatever is missing when it looks
(docs/design/events.md)."""

import pytest

from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.feed import newest_token, read_feed
from arco_catalog.operations.rename import rename_table
from arco_catalog.state.feed import FeedRecord
from arco_catalog.tasks.feed_stats import FeedStats
from arco_catalog.upkeep.feed.sequencer import Sequencer
from tests.support.fake_runtime import FakeRuntime
from tests.support.scripted_store import ScriptedStore
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.request_bodies import set_property
from tools.support.wrapped_stores import CountingStore


class FeedScenario:
    """A catalog with a feed that a test reads."""

    def __init__(self) -> None:
        clock = FakeRuntime()
        self.store = ScriptedStore(clock.now_ms)
        self.counting = CountingStore(self.store)
        self.fixture = CatalogFixture(self.counting, clock)
        self.sequencer = Sequencer()

    async def run(self, by: Sequencer | None = None) -> FeedStats:
        """One run of a sequencer."""
        stats = FeedStats()
        await (by or self.sequencer).run(self.fixture.session(), stats)
        return stats

    async def records(self, token: str | None = None, limit: int = 1_000) -> list[FeedRecord]:
        """All records after a token."""
        return [*(await read_feed(self.fixture.session().state, token, limit)).records]

    async def shown(self, token: str | None = None) -> list[str]:
        """What the records are, each in a word or two."""
        return [
            f"{record.details['kind']}" if record.kind == "operation" else f"{record.kind} {record.details.get('name')}"
            for record in await self.records(token)
        ]


@pytest.fixture
def scenario() -> FeedScenario:
    return FeedScenario()


async def test_the_feed_begins_with_what_is_there_and_then_has_each_change(scenario: FeedScenario) -> None:
    fixture = scenario.fixture
    await fixture.namespace(*NS)
    await fixture.table("old")
    await fixture.commit(set_property("a", "1"), "old")
    await scenario.run()
    begun = await newest_token(fixture.session().state)
    await fixture.commit(set_property("a", "2"), "old")
    await fixture.table("new")
    await fixture.commit(set_property("a", "1"), "new")
    await rename_table(fixture.session(), (NS, "old"), (NS, "older"))
    await drop_table(fixture.session(), NS, "new", purge=False)

    stats = await scenario.run()

    assert [record.kind for record in await scenario.records()][:2] == ["begin", "begin"]
    assert await scenario.shown(begun) == [
        "commit old", "create-table", "commit new", "commit new", "rename-table", "drop-table"
    ]  # fmt: skip
    assert stats.is_end
    assert stats.records == 6
