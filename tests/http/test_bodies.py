"""Request bodies: bounded, JSON, objects, and refused with what was wrong."""

import asyncio
from collections.abc import Callable

import pytest

from arco_catalog.http.asgi import Asgi, Message
from arco_catalog.http.options import HttpOptions
from arco_catalog.http.requests import FORM, deeper_than
from arco_catalog.http.routes import ROUTES
from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps
from tests.http.templates import path_of
from tests.support.http_service import HttpService
from tests.support.realm_service import RealmApp
from tools.support.asgi_client import Client, scope_of
from tools.support.request_bodies import commit_report, scan_report, schema

WITH_BODIES = [f"{route.method} {path_of(route.template)}" for route in ROUTES if route.has_body]


def nested(levels: int) -> bytes:
    """An object that nests that deep."""
    return b'{"a":' + b"[" * (levels - 1) + b"]" * (levels - 1) + b"}"


NO_OBJECTS = [
    (b"", "empty: expected a JSON object"),
    (b"  \n", "empty: expected a JSON object"),
    (b"{", "not valid JSON"),
    (b"{'a': 1}", "not valid JSON"),
    (b'{"a": 1,}', "not valid JSON"),
    (b'{"a": 1} {}', "not valid JSON"),
    (b'{"a": NaN}', "not valid JSON"),
    (b'{"a": "\xff"}', "not valid JSON"),
    (b'{"a": "\\ud800"}', "not valid JSON"),
    (b"\xef\xbb\xbf{}", "not valid JSON"),
    ('{"a": 1}'.encode("utf-16"), "not valid JSON"),
    (b'{"a": 123456789012345678901234567890, }', "not valid JSON"),
    (b"null", "expected a JSON object, found null"),
    (b"[]", "expected a JSON object, found an array"),
    (b'"{}"', "expected a JSON object, found a string"),
    (b"17", "expected a JSON object, found an integer"),
    (b"true", "expected a JSON object, found a boolean"),
    (nested(201), "more than 200 levels"),
    (nested(900), "more than 200 levels"),
    (nested(100_000), "not valid JSON"),
    (b"[" * 100_000, "not valid JSON"),
    ((b"[" + b" " * 99) * 20_000, "not valid JSON"),
]
"""Bodies that are no JSON object, and what an answer has to say of each."""


@pytest.mark.parametrize("request_line", WITH_BODIES)
async def test_a_body_that_is_no_json_object_is_refused(client: Client, request_line: str) -> None:
    method, path = request_line.split(" ")
    for data, why in NO_OBJECTS:
        answer = await client.send(method, path, data)

        assert (answer.status, answer.error_type) == (400, "BadRequestException"), data[:50]
        assert why in answer.message, data[:50]


@pytest.mark.parametrize(
    ("document", "depth"),
    [
        ({}, 1),
        ({"a": 1}, 1),
        ({"a": {}}, 2),
        ({"a": [1, {"b": []}], "c": [[]]}, 4),
        ({"a": [[[[]]]]}, 5),
    ],
)
def test_depth_counts_arrays_and_objects(document: JsonObject, depth: int) -> None:
    assert not deeper_than(document, depth)
    assert deeper_than(document, depth - 1)


async def test_a_body_at_the_bound_of_depth_is_read(client: Client) -> None:
    answer = await client.send("POST", "/v1/wh/namespaces", nested(200))

    assert answer.message == "Invalid request: missing required field 'namespace'"


@pytest.mark.parametrize("pieces", [1, 7])
@pytest.mark.parametrize("declared", [True, False])
async def test_a_body_beyond_the_bound_is_too_large(
    service_with: Callable[..., HttpService], pieces: int, declared: bool
) -> None:
    client = service_with(max_body_bytes=100).client
    fits = dumps({"namespace": ["n"], "x": "y" * 70})
    fits += b" " * (100 - len(fits))
    headers = {"content-length": "101"} if declared else {}

    refused = await client.send("POST", "/v1/wh/namespaces", fits + b" ", headers, pieces)
    assert (refused.status, refused.error_type) == (413, "BadRequestException")
    assert "larger than 100 bytes" in refused.message
    assert (await client.send("POST", "/v1/wh/namespaces", fits, {}, pieces)).status == 200


@pytest.mark.parametrize("declared", ["abc", "-1", "²", ""])
async def test_a_length_that_is_no_number_is_no_failure(client: Client, declared: str) -> None:
    answer = await client.send("POST", "/v1/wh/namespaces", b'{"namespace": ["n"]}', {"content-length": declared})

    assert answer.status == 200


@pytest.mark.parametrize("coding", ["gzip", "br", "zstd", "gzip, identity"])
async def test_an_encoded_body_is_refused(client: Client, coding: str) -> None:
    answer = await client.post("/v1/wh/namespaces", {"namespace": ["n"]}, content_encoding=coding)

    assert (answer.status, answer.error_type) == (400, "BadRequestException")
    assert "Content-Encoding" in answer.message


async def test_a_body_marked_identity_is_read(client: Client) -> None:
    answer = await client.post("/v1/wh/namespaces", {"namespace": ["n"]}, content_encoding="identity")

    assert answer.status == 200


async def send_without_end(app: Asgi, target: str, headers: dict[str, str]) -> tuple[int, bytes]:
    """What a request is answered whose body never comes."""

    async def receive() -> Message:
        await asyncio.Event().wait()  # for ever
        raise AssertionError

    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    typed = {"content-type": "application/json", **headers}
    await app(scope_of("POST", target, typed), receive, send)
    return sent[0]["status"], sent[1]["body"]


async def test_a_body_that_never_ends_is_given_up(service_with: Callable[..., HttpService]) -> None:
    status, body = await send_without_end(service_with(body_seconds=0.01).client.app, "/v1/wh/namespaces", {})

    assert status == 400
    assert b"did not arrive within 0.01 s" in body


async def test_a_form_that_never_ends_is_given_up() -> None:
    realm = await RealmApp(options=HttpOptions(body_seconds=0.01)).start()

    status, body = await send_without_end(realm.app, "/v1/oauth/tokens", {"content-type": FORM})

    assert status == 400
    assert b"did not arrive within 0.01 s" in body


@pytest.mark.parametrize(
    ("target", "keyed"),
    [
        ("/v1/wh/namespaces", True),
        ("/v1/wh/namespaces/db/tables/t", True),
        ("/v1/wh/namespaces/db/tables/t", False),
        ("/v1/wh/transactions/commit", True),
    ],
)
async def test_a_body_that_never_ends_does_not_decide_the_outcome_of_an_earlier_sending(
    service_with: Callable[..., HttpService], target: str, keyed: bool
) -> None:
    service = service_with(body_seconds=0.01)

    status, body = await send_without_end(
        service.client.app, target, {"idempotency-key": service.key()} if keyed else {}
    )

    assert status == 500
    assert b"CommitStateUnknownException" in body


async def test_a_client_that_hangs_up_is_not_answered(client: Client) -> None:
    incoming: list[Message] = [
        {"type": "http.request", "body": b'{"namespace"', "more_body": True},
        {"type": "http.disconnect"},
    ]

    async def receive() -> Message:
        return incoming.pop(0)

    async def send(message: Message) -> None:
        raise AssertionError("no request must be sent")

    await client.app(scope_of("POST", "/v1/wh/namespaces", {"content-type": "application/json"}), receive, send)

    assert incoming == []


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("namespaces", {"namespace": "n"}, "Invalid request.namespace: expected an array, found a string"),
        ("namespaces", {"namespace": ["n", 1]}, "Invalid request.namespace[1]: expected a string, found an integer"),
        (
            "namespaces",
            {"namespace": ["n"], "properties": {"a": None}},
            "Invalid request.properties['a']: expected a string, found null",
        ),
        ("namespaces/db/properties", {"removals": "a"}, "Invalid request.removals: expected an array, found a string"),
        ("namespaces/db/tables", {"schema": {}}, "Invalid request: missing required field 'name'"),
        ("namespaces/db/tables", {"name": 1}, "Invalid request.name: expected a string, found an integer"),
        ("namespaces/db/register", {"name": "u"}, "Invalid request: missing required field 'metadata-location'"),
        (
            "namespaces/db/register",
            {"name": "u", "metadata-location": "s3://b/m", "overwrite": "yes"},
            "Invalid request.overwrite: expected a boolean, found a string",
        ),
        ("tables/rename", {"source": {}}, "Invalid request.source: missing required field 'namespace'"),
        (
            "tables/rename",
            {"source": {"namespace": ["db"], "name": "t"}, "destination": "u"},
            "Invalid request.destination: expected an object, found a string",
        ),
        ("namespaces/db/tables/t/metrics", {}, "Invalid request: missing required field 'report-type'"),
        (
            "namespaces/db/tables/t/metrics",
            scan_report() | {"report-type": 1},
            "Invalid request.report-type: expected a string, found an integer",
        ),
        (
            "namespaces/db/tables/t/metrics",
            commit_report() | {"metrics": {"attempts": {"unit": "count", "value": "1"}}},
            "Invalid request.metrics['attempts'].value: expected an integer, found a string",
        ),
        (
            "namespaces/db/tables/t/metrics",
            scan_report() | {"filter": {"type": "not", "child": {"type": "or", "left": True}}},
            "Invalid request.filter.child: missing required field 'right'",
        ),
        (
            "namespaces/db/tables/t/metrics",
            scan_report() | {"filter": {"type": "like"}},
            "Invalid request.filter.type: unknown expression 'like' of the filter in a scan report",
        ),
        (
            "namespaces/db/tables/t",
            {"identifier": {"namespace": ["db"], "name": "other"}, "requirements": [], "updates": []},
            "Invalid request.identifier: in a commit it must be the namespace and the name of the table in the path",
        ),
    ],
)
async def test_a_wrong_field_is_named_with_what_was_expected(
    client: Client, path: str, body: JsonValue, message: str
) -> None:
    answer = await client.post(f"/v1/wh/{path}", body)

    assert (answer.status, answer.error_type, answer.message) == (400, "BadRequestException", message)


async def test_optional_fields_may_be_null(client: Client) -> None:
    made = await client.post("/v1/wh/namespaces", {"namespace": ["n"], "properties": None})
    updated = await client.post("/v1/wh/namespaces/n/properties", {"removals": None, "updates": None})
    created = await client.post(
        "/v1/wh/namespaces/n/tables", {"name": "t", "schema": schema("x"), "location": None, "properties": None}
    )
    commit: JsonObject = {"identifier": None, "requirements": [], "updates": []}
    committed = await client.post("/v1/wh/namespaces/n/tables/t", commit)

    assert [made.status, updated.status, created.status, committed.status] == [200, 200, 200, 200]


def test_the_bounds_are_those_of_the_documentation() -> None:
    assert (HttpOptions().max_body_bytes, HttpOptions().max_body_depth) == (8 * 1024 * 1024, 200)
