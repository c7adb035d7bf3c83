"""Catalogs of a realm in the simulated world.

What is drawn: catalogs are made, changed and dropped (purges waited for, or cancelled), made again under the name and
at the location of a predecessor, and undropped under this name or another; their tables are made, dropped with and
without a purge, undropped, and registered by a successor from the files of its predecessor; workers that keep catalogs
open after their drop purge meanwhile. Some drops are an earlier version's, which left purges in a closed catalog.

`RealmClients` has a method for each request, which is sent again until it is answered; `RealmAuditor` judges each
commit and each delete (docs/design/access.md#rule-11, docs/design/purge.md#rule-25)."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from arco_catalog.authentication.secrets import Secrets
from arco_catalog.http.realms import find
from arco_catalog.iceberg.errors import (
    AlreadyExists,
    CatalogError,
    CommitStateUnknown,
    NamespaceNotEmpty,
    NotFound,
    Refusal,
    Unavailable,
)
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.create import create_table
from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.management.bootstrap import bootstrap
from arco_catalog.operations.management.catalog_drops import end_catalog, remove_catalog, unfinished_purges
from arco_catalog.operations.management.catalogs import (
    CatalogRequest,
    CatalogUpdate,
    find_entry,
    list_catalogs,
    shown_catalog,
)
from arco_catalog.operations.management.principals import NewCredentials
from arco_catalog.operations.namespaces import create_namespace, drop_namespace
from arco_catalog.operations.open import location_of
from arco_catalog.operations.realms import Deployment, Realm, change_catalog, make_catalog
from arco_catalog.operations.register import register_table
from arco_catalog.operations.stray_catalogs import UndropRequest, stray_catalogs, undrop_catalog
from arco_catalog.operations.undrop import undrop
from arco_catalog.planning.upkeep_settings import PurgeSettings
from arco_catalog.protocol.access import ALLOW_ALL
from arco_catalog.protocol.catalog import Catalog, Session, Settings
from arco_catalog.protocol.internal_commits import change_registry
from arco_catalog.protocol.operation_request import OperationRequest
from arco_catalog.state.catalog_state import CATALOG_STATE, DROPPING, CatalogState
from arco_catalog.state.entries import RelationEntry
from arco_catalog.state.fields import optional_text, sequence, text
from arco_catalog.state.files import Mount
from arco_catalog.state.index import Edits, Index, relations_in
from arco_catalog.state.locations import Location
from arco_catalog.state.needs import Steps
from arco_catalog.state.paths import Paths
from arco_catalog.state.pointer import Pointer
from arco_catalog.state.realm import CatalogEntry, catalogs
from arco_catalog.state.registry import RegistryState
from arco_catalog.state.segments import Segment
from arco_catalog.upkeep.collection.collect import collect
from arco_catalog.upkeep.purge.worker import task_worker
from storage_backends import StoreError, Version
from tests.simulation.clients import EAGER
from tests.simulation.history import Event
from tests.simulation.purging import POLICIES
from tests.simulation.world import DIED, World
from tools.support.request_bodies import schema

T = TypeVar("T")

HEAD = "_realm/core/manifest.json"
CATALOGS = "_realm/catalogs/"
LAKE = "memory:///lake"
NS = ("db",)
MAX_TRIES = 60
SETTINGS = replace(EAGER, purge=PurgeSettings(undrop_window_ms=40_000, trust_locations=True, vended_ms=0))
NOTHING_DONE = (StoreError, Unavailable, CommitStateUnknown)
"""After which a request is sent again."""


class RealmAuditor:
    """Watches the registries of a realm and of its catalogs, and every file that is deleted."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._entries: Mapping[str, CatalogEntry] = {}
        self._closed: dict[str, bool] = {}
        self.made: dict[str, JsonObject] = {}
        """Catalogs as they were made, by the names of the requests."""
        self.named: set[str] = set()
        """The prefixes of all catalogs that have, or had, a name."""
        self.judged: dict[str, str] = {}
        """The id of the catalog that a change is for, by the name of the request."""
        world.observe(self._observe)

    def _observe(self, event: Event) -> None:
        if event.key == HEAD:
            self._check_realm()
        elif event.key.startswith(CATALOGS) and event.key.endswith("/core/manifest.json"):
            self._check_catalog(event.key)
        elif event.kind == "delete" and event.key.startswith("lake"):
            self._check_delete(event.key)

    def head(self, key: str) -> RegistryState:
        """The registry with this HEAD, as it is stored."""

        def loaded(segment: str) -> Segment:
            place = key.replace("manifest.json", f"index/{segment}.json")
            return Segment.parse(segment, self._body(place), place)

        return RegistryState.parse(self._body(key), Version(""), key).with_segments(loaded)

    def _body(self, key: str) -> bytes:
        body = self._world.peek(key)
        assert body is not None, key
        return body

    def _check_realm(self) -> None:
        """Each commit changes the catalog that its request is about, and no two share a folder or a location."""
        head = self.head(HEAD)
        now = {each.name: each for each in (CatalogEntry(entry) for _, entry in head.index.scan(catalogs()))}
        for operation in sequence(head.document, "operations"):
            assert isinstance(operation, dict)
            self._check_operation(operation, now)
        assert len({each.root for each in now.values()}) == len(now), f"two catalogs share a folder: {now}"
        bases = [Location.parse(text(each.properties, "default-base-location")) for each in now.values()]
        for one in bases:
            assert not any(one.inside(other) for other in bases if other is not one), f"catalogs overlap: {bases}"
        self._entries = now
        self.named |= {each.root for each in now.values()}

    def _check_operation(self, operation: JsonObject, now: Mapping[str, CatalogEntry]) -> None:
        kind, name = text(operation, "kind"), optional_text(operation, "name")
        by = optional_text(operation, "principal") or ""  # a collection's fence has none
        before = self._entries.get(name or "")
        if kind == "drop-catalog" and before is not None and name not in now:
            assert before.entity == operation["catalog"], f"{by} removed a catalog that it did not close: {name}"
        elif kind == "create-catalog":
            self.made[by] = shown_catalog(now[str(name)])
        elif kind == "update-catalog":
            assert before is not None
            assert before.entity == self.judged[by], f"{by} changed {name}, and its rights are of a predecessor"

    def _check_catalog(self, key: str) -> None:
        """A catalog is closed, and opened again, without a purge that has not ended."""
        head = self.head(key)
        state = CatalogState.of(head.index)
        was_closed, self._closed[key] = self._closed.get(key, False), state.is_closed
        purges = [each.name for each in unfinished_purges(head.index)]
        if state.is_closed and state.catalog is not None:
            assert not purges, f"{key} was closed over the purges of {purges}"
        if was_closed and not state.is_closed:
            assert not purges, f"{key} was opened again with the purges of {purges}"

    def _check_delete(self, file: str) -> None:
        """No file goes to which a live table leads, of whichever catalog."""
        for key in self._world.keys(CATALOGS):
            if key.endswith("/core/manifest.json"):
                root = key.removesuffix("/_catalog/core/manifest.json")
                assert f"memory:///{file}" not in self._current(root, self.head(key).index), f"{root} lost {file}"

    def _current(self, root: str, index: Index) -> set[str]:
        entities = [RelationEntry(entry).entity for _, entry in index.scan(relations_in(NS))]
        bodies = [self._world.peek(Paths(root).pointer(entity)) for entity in entities]
        return {Pointer.parse(body, Version(""), "").metadata.location for body in bodies if body is not None}


@dataclass
class RealmClients:
    """Processes that serve one realm, and requests to them."""

    world: World
    files: list[str] = field(default_factory=list)
    """Metadata files of tables that were made."""
    settings: Settings = SETTINGS

    def __post_init__(self) -> None:
        self.auditor = RealmAuditor(self.world)
        self._realms: dict[str, Realm] = {}
        self._sent = 0

    async def start(self) -> None:
        """Makes the realm, before anything can go wrong."""
        secret = await Secrets(lambda size: bytes(size)).keep("secret")
        await bootstrap(self._session("setup", "setup"), NewCredentials("root", secret))

    def realm(self, process: str) -> Realm:
        """The realm as a process serves it."""
        if process not in self._realms:
            at = self.world.process(process)
            base = location_of("memory:///")
            deployment = Deployment(self.settings, at.store, base, [Mount(base, at.store)], at.runtime)
            self._realms[process] = Realm("r", deployment)
        return self._realms[process]

    def _request(self, process: str, principal: str) -> OperationRequest:
        deadline_ms = self.world.process(process).runtime.now_ms() + SETTINGS.request_ms
        return OperationRequest("POST", "/", "", None, principal, {"kind": "Cli"}, deadline_ms)

    def _session(self, process: str, principal: str) -> Session:
        return self.realm(process).registry.session(self._request(process, principal), ALLOW_ALL)

    async def _send(self, process: str, request: Callable[[str, str], Awaitable[T]]) -> T | Refusal:
        """The answer to a request, or the refusal; it is sent again until there is one."""
        for _ in range(MAX_TRIES):
            self._sent += 1
            principal = f"request-{self._sent}"
            try:
                answer = await self.world.process(process).run(_perform(partial(request, process, principal)))
            except Refusal as refused:
                return refused
            except NOTHING_DONE:
                answer = DIED
            if answer is not DIED:
                return answer
            process += "" if self.world.process(process).alive else "+"
            await self.world.runtime.sleep(5 * self.world.runtime.random())
        raise AssertionError(f"{process} gets no answer")

    # Catalogs

    async def make(self, process: str, name: str, base: str = LAKE) -> bool:
        """Makes a catalog. The answer is the catalog that this very request made."""

        async def request(at: str, principal: str) -> JsonObject:
            properties = {"default-base-location": base, "owner": principal}
            made = CatalogRequest(name, "INTERNAL", properties, {"storageType": "FILE", "allowedLocations": [base]})
            answer = await make_catalog(self.realm(at), self._session(at, principal), made)
            assert answer == self.auditor.made[principal], f"{principal} made another catalog: {answer}"
            return answer

        return not isinstance(await self._send(process, request), Refusal)

    async def change(self, process: str, name: str, pause_s: float = 2) -> bool:
        """Changes a catalog, by the rights on what has the name when the request comes."""

        async def request(at: str, principal: str) -> JsonObject:
            session = self._session(at, principal)
            entry = await find_entry(session, name)
            self.auditor.judged[principal] = entry.entity
            await self.world.runtime.sleep(pause_s * self.world.runtime.random())
            properties = {**{key: str(value) for key, value in entry.properties.items()}, "owner": principal}
            update = CatalogUpdate(name, entry.entity, None, properties, None)
            return await change_catalog(self.realm(at), session, update)

        return not isinstance(await self._send(process, request), Refusal)

    async def drop(self, process: str, name: str, *, cancel_purges: bool = False, earlier: bool = False) -> bool:
        """Drops a catalog, or as an `earlier` version did, which left purges in the closed registry."""

        async def request(at: str, principal: str) -> None:
            session = self._session(at, principal)
            entry = await find_entry(session, name)
            closed = self.realm(at).catalog(entry).session(self._request(at, principal), ALLOW_ALL)
            await self.world.runtime.sleep(4 * self.world.runtime.random())
            if earlier:
                await _close_as_before(closed)
            else:
                await end_catalog(closed, entry, cancel_purges=cancel_purges)
            await self.world.runtime.sleep(2 * self.world.runtime.random())
            await remove_catalog(session, entry)

        return not isinstance(await self._send(process, request), Refusal)

    async def collect(self, process: str) -> None:
        """Collects objects of the realm's registry."""

        async def request(at: str, principal: str) -> None:
            await collect(self._session(at, principal), delete=True)

        await self._send(process, request)

    async def remember(self, process: str) -> None:
        """Lets a process cache the realm's HEAD."""
        await self.world.process(process).run(_perform(self.realm(process).lookups().head))

    async def find(self, process: str, *names: str) -> None:
        """Finds catalogs as the HTTP layer does, by the HEAD that the process has cached."""
        for name in names:

            async def request(at: str, principal: str, name: str = name) -> None:
                assert await find(self.realm(at).lookups(), name, fresh=False) is not None, f"{name} is not found"

            await self._send(process, request)

    async def undrop(self, process: str, name: str) -> bool:
        """Undrops the first catalog without a name that there is."""

        async def request(at: str, principal: str) -> None:
            session = self._session(at, principal)
            for stray in (await stray_catalogs(self.realm(at), session)).found:
                if stray.state.catalog is None and stray.state.is_closed:
                    given: JsonObject = {"default-base-location": LAKE}
                    wanted = UndropRequest(name, None, given, {"storageType": "FILE"})
                else:
                    wanted = UndropRequest(name, None, {}, {})
                if stray.state.is_closed:
                    await self.world.runtime.sleep(2 * self.world.runtime.random())
                    await undrop_catalog(self.realm(at), session, stray, wanted)
                    return
            raise NotFound("no catalog was dropped")

        return not isinstance(await self._send(process, request), Refusal)

    # Tables

    async def in_catalog(self, process: str, name: str, perform: Callable[[Session], Awaitable[T]]) -> T | Refusal:
        """A request on a catalog, as a server opens it."""

        async def request(at: str, principal: str) -> T:
            entry = await find_entry(self._session(at, principal), name)
            return await perform(self.realm(at).catalog(entry).session(self._request(at, principal), ALLOW_ALL))

        return await self._send(process, request)

    async def table(self, process: str, name: str, table: str) -> None:
        """Makes a table."""

        async def perform(session: Session) -> None:
            with suppress(AlreadyExists):
                await create_namespace(session, NS, {})
            answer = await create_table(session, NS, {"name": table, "schema": schema("x")})
            self.files.append(str(getattr(answer, "metadata_location", "")))

        await self.in_catalog(process, name, perform)

    async def drop_tables(self, process: str, name: str, *tables: str, purge: bool) -> None:
        """Drops tables, and their namespace."""
        for table in tables:
            await self.in_catalog(process, name, partial(_drop, table=table, purge=purge))
        await self.in_catalog(process, name, lambda session: drop_namespace(session, NS))

    async def register(self, process: str, name: str, number: int | None = None) -> None:
        """Registers the files of a table that was made once, in whichever catalog: the first has number 0."""
        if not self.files:
            return
        drawn = self.world.loop.stream("files").randrange(len(self.files))
        place = drawn if number is None else number
        file = self.files[place]

        async def perform(session: Session) -> None:
            with suppress(AlreadyExists):
                await create_namespace(session, NS, {})
            await register_table(session, NS, f"r{place}", file, overwrite=False)

        await self.in_catalog(process, name, perform)

    async def drop_registered(self, process: str, name: str) -> bool:
        """Drops what was registered, with its namespace. Returns whether the catalog has none any more."""
        for number in range(len(self.files)):
            await self.in_catalog(process, name, partial(_drop, table=f"r{number}", purge=False))
        dropped = await self.in_catalog(process, name, lambda session: drop_namespace(session, NS))
        return not isinstance(dropped, Refusal)

    async def undrop_table(self, process: str, name: str, table: str) -> None:
        """Undoes the drop of a table."""
        await self.in_catalog(process, name, lambda session: undrop(session, NS, table))

    async def _list(self, process: str) -> Sequence[CatalogEntry]:
        return await list_catalogs(self._session(process, "worker"))

    async def work(self, process: str, seconds: float) -> None:
        """Purges what is due, in every catalog that the process has ever opened, dropped or not."""
        opened: dict[str, Catalog] = {}
        until = self.world.loop.time() + seconds
        while self.world.loop.time() < until:
            at = self.world.process(process)
            try:
                found = await at.run(_perform(partial(self._list, process)))
                for entry in found if found is not DIED else ():
                    opened.setdefault(entry.root, self.realm(process).catalog(entry))
                for catalog in [*opened.values()]:
                    await at.run(task_worker(catalog, POLICIES).run_due(lambda: False))
            except (StoreError, CatalogError):
                pass
            if not at.alive:
                process, opened = f"{process}+", {}
            await self.world.runtime.sleep(10 * self.world.runtime.random())

    async def close(self) -> None:
        """Judges what is left when every request was answered: a catalog is open if it has a name, and closed if it has
        lost it."""
        await self.world.settle()
        session = self._session("last", "last")
        found = {entry.root: entry.name for entry in await list_catalogs(session)}
        for root in sorted(self.auditor.named):
            state = CatalogState.of(self.auditor.head(Paths(root).manifest).index)
            assert state.is_closed is (root not in found), f"{found.get(root) or root} is {state.json}"


async def _close_as_before(session: Session) -> None:
    """Closes a registry without a look at purges, and without a record of the catalog's entry."""

    def edit(head: RegistryState) -> Steps[Edits | None]:
        yield from ()
        if head.index.any_in("namespace\n"):
            raise NamespaceNotEmpty("the catalog is not empty")
        return {CATALOG_STATE: {"state": DROPPING}}

    await change_registry(session, "end-catalog", {}, edit)


async def _drop(session: Session, *, table: str, purge: bool) -> None:
    await drop_table(session, NS, table, purge=purge)


async def _perform(request: Callable[[], Awaitable[T]]) -> T:
    """Makes a request in the process that runs this; a dead one never begins it."""
    return await request()
