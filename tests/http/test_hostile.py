"""Whatever is sent, the answer is Iceberg's, and never that the server failed."""

from typing import cast
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arco_catalog.http.requests import MAX_VALUES
from arco_catalog.http.routes import ROUTES
from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps
from storage_backends import ABSENT
from tests.fuzz.mutations import places, replaced, values
from tests.http.templates import path_of
from tests.support.http_service import HttpService
from tools.support.asgi_client import Answer
from tools.support.request_bodies import scan_report, schema, set_property, view_request

BOUNDED = settings(max_examples=60, deadline=None)

ICEBERG_ROUTES = [route for route in ROUTES if route.takes_json]  # errors of OAuth2 have a shape of their own
POLARIS_QUERY = ("namespace=", "target-name=", "policyType=", "detach-all=")
ROUTES_WITH_BODIES = [route for route in ROUTES if route.has_body]

NAMESPACES = "/v1/wh/namespaces"
DB = f"{NAMESPACES}/db"
COMMIT: JsonObject = {
    "identifier": {"namespace": ["db"], "name": "t"},
    "requirements": [
        {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None},
        {"type": "assert-current-schema-id", "current-schema-id": 0},
    ],
    "updates": [
        {"action": "add-schema", "schema": schema("x", "z"), "last-column-id": 2},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"spec-id": 1, "fields": []}},
        {
            "action": "add-snapshot",
            "snapshot": {
                "snapshot-id": 1,
                "sequence-number": 1,
                "timestamp-ms": 1767225600000,
                "manifest-list": "memory:///wh/warehouse/m.avro",
                "summary": {"operation": "append"},
            },
        },
        {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 1},
        {"action": "set-location", "location": "memory:///wh/warehouse/v"},
        {"action": "remove-snapshots", "snapshot-ids": [1]},
    ],
}
REPLACE: JsonObject = {
    "requirements": [],
    "updates": [
        {"action": "add-schema", "schema": schema("x", "y")},
        {"action": "add-view-version", "view-version": view_request("v")["view-version"]},
        {"action": "set-current-view-version", "view-version-id": -1},
        {"action": "set-location", "location": "memory:///wh/warehouse/vv"},
        {"action": "set-properties", "updates": {"a": "b"}},
    ],
}
VALID: list[tuple[str, JsonObject]] = [
    (NAMESPACES, {"namespace": ["n"], "properties": {"a": "b"}}),
    (f"{DB}/properties", {"removals": ["a"], "updates": {"b": "c"}}),
    (
        f"{DB}/tables",
        {
            "name": "u",
            "schema": schema("x", "y"),
            "partition-spec": {"fields": [{"source-id": 1, "transform": "bucket[4]", "name": "b"}]},
            "write-order": {
                "order-id": 1,
                "fields": [{"source-id": 2, "transform": "identity", "direction": "asc", "null-order": "nulls-first"}],
            },
            "properties": {"a": "b"},
            "stage-create": False,
            "location": "memory:///wh/warehouse/u",
        },
    ),
    (
        f"{DB}/register",
        {"name": "u", "metadata-location": "memory:///wh/warehouse/kept/1.metadata.json", "overwrite": True},
    ),
    (
        "/v1/wh/tables/rename",
        {"source": {"namespace": ["db"], "name": "t"}, "destination": {"namespace": ["db"], "name": "u"}},
    ),
    (f"{DB}/tables/t/metrics", scan_report()),
    (f"{DB}/tables/t", set_property("a", "b")),
    (f"{DB}/tables/t", COMMIT),
    (f"{DB}/tables/t/unregister", {}),
    (f"{DB}/views", view_request("w")),
    (f"{DB}/register-view", {"name": "w", "metadata-location": "memory:///wh/warehouse/kept-view/1.metadata.json"}),
    (f"{DB}/views/v", REPLACE),
    (
        "/v1/wh/views/rename",
        {"source": {"namespace": ["db"], "name": "v"}, "destination": {"namespace": ["db"], "name": "w"}},
    ),
    ("/v1/wh/transactions/commit", {"table-changes": [COMMIT]}),
]


@st.composite
def mutants(draw: st.DrawFn) -> tuple[str, JsonValue]:
    """A path, and a valid body for it with something in it that does not belong there."""
    path, valid = draw(st.sampled_from(VALID))
    document: JsonValue = valid
    for _ in range(draw(st.integers(1, 2))):
        document = replaced(document, draw(st.sampled_from(places(document))), draw(values))
    return path, document


async def small_site() -> HttpService:
    """A namespace, a table, and a file to register."""
    service = HttpService()
    await service.namespace("db", "db")
    await service.table("t")
    await service.keep_metadata("kept")
    await service.view("v")
    await service.keep_metadata("kept-view", "views/v")
    return service


def check(answer: Answer, what: object) -> None:
    """Fails where the server did."""
    assert answer.status < 500, (what, answer.body)
    if answer.status >= 400 and answer.body:
        assert answer.error


@pytest.mark.parametrize(("path", "body"), VALID)
async def test_the_bodies_to_be_mutated_are_good(path: str, body: JsonObject) -> None:
    answer = await (await small_site()).client.post(path, body)

    assert answer.status in (200, 204), answer.body


@settings(max_examples=400, deadline=None)
@given(mutant=mutants(), keyed=st.booleans())
async def test_no_body_makes_the_server_fail(mutant: tuple[str, JsonValue], keyed: bool) -> None:
    service = await small_site()
    path, body = mutant
    headers = {"idempotency-key": service.key()} if keyed else {}

    check(await service.client.send("POST", path, dumps(body), headers), mutant)

    listed = await service.client.get(f"{DB}/tables")
    assert listed.status == 200
    for identifier in cast(list[JsonObject], listed.json["identifiers"]):
        loaded = await service.client.get(f"{DB}/tables/{quote(str(identifier['name']), safe='')}")
        assert loaded.status == 200, mutant
    again = await service.client.send("POST", path, dumps(body), headers)
    check(again, mutant)


async def test_a_body_of_too_many_values_is_refused_before_it_is_parsed(service: HttpService) -> None:
    def body(values: int) -> bytes:
        return b'{"requirements":[],"updates":[],"x":[1' + b",1" * (values - 6) + b"]}"

    right = await service.client.send("POST", f"{DB}/tables/t", body(MAX_VALUES))
    refused = await service.client.send("POST", f"{DB}/tables/t", body(MAX_VALUES + 1))
    malformed = await service.client.send("POST", f"{DB}/tables/t", b"," * (MAX_VALUES + 1))

    assert (right.status, refused.status, malformed.status) == (200, 413, 413)
    assert refused.message == "The request body has more than 500,000 JSON values, a fixed limit: send several requests"


@BOUNDED
@given(data=values.map(dumps) | st.binary(max_size=60) | mutants().map(lambda mutant: dumps(mutant[1])[:-1]))
async def test_no_bytes_make_the_server_fail(data: bytes) -> None:
    service = await small_site()
    for route in ROUTES_WITH_BODIES:
        path = path_of(route.template)
        check(await service.client.send(route.method, path, data), route.endpoint)


PARTS = st.text(max_size=12) | st.sampled_from(["db", "t", "..", ".", "", "\x1f", "db\x1fdb", "a" * 300])
ESCAPED = PARTS.map(lambda part: quote(part, safe="", errors="surrogatepass")) | st.text("%0aFf/+.=&;", max_size=10)


PARAMETERS = (
    "",
    "parent=",
    "pageToken=",
    "pageSize=",
    "snapshots=",
    "purgeRequested=",
    "warehouse=",
    *POLARIS_QUERY,
)


@settings(max_examples=180, deadline=None)
@given(namespace=ESCAPED, table=ESCAPED, query=ESCAPED, parameter=st.sampled_from(PARAMETERS))
async def test_no_name_makes_the_server_fail(namespace: str, table: str, query: str, parameter: str) -> None:
    service = HttpService()
    await service.namespace("db", "db")
    for route in ICEBERG_ROUTES:
        path = path_of(
            route.template,
            namespace=namespace,
            table=table,
            view=table,
            function=table,
            **{"generic-table": table, "policy-name": table, "semantic-model-name": table},
        )
        answer = await service.client.send(route.method, f"{path}?{parameter}{query}", b'{"report-type": "r"}')
        check(answer, route.endpoint)


HEADERS = ("if-none-match", "idempotency-key", "content-length", "content-encoding", "accept-encoding", "user-agent")


@pytest.mark.parametrize("header", HEADERS)
@settings(max_examples=25, deadline=None)
@given(value=st.binary(max_size=40).map(lambda value: value.decode("latin-1")))
async def test_no_header_makes_the_server_fail(header: str, value: str) -> None:
    service = HttpService()
    await service.namespace("db", "db")
    await service.table("t")
    for route in ICEBERG_ROUTES:
        path = path_of(route.template)
        answer = await service.client.send(route.method, path, dumps(set_property("a", "b")), {header: value})
        check(answer, route.endpoint)


@st.composite
def mutant_metadata(draw: st.DrawFn, valid: JsonObject) -> JsonValue:
    """A metadata file with something in it that does not belong there."""
    return replaced(valid, draw(st.sampled_from([place for place in places(valid) if place])), draw(values))


@settings(max_examples=200, deadline=None)
@given(data=st.data())
async def test_no_registered_file_makes_the_server_fail(data: st.DataObject) -> None:
    """A file is judged when it is registered; what was let in can be loaded and changed."""
    service = await small_site()
    client = service.client
    added = await client.post(f"{DB}/tables/t", {**COMMIT, "updates": cast(list[JsonValue], COMMIT["updates"])[:-2]})
    valid = cast(JsonObject, added.json["metadata"])
    location = "memory:///wh/warehouse/alien"
    document = data.draw(mutant_metadata({**valid, "location": location}))
    await service.store.put("wh/warehouse/alien/1.metadata.json", dumps(document), ABSENT)

    body = {"name": "alien", "metadata-location": f"{location}/1.metadata.json"}
    registered = await client.post(f"{DB}/register", body)
    check(registered, document)

    if registered.status == 200:
        table = f"{DB}/tables/alien"
        assert (await client.get(table)).status == 200
        assert (await client.get(f"{table}?snapshots=refs")).status == 200
        check(await client.post(table, set_property("a", "b")), document)
        check(await client.post(table, {**COMMIT, "identifier": None}), document)
        assert (await client.get(table)).status == 200
