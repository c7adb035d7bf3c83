"""Paths that pass an endpoint, and events as AWS makes them."""

import asyncio
import base64
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mangum import Mangum

from arco_catalog.http.app import create_app
from arco_catalog.http.lambda_adapter import Endpoint, Handler, WithRawPath, adapt, raw_path
from arco_catalog.http.percent import decode_text
from tests.support.http_service import HttpService
from tools.gateway.events import DEFAULT_STAGE, Arrival, NoResponse, NotRoutable, event_of, response_of
from tools.gateway.http1 import Headers, Request

ENDPOINTS = list(Endpoint)
STAGED = [
    (endpoint, stage)
    for endpoint in ENDPOINTS
    for stage in (DEFAULT_STAGE, "live", "v1")
    if stage == DEFAULT_STAGE or endpoint is not Endpoint.FUNCTION_URL  # it has no stages
]
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(lambda name: name not in (".", ".."))


def arrival(
    target: str, method: str = "GET", headers: Headers = (), body: bytes = b"", stage: str = DEFAULT_STAGE
) -> Arrival:
    return Arrival(
        Request(method, target, headers, body, 0), "b6e1c2a0-0000-4000-8000-000000000000", 1_700_000_000_000, stage
    )


def through(endpoint: Endpoint, target: str, stage: str = DEFAULT_STAGE) -> bytes:
    """The path as the app gets it."""
    base = "" if stage == DEFAULT_STAGE else f"/{stage}"
    return raw_path(event_of(arrival(f"{base}{target}", stage=stage), endpoint), endpoint)


@given(NAMES, st.sampled_from(STAGED))
def test_every_name_that_an_endpoint_can_carry_arrives(name: str, staged: tuple[Endpoint, str]) -> None:
    endpoint, stage = staged
    if {*name} & {*endpoint.unroutable}:
        return
    segments = through(endpoint, f"/v1/wh/namespaces/{quote(name, safe='')}%1Fx/tables/t", stage).split(b"/")
    assert len(segments) == 7
    assert decode_text(segments[4]) == f"{name}\x1fx"


@pytest.mark.parametrize("name", ["a/b", "a?b", "x%2Fy", "?", "/"])
@pytest.mark.parametrize("endpoint", [Endpoint.REST_API, Endpoint.FUNCTION_URL])
def test_what_an_http_api_loses_the_others_keep(endpoint: Endpoint, name: str) -> None:
    path = f"/v1/wh/namespaces/db/tables/{quote(name, safe='')}"
    assert through(endpoint, path) == path.encode()


def test_an_http_api_makes_two_segments_of_an_encoded_slash_and_cuts_off_at_a_question_mark() -> None:
    assert through(Endpoint.HTTP_API, "/v1/a%2Fb") == b"/v1/a/b"
    assert through(Endpoint.HTTP_API, "/v1/a%3Fb/tables") == b"/v1/a"


@pytest.mark.parametrize(("endpoint", "stage"), STAGED)
@pytest.mark.parametrize("path", ["/v1/config", "/health", "/", "/v1/v1/x", "/v1/a_b-c.d/", "/v1//x"])
def test_a_plain_path_arrives_as_it_was_sent_without_its_stage(endpoint: Endpoint, path: str, stage: str) -> None:
    assert through(endpoint, path, stage) == path.encode()


def test_a_path_that_is_no_text_reaches_no_function_of_an_http_api() -> None:
    with pytest.raises(NotRoutable):
        event_of(arrival("/v1/%ff"), Endpoint.HTTP_API)


def test_format_2_joins_what_was_sent_twice_and_keeps_the_query_as_sent() -> None:
    headers = [("Accept", "a"), ("accept", "b"), ("Cookie", "x=1; y=2"), ("X-Y", "Ü")]
    event: Any = event_of(arrival("/p?a=1&b=%20&a=%2B2", headers=headers), Endpoint.HTTP_API)
    assert event["rawQueryString"] == "a=1&b=%20&a=%2B2"
    assert event["queryStringParameters"] == {"a": "1,+2", "b": " "}
    assert (event["headers"]["accept"], event["headers"]["x-y"]) == ("a,b", "Ü")
    assert event["cookies"] == ["x=1", "y=2"]
    assert all(name == name.lower() and name != "cookie" for name in event["headers"])
    assert "body" not in event
    assert event["requestContext"]["http"]["path"] == event["rawPath"] == "/p"


def test_format_1_keeps_names_as_sent_and_every_value() -> None:
    event: Any = event_of(
        arrival("/live/p%20q?a=1&a=2", headers=[("X-Y", "1"), ("X-Y", "2")], stage="live"), Endpoint.REST_API
    )
    assert (event["path"], event["requestContext"]["path"]) == ("/p%20q", "/live/p%20q")
    assert (event["headers"]["X-Y"], event["multiValueHeaders"]["X-Y"]) == ("2", ["1", "2"])
    assert event["multiValueQueryStringParameters"] == {"a": ["1", "2"]}
    assert event["body"] is None


@pytest.mark.parametrize(
    ("kind", "coding", "encoded"),
    [
        ("application/json", "", False),
        ("text/plain; charset=utf-8", "", False),
        ("application/octet-stream", "", True),
        ("application/x-www-form-urlencoded", "", True),
        ("", "", True),
        ("application/json", "gzip", True),
    ],
)
def test_a_body_that_is_no_text_becomes_base64(kind: str, coding: str, encoded: bool) -> None:
    headers = [(name, value) for name, value in (("Content-Type", kind), ("Content-Encoding", coding)) if value]
    event = event_of(arrival("/p", "POST", headers, b"{}"), Endpoint.HTTP_API)
    assert event["isBase64Encoded"] is encoded
    assert event["body"] == (base64.b64encode(b"{}").decode() if encoded else "{}")


def test_a_result_becomes_a_response() -> None:
    result = {
        "statusCode": 201,
        "headers": {"ETag": "x"},
        "cookies": ["a=1", "b=2"],
        "body": base64.b64encode(b"\x00").decode(),
        "isBase64Encoded": True,
    }
    response = response_of(result, Endpoint.HTTP_API)
    assert (response.status, response.body) == (201, b"\x00")
    assert [*response.headers] == [("etag", "x"), ("set-cookie", "a=1"), ("set-cookie", "b=2")]
    many = {"statusCode": 204, "headers": {"A": "1"}, "multiValueHeaders": {"B": ["2", "3"]}, "body": ""}
    assert [*response_of(many, Endpoint.REST_API).headers] == [("B", "2"), ("B", "3"), ("A", "1")]


@pytest.mark.parametrize("result", [None, "text", {}, {"statusCode": "200"}])
def test_a_result_without_a_status_is_none(result: object) -> None:
    with pytest.raises(NoResponse):
        response_of(result, Endpoint.HTTP_API)


@pytest.fixture
def loop() -> Iterator[None]:
    """A current loop, as the adapter wants it."""
    asyncio.set_event_loop(loop := asyncio.new_event_loop())
    yield
    asyncio.set_event_loop(None)
    loop.close()


def handler_behind(endpoint: Endpoint) -> Handler:
    """A handler of an app without a warehouse."""
    app = WithRawPath(create_app({}), endpoint)
    return adapt(Mangum(app, lifespan="off"), app)


@pytest.mark.usefixtures("loop")
@pytest.mark.parametrize(("endpoint", "stage"), STAGED)
@pytest.mark.parametrize("kind", ["application/merge-patch+json", "application/json"])
def test_a_merge_patch_arrives_however_an_endpoint_carries_it(endpoint: Endpoint, stage: str, kind: str) -> None:
    service = HttpService()
    asyncio.get_event_loop().run_until_complete(service.namespace("db", "db"))
    app = WithRawPath(create_app({"wh": service.catalog()}), endpoint)
    base = "" if stage == DEFAULT_STAGE else f"/{stage}"
    target = f"{base}/v1/wh/namespaces/db/governance"
    asked = arrival(target, "POST", [("Content-Type", kind)], '{"arco.owner": "Zoë"}'.encode(), stage)

    result = adapt(Mangum(app, lifespan="off", api_gateway_base_path=base), app)(event_of(asked, endpoint), None)

    assert (result["statusCode"], json.loads(result["body"])) == (200, {"arco.owner": "Zoë"})


NO_REQUESTS: list[object] = [
    {"key1": "value1"},
    {"source": "aws.events", "detail-type": "Scheduled Event", "detail": {}},
    {"Records": []},
    {"version": "2.0", "requestContext": {"eventType": "CONNECT"}, "headers": {"x-planted": "hunter2"}},
    {},
    [],
    None,
]


@pytest.mark.usefixtures("loop")
@pytest.mark.parametrize("event", NO_REQUESTS)
@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_an_event_that_is_no_request_is_answered_as_a_bad_one(endpoint: Endpoint, event: object) -> None:
    result = handler_behind(endpoint)(event, None)
    assert result["statusCode"] == 400
    assert json.loads(result["body"])["error"]["type"] == "BadRequestException"


@pytest.mark.usefixtures("loop")
@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.parametrize("sender", ENDPOINTS)
def test_an_event_of_another_endpoint_than_the_deployed_is_not_taken_for_a_request(
    sender: Endpoint, endpoint: Endpoint
) -> None:
    formats = {Endpoint.HTTP_API: 2, Endpoint.FUNCTION_URL: 2, Endpoint.REST_API: 1}
    event = event_of(arrival("/v1/nowhere", stage=DEFAULT_STAGE), sender)
    status = handler_behind(endpoint)(event, None)["statusCode"]
    assert status == (404 if formats[sender] == formats[endpoint] else 400)


@pytest.mark.usefixtures("loop")
def test_of_a_request_that_reached_the_app_it_is_never_said_that_it_was_none() -> None:
    app = WithRawPath(create_app({}), Endpoint.HTTP_API)
    mangum = Mangum(app, lifespan="off")

    def breaking(event: Any, context: Any) -> dict[str, Any]:
        mangum(event, context)
        raise RuntimeError("on the way back")

    with pytest.raises(RuntimeError, match="on the way back"):
        adapt(breaking, app)(event_of(arrival("/v1/nowhere"), Endpoint.HTTP_API), None)


PROXIED = [("X-Forwarded-Port", "443,80"), ("X-Forwarded-Port", "x"), ("Host", "[::1]:8181"), ("Host", "a:b")]


@pytest.mark.usefixtures("loop")
@pytest.mark.parametrize("header", PROXIED)
@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_what_proxies_say_of_ports_breaks_no_request(endpoint: Endpoint, header: tuple[str, str]) -> None:
    stage = "live" if endpoint is Endpoint.REST_API else DEFAULT_STAGE
    base = "/live" if endpoint is Endpoint.REST_API else ""
    event = event_of(arrival(f"{base}/v1/nowhere", headers=[header], stage=stage), endpoint)
    assert handler_behind(endpoint)(event, None)["statusCode"] == 404
