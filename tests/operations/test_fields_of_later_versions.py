"""Fields that a later version added to a stored record survive every operation of this one that writes the record again
(docs/design/state.md)."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pkgutil import walk_packages

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import arco_catalog.operations
from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps, loads
from arco_catalog.operations import rename
from arco_catalog.operations.adopt import adopt
from arco_catalog.operations.management import entities
from arco_catalog.operations.management.catalog_drops import end_catalog
from arco_catalog.operations.management.catalogs import find_entry, list_catalogs
from arco_catalog.operations.policies import attachments
from arco_catalog.operations.stray_catalogs import UndropRequest, stray_catalogs, undrop_catalog
from arco_catalog.planning.upkeep_settings import DAY_MS, PurgeSettings
from arco_catalog.protocol.access import ALLOW_ALL
from arco_catalog.protocol.catalog import Catalog, Session, Settings
from arco_catalog.protocol.operation_request import OperationRequest
from arco_catalog.protocol.registry_mutation import RegistryMutation
from arco_catalog.state import holds
from arco_catalog.state.fields import mapping, text
from arco_catalog.state.index import Edits, Index
from arco_catalog.state.needs import Steps, immediately
from arco_catalog.state.paths import Paths
from arco_catalog.upkeep.collection.collect import collect
from arco_catalog.upkeep.purge.worker import task_worker
from storage_backends import ANY, Found
from storage_backends.memory import MemoryStore
from tests.access.lake import DB, MODEL, NAMESPACES, POLARIS_DB, Lake, T
from tests.support.fake_runtime import FakeRuntime
from tests.support.realm_service import MANAGEMENT, RealmApp, on_catalog, on_namespace, on_table, table_request
from tools.support.asgi_client import Answer, Client
from tools.support.request_bodies import set_property, view_request

LATER = "a-later-field"
MARK: JsonObject = {"added": "by a later version"}
ROLE = "catalogs/lake/catalog-roles/ann-in-lake"
MIRROR = "/v1/mirror/namespaces/db/tables/t/notifications"
UUID = "6e9d1c5e-0a6b-4f2e-9d2c-0f6a0c1b2d3e"

Records = Mapping[str, JsonObject]


@dataclass
class World:
    """A realm with a catalog that has something of everything, one that follows others' tables, and their records as
    they were when a later version last wrote to each of them."""

    lake: Lake
    clock: FakeRuntime
    store: MemoryStore
    numbers: Iterator[int] = field(default_factory=lambda: iter(range(1, 1_000_000)))
    before: Records = field(default_factory=dict)

    # Requests, each to a server that remembers nothing.

    def client(self, principal: str = "manager") -> Client:
        return self.lake.app.client(principal, app=self.lake.app.serve())

    async def manage(self, method: str, path: str, body: JsonObject | None = None) -> Answer:
        """A request of the management API by root."""
        headers = {} if body is None else {"content-type": "application/json"}
        return await self.client("root").send(
            method, f"{MANAGEMENT}/{path}", b"" if body is None else dumps(body), headers
        )

    async def catalog(self, name: str = "lake") -> Catalog:
        realm = self.lake.app.realms()["r"]
        entries = await list_catalogs(self.lake.app.session(realm))
        return realm.catalog(next(entry for entry in entries if entry.name == name))

    async def session(self, name: str = "lake") -> Session:
        deadline = self.clock.now_ms() + DAY_MS
        return (await self.catalog(name)).session(
            OperationRequest("POST", "", "", None, "operator", {}, deadline), ALLOW_ALL
        )

    async def work(self) -> None:
        """What a worker finds due."""
        await task_worker(await self.catalog()).run_due(lambda: False)

    async def left(self) -> str:
        """A metadata file of a table elsewhere."""
        made = (await self.client().get(f"{NAMESPACES}/db/tables/u")).json["metadata"]
        assert isinstance(made, dict)
        folder = self.lake.app.base("mirror")
        file = f"{folder}/t/metadata/{next(self.numbers)}.metadata.json"
        body = dumps({**made, "table-uuid": UUID, "location": f"{folder}/t"})
        await self.store.put(file.removeprefix("memory:///"), body, ANY)
        return file

    async def notify(self, event: str) -> Answer:
        payload: JsonObject = {"table-name": "t", "timestamp": next(self.numbers), "table-uuid": UUID}
        body: JsonObject = {"notification-type": event, "payload": {**payload, "metadata-location": await self.left()}}
        return await self.client().post(MIRROR, body)

    # Records.

    async def document(self, key: str) -> JsonObject:
        found = await self.store.get(key)
        assert isinstance(found, Found)
        document = loads(found.body)
        assert isinstance(document, dict)
        return document

    async def mark(self) -> None:
        """A later version writes all records anew, with a field of its own in each."""
        for key in self.rewritten():
            document = await self.document(key)
            document[LATER] = MARK
            if "restored" in document:
                document["restored"] = {**mapping(document, "restored"), LATER: MARK}
            for entry in mapping(mapping(document, "index"), "embedded").values():
                if isinstance(entry, dict):
                    entry[LATER] = MARK
                    if "follows" in entry:
                        entry["follows"] = {**mapping(entry, "follows"), LATER: MARK}
            await self.store.put(key, dumps(document, sort_keys=True), ANY)
        self.before = await self.records()

    def rewritten(self) -> list[str]:
        """The keys of what one version of this program reads and another wrote."""
        kinds = ("/core/manifest.json", "/iceberg_pointers/", "/core/entities/", "/tasks/")
        keys = (key for key in self.store.keys("") if key.endswith(".json"))
        return [key for key in keys if any(kind in key for kind in kinds)]

    async def records(self) -> Records:
        """Each record by what it is about, whichever name it has."""
        records: dict[str, JsonObject] = {}
        for key in self.rewritten():
            document = await self.document(key)
            if key.endswith("/core/manifest.json"):
                records[key] = document
                for name, entry in mapping(mapping(document, "index"), "embedded").items():
                    if isinstance(entry, dict):
                        records |= await self._entry(key, name, entry)
            elif "/tasks/" in key:
                records[key.rpartition("/")[0]] = document  # in the order of their numbers, which are below ten here
            elif "/core/entities/" not in key:
                records[key] = document
        return records

    async def _entry(self, manifest: str, name: str, entry: JsonObject) -> Records:
        """An entry of a registry, and the value that it names."""
        kind, _, rest = name.partition("\n")
        named = rest if kind not in ("relation", "tombstone") else text(entry, "entity")
        about = {"tombstone": "relation", "dropped": "location"}.get(kind, kind)
        records: dict[str, JsonObject] = {f"{manifest} {about} {named}": entry}
        value_of = {"namespace": "namespace", "policy": "policy"}.get(kind)
        if value_of is not None:
            root = manifest.removesuffix("_catalog/core/manifest.json").removesuffix("/")
            value = await self.document(Paths(root).entity_value(value_of, text(entry, "value")))
            records[f"{manifest} value of {about} {named}"] = value
        return records

    async def lost(self) -> list[str]:
        """The records from which the field is gone."""
        after = await self.records()
        both = [(about, record, after[about]) for about, record in self.before.items() if about in after]
        return [about for about, before, now in both if fields_of(before) - fields_of(now) and same(before, now)]


def fields_of(record: JsonObject) -> set[str]:
    """Where a record has the field: itself, and in what it holds."""
    nested = (field for field in ("restored", "follows") if LATER in mapping(record, field))
    return {*([LATER] if LATER in record else []), *nested}


def same(before: JsonObject, now: JsonObject) -> bool:
    """Whether it is still about the same thing: a name may have been given to another."""
    return before.get("entity") == now.get("entity")


async def started() -> World:
    clock = FakeRuntime()
    store = MemoryStore(now_ms=clock.now_ms)
    app = RealmApp(clock=clock, store=store, settings=Settings("-", purge=PurgeSettings(undrop_window_ms=60_000)))
    lake = await Lake(app).start()
    await app.grant("manager", on_catalog("CATALOG_MANAGE_ACCESS"))
    await app.principal("ann", on_catalog("TABLE_LIST"), on_table("TABLE_DROP", "db", "t"))
    await app.catalog("mirror", kind="EXTERNAL")
    await app.grant("manager", on_catalog("CATALOG_MANAGE_CONTENT"), catalog="mirror")
    return World(lake, clock, store)


Operation = Callable[[World], Awaitable[Answer | None]]
OPERATIONS: dict[str, Operation] = {}


def operation(function: Operation) -> Operation:
    """Registers an operation: what it needs comes before `mark`, and what it does last."""
    OPERATIONS[function.__name__] = function
    return function


# Tables and views.


@operation
async def commit(world: World) -> Answer:
    await world.mark()
    return await world.client().post(T, set_property("a", str(next(world.numbers))))


@operation
async def set_location(world: World) -> Answer:
    """One that the table has left before, and so still holds."""
    places = [f"{world.lake.app.base('lake')}/db/{name}-{next(world.numbers)}" for name in "xy"]
    moves: list[JsonObject] = [
        {"requirements": [], "updates": [{"action": "set-location", "location": place}]} for place in places
    ]
    await world.client().post(T, moves[0])
    await world.client().post(T, moves[1])
    await world.mark()
    return await world.client().post(T, moves[0])


@operation
async def transaction(world: World) -> Answer:
    changes: list[JsonValue] = [
        {"identifier": {"namespace": ["db"], "name": name}, **set_property("b", str(next(world.numbers)))}
        for name in ("t", "u")
    ]
    await world.mark()
    return await world.client().post("/v1/lake/transactions/commit", {"table-changes": changes})


@operation
async def replace_view(world: World) -> Answer:
    await world.mark()
    return await world.client().post(f"{DB}/views/v", set_property("a", str(next(world.numbers))))


async def renamed(world: World, kind: str, name: str) -> Answer:
    """A name that is changed, and changed back."""
    there: JsonObject = {"namespace": ["other"], "name": name}
    back: JsonObject = {"namespace": ["db"], "name": name}
    moved = await world.client().post(f"/v1/lake/{kind}/rename", {"source": back, "destination": there})
    assert moved.status in (204, 404), moved.body
    return await world.client().post(f"/v1/lake/{kind}/rename", {"source": there, "destination": back})


@operation
async def rename_table(world: World) -> Answer:
    await world.mark()
    return await renamed(world, "tables", "t")


@operation
async def rename_view(world: World) -> Answer:
    await world.mark()
    return await renamed(world, "views", "v")


async def dropped(world: World, name: str, *, purge: bool = False) -> str:
    """A new table that is dropped, after a later version has written its records. Returns its path."""
    path = f"{DB}/tables/{name}{next(world.numbers)}"
    await world.client().post(f"{DB}/tables", table_request(path.rpartition("/")[2]))
    await world.mark()
    await world.client().delete(f"{path}?purgeRequested={str(purge).lower()}")
    return path


@operation
async def drop_table(world: World) -> Answer:
    path = await dropped(world, "d")
    assert await world.lost() == []
    await world.mark()
    return await world.client().post(f"{path}/undrop", {})


@operation
async def drop_view(world: World) -> Answer:
    await world.client().post(f"{DB}/views", view_request("w"))
    await world.mark()
    dropped_view = await world.client().delete(f"{DB}/views/w")
    assert await world.lost() == []
    await world.mark()
    await world.client().post(f"{DB}/tables/w/undrop", {})
    return dropped_view


@operation
async def unregister(world: World) -> Answer:
    await world.client().post(f"{DB}/tables", table_request("n"))
    await world.mark()
    return await world.client().post(f"{DB}/tables/n/unregister", {})


@operation
async def register(world: World) -> Answer:
    """Over a table, which becomes a tombstone."""
    file = (await world.client().get(f"{DB}/tables/u")).json["metadata-location"]
    await world.client().post(f"{DB}/tables", table_request("n"))
    await world.client().delete(f"{DB}/tables/u")
    await world.mark()
    body: JsonObject = {"name": "n", "metadata-location": file, "overwrite": True}
    answer = await world.client().post(f"{DB}/register", body)
    assert await world.lost() == []
    await world.client().delete(f"{DB}/tables/n")
    await world.mark()
    await world.client().post(f"{DB}/tables/u/undrop", {})
    return answer


@operation
async def purge(world: World) -> None:
    """From its beginning to its end."""
    await dropped(world, "p", purge=True)
    assert await world.lost() == []
    world.clock.ms += 61_000
    await world.mark()
    await world.work()


@operation
async def purge_that_fails(world: World) -> None:
    """Before it has deleted anything: another table is in its place."""
    place = f"{world.lake.app.base('lake')}/db/place{next(world.numbers)}"
    for name in ("p", "q"):
        await world.client().post(f"{DB}/tables", {**table_request(name), "location": place})
        await world.mark()
        await world.client().delete(f"{DB}/tables/{name}?purgeRequested={str(name == 'p').lower()}")
        assert await world.lost() == []
    world.clock.ms += 61_000
    await world.mark()
    await world.work()


@operation
async def collection(world: World) -> None:
    """Of tombstones, among them those of followed tables."""
    await dropped(world, "c")
    await world.notify("UPDATE")
    await world.notify("DROP")
    world.clock.ms += 60 * DAY_MS
    await world.mark()
    for name in ("lake", "mirror"):
        await collect(await world.session(name), delete=True)


# Namespaces, and what is described.


@operation
async def namespace_properties(world: World) -> Answer:
    await world.mark()
    return await world.client().post(f"{DB}/properties", {"updates": {"a": str(next(world.numbers))}})


@operation
async def drop_namespace(world: World) -> Answer:
    await world.client().post(NAMESPACES, {"namespace": ["empty"]})
    await world.manage("PUT", f"{ROLE}/grants", {"grant": on_namespace("TABLE_LIST", "empty")})
    await world.mark()
    return await world.client().delete(f"{NAMESPACES}/empty")


async def governed(world: World, path: str) -> Answer:
    await world.mark()
    return await world.client().post(f"{path}/governance", {"arco.owner": f"ada{next(world.numbers)}"})


@operation
async def govern_namespace(world: World) -> Answer:
    return await governed(world, DB)


@operation
async def govern_table(world: World) -> Answer:
    return await governed(world, T)


@operation
async def generic_table(world: World) -> Answer:
    await world.client().post(f"{POLARIS_DB}/generic-tables", {"name": "h", "format": "delta"})
    await world.mark()
    answer = await world.client().delete(f"{POLARIS_DB}/generic-tables/h")
    assert await world.lost() == []
    await world.mark()
    await world.client().post(f"{DB}/tables/h/undrop", {})
    return answer


@operation
async def replace_model(world: World) -> Answer:
    found = await world.client().get(f"{POLARIS_DB}/semantic-models/m")
    document: JsonObject = {**MODEL, "version": "0.1.1", "semantic_model": f'{{"n": {next(world.numbers)}}}'}
    await world.mark()
    body: JsonObject = {"entity-version": found.json["entity-version"], "document": document}
    return await world.client().put(f"{POLARIS_DB}/semantic-models/m", body)


@operation
async def update_policy(world: World) -> Answer:
    policy = mapping((await world.client().get(f"{POLARIS_DB}/policies/q")).json, "policy")
    content = f'{{"n": {next(world.numbers)}}}'
    await world.mark()
    body: JsonObject = {"current-policy-version": policy["version"], "content": content}
    return await world.client().put(f"{POLARIS_DB}/policies/q", body)


@operation
async def attach_policy(world: World) -> Answer:
    """Where it is attached already, with other parameters."""
    await world.mark()
    target: JsonObject = {"type": "table-like", "path": ["db", "t"]}
    body: JsonObject = {"target": target, "parameters": {"a": str(next(world.numbers))}}
    return await world.client().put(f"{POLARIS_DB}/policies/q/mappings", body)


@operation
async def detach_policy(world: World) -> Answer:
    mappings, body = f"{POLARIS_DB}/policies/q/mappings", {"target": {"type": "namespace", "path": ["db"]}}
    await world.mark()
    answer = await world.client().post(mappings, {**body})
    assert await world.lost() == []
    await world.client().put(mappings, {**body})
    await world.mark()
    return answer


@operation
async def drop_policy(world: World) -> Answer:
    policy: JsonObject = {"name": "r", "type": "ours", "content": "{}"}
    await world.client().post(f"{POLARIS_DB}/policies", policy)
    await world.client().put(f"{POLARIS_DB}/policies/r/mappings", {"target": {"type": "catalog"}})
    await world.mark()
    return await world.client().delete(f"{POLARIS_DB}/policies/r?detach-all=true")


@operation
async def follow(world: World) -> Answer:
    await world.notify("UPDATE")
    await world.mark()
    return await world.notify("UPDATE")


@operation
async def drop_followed(world: World) -> Answer:
    await world.notify("UPDATE")
    await world.mark()
    return await world.notify("DROP")


# Who may do what.


@operation
async def add_grant(world: World) -> Answer:
    await world.manage("POST", f"{ROLE}/grants", {"grant": on_catalog("TABLE_CREATE")})
    await world.mark()
    return await world.manage("PUT", f"{ROLE}/grants", {"grant": on_catalog("TABLE_CREATE")})


@operation
async def revoke_grant(world: World) -> Answer:
    for grant in (on_catalog("TABLE_CREATE"), on_table("TABLE_CREATE", "db", "t"), on_table("TABLE_DROP", "db", "t")):
        await world.manage("PUT", f"{ROLE}/grants", {"grant": grant})
    await world.mark()
    return await world.manage("POST", f"{ROLE}/grants?cascade=true", {"grant": on_catalog("TABLE_CREATE")})


async def updated(world: World, path: str) -> Answer:
    """An entity of the management API with another property."""
    found = (await world.manage("GET", path)).json
    properties = {**mapping(found, "properties"), "n": str(next(world.numbers))}
    body: JsonObject = {"currentEntityVersion": found["entityVersion"], "properties": properties}
    await world.mark()
    return await world.manage("PUT", path, body)


@operation
async def update_catalog_role(world: World) -> Answer:
    return await updated(world, ROLE)


@operation
async def update_principal_role(world: World) -> Answer:
    return await updated(world, "principal-roles/ann-role")


@operation
async def update_principal(world: World) -> Answer:
    return await updated(world, "principals/ann")


@operation
async def update_catalog(world: World) -> Answer:
    return await updated(world, "catalogs/lake")


@operation
async def rotate_credentials(world: World) -> Answer:
    await world.mark()
    return await world.client("ann").send("POST", f"{MANAGEMENT}/principals/ann/rotate")


@operation
async def reset_credentials(world: World) -> Answer:
    await world.mark()
    return await world.manage("POST", "principals/ann/reset")


@operation
async def assign_roles(world: World) -> Answer:
    """Where they are assigned already."""
    await world.mark()
    await world.manage("PUT", "principals/ann/principal-roles", {"principalRole": {"name": "ann-role"}})
    used = "principal-roles/ann-role/catalog-roles/lake"
    return await world.manage("PUT", used, {"catalogRole": {"name": "ann-in-lake"}})


@operation
async def drop_roles(world: World) -> Answer:
    name = f"bob{next(world.numbers)}"
    await world.lake.app.principal(name, on_catalog("TABLE_LIST"))
    await world.mark()
    await world.manage("DELETE", f"principal-roles/{name}-role/catalog-roles/lake/{name}-in-lake")
    await world.manage("DELETE", f"principals/{name}/principal-roles/{name}-role")
    await world.manage("DELETE", f"catalogs/lake/catalog-roles/{name}-in-lake")
    await world.manage("DELETE", f"principal-roles/{name}-role")
    return await world.manage("DELETE", f"principals/{name}")


@operation
async def drop_catalog(world: World) -> Answer:
    """One that is closed already."""
    name = f"other{next(world.numbers)}"
    await world.lake.app.catalog(name)
    entry = await find_entry(world.lake.app.session(world.lake.app.realms()["r"]), name)
    await end_catalog(await world.session(name), entry)
    await world.mark()
    return await world.manage("DELETE", f"catalogs/{name}")


@operation
async def undrop_a_catalog(world: World) -> None:
    name = f"other{next(world.numbers)}"
    await world.lake.app.catalog(name)
    await world.manage("DELETE", f"catalogs/{name}")
    await world.mark()
    realm = world.lake.app.realms()["r"]
    session = world.lake.app.session(realm)
    [stray] = [each for each in (await stray_catalogs(realm, session)).found if each.name == name]
    await undrop_catalog(realm, session, stray, UndropRequest(name, None, {}, {}))


@operation
async def adopt_copy(world: World) -> None:
    manifest = (await world.session()).state.paths.manifest
    head = await world.document(manifest)
    restored: JsonObject = {"at_ms": 1, "copy_of": "elsewhere", "adopted": {}}
    await world.store.put(manifest, dumps({**head, "restored": restored}, sort_keys=True), ANY)
    await world.mark()
    await adopt(await world.session())


WRITES_NOTHING_ANEW = {
    "arco_catalog.operations.create._Staging",
    "arco_catalog.operations.init._Init",
    "arco_catalog.operations.notifications._Validate",
}
"""Mutations of a registry that make records, or none."""


@pytest.mark.parametrize("name", OPERATIONS)
async def test_a_field_of_a_later_version_survives(name: str) -> None:
    world = await started()
    answer = await OPERATIONS[name](world)
    assert answer is None or answer.status < 300, answer.body
    assert world.before
    assert await world.lost() == []


@settings(max_examples=12)
@given(st.lists(st.sampled_from([*OPERATIONS.values()]), min_size=3, max_size=8))
def test_it_survives_them_one_after_the_other(drawn: list[Operation]) -> None:
    async def play() -> None:
        world = await started()
        for each in drawn:
            await each(world)
            assert await world.lost() == [], each

    asyncio.run(play())


def mutations(base: type[RegistryMutation] = RegistryMutation) -> Iterator[type[RegistryMutation]]:
    for kind in base.__subclasses__():
        yield from mutations(kind)
        if not kind.__abstractmethods__ and kind.__module__.startswith("arco_catalog."):
            yield kind


async def test_every_mutation_of_a_registry_is_tried_here(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in walk_packages(arco_catalog.operations.__path__, "arco_catalog.operations."):
        import_module(module.name)
    planned: set[type] = set()
    plan = RegistryMutation.plan

    async def noted(self: RegistryMutation, *about: object) -> object:
        planned.add(type(self))
        return await plan(self, *about)  # type: ignore[arg-type]

    monkeypatch.setattr(RegistryMutation, "plan", noted)
    world = await started()
    for each in OPERATIONS.values():
        await each(world)
    left = {kind for kind in mutations() if kind not in planned}
    assert {f"{kind.__module__}.{kind.__name__}" for kind in left} == WRITES_NOTHING_ANEW


def anew(index: Index, edits: Edits) -> Steps[Edits]:
    """Entries from the fields that this version knows."""
    return immediately(edits)


@pytest.mark.parametrize(
    ("module", "name", "found_by"),
    [
        (entities, "keep_stored_fields", add_grant),
        (attachments, "keep_stored_fields", attach_policy),
        (rename, "keep_stored_fields", rename_table),
        (holds, "keep_stored_fields", rename_table),
    ],
)
async def test_entries_that_are_made_anew_are_found(
    monkeypatch: pytest.MonkeyPatch, module: object, name: str, found_by: Operation
) -> None:
    world = await started()
    monkeypatch.setattr(module, name, anew)
    await found_by(world)
    assert await world.lost() != []


async def test_claims_that_are_made_anew_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    world = await started()
    monkeypatch.setattr(holds, "_later_fields", lambda stored: {})
    with pytest.raises(AssertionError):
        await drop_table(world)
