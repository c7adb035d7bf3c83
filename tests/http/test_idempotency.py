"""The Idempotency-Key header on every route that changes something."""

from collections.abc import Callable

import pytest

from arco_catalog.http.options import HttpOptions
from arco_catalog.http.route import Effect
from arco_catalog.http.routes import ROUTES
from arco_catalog.iceberg.json import JsonObject, dumps, loads
from arco_catalog.state.key_settings import Dialect
from arco_catalog.state.marker import key_hash
from arco_catalog.state.receipt import base_of
from tests.http.templates import path_of
from tests.support.http_service import HttpService
from tests.support.scripted_store import Rule, ScriptedStore, lost, swap
from tools.support.asgi_client import Answer, Client
from tools.support.request_bodies import renaming, schema, set_property, transaction, view_request

NS = "/v1/wh/namespaces"
TABLE = f"{NS}/db/tables/t"
NEW: JsonObject = {"name": "u", "schema": schema("x")}


def identifier(name: str) -> JsonObject:
    return {"namespace": ["db"], "name": name}


def file_in(folder: str) -> str:
    return f"memory:///wh/warehouse/{folder}/1.metadata.json"


COMMIT = "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}"
RENAME = "POST /v1/{prefix}/tables/rename"
CREATE_NAMESPACE = "POST /v1/{prefix}/namespaces"
PROPERTIES = "POST /v1/{prefix}/namespaces/{namespace}/properties"
DROP_NAMESPACE = "DELETE /v1/{prefix}/namespaces/{namespace}"
REPLACE_VIEW = "POST /v1/{prefix}/namespaces/{namespace}/views/{view}"
UNDROP = "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/undrop"
GENERIC_TABLES = "/polaris/v1/{prefix}/namespaces/{namespace}/generic-tables"
SEMANTIC_MODELS = "/polaris/v1/{prefix}/namespaces/{namespace}/semantic-models"
REPLACE_MODEL = f"PUT {SEMANTIC_MODELS}/{{semantic-model-name}}"
POLICIES = "/polaris/v1/{prefix}/namespaces/{namespace}/policies"
UPDATE_POLICY = f"PUT {POLICIES}/{{policy-name}}"
ATTACH = f"PUT {POLICIES}/{{policy-name}}/mappings"
DETACH = f"POST {POLICIES}/{{policy-name}}/mappings"
TRANSACTION = "POST /v1/{prefix}/transactions/commit"
GOVERN = tuple(
    f"POST /v1/{{prefix}}/namespaces/{{namespace}}{of}/governance" for of in ("", "/tables/{table}", "/views/{view}")
)

MODEL: JsonObject = {"version": "0.1.1", "semantic_model": '{"datasets": [{"name": "d", "source": "db.t"}]}'}
CHANGES: dict[str, JsonObject | None] = {
    CREATE_NAMESPACE: {"namespace": ["n"]},
    DROP_NAMESPACE: None,
    PROPERTIES: {"updates": {"a": "b"}},
    "POST /v1/{prefix}/namespaces/{namespace}/tables": NEW,
    "POST /v1/{prefix}/namespaces/{namespace}/register": {"name": "u", "metadata-location": file_in("kept-table")},
    COMMIT: set_property("a", "b"),
    "DELETE /v1/{prefix}/namespaces/{namespace}/tables/{table}": None,
    "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/unregister": {},
    UNDROP: None,
    RENAME: renaming("t", "u"),
    TRANSACTION: transaction(set_property("a", "b"), "t"),
    "POST /v1/{prefix}/namespaces/{namespace}/views": view_request("u"),
    "POST /v1/{prefix}/namespaces/{namespace}/register-view": {"name": "u", "metadata-location": file_in("kept-view")},
    REPLACE_VIEW: set_property("a", "c"),
    "DELETE /v1/{prefix}/namespaces/{namespace}/views/{view}": None,
    "POST /v1/{prefix}/views/rename": renaming("v", "u"),
    f"POST {GENERIC_TABLES}": {"name": "u", "format": "delta", "properties": {"a": "b"}},
    f"DELETE {GENERIC_TABLES}/{{generic-table}}": None,
    f"POST {SEMANTIC_MODELS}": {"name": "u", "document": MODEL},
    REPLACE_MODEL: {"document": MODEL},
    f"DELETE {SEMANTIC_MODELS}/{{semantic-model-name}}": None,
    f"POST {POLICIES}": {"name": "u", "type": "system.data-compaction", "content": '{"enable": true}'},
    UPDATE_POLICY: {"current-policy-version": 0, "content": "new"},
    f"DELETE {POLICIES}/{{policy-name}}": None,
    ATTACH: {"target": {"type": "catalog"}},
    DETACH: {"target": {"type": "namespace", "path": ["db"]}},
    **{endpoint: {"arco.owner": "ada", "arco.tag.domain": "sales"} for endpoint in GOVERN},
}
"""A change that can be made once on the `ready` service, for every endpoint that makes changes."""


async def make(service: HttpService, change: str, key: str, client: Client | None = None) -> Answer:
    """Sends one of the changes under a key."""
    method, template = change.split(" ")
    path = path_of(
        template,
        **{"namespace": "empty" if change == DROP_NAMESPACE else "db", "table": "dropped" if change == UNDROP else "t"},
        **{"policy-name": "q" if change == DETACH else "p"},
    )
    body = CHANGES[change]
    if body is not None and change == REPLACE_MODEL:
        body = {**body, "entity-version": service.model_version}
    data = b"" if body is None else dumps(body)
    return await (client or service.client).send(method, path, data, {"idempotency-key": key})


def test_every_route_that_changes_something_is_tried_here() -> None:
    notifications = "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/notifications"  # in test_notifications.py
    assert {*CHANGES, notifications} == {route.endpoint for route in ROUTES if route.effect is not Effect.READS}


@pytest.fixture
async def ready(service: HttpService) -> HttpService:
    """A service on which each of the changes can be made."""
    await service.namespace("empty", "empty")
    await service.view("v")
    await service.table("dropped")
    assert (await service.client.delete(f"{NS}/db/tables/dropped")).status == 204
    await service.generic_table("g")
    service.model_version = await service.semantic_model("m")
    await service.policy("p")
    await service.policy("q", {"type": "namespace", "path": ["db"]})
    assert await service.keep_metadata("kept-table", "tables/t") == file_in("kept-table")
    assert await service.keep_metadata("kept-view", "views/v") == file_in("kept-view")
    return service


@pytest.mark.parametrize("change", CHANGES)
async def test_a_retry_gets_the_first_answer_from_whichever_server(ready: HttpService, change: str) -> None:
    key = ready.key()

    first = await make(ready, change, key)
    replayed = await make(ready, change, key)
    elsewhere = await make(ready, change, key, ready.serve())
    unkeyed = await make(ready, change, ready.key())

    assert first.status in (200, 204), first.body
    for again in (replayed, elsewhere):
        assert (again.status, again.headers) == (first.status, first.headers)
        assert again.body == first.body or again.json == first.json
    sets_what_is_set = change in (PROPERTIES, COMMIT, REPLACE_VIEW, TRANSACTION, ATTACH, *GOVERN)
    assert unkeyed.status in ((200, 204) if sets_what_is_set else (404, 409))


@pytest.mark.parametrize("change", CHANGES)
async def test_a_refusal_is_replayed_too(empty_service: HttpService, change: str) -> None:
    """Nothing exists yet, so all but the creation of a namespace are refused; afterwards they would not be."""
    key = empty_service.key()
    first = await make(empty_service, change, key)
    await empty_service.namespace("db", "db")
    await empty_service.namespace("empty", "empty")
    await empty_service.table("t")
    await empty_service.view("v")
    await empty_service.generic_table("g")
    await empty_service.semantic_model("m")
    await empty_service.policy("p")
    await empty_service.policy("q", {"type": "namespace", "path": ["db"]})

    replayed = await make(empty_service, change, key)

    assert first.status == (200 if change == CREATE_NAMESPACE else 404)
    assert (replayed.status, replayed.json) == (first.status, first.json)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("key", ["", "k", "00000000-0000-4000-8000-000000000000", "x" * 36])
async def test_a_malformed_key_is_refused_before_anything_happens(ready: HttpService, change: str, key: str) -> None:
    before = ready.store.keys()

    answer = await make(ready, change, key)

    assert (answer.status, answer.error_type) == (400, "BadRequestException")
    assert "Idempotency-Key" in answer.message
    assert ready.store.keys() == before


@pytest.mark.parametrize("dialect", Dialect)
async def test_where_keys_are_not_taken_a_request_is_what_it_is_without_one(
    dialect: Dialect, service_with: Callable[..., HttpService]
) -> None:
    service = service_with(dialect=dialect, keys_enabled=False)
    await service.namespace("db", "db")
    sent = {"idempotency-key": service.key()}

    answers = [await service.client.send("POST", f"{NS}/db/tables", dumps(NEW), sent) for _ in range(2)]

    assert [answer.status for answer in answers] == [200, 409]
    assert not any("/iceberg_idempotency/" in name for name in service.store.keys(""))


async def test_two_keys_at_once_are_none(service: HttpService) -> None:
    answer = await make(service, COMMIT, f"{service.key()}, {service.key()}")

    assert (answer.status, answer.error_type) == (400, "BadRequestException")


async def test_reads_take_no_notice_of_a_key(client: Client) -> None:
    assert (await client.get(TABLE, idempotency_key="nonsense")).status == 200


async def test_a_key_is_bound_to_its_request(service: HttpService) -> None:
    key = service.key()
    await make(service, COMMIT, key)
    other = dumps(set_property("a", "other"))

    commit = await service.client.send("POST", TABLE, other, {"idempotency-key": key})
    drop = await service.client.send("DELETE", TABLE, b"", {"idempotency-key": key})
    query = await service.client.send("POST", f"{TABLE}?x=y", dumps(set_property("a", "b")), {"idempotency-key": key})

    assert (commit.status, commit.error_type) == (409, "CommitFailedException")
    assert (query.status, query.error_type) == (409, "CommitFailedException")
    assert (drop.status, drop.error_type) == (422, "UnprocessableEntityException")
    assert (await service.client.head(TABLE)).status == 204


async def test_the_same_request_in_other_words_is_the_same_request(service: HttpService) -> None:
    key = service.key()
    body = b'{"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]}'
    again = b'{"updates":[{"updates":{"a":"\\u0062"},"action":"set-properties"}],"requirements":[]}'

    first = await service.client.send("POST", f"{TABLE}?x=1&y=%20", body, {"idempotency-key": key})
    second = await service.client.send(
        "POST", "/v1/w%68/namespaces/%64b/tables/%74?y=+&x=1", again, {"idempotency-key": key.upper()}
    )

    assert (first.status, first.body) == (second.status, second.body)


async def cut_short(dialect: Dialect, key: str, *, deaf: bool) -> HttpService:
    """A service to which a commit under a key was sent that the store never answered."""
    service = HttpService(options=HttpOptions(dialect=dialect))
    service.store = store = ScriptedStore(service.clock.now_ms)
    service.client = service.serve()
    await service.namespace("db", "db")
    await service.table("t")
    store.rules = [Rule(swap("/iceberg_pointers/"), made=not deaf, answers=lost)]
    answer = await make(service, COMMIT, key)
    store.rules = []
    assert (answer.status, answer.error_type) == (500, "CommitStateUnknownException")
    assert "Retry-After" not in answer.headers
    return service


@pytest.mark.parametrize("dialect", Dialect)
async def test_a_retry_learns_what_became_of_an_unknown_outcome(dialect: Dialect) -> None:
    key = HttpService().key()
    service = await cut_short(dialect, key, deaf=False)

    assert (await make(service, COMMIT, key)).status == 200


@pytest.mark.parametrize(
    ("dialect", "status", "type_name"),
    [(Dialect.ICEBERG, 503, "SlowDownException"), (Dialect.POLARIS, 409, "request_in_progress")],
)
async def test_a_duplicate_of_a_request_in_progress_must_wait(dialect: Dialect, status: int, type_name: str) -> None:
    key = HttpService().key()
    service = await cut_short(dialect, key, deaf=True)

    answer = await make(service, COMMIT, key)

    assert (answer.status, answer.error_type) == (status, type_name)
    assert answer.headers["Retry-After"] == "1"
    service.clock.ms += service.settings.in_progress_ms
    assert (await make(service, COMMIT, key)).status == 200, "it is taken over when it is old"


@pytest.mark.parametrize("key", ["any-key_1.2", "k", "x" * 255])
async def test_the_polaris_dialect_takes_its_own_keys(service_with: Callable[..., HttpService], key: str) -> None:
    service = service_with(dialect=Dialect.POLARIS)
    await service.namespace("db", "db")
    await service.table("t")

    first = await make(service, COMMIT, key)
    replayed = await make(service, COMMIT, key)
    reused = await service.client.send("POST", TABLE, dumps(set_property("a", "c")), {"idempotency-key": key})
    elsewhere = await make(service, CREATE_NAMESPACE, key)

    assert (first.status, first.body) == (replayed.status, replayed.body)
    assert (reused.status, reused.error_type) == (422, "idempotency_key_conflict")
    assert elsewhere.status == 200, "path and method are part of the key"


@pytest.mark.parametrize("key", ["", "-x", ".x", "_x", "a b", "x" * 256, "\xfc"])
async def test_the_polaris_dialect_refuses_other_keys(service_with: Callable[..., HttpService], key: str) -> None:
    service = service_with(dialect=Dialect.POLARIS)

    answer = await make(service, CREATE_NAMESPACE, key)

    assert (answer.status, answer.error_type) == (400, "BadRequestException")
    assert answer.message.endswith("dashes or underscores, and begin with a letter or a digit")


@pytest.mark.parametrize(
    ("age_ms", "change", "status", "type_name"),
    [
        (25 * 60 * 60 * 1000, COMMIT, 500, "CommitStateUnknownException"),
        (25 * 60 * 60 * 1000, RENAME, 500, "CommitStateUnknownException"),
        (-6 * 60 * 1000, COMMIT, 400, "BadRequestException"),
    ],
)
async def test_a_key_of_another_time_is_not_executed(
    service: HttpService, age_ms: int, change: str, status: int, type_name: str
) -> None:
    answer = await make(service, change, service.key(age_ms))

    assert (answer.status, answer.error_type) == (status, type_name)
    assert (await service.client.head(TABLE)).status == 204


async def test_receipts_and_markers_hold_the_client_and_no_header_of_ours(service: HttpService) -> None:
    client = Client(service.client.app, {"authorization": "Bearer hunter2", "user-agent": "Spark/4.1"})
    key = service.key()
    await client.post(TABLE, set_property("a", "b"), idempotency_key=key)

    keys = service.store.keys()
    bodies = {key: (await service.store.get(key)).body for key in keys}  # type: ignore[union-attr]
    assert not [name for name, body in bodies.items() if b"hunter2" in body or key.encode() in body]
    [receipt] = [
        document
        for key, body in bodies.items()
        if "/committed/" in key and isinstance(document := loads(body), dict) and base_of(document)
    ]
    assert receipt["source"] == {"kind": "IcebergRest", "client_info": "Spark/4.1", "principal": "anonymous"}
    assert receipt["principal"] == "anonymous"
    assert receipt["request"] == {
        "method": "POST",
        "path": TABLE,
        "idempotency_key_hash": key_hash("", key),
    }
    assert any(f"/{key_hash('', key)}/" in name for name in keys)  # the marker's
