"""`arco` with a bug in its event feed: `python -m tests.serve.planted_server BUG ARGUMENTS`."""

import sys
from collections.abc import Callable, Mapping, Sequence

from arco_catalog.cli import main
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.feed import FeedPage
from arco_catalog.planning.event_filter import EventFilter
from arco_catalog.protocol.catalog import Session
from arco_catalog.state.feed import FeedRecord
from arco_catalog.state.pointer import MetadataFile
from arco_catalog.upkeep.delivery import deliver
from arco_catalog.upkeep.delivery.deliver import DeliveryResult
from arco_catalog.upkeep.delivery.sink import Sink
from arco_catalog.upkeep.feed import commit_chain


def cursor_before_sending() -> None:
    """The cursor is stored before the events of a page are sent. (docs/design/delivery.md#rule-1)"""
    real = deliver._Delivery.send

    async def send(
        self: deliver._Delivery, page: FeedPage, event_filter: EventFilter, sink: Sink
    ) -> DeliveryResult | None:
        before, last = self.subscription, page.records[-1].number if page.records else self.subscription.cursor
        self.subscription = before.delivered(max(last, before.cursor), page.token)
        await self._save()
        self.subscription = before
        return await real(self, page, event_filter, sink)

    deliver._Delivery.send = send  # type: ignore[method-assign]


def no_predecessors() -> None:
    """Only the current file of a table enters. (docs/design/events.md#rule-3)"""

    async def newest(
        session: Session,
        entity: str,
        files: Sequence[MetadataFile],
        version: str = "",
        first: Sequence[FeedRecord] = (),
        found: Mapping[str, JsonObject] | None = None,
    ) -> commit_chain.NewCommits:
        return await real(session, entity, files[-1:], version, first, dict(found or {}))

    real = commit_chain.next_commits
    commit_chain.next_commits = newest


BUGS: Mapping[str, Callable[[], None]] = {plant.__name__: plant for plant in (cursor_before_sending, no_predecessors)}

if __name__ == "__main__":
    BUGS[sys.argv[1]]()
    sys.exit(main(sys.argv[2:]))
