"""Catalogs to be fuzzed, each with the same things in it: so that requests meet more than 404."""

import asyncio
import copy
import http.client
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import quote

from arco_catalog.http.app import create_app
from arco_catalog.http.asgi import Message
from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps
from arco_catalog.operations.open import build_catalog
from arco_catalog.operations.scans.tokens import WHOLE, Token, read_token
from arco_catalog.protocol.access import ALLOW_ALL
from arco_catalog.protocol.catalog import Catalog, Session, Settings
from arco_catalog.protocol.operation_request import OperationRequest
from arco_catalog.state.runtime import Runtime, SystemRuntime
from storage_backends import ABSENT, ObjectStore
from storage_backends.memory import MemoryStore
from tests.iceberg.values import LOCATION, TWO_COLUMNS, UUID, table_with_snapshots
from tests.support.fake_runtime import FakeRuntime
from tests.support.feeding import feed
from tools.support.asgi_client import Answer, Client, scope_of
from tools.support.request_bodies import view_request

Header = tuple[str, str]
AUDIT_MS = 60_000


@dataclass(frozen=True)
class Request:
    """What goes over the wire. `label` names the operation of the specification, "" for none; `target` is encoded."""

    label: str
    method: str
    target: str
    headers: tuple[Header, ...] = ()
    body: bytes = b""

    def __repr__(self) -> str:
        body = self.body if len(self.body) < 2000 else self.body[:1000] + b"..." + self.body[-200:]
        return f"Request({self.label!r}, {self.method!r}, {self.target[:2000]!r}, {self.headers!r}, {body!r})"


@dataclass(frozen=True)
class Address:
    """The address of a catalog: its warehouse, the location of its tables, and its time in milliseconds."""

    warehouse: str
    root: str
    now_ms: int
    model_version: str = ""
    """Of the semantic model `MODEL`, without which it can't be replaced."""
    plan_id: str = ""
    """Of a plan of the table `PLANNED`."""
    plan_task: str = ""
    """Of that plan."""

    @property
    def namespaces(self) -> str:
        return f"/v1/{self.warehouse}/namespaces"

    @property
    def polaris(self) -> str:
        return f"/polaris{self.namespaces}"


class FuzzedService(Protocol):
    """A catalog that takes requests, and the store behind it."""

    @property
    def address(self) -> Address: ...

    @property
    def store(self) -> ObjectStore: ...

    @property
    def external(self) -> bool:
        """Whether its tables are another catalog's."""
        ...

    async def send(self, request: Request) -> Answer: ...

    def stopwatch(self) -> float:
        """Seconds, by which an answer's time is taken."""
        ...

    def session(self) -> Session: ...


EMPTY = ("empty",)
NAMESPACES: Sequence[tuple[str, ...]] = (("db",), ("db", "inner"), ("a b/c%d",), ("a b/c%d", "ü.é"), EMPTY)
TABLES: Sequence[tuple[tuple[str, ...], str]] = (
    (("db",), "t"),
    (("db",), "snapshots"),
    (("db",), "v1"),
    (("db",), "v3"),
    (("db",), "registered"),
    (("db", "inner"), "t"),
    (("a b/c%d", "ü.é"), "t/%2F ü"),
)
PLANNED = TABLES[0]
VIEWS: Sequence[tuple[tuple[str, ...], str]] = ((("db",), "v"), (("db", "inner"), "v+ é"))
GENERIC_TABLES: Sequence[tuple[tuple[str, ...], str]] = ((("db",), "g"), (("db", "inner"), "g+ é"))
MODEL = (("db",), "m")
MODELS: Sequence[tuple[tuple[str, ...], str]] = (MODEL, (("a b/c%d", "ü.é"), "m-2_"))
POLICIES: Sequence[tuple[tuple[str, ...], str]] = ((("db",), "p"), (("db", "inner"), "p"), (("db",), "compaction"))
ATTACHED: JsonObject = {"type": "table-like", "path": ["db", "g"]}
"""What each policy of a type of users' own is attached to."""
KEPT = "kept/metadata/00000-k.metadata.json"
REGISTERED = "registered/metadata/00000-k.metadata.json"
"""The table of that name: the one whose uuid is known, `UUID`."""
KEPT_VIEW = "kept-view/metadata/00000-k.metadata.json"


def joined(namespace: Sequence[str]) -> str:
    """A namespace as a path has it."""
    return quote("\x1f".join(namespace), safe="")


def _post(target: str, body: JsonValue) -> Request:
    return Request("", "POST", target, (), dumps(body))


def _table(address: Address, namespace: Sequence[str], name: str) -> Request:
    if name == "registered":
        body: JsonObject = {"name": name, "metadata-location": f"{address.root}/{REGISTERED}"}
        return _post(f"{address.namespaces}/{joined(namespace)}/register", body)
    body = {"name": name, "schema": TWO_COLUMNS}
    version = {"v1": "1", "v3": "3"}.get(name)
    if version is not None:
        body["properties"] = {"format-version": version}
    return _post(f"{address.namespaces}/{joined(namespace)}/tables", body)


def _generic_table(name: str) -> JsonObject:
    return {"name": name, "format": "delta", "properties": {"a": "1"}}


def _model(name: str) -> JsonObject:
    return {"name": name, "document": {"version": "0.1.1", "semantic_model": '{"name":"m"}'}}


def _policy(name: str) -> JsonObject:
    if name == "compaction":
        return {"name": name, "type": "system.data-compaction", "content": '{"version":"2025-02-03","enable":true}'}
    return {"name": name, "type": "ours", "content": "x"}


NATIVE: Mapping[str, tuple[Sequence[tuple[tuple[str, ...], str]], Callable[[str], JsonObject]]] = {
    "generic-tables": (GENERIC_TABLES, _generic_table),
    "semantic-models": (MODELS, _model),
    "policies": (POLICIES, _policy),
}
"""What lies below `/polaris`: of each collection what there is, and how it is made."""


def _followed(address: Address) -> Request:
    """Has the table `registered` follow its owner's."""
    payload: JsonObject = {"table-name": "registered", "timestamp": 1_000, "table-uuid": UUID}
    payload["metadata-location"] = f"{address.root}/{REGISTERED}"
    target = f"{address.namespaces}/db/tables/registered/notifications"
    return _post(target, {"notification-type": "CREATE", "payload": payload})


def _history(address: Address) -> Request:
    """Snapshots 1 and 2 on main, a branch and a tag, statistics, a second spec and a second order."""
    updates: list[JsonValue] = []
    for number in (1, 2):
        snapshot: JsonObject = {
            "snapshot-id": number,
            "sequence-number": number,
            "timestamp-ms": address.now_ms + number,
            "manifest-list": f"{address.root}/m{number}.avro",
            "summary": {"operation": "append"},
        }
        updates.append({"action": "add-snapshot", "snapshot": snapshot})
        updates.append({"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": number})
    file: JsonObject = {"snapshot-id": 1, "statistics-path": f"{address.root}/p", "file-size-in-bytes": 1}
    updates += [
        {"action": "set-snapshot-ref", "ref-name": "b", "type": "branch", "snapshot-id": 1},
        {"action": "set-snapshot-ref", "ref-name": "t", "type": "tag", "snapshot-id": 2},
        {"action": "set-statistics", "statistics": {**file, "file-footer-size-in-bytes": 1, "blob-metadata": []}},
        {"action": "set-partition-statistics", "partition-statistics": file},
        {"action": "add-spec", "spec": {"fields": [{"source-id": 2, "transform": "day", "name": "d"}]}},
        {
            "action": "add-sort-order",
            "sort-order": {
                "order-id": 1,
                "fields": [{"source-id": 1, "transform": "identity", "direction": "asc", "null-order": "nulls-last"}],
            },
        },
        {"action": "set-properties", "updates": {"a": "1"}},
    ]
    return _post(f"{address.namespaces}/db/tables/snapshots", {"requirements": [], "updates": updates})


async def seed(service: FuzzedService) -> None:
    """Makes what is missing of everything that requests are aimed at."""
    address = service.address
    for namespace in NAMESPACES:
        await _make(
            service, f"{address.namespaces}/{joined(namespace)}", _post(address.namespaces, {"namespace": [*namespace]})
        )
    await feed(service.session())  # which begins the first time
    await _seed_native(service)
    if service.external:
        await _make(service, f"{address.namespaces}/db/tables/registered", _followed(address))
        return
    for namespace, name in TABLES:
        target = f"{address.namespaces}/{joined(namespace)}/tables/{quote(name, safe='')}"
        if await _make(service, target, _table(address, namespace, name)) and name == "snapshots":
            answer = await service.send(_history(address))
            assert answer.status == 200, answer.body
    for namespace, name in VIEWS:
        views = f"{address.namespaces}/{joined(namespace)}/views"
        await _make(service, f"{views}/{quote(name, safe='')}", _post(views, view_request(name)))
    await feed(service.session())


async def _seed_native(service: FuzzedService) -> None:
    for collection, (things, body) in NATIVE.items():
        for namespace, name in things:
            all_of_them = f"{service.address.polaris}/{joined(namespace)}/{collection}"
            target = f"{all_of_them}/{quote(name, safe='')}"
            if await _make(service, target, _post(all_of_them, body(name)), "GET") and name == "p":
                attach = Request("", "PUT", f"{target}/mappings", (), dumps({"target": ATTACHED}))
                answer = await service.send(attach)
                assert answer.status == 204, answer.body


async def _make(service: FuzzedService, target: str, creation: Request, look: str = "HEAD") -> bool:
    if (await service.send(Request("", look, target))).status in (200, 204):
        return False
    answer = await service.send(creation)
    if answer.status == 400:  # fuzzing renamed what has its location
        assert "overlaps" in answer.message, answer.body
        return False
    assert answer.status in (200, 204, 409), answer.body  # 409: fuzzing made something else of that name
    return answer.status != 409


async def model_version(service: FuzzedService) -> str:
    """The version that the semantic model `MODEL` has now; "" if it is not there."""
    namespace, name = MODEL
    answer = await service.send(
        Request("", "GET", f"{service.address.polaris}/{joined(namespace)}/semantic-models/{name}")
    )
    return str(answer.json["entity-version"]) if answer.status == 200 else ""


async def planned(service: FuzzedService) -> tuple[str, str]:
    """A plan of the table `PLANNED`, and a task for all of it; empty texts if the table is not there."""
    namespace, name = PLANNED
    answer = await service.send(
        _post(f"{service.address.namespaces}/{joined(namespace)}/tables/{name}/plan", {"filter": True})
    )
    if answer.status != 200:
        return "", ""
    plan_id = str(answer.json["plan-id"])
    plan = read_token(plan_id)
    return plan_id, Token(plan.entity, plan.issued_s, plan.snapshot_id, plan.request, WHOLE).text


async def keep_files(service: FuzzedService) -> None:
    """Leaves metadata files that can be registered."""
    root = service.address.root
    for file in (KEPT, REGISTERED):
        body = dumps(table_with_snapshots(1, 2))
        body = body.replace(LOCATION.encode(), f"{root}/{file.partition('/')[0]}".encode())
        await service.store.put(f"{service.address.warehouse}/warehouse/{file}", body, ABSENT)
    view: JsonObject = {
        "view-uuid": "0190c8de-6a3c-7e55-9cba-3a4b9a2f1c09",
        "format-version": 1,
        "location": f"{root}/kept-view",
        "schemas": [{**TWO_COLUMNS, "schema-id": 0}],
        "current-version-id": 1,
        "versions": [view_request("v")["view-version"]],
        "version-log": [{"version-id": 1, "timestamp-ms": 1}],
        "properties": {},
    }
    await service.store.put(f"{service.address.warehouse}/warehouse/{KEPT_VIEW}", dumps(view), ABSENT)


def typed(request: Request) -> list[tuple[str, str]]:
    """Its headers, which say that a body is JSON unless they say what else it is."""
    named = {name.lower() for name, _ in request.headers}
    json = (
        []
        if "content-type" in named or request.method not in ("POST", "PUT")
        else [("Content-Type", "application/json")]
    )
    return [*json, *request.headers]


async def exchanged(client: Client, request: Request) -> Answer:
    """The answer of an app that is called directly."""
    headers = [(name.lower().encode(), value.encode("latin-1")) for name, value in typed(request)]
    scope = {**scope_of(request.method, request.target, {}), "headers": headers}
    messages: list[Message] = [{"type": "http.request", "body": request.body, "more_body": False}]
    return await client.exchange(scope, messages)


def sent_over_http(host: str, request: Request) -> Answer:
    """The answer of a server, by a connection of its own."""
    connection = http.client.HTTPConnection(host, timeout=60)
    try:
        connection.putrequest(request.method, request.target, skip_accept_encoding=True)
        for name, value in typed(request):
            connection.putheader(name, value.encode("latin-1"))
        connection.putheader("Content-Length", str(len(request.body)))
        connection.endheaders(request.body)
        answer = connection.getresponse()
        return Answer(answer.status, dict(answer.getheaders()), answer.read())
    finally:
        connection.close()


class InMemoryService:
    """A catalog in memory, its app called directly, its clock stopped: the same requests get the same answers."""

    def __init__(
        self, store: MemoryStore | None = None, clock: FakeRuntime | None = None, *, external: bool = False
    ) -> None:
        self.clock = clock or FakeRuntime()
        self.store: MemoryStore = store or MemoryStore(now_ms=self.clock.now_ms)
        self.external = external
        self.address = Address("wh", "memory:///wh/warehouse", self.clock.now_ms())
        settings = Settings("wh", external=external)
        self._catalog = build_catalog(settings, self.store, "memory:///", (), self.clock)
        self._client = Client(create_app({"wh": self._catalog}))

    def copy(self) -> "InMemoryService":
        """Another process over a copy of the store."""
        store, clock = copy.deepcopy((self.store, self.clock))
        copied = InMemoryService(store, clock, external=self.external)
        copied.address = self.address
        return copied

    async def send(self, request: Request) -> Answer:
        return await exchanged(self._client, request)

    def stopwatch(self) -> float:
        """Of this process's CPU, where the catalog is: others may be at work on this machine."""
        return time.process_time()

    def session(self) -> Session:
        return _audit_session(self._catalog, self.clock)


class LiveService:
    """A server of its own process, spoken to over HTTP, a connection a request."""

    external = False

    def __init__(self, uri: str, address: Address, store: ObjectStore, url: str) -> None:
        self._host = uri.removeprefix("http://")
        self.address = address
        self.store = store
        self._catalog = build_catalog(Settings(address.warehouse), store, url, (), SystemRuntime())

    async def send(self, request: Request) -> Answer:
        return await asyncio.to_thread(sent_over_http, self._host, request)

    def stopwatch(self) -> float:
        return time.perf_counter()

    def session(self) -> Session:
        return _audit_session(self._catalog, SystemRuntime())


def _audit_session(catalog: Catalog, runtime: Runtime) -> Session:
    request = OperationRequest("GET", "/", "", None, "auditor", {}, runtime.now_ms() + AUDIT_MS)
    return catalog.session(request, ALLOW_ALL)


async def prepared(service: FuzzedService) -> None:
    """Everything that the fuzzer's requests are aimed at."""
    await keep_files(service)
    await seed(service)
