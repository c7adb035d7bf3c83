"""A catalog with a feed that a test fills and reads."""

from collections.abc import Sequence

import pytest

from arco_catalog.iceberg.errors import CommitStateUnknown, Unavailable
from arco_catalog.operations.feed import read_feed
from arco_catalog.operations.transaction import TableChange, commit_transaction
from arco_catalog.protocol.transaction_coordinator import TransactionCoordinator
from arco_catalog.state.feed import FeedRecord
from arco_catalog.tasks.feed_stats import FeedStats
from arco_catalog.upkeep.feed.sequencer import Sequencer
from storage_backends import StoreUnavailable
from tests.operations.test_transactions import creation
from tests.support.fake_runtime import FakeRuntime
from tests.support.scripted_store import ScriptedStore
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.request_bodies import set_property
from tools.support.wrapped_stores import CountingStore


class FeedScenario:
    """A catalog whose feed a test fills and reads."""

    def __init__(self) -> None:
        self.clock = FakeRuntime()
        self.store = ScriptedStore(self.clock.now_ms)
        self.counting = CountingStore(self.store)
        self.fixture = CatalogFixture(self.counting, self.clock)
        self.sequencer = Sequencer()

    async def run(self, by: Sequencer | None = None) -> FeedStats:
        """One run of a sequencer."""
        stats = FeedStats()
        await (by or self.sequencer).run(self.fixture.session(), stats)
        return stats

    async def change(self, name: str = "t") -> None:
        """A commit to a table, later than what was before."""
        self.clock.ms += 1_000
        await self.fixture.commit(set_property("at", str(self.clock.ms)), name)

    async def leave_undecided(self, patch: pytest.MonkeyPatch, names: Sequence[str], made: str = "") -> None:
        """A transaction over these tables, which may create one, whose coordinator dies before it decides."""
        body = set_property("a", "1")
        changes: list[TableChange] = [(NS, name, body) for name in names]
        changes += [creation(made)] if made else []

        async def die(*_: object) -> None:
            raise StoreUnavailable("dead")

        with patch.context() as dying:
            dying.setattr(TransactionCoordinator, "swap", die)
            with pytest.raises((StoreUnavailable, Unavailable, CommitStateUnknown)):
                await commit_transaction(self.fixture.session({"n": len(names)}), changes)

    async def records(self, token: str | None = None, limit: int = 10_000) -> list[FeedRecord]:
        """The records after a token."""
        return [*(await read_feed(self.fixture.session().state, token, limit)).records]

    async def shown(self, token: str | None = None) -> list[str]:
        """What the records are, each in a word or two."""
        return [
            str(record.details["kind"])
            if record.kind == "operation"
            else f"{record.kind} {record.details.get('name', '')}".rstrip()
            for record in await self.records(token)
        ]


@pytest.fixture
async def scenario() -> FeedScenario:
    """A catalog with a namespace and a table `t`, whose feed has begun."""
    scenario = FeedScenario()
    await scenario.fixture.namespace("db")
    await scenario.fixture.table()
    await scenario.run()
    return scenario
