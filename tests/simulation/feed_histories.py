"""The event feed and a subscription to it, of a catalog that has another history from some instant on: it is made anew
at the same place, set back to an earlier instant, or restored from a backup (docs/design/events.md,
docs/design/delivery.md)."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from arco_catalog.iceberg.errors import CatalogError
from arco_catalog.iceberg.json import loads
from arco_catalog.operations.events import event_of
from arco_catalog.operations.feed import read_feed
from arco_catalog.state.subscription import Subscription, read_subscription
from arco_catalog.tasks.worker import Worker
from arco_catalog.upkeep.delivery.sink import Message, ReceiverUnreachable
from arco_catalog.upkeep.delivery.sinks import Sinks
from arco_catalog.upkeep.delivery.subscriptions import subscribe
from arco_catalog.upkeep.purge.worker import task_worker
from storage_backends import StoreError
from tests.simulation.bucket import Stored
from tests.simulation.explore import Scenario
from tests.simulation.feeding import COUNTED, PATHS, FeedClients
from tests.simulation.world import DIED, World

NAME = "hook"
HOUR_S = 3_600.0
MAX_ROUNDS = 50


@dataclass
class Receiver:
    """A receiver of the events of one subscription, which is slow, and does not always answer."""

    world: World
    taken: list[tuple[int, str]] = field(default_factory=list)
    """The numbers in the feed and the ids of events, as they came."""
    is_reliable: bool = False

    async def send(self, message: Message) -> None:
        await self.world.runtime.sleep(0.3 * self.world.runtime.random())
        if not self.is_reliable and self.world.runtime.random() < 0.1:
            raise ReceiverUnreachable("no answer")
        event = loads(message.body)
        assert isinstance(event, dict)
        self.taken.append((int(str(event["sequence"])), message.id))

    async def close(self) -> None:
        return


class SubscribedClients(FeedClients):
    """Workers that fill the feed and deliver it to a subscription, beside the changes and the consumers."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.loses = True
        self.receivers: dict[str, Receiver] = {}
        """The receivers of subscriptions, by the ids of these."""
        self.instants: list[Mapping[str, Stored]] = []
        """What was stored when writers had ended."""
        self.before: dict[str, int] = {}
        """How many events receivers had got when the history ended, by the ids of their subscriptions."""
        self.place = 0
        """The place of a subscription that goes on in the new history."""
        self._workers: dict[str, Worker] = {}

    @property
    def sinks(self) -> Sinks:
        return lambda subscription: self.receivers[subscription.id]

    async def subscribe(self) -> None:
        """An operator subscribes to all that is in the feed."""
        fixture = self.fixture(self.world.process("operator", skew_ms=0))
        subscription = Subscription(NAME, fixture.runtime.ulid(), "https://x", 0, None, fixture.runtime.now_ms())
        self.receivers[subscription.id] = Receiver(self.world)
        await subscribe(fixture.session(), subscription, self.sinks, only_new=False)

    async def subscription(self) -> Subscription | None:
        """The subscription, as it is stored."""
        state = self.fixture(self.world.process("operator", skew_ms=0)).session().state
        found = await read_subscription(state, NAME)
        return None if found is None else found.subscription

    async def sequence(self, name: str) -> None:
        """A worker, and those that follow it when it dies, until the writers have ended."""
        while self.writing:
            if self.paused:
                await self.world.runtime.sleep(0.1)
                continue
            process = self.world.process(name, self._skew(name))
            fixture = self.fixture(process)
            worker = self._workers.get(process.name)
            if worker is None or worker._catalog is not fixture.catalog:
                worker = self._workers[process.name] = task_worker(fixture.catalog, sinks=self.sinks)
            self._stepping.add(process.name)
            with suppress(CatalogError, StoreError):
                if await process.run(worker.run_until_idle()) is DIED:
                    name += "+"
            stats = worker.take_stats().feed
            self.got["lost segments"] += stats.lost_segments
            assert not stats.errors or self.world.plan.faults, "a worker met an error, and nothing was at fault"
            self._stepping.discard(process.name)
            if self.random() < 0.2:
                self._workers.pop(process.name, None)
            await self.world.runtime.sleep(3 * self.random())

    async def make_anew(self) -> None:
        """Deletes the catalog's state, makes a catalog at the same place, and subscribes to that, or not."""
        async with self.stopped():
            self.lose()
            await self.make()
        if self.random() < 0.7:
            await self.subscribe()

    async def set_back(self, before: Mapping[str, Stored]) -> None:
        """Sets all of the catalog's state back to an instant, as `arco restore --to` does."""
        async with self.stopped():
            self.lose()
            self.world.fill({key: stored for key, stored in before.items() if key.startswith(PATHS.state)})

            present = await self.subscription()
            self.place = 0 if present is None else present.cursor

    async def lose_and_restore(self, file: Path) -> None:
        """Restores the catalog from a backup, which has no subscriptions, and subscribes anew, or not."""
        await super().lose_and_restore(file)
        if self.random() < 0.7:
            await self.subscribe()

    def lose(self) -> None:
        """Loses all of the catalog's state, and notes what receivers have got by then."""
        self.before = {name: len(receiver.taken) for name, receiver in self.receivers.items()}
        super().lose()

    async def deliver_rest(self) -> None:
        """Lets a worker deliver what is left, with as much patience as it takes."""
        for receiver in self.receivers.values():
            receiver.is_reliable = True
        fixture = self.fixture(self.world.process("last", skew_ms=0))
        for _ in range(MAX_ROUNDS):
            await task_worker(fixture.catalog, sinks=self.sinks).run_until_idle()
            page = await read_feed(fixture.session().state, None, 100_000)
            found = await self.subscription()
            if found is None or found.cursor == page.records[-1].number:
                return
            await self.world.runtime.sleep(HOUR_S)
        raise AssertionError(f"the subscription stands still: {found}")

    async def judge_deliveries(self) -> None:
        """The present subscription got all events of the feed behind its place in their order, and others got none,
        since the history began."""
        page = await read_feed(self.fixture(self.world.process("last", skew_ms=0)).session().state, None, 100_000)
        present = await self.subscription()
        for subscription, receiver in self.receivers.items():
            later = receiver.taken[self.before.get(subscription, 0) :]
            if present is None or subscription != present.id:
                assert not later, f"{later} went to a subscription that is gone"
                continue
            place = self.place if subscription in self.before else 0
            events = [(record.number, event_of(record)) for record in page.records if record.number > place]
            expected = [(number, event["event-id"]) for number, event in events if event is not None]
            assert [*dict.fromkeys(later)] == expected, f"{later} came, and {expected} is in the feed"
            self.got["delivered"] += len(expected)


async def _beside_another_history(clients: SubscribedClients, change: Callable[[], Awaitable[None]]) -> None:
    """Workers fill and deliver a feed beside writers; then the history changes, and they go on."""
    await clients.set_up()
    await clients.subscribe()

    async def phases() -> None:
        for name in ("w0-", "w1-"):
            await clients.writers(2, changes=4, name=name)
            clients.instants.append(clients.world.stored())
        await change()
        await clients.writers(2, changes=6, name="w3-")

    await clients.all(phases())
    await clients.end(restored=True)
    await clients.deliver_rest()
    await clients.judge_deliveries()
    COUNTED.update(clients.got)


async def a_feed_of_a_catalog_made_anew(world: World) -> None:
    """The catalog's state is deleted, and a catalog made at the same place."""
    clients = SubscribedClients(world)
    await _beside_another_history(clients, clients.make_anew)


async def a_feed_that_is_set_back(world: World) -> None:
    """All of the catalog's state is set back to an earlier instant, with the feed and the subscription."""
    clients = SubscribedClients(world)

    async def change() -> None:
        await clients.writers(2, changes=2, name="w2-")
        await clients.set_back(clients.instants[int(2 * clients.random())])

    await _beside_another_history(clients, change)


async def a_feed_restored_from_a_backup(world: World) -> None:
    """All of the catalog's state is lost, and restored from a backup, which has the feed and no subscription."""
    clients = SubscribedClients(world)
    with TemporaryDirectory() as folder:
        file = Path(folder, "backup")

        async def change() -> None:
            await clients.back_up(file)
            await clients.writers(2, changes=2, name="w2-")
            await clients.lose_and_restore(file)

        await _beside_another_history(clients, change)


SCENARIOS: Sequence[Scenario] = (
    a_feed_of_a_catalog_made_anew,
    a_feed_that_is_set_back,
    a_feed_restored_from_a_backup,
)
