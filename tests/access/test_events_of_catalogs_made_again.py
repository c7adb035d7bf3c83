"""The event feed and the subscriptions of a catalog that is dropped: one that is made under its name has none of them,
and one that is brought back has all (docs/design/events.md#other-histories)."""

import pytest

from arco_catalog.http.realms import catalog_of
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.stray_catalogs import UndropRequest, find_stray, undrop_catalog
from arco_catalog.state.fields import mapping, objects, text
from arco_catalog.state.subscription import Subscription, list_subscriptions
from arco_catalog.upkeep.delivery.subscriptions import subscribe
from arco_catalog.upkeep.purge.worker import task_worker
from tests.access.lake import Lake
from tests.support.realm_service import on_catalog
from tests.upkeep.delivery.test_killed_deliverers import Receiver

NAMESPACES, EVENTS = "/v1/lake/namespaces", "/v1/lake/events"


class SubscribedLake:
    """A realm whose catalog `lake` has a feed with a namespace, a consumer, and a subscription that got nothing yet."""

    def __init__(self) -> None:
        self.lake = Lake()
        self.app = self.lake.app
        self.receiver = Receiver()
        self.token = ""
        self.root = ""

    async def start(self) -> "SubscribedLake":
        await self.app.start()
        await self.app.catalog()
        self.manager = await self.app.principal("manager", on_catalog("CATALOG_MANAGE_CONTENT"))
        await self.make("older")
        await self.lake.enter()
        await self.make("newer")
        await self.lake.enter()
        self.token = text((await self.read()), "continuation-token")
        [session] = await self.lake.sessions()
        self.root = session.state.paths.root
        wanted = Subscription("s", self.app.clock.ulid(), "https://x", 0, None, self.app.clock.now_ms())
        await subscribe(session, wanted, lambda subscription: self.receiver, only_new=False)
        return self

    async def make(self, namespace: str) -> None:
        """Makes a namespace."""
        await self.lake.ok(await self.manager.post(NAMESPACES, {"namespace": [namespace]}))

    async def read(self, token: str | None = None) -> JsonObject:
        """The page of events after a token."""
        return await self.lake.ok(await self.manager.post(EVENTS, {"continuation-token": token}))

    async def made(self, token: str | None = None) -> list[str]:
        """The namespaces whose creation is in the feed after a token."""
        return [str(mapping(event, "operation")["namespace"]) for event in objects(await self.read(token), "events")]

    async def work(self) -> list[str]:
        """Lets a worker deliver what is to be delivered. Returns the namespaces of which the receiver got the
        creation."""
        realm = self.app.realms()["r"]
        catalog = await catalog_of(realm, realm.lookups(), "lake", identity=None)
        await task_worker(catalog, sinks=lambda subscription: self.receiver).run_until_idle()
        return [str(mapping(mapping(each, "data"), "operation")["namespace"]) for each in self.receiver.taken]


@pytest.fixture
async def lake() -> SubscribedLake:
    lake = await SubscribedLake().start()
    for name in ("older", "newer"):
        assert (await lake.manager.delete(f"{NAMESPACES}/{name}")).status == 204
    assert (await lake.app.manage("DELETE", "catalogs/lake")).status == 204
    return lake


async def test_a_catalog_made_again_has_a_feed_of_its_own_and_no_subscription(lake: SubscribedLake) -> None:
    await lake.app.catalog(base="memory:///lake2")
    await lake.app.grant("manager", on_catalog("CATALOG_MANAGE_CONTENT"))
    assert (await lake.manager.post(EVENTS, {})).status == 404  # its feed has not begun

    await lake.make("of-the-new")
    await lake.lake.enter()
    await lake.make("later")
    await lake.lake.enter()

    refused = await lake.manager.post(EVENTS, {"continuation-token": lake.token})
    assert refused.status == 400
    assert "continuation token" in refused.message
    assert await lake.made() == ["['later']"]
    [session] = await lake.lake.sessions()
    assert session.state.paths.root != lake.root
    assert await list_subscriptions(session.state) == []
    assert await lake.work() == []


async def test_a_catalog_that_is_brought_back_goes_on_with_its_feed_and_its_subscription(lake: SubscribedLake) -> None:
    realm = lake.app.realms()["r"]
    session = lake.app.session(realm)
    stray = await find_stray(realm, session, lake.root)
    await undrop_catalog(realm, session, stray, UndropRequest("lake", None, {}, {}))
    await lake.make("after")
    await lake.lake.enter()

    assert (await lake.made(lake.token))[-1] == "['after']"
    assert (await lake.made())[0] == "['newer']"
    assert await lake.work() == await lake.made()
