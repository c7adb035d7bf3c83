"""Realms to be fuzzed by the API of management, each with the same things in it."""

import asyncio
import copy
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol
from urllib.parse import quote

from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps
from arco_catalog.state.paths import is_manifest
from storage_backends import ObjectStore
from tests.fuzz.checks import check_answer
from tests.fuzz.services import Request, exchanged, sent_over_http
from tests.support.realm_service import RealmApp, on_catalog, on_namespace, on_table
from tools.openapi.specifications import MANAGEMENT_BASE
from tools.support.asgi_client import Answer, Client
from tools.support.request_bodies import schema, view_request

PRINCIPALS, ROLES, CATALOGS, CATALOG_ROLES = (
    ("alice", "bob"),
    ("people", "staff"),
    ("lake", "empty"),
    ("reading", "all"),
)
HELD: Sequence[JsonObject] = (
    on_catalog("CATALOG_MANAGE_ACCESS"),
    on_namespace("TABLE_LIST", "db"),
    on_table("TABLE_READ_DATA", "db", "t"),
)
"""What the catalog role `reading` holds, and by it `alice`, who is in `people`."""


@dataclass(frozen=True)
class RealmAddress:
    """Where catalogs lie that requests make, and the callers: the bearer's token of the root, and one of `alice`."""

    root: str
    root_token: str
    other_token: str


class FuzzedRealm(Protocol):
    """A realm that takes requests, and the store behind it."""

    address: RealmAddress

    @property
    def store(self) -> ObjectStore: ...

    async def send(self, request: Request) -> Answer: ...

    def stopwatch(self) -> float: ...


def things(root: str) -> list[tuple[str, str, JsonObject]]:
    """What is made in a realm, in order: method, path below the API of management or below the root, body."""

    def catalog(name: str) -> JsonObject:
        storage: JsonObject = {"storageType": "FILE", "allowedLocations": [f"{root}/{name}"]}
        properties: JsonObject = {"default-base-location": f"{root}/{name}"}
        return {"catalog": {"type": "INTERNAL", "name": name, "properties": properties, "storageConfigInfo": storage}}

    made: list[tuple[str, str, JsonObject]] = [("POST", "catalogs", catalog(name)) for name in CATALOGS]
    made += [("POST", "principals", {"principal": {"name": name}}) for name in PRINCIPALS]
    made += [("POST", "principal-roles", {"principalRole": {"name": name}}) for name in ROLES]
    for name in CATALOGS:
        made += [("POST", f"catalogs/{name}/catalog-roles", {"catalogRole": {"name": role}}) for role in CATALOG_ROLES]
        made.append(("PUT", f"principal-roles/people/catalog-roles/{name}", {"catalogRole": {"name": "reading"}}))
    content: JsonObject = {"grant": on_catalog("CATALOG_MANAGE_CONTENT")}
    made.append(("PUT", "catalogs/lake/catalog-roles/catalog_admin/grants", content))
    for principal in PRINCIPALS:
        made.append(("PUT", f"principals/{principal}/principal-roles", {"principalRole": {"name": "people"}}))
    namespaces = "/v1/lake/namespaces"
    made.append(("POST", namespaces, {"namespace": ["db"]}))
    made.append(("POST", f"{namespaces}/db/tables", {"name": "t", "schema": schema("x")}))
    made.append(("POST", f"{namespaces}/db/views", view_request("v")))
    made += [("PUT", "catalogs/lake/catalog-roles/reading/grants", {"grant": grant}) for grant in HELD]
    return made


def as_request(method: str, path: str, body: JsonValue, token: str) -> Request:
    """A request of the principal of a token; a path that does not begin with a slash is one of management."""
    target = path if path.startswith("/") else f"{MANAGEMENT_BASE}/{path}"
    return Request("", method, target, (authorization(token),), b"" if body is None else dumps(body))


def authorization(token: str) -> tuple[str, str]:
    """The header that names a caller."""
    return "Authorization", f"Bearer {token}"


async def seed(realm: FuzzedRealm) -> None:
    """Makes what is missing of everything that requests are aimed at."""
    for method, path, body in things(realm.address.root):
        answer = await realm.send(as_request(method, path, body, realm.address.root_token))
        overlaps = answer.status == 400 and "overlaps" in answer.message  # a catalog that fuzzing made
        gone = answer.status == 404  # what it lies in overlaps
        assert answer.status in (200, 201, 204, 409) or overlaps or gone, (path, answer.body)


async def heads(realm: FuzzedRealm) -> Mapping[str, str]:
    """Versions of all that can change: the HEADs of the realm and of its catalogs."""
    found: dict[str, str] = {}
    page = await realm.store.list("")
    while True:
        found |= {entry.key: entry.version for entry in page.entries if is_manifest(entry.key)}
        if page.after is None:
            return found
        page = await realm.store.list("", page.after)


class InMemoryRealm:
    """A realm in memory, its app called directly, its clock stopped."""

    def __init__(self, app: RealmApp, address: RealmAddress) -> None:
        self._app = app
        self._client = Client(app.serve())
        self.address = address

    @classmethod
    async def start(cls) -> "InMemoryRealm":
        """One with things in it."""
        app = await RealmApp().start()
        address = RealmAddress("memory://", f"r/{app.ids['r', 'root']}", "")
        await seed(cls(app, address))
        await app.adopt("alice")
        return cls(app, replace(address, other_token=f"r/{app.ids['r', 'alice']}"))

    @property
    def store(self) -> ObjectStore:
        assert self._app.store is not None
        return self._app.store

    def copy(self) -> "InMemoryRealm":
        """Another process over a copy of the store."""
        store, clock, entropy = copy.deepcopy((self.store, self._app.clock, self._app.entropy))
        return InMemoryRealm(RealmApp(clock=clock, store=store, entropy=entropy), self.address)

    async def send(self, request: Request) -> Answer:
        return await exchanged(self._client, request)

    def stopwatch(self) -> float:
        """Of this process's CPU, where the realm is."""
        return time.process_time()


class LiveRealm:
    """One at a server of its own process, spoken to over HTTP."""

    def __init__(self, uri: str, address: RealmAddress, store: ObjectStore) -> None:
        self._host = uri.removeprefix("http://")
        self.address = address
        self.store = store

    async def send(self, request: Request) -> Answer:
        return await asyncio.to_thread(sent_over_http, self._host, request)

    def stopwatch(self) -> float:
        return time.perf_counter()


async def audit(realm: FuzzedRealm) -> int:
    """Checks that every listed object can be read, and is answered as specified. Returns the number of requests."""
    requests_sent = 0

    async def get(template: str, *, may_lack: bool = False, **names: str) -> JsonObject:
        nonlocal requests_sent
        requests_sent += 1
        path = template
        for parameter, name in names.items():
            path = path.replace(f"{{{parameter}}}", quote(name, safe=""))
        target = f"{MANAGEMENT_BASE}/{path}"
        request = Request(
            f"GET {MANAGEMENT_BASE}/{template}", "GET", target, (authorization(realm.address.root_token),)
        )
        answer = await realm.send(request)
        if may_lack and answer.status == 403:
            return {}
        assert answer.status == 200, f"{target} is listed and can't be read: {answer.body!r}"
        check_answer(request, answer, 0)
        return answer.json

    principals, roles, catalogs = await get("principals"), await get("principal-roles"), await get("catalogs")
    roles_of_root: list[str] = []
    for principal in _names(principals, "principals"):
        await get("principals/{principalName}", principalName=principal)
        assigned = await get("principals/{principalName}/principal-roles", principalName=principal)
        if principal == "root":
            roles_of_root = _names(assigned, "roles")
    for role in _names(roles, "roles"):
        await get("principal-roles/{principalRoleName}", principalRoleName=role)
        await get("principal-roles/{principalRoleName}/principals", principalRoleName=role)
    for catalog in _names(catalogs, "catalogs"):
        await get("catalogs/{catalogName}", catalogName=catalog)
        administered = False
        for role in _names(roles, "roles"):
            used = "principal-roles/{principalRoleName}/catalog-roles/{catalogName}"
            assigned = await get(used, principalRoleName=role, catalogName=catalog)
            administered |= role in roles_of_root and "catalog_admin" in _names(assigned, "roles")
        if not administered:  # a request has taken `catalog_admin` from the root, which may not read the roles then
            continue
        # Another may have revoked what `catalog_admin` was granted.
        held = await get("catalogs/{catalogName}/catalog-roles", may_lack=True, catalogName=catalog)
        if not held:
            continue
        for role in _names(held, "roles"):
            one = "catalogs/{catalogName}/catalog-roles/{catalogRoleName}"
            for template in (one, f"{one}/grants", f"{one}/principal-roles"):
                await get(template, catalogName=catalog, catalogRoleName=role)
    return requests_sent


def _names(listed: JsonObject, of: str) -> list[str]:
    found = listed[of]
    assert isinstance(found, list)
    return [str(each["name"]) for each in found if isinstance(each, dict)]
