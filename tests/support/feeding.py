"""Fills the event feed of a catalog in tests."""

from arco_catalog.protocol.catalog import Session
from arco_catalog.tasks.feed_stats import FeedStats
from arco_catalog.upkeep.feed.sequencer import Sequencer


async def feed(session: Session) -> None:
    """Enters all changes of a catalog into its event feed, which begins with the first call in a catalog that has
    something."""
    await Sequencer().run(session, FeedStats())
