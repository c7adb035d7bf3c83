"""Collections in the simulated world, beside writers, takeovers, transactions and undrops, with ages of seconds: what a
writer sent lands after its time. An auditor judges each object that goes (docs/design/collection.md)."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import replace

from arco_catalog.iceberg.errors import (
    CatalogError,
    CommitStateUnknown,
    KeyInProgress,
    Refusal,
    Unavailable,
)
from arco_catalog.iceberg.json import JsonObject, loads
from arco_catalog.operations.commit import commit_table
from arco_catalog.operations.create import create_view
from arco_catalog.operations.drop import drop_view
from arco_catalog.operations.listing import Paging, list_relations
from arco_catalog.operations.load import load_table
from arco_catalog.operations.register import register_table
from arco_catalog.planning.answers import Answer
from arco_catalog.planning.collection import Kind
from arco_catalog.planning.upkeep_settings import Retention
from arco_catalog.protocol.catalog import Settings
from arco_catalog.state.fields import integer, mapping, sequence, text
from arco_catalog.state.paths import commit_key
from arco_catalog.state.spilling import Limits
from arco_catalog.upkeep.collection.collect import collect
from arco_catalog.upkeep.reconcile import reconcile
from storage_backends import StoreError
from tests.simulation.auditor import PATHS, Ask, Auditor, Spans
from tests.simulation.clients import Perform, SimulatedClients
from tests.simulation.explore import Scenario
from tests.simulation.history import Event
from tests.simulation.world import DIED, World
from tests.support.past_heads import head_as_of, short_chains
from tests.support.registry_versions import raise_version
from tools.support.catalog_fixture import NS
from tools.support.request_bodies import view_request

SECOND = 1_000
KEY_MS = 20 * SECOND
"""How old a key may be without a marker, in place of a day."""
RETENTION = Retention(
    receipts_ms=80 * SECOND,
    undrop_ms=60 * SECOND,
    tasks_ms=80 * SECOND,
    orphans_ms=30 * SECOND,
    markers_ms=30 * SECOND,
    decisions_ms=45 * SECOND,
    margin_ms=15 * SECOND,
)
SETTINGS = Settings(
    "wh",
    request_ms=10 * SECOND,
    in_progress_ms=500,
    duplicate_timeout_ms=400,
    retention=RETENTION,
    allow_location_overlap=True,
)
TINY = replace(SETTINGS, spill=Limits(embedded=0, segment=300))
LATE_ORPHANS = replace(SETTINGS, retention=replace(RETENTION, orphans_ms=120 * SECOND))
"""What a lost try left goes long after its marker, as by default: until then no other collection fences it."""
RUN_MS = 12 * SECOND
"""How long one collection may take."""


Request = Coroutine[None, None, None]


class CollectionAuditor(Auditor):
    """Judges what goes, too. `given_up` are requests that nobody sends again: their outcome stays open."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.given_up: set[str] = set()
        self.views: set[str] = set()
        self.registered: set[str] = set()
        """Files that were registered: the pending receipt of a commit that never applied is kept with its file."""
        self._announced: dict[str, str] = {}
        self._there: set[str] = set()
        self._attempts: dict[str, set[str]] = {}
        self._collected: set[str] = set()
        self._outlived: set[str] = set()
        """Decisions that were deleted when no marker needed them any more."""

    def see(self, event: Event) -> None:
        """One applied write."""
        if event.kind == "delete":
            if event.key in self._there:  # else it was gone already
                self._there.discard(event.key)
                self._see_delete(event.key)
            return
        self._there.add(event.key)
        if event.key.startswith(PATHS.markers):
            slot = self._document(event.key)
            self._attempts.setdefault(event.key.rpartition("/")[0], set()).add(text(slot, "attempt"))
        elif "/iceberg/pending/" in event.key:
            self._announced[event.key] = text(self._document(event.key), "metadata_location")
        super().see(event)

    def _document(self, key: str) -> JsonObject:
        body = self.world.peek(key)
        assert body is not None
        document = loads(body)
        assert isinstance(document, dict)
        return document

    def _applied(self, principal: str, unit: str) -> None:
        assert unit not in self._collected, f"{unit} of {principal} is applied after its marker was collected"
        super()._applied(principal, unit)

    def _see_registry(self, event: Event, objects: dict[str, bytes]) -> None:
        before = {key: entry for key, entry in self._entries.items() if not key.startswith(("tombstone", "dropped"))}
        super()._see_registry(event, objects)
        head = self._document(event.key)
        kinds = {operation.get("kind") for operation in sequence(head, "operations") if isinstance(operation, dict)}
        if kinds == {"collect-tombstones"}:
            lost = {key for key, entry in before.items() if self._entries.get(key) != entry}
            assert not lost, f"{lost} went with a tombstone"

    def _see_committed_receipt(self, event: Event, objects: dict[str, bytes]) -> None:
        pending = event.key.replace("/committed/", "/pending/")
        if pending not in objects:  # its writer's own may have been on its way all the time
            assert event.step != "lands", f"{event.key} was collected, and came back"
            return
        super()._see_committed_receipt(event, objects)

    def _see_transaction(self, event: Event, objects: dict[str, bytes]) -> None:
        """After a decision was collected and no marker needed it, a late create may land, and a collection
        that began before may close the transaction, once. It never commits again."""
        status = text(self._document(event.key), "status")
        if event.key not in self._outlived or status == "committed":
            super()._see_transaction(event, objects)
        elif status == "aborted":
            self._outlived.discard(event.key)

    def _see_delete(self, key: str) -> None:
        objects = self.world.snapshot()
        name = key.rpartition("/")[2].removesuffix(".json")
        if key.startswith("wh/warehouse/"):
            owners = [entity for entity, location, _ in self.became_current if location.endswith(key)]
            live = {text(entry, "entity") for name, entry in self._entries.items() if not name.startswith("location")}
            assert not owners or {*owners} <= self.views - live, f"{key} was current once, and was deleted"
        elif key.startswith(PATHS.pointers):
            assert all(entry.get("entity") != name for entry in self._entries.values()), f"{name} lost its pointer"
        elif "/iceberg/pending/" in key:
            was_current = any(commit_key(entity, location) == name for entity, location, _ in self.became_current)
            receipted = key.replace("/pending/", "/committed/") in objects
            assert receipted or not was_current, f"{key} was that of a commit without a receipt"
            if self._announced[key].removeprefix("memory:///") not in objects:
                del self._announced[key]  # a file that lands behind its receipt is found by nobody
        elif "/iceberg/committed/" in key:
            for entity in self._named():
                current = text(self._effective(entity), "metadata_location")
                assert commit_key(entity, current) != name, f"the receipt of the current file of {entity} is gone"
        elif key.startswith(PATHS.transactions):
            assert self._decided.get(name) != "pending", f"{name} was not decided when it went"
            waits = [e for e, raw in self._raw.items() if mapping(raw, "intent").get("transaction") == name]
            waits += [entry for entry, value in self._entries.items() if value.get("transaction") == name]
            assert self._decided[name] != "committed" or not waits, f"{waits} wait for {name}, which is gone"
            markers = [marker for marker, attempts in self._attempts.items() if name in attempts]
            if not any(f"{marker}/0.json" in objects for marker in markers):
                self._outlived.add(key)
        elif key.startswith(PATHS.markers):
            self._collected |= self._attempts.get(key.rpartition("/")[0], set())
        elif key.startswith(PATHS.registry_commits) and PATHS.manifest in objects:
            head = text(self._document(PATHS.manifest), "id")
            assert head_as_of(head, objects.get, PATHS) == objects[PATHS.manifest], f"HEAD needs {key}, which is gone"
        elif key.startswith((PATHS.index_segments, PATHS.namespace_values)):
            assert name not in {text(e, "value") for k, e in self._entries.items() if k.startswith("namespace")}
            self._index(objects)

    def _became_current(self, pointer: JsonObject, now: float, objects: dict[str, bytes]) -> JsonObject:
        entity, location = text(pointer, "entity"), text(pointer, "metadata_location")
        registered = mapping(pointer, "origin").get("registered") == location
        if pointer["type"] == "table" and not registered:
            return super()._became_current(pointer, now, objects)
        if registered:
            self.registered.add(location)
        assert location.removeprefix("memory:///") in objects, f"{location} became current, and is gone"
        self.locations.setdefault(entity, Spans()).become(location, now)
        self.became_current.append((entity, location, integer(pointer, "metadata_ms")))
        if pointer["type"] == "view":
            self.views.add(entity)
        return {}

    def _named(self) -> set[str]:
        return {
            text(entry, "entity")
            for key, entry in self._entries.items()
            if key.startswith(("relation\n", "tombstone\n")) and text(entry, "entity") in self.locations
        }

    def close(self, *, reconciled: bool) -> None:
        """What was answered is true in the end, whatever was collected."""
        for ask in self.asks.values():
            if ask.principal not in self.given_up:
                answered = ask.applied == 1 if ask.succeeded else ask.refused is not None
                assert answered, f"{ask.principal} was never answered"
            assert ask.applied == 0 or ask.refused is None
        for entity, when in self.drops_answered.items():
            if not any(entity == spans.spans[-1][0] for spans in self.names.values()):
                assert self.last_commit.get(entity, 0.0) <= when, f"{entity} moved after its drop was answered"

    def is_clean(self) -> None:
        """Judges what is left when everything was collected that can be: all of it is live."""
        objects = self.world.snapshot()
        named = self._named()
        for prefix in (PATHS.markers, PATHS.transactions, PATHS.metadata_claims):
            left = [key for key in objects if key.startswith(prefix) and b'"registered"' not in objects[key]]
            assert not left, f"left behind: {left}"
        pointers = {key.removeprefix(PATHS.pointers).removesuffix(".json") for key in self.world.keys(PATHS.pointers)}
        assert pointers == named, f"pointers of {pointers ^ named}"
        pending = [json.loads(body) for key, body in objects.items() if "/iceberg/pending/" in key]
        assert {text(receipt, "metadata_location") for receipt in pending} <= self.registered, (
            "pending receipts are left"
        )
        current = {location for _, location, _ in self.became_current}
        files = {f"memory:///{key}" for key in objects if key.startswith("wh/warehouse/")}
        lost = (files - current) & {*self._announced.values()}  # what was never announced is found by nobody
        assert not lost, f"never current, and left: {lost}"
        kept = {f"{commit_key(e, text(self._effective(e), 'metadata_location'))}.json" for e in named}
        receipts = {key.rpartition("/")[2] for key in objects if "/iceberg/committed/" in key}
        registered = {
            f"{commit_key(e, text(self._raw[e], 'metadata_location'))}.json" for e in named if "origin" in self._raw[e]
        }
        assert kept - registered <= receipts <= kept, "receipts that are kept for nothing, or are missing"


class CollectingClients(SimulatedClients):
    """Clients who send again after their key's time, and who give up; and collectors."""

    def __init__(self, world: World, settings: Settings = SETTINGS) -> None:
        super().__init__(world, settings)
        self._calm = settings
        self._waiting: list[Request] = []
        world_observers = world._network.observers
        world_observers.clear()  # of the auditor that the base has made
        self.auditor: CollectionAuditor = CollectionAuditor(world)

    async def send(self, ask: Ask, perform: Perform, body: JsonObject, process: str, key: str | None) -> Answer | None:
        """As the base does, but it gives up after a while, and waits longer than keys last in between."""
        name = process
        for _ in range(5):
            worker = self.world.process(name)
            try:
                answer = await worker.run(self._once(worker, ask, perform, body, key))
            except Refusal as refusal:
                self.auditor.refused(ask, refusal)
                return None
            except (CommitStateUnknown, KeyInProgress, Unavailable):
                answer = None
            if answer is DIED:
                name += "+"
            elif answer is not None:
                self.auditor.answered(ask)
                return answer
            if key is None:
                break
            most = 3.0 if self.world.runtime.random() < 0.5 else 60.0
            await self.world.runtime.sleep(most * self.world.runtime.random())
        self.auditor.given_up.add(ask.principal)
        return None

    async def collector(self, process: str, times: int = 6, pause_s: float = 40.0) -> None:
        """Collects again and again, beside everything else; when it dies, another goes on."""
        name = process
        for _ in range(times):
            await self.world.runtime.sleep(pause_s * self.world.runtime.random())
            worker = self.world.process(name)
            session = self.fixture(worker).session(deadline_ms=RUN_MS)
            with suppress(StoreError, CatalogError):
                if await worker.run(collect(session, delete=True)) is DIED:
                    name += "+"

    async def commit_again(self, principal: str, first: str, second: str) -> None:
        """A commit that is sent again when its key's time is over, whatever the first sending was told."""
        body: JsonObject = {
            "requirements": [{"type": "assert-current-schema-id", "current-schema-id": 0}],
            "updates": [{"action": "set-properties", "updates": {"by": principal}}],
        }
        ask, key = self.auditor.ask(Ask(principal, "commit", ("t",), needs_schema=0)), self.key()
        self.auditor.given_up.add(principal)
        for process in (first, second):
            worker = self.world.process(process)
            with suppress(CommitStateUnknown, KeyInProgress, Unavailable):
                try:
                    perform = self._once(worker, ask, lambda session: commit_table(session, NS, "t", body), body, key)
                    if await worker.run(perform) is not DIED:
                        self.auditor.answered(ask)
                except Refusal as refusal:
                    self.auditor.refused(ask, refusal)
            await self.quiet(46 + 8 * self.world.runtime.random())

    def after(self, seconds: float, request: Request) -> Request:
        """A request that is made some time later."""
        self._waiting.append(request)
        return self._after(seconds, request)

    async def _after(self, seconds: float, request: Request) -> None:
        await self.world.runtime.sleep(seconds * self.world.runtime.random())
        await request

    async def all(self, requests: list[Request]) -> None:
        """Makes all of them at once. Those that a failure keeps from being made are closed."""
        try:
            async with asyncio.TaskGroup() as group:
                for request in requests:
                    group.create_task(request)
        finally:
            for request in self._waiting:
                request.close()

    async def quiet(self, seconds: float) -> None:
        """Lets time pass."""
        await self.world.runtime.sleep(seconds)

    async def close(self) -> None:
        """Lets everything land that is under way, collects until nothing is left to collect, and audits the end."""
        await self.world.settle()
        last = self.world.process("last", skew_ms=0)
        fixture = self.fixture(last)
        await reconcile(fixture.another().session(deadline_ms=60 * SECOND))
        idle = 0
        for _ in range(12):
            await self.quiet(100)
            stats = await collect(fixture.another().session(deadline_ms=60 * SECOND), delete=True)
            assert stats.unreadable == []
            idle = idle + 1 if not {*stats.kinds} - {Kind.REGISTRY_COMMIT} else 0
            if idle == 2:
                break
        else:
            raise AssertionError("there is always something left to collect")
        self.auditor.close(reconciled=True)
        self.auditor.is_clean()
        for name, spans in self.auditor.names.items():
            entity = spans.spans[-1][0]
            if entity is not None and entity not in self.auditor.views:
                assert (await load_table(fixture.another().session(), NS, name)).entity == entity


Requests = Callable[[CollectingClients], list[Request]]


def scenario(*tables: str, settings: Settings = SETTINGS, with_edits: bool = False) -> Callable[[Requests], Scenario]:
    """Runs what the decorated function lists, all at once, beside its collectors. `with_edits`: in a registry in which
    most commit objects have only edits."""

    def decorate(requests: Requests) -> Scenario:
        async def run(world: World) -> None:
            clients = CollectingClients(world, settings)
            await clients.set_up(*tables)
            if with_edits:
                await raise_version(clients.fixture(world.process("setup")).session().state)
            with short_chains(with_edits):
                await clients.all(requests(clients))
                await clients.close()

        run.__qualname__ = requests.__name__
        return run

    return decorate


@scenario("t")
def a_collector_beside_commits_and_their_retries(clients: CollectingClients) -> list[Request]:
    return [
        clients.commit("c1", "p1", "p2"),
        clients.after(30, clients.commit("c2", "p2", key=False)),
        clients.after(90, clients.commit("c3", "p3")),
        clients.collector("g1"),
    ]


@scenario("t")
def a_collector_beside_refusals(clients: CollectingClients) -> list[Request]:
    return [
        clients.commit("c1", "p1", "p2"),
        clients.change_schema("s1", "p3", to=1),
        clients.after(60, clients.change_schema("s2", "p3", to=0)),
        clients.collector("g1"),
    ]


@scenario("t")
def a_collector_beside_a_commit_to_an_idle_table(clients: CollectingClients) -> list[Request]:
    return [clients.commit("c1", "p1", key=False), clients.collector("g1")]


@scenario()
def a_collector_beside_creates(clients: CollectingClients) -> list[Request]:
    return [
        clients.create("c1", "p1", "p2"),
        clients.create("c2", "p3", name="u", key=False),
        clients.after(60, clients.create("c3", "p2", name="v")),
        clients.collector("g1"),
    ]


@scenario("t")
def a_collector_beside_a_drop_and_an_undrop(clients: CollectingClients) -> list[Request]:
    return [
        clients.commit("c1", "p1"),
        clients.after(5, clients.drop("d1", "p2")),
        clients.after(120, clients.undrop("u1", "p3")),
        clients.after(150, clients.commit("c2", "p1")),
        clients.collector("g1"),
    ]


@scenario("a", "b")
def a_collector_beside_transactions(clients: CollectingClients) -> list[Request]:
    return [
        clients.transact("t1", "p1", "p2"),
        clients.after(20, clients.transact("t2", "p3", key=False)),
        clients.after(60, clients.transact("t3", "p2", creates=("c",))),
        clients.collector("g1"),
    ]


@scenario("t")
def two_collectors_and_a_reconciler(clients: CollectingClients) -> list[Request]:
    return [
        clients.commit("c1", "p1", "p2"),
        clients.after(40, clients.commit("c2", "p1")),
        clients.after(80, clients.commit("c3", "p3", key=False)),
        clients.reconcile("r1", times=20),
        clients.collector("g1"),
        clients.collector("g2"),
    ]


@scenario("t")
def collectors_whose_clocks_are_wrong(clients: CollectingClients) -> list[Request]:
    clients.world.process("g1", 600 * SECOND)
    clients.world.process("g2", -600 * SECOND)
    return [
        clients.commit("c1", "p1", "p2"),
        clients.after(40, clients.drop("d1", "p1")),
        clients.after(80, clients.undrop("u1", "p3")),
        clients.collector("g1"),
        clients.collector("g2"),
    ]


def listing_beside_creates(clients: CollectingClients, *, remembers: bool = True) -> list[Request]:
    """Pages of a listing, creates and a collector. The process that lists has the first page's HEAD in memory if it
    `remembers`."""

    async def pages() -> None:
        """Each page shows what the first one showed, or says that its token is too old."""
        reader = clients.world.process("p3")
        shown: list[object] = []
        token: str | None = ""
        since, too_old = clients.world.loop.time(), False
        while token is not None:
            try:
                fixture = clients.fixture(reader)
                session = (fixture if remembers else fixture.another()).session()
                page = await reader.run(list_relations(session, NS, "table", Paging(token, 1)))
            except Refusal:
                too_old = clients.world.loop.time() - since > RETENTION.orphans_ms / SECOND
                break
            except (StoreError, CatalogError):
                return
            if page is DIED:
                return
            shown += page.items
            token = page.next_page_token
            await clients.quiet(8)
        assert too_old or {"namespace": ["db"], "name": "t"} in shown, f"a page is gone; shown: {shown}"

    return [
        *(clients.after(90, clients.create(f"c{number}", "p1", name=f"n{number}")) for number in range(6)),
        clients.after(60, pages()),
        clients.collector("g1", times=12, pause_s=14),
    ]


@scenario("t", settings=TINY)
def a_collector_beside_a_listing(clients: CollectingClients) -> list[Request]:
    return listing_beside_creates(clients)


@scenario("t", settings=TINY, with_edits=True)
def a_collector_beside_a_listing_on_edits(clients: CollectingClients) -> list[Request]:
    tables = [clients.after(9, clients.create(f"e{number}", "p2", name=f"e{number}")) for number in range(4)]
    return [*tables, *listing_beside_creates(clients, remembers=False)]


@scenario("t", with_edits=True)
def a_collector_beside_creates_far_apart(clients: CollectingClients) -> list[Request]:
    """A commit is followed by few others until it is old."""

    async def creates() -> None:
        for number in range(7):
            await clients.create(f"c{number}", "p1", name=f"n{number}")
            await clients.quiet(30 * clients.world.runtime.random())

    return [creates(), clients.collector("g1", times=12, pause_s=30)]


@scenario("t")
def a_collector_beside_a_registration_of_a_lost_file(clients: CollectingClients) -> list[Request]:
    async def register() -> None:
        """Registers whatever metadata file lies there, and must be able to load it from then on."""
        for number in range(12):
            await clients.quiet(6)
            worker = clients.world.process("p2")
            fixture = clients.fixture(worker)
            for key in clients.world.keys("wh/warehouse/"):
                with suppress(StoreError, CatalogError):
                    made = await worker.run(
                        register_table(
                            fixture.session(), NS, f"r{number}-{key[-20:-14]}", f"memory:///{key}", overwrite=False
                        )
                    )
                    assert made is not None

    return [clients.commit("c1", "p1", key=False), register(), clients.collector("g1")]


@scenario()
def a_hasty_collector_beside_one_create(clients: CollectingClients) -> list[Request]:
    return [clients.create("c1", "p1", key=False), clients.collector("g1", times=16, pause_s=8)]


@scenario()
def a_hasty_collector_beside_creates(clients: CollectingClients) -> list[Request]:
    return [
        clients.create("c1", "p1", key=False),
        clients.after(20, clients.create("c2", "p2", name="u", key=False)),
        clients.collector("g1", times=30, pause_s=3),
    ]


@scenario("t")
def a_hasty_collector_beside_commits(clients: CollectingClients) -> list[Request]:
    return [
        clients.commit("c1", "p1"),
        clients.after(20, clients.commit("c2", "p2")),
        clients.collector("g1", times=30, pause_s=3),
    ]


@scenario("a", "b")
def a_hasty_collector_beside_transactions(clients: CollectingClients) -> list[Request]:
    return [clients.transact("t1", "p1"), clients.collector("g1", times=20, pause_s=3)]


@scenario("t")
def a_refusal_that_is_sent_again_while_its_marker_goes(clients: CollectingClients) -> list[Request]:
    async def refused() -> None:
        await clients.change_schema("s1", "setup", to=1)
        both = asyncio.gather(clients.commit_again("c1", "p1", "p2"), restored())
        await both

    async def restored() -> None:
        await clients.quiet(20)
        await clients.change_schema("s2", "setup", to=0)

    return [refused(), clients.collector("g1", times=30, pause_s=4)]


@scenario("t", settings=LATE_ORPHANS)
def a_commit_that_is_under_way_while_its_marker_goes(clients: CollectingClients) -> list[Request]:
    return [clients.commit_again("c1", "p1", "p2"), clients.collector("g1", times=10, pause_s=10)]


@scenario("t")
def a_drop_that_nobody_undoes(clients: CollectingClients) -> list[Request]:
    return [
        clients.commit("c1", "p1", key=False),
        clients.after(5, clients.drop("d1", "p2")),
        clients.collector("g1", times=8),
    ]


@scenario("t")
def an_undrop_at_the_last_moment(clients: CollectingClients) -> list[Request]:
    async def undo() -> None:
        await clients.drop("d1", "setup")
        await clients.quiet(60 + 3 * clients.world.runtime.random())
        await clients.undrop("u1", "p3")

    async def late(name: str) -> None:
        await clients.quiet(60)
        await clients.collector(name, times=4, pause_s=2)

    return [undo(), late("g1"), late("g2"), late("g3")]


@scenario("t")
def a_collector_that_comes_late(clients: CollectingClients) -> list[Request]:
    async def late() -> None:
        await clients.quiet(100)
        await clients.collector("g1", times=3)

    return [
        clients.commit("c1", "p1", key=False),
        clients.after(2, clients.commit("c2", "p2", key=False)),
        clients.after(4, clients.commit("c3", "p3", key=False)),
        late(),
    ]


@scenario()
def a_collector_beside_a_view(clients: CollectingClients) -> list[Request]:
    async def view() -> None:
        worker = clients.world.process("p1")
        fixture = clients.fixture(worker)
        body = view_request("w", {})
        with suppress(StoreError, CatalogError):
            await worker.run(create_view(fixture.session(body), NS, body))
        await clients.quiet(10)
        with suppress(StoreError, CatalogError):
            await worker.run(drop_view(fixture.session(), NS, "w"))

    return [view(), clients.collector("g1")]


SCENARIOS = [
    a_hasty_collector_beside_one_create,
    a_collector_beside_commits_and_their_retries,
    a_collector_beside_refusals,
    a_collector_beside_a_commit_to_an_idle_table,
    a_collector_beside_creates,
    a_collector_beside_a_drop_and_an_undrop,
    a_collector_beside_transactions,
    two_collectors_and_a_reconciler,
    collectors_whose_clocks_are_wrong,
    a_collector_beside_a_listing,
    a_collector_beside_a_listing_on_edits,
    a_collector_beside_creates_far_apart,
    a_collector_beside_a_registration_of_a_lost_file,
    a_hasty_collector_beside_creates,
    a_hasty_collector_beside_commits,
    a_hasty_collector_beside_transactions,
    a_refusal_that_is_sent_again_while_its_marker_goes,
    a_commit_that_is_under_way_while_its_marker_goes,
    a_drop_that_nobody_undoes,
    an_undrop_at_the_last_moment,
    a_collector_that_comes_late,
    a_collector_beside_a_view,
]
