"""The headers of answers, as the function hands them to its endpoint and clients look them up."""

import re
from typing import Any

import pytest
from mangum import Mangum

from arco_catalog.http.app import create_app
from arco_catalog.http.lambda_adapter import Endpoint, Handler, WithRawPath, adapt
from arco_catalog.http.options import HttpOptions
from arco_catalog.iceberg.json import dumps
from arco_catalog.telemetry.telemetry import Telemetry
from tests.support.http_service import HttpService
from tools.gateway.events import DEFAULT_STAGE, Arrival, event_of, response_of
from tools.gateway.http1 import Headers, Request
from tools.support.request_bodies import schema

every_endpoint = pytest.mark.parametrize("endpoint", [*Endpoint], ids=str)
NS = "/v1/wh/namespaces"
JSON = ("Content-Type", "application/json")


def handler_of(service: HttpService, endpoint: Endpoint) -> Handler:
    app = WithRawPath(
        create_app({"wh": service.catalog()}, HttpOptions(gzip=True), Telemetry([], service.clock)), endpoint
    )
    return adapt(Mangum(app, lifespan="off"), app)


def result_of(
    handler: Handler, endpoint: Endpoint, method: str, target: str, body: object = None, headers: Headers = (JSON,)
) -> dict[str, Any]:
    data = b"" if body is None else dumps(body)  # type: ignore[arg-type]  # whatever the test sends
    request = Request(method, target, headers, data, 0)
    arrival = Arrival(request, "b6e1c2a0-0000-4000-8000-000000000000", 1_700_000_000_000, DEFAULT_STAGE)
    return handler(event_of(arrival, endpoint), None)


def with_a_table(service: HttpService, endpoint: Endpoint) -> Handler:
    handler = handler_of(service, endpoint)
    result_of(handler, endpoint, "POST", NS, {"namespace": ["db"]})
    long = {"long": "x" * 100_000}
    table = {"name": "t", "schema": schema("x"), "properties": long}
    assert result_of(handler, endpoint, "POST", f"{NS}/db/tables", table)["statusCode"] == 200
    return handler


@every_endpoint
def test_a_function_spells_headers_as_java_looks_them_up(service: HttpService, endpoint: Endpoint) -> None:
    handler = with_a_table(service, endpoint)
    packed = (JSON, ("Accept-Encoding", "gzip"))

    loaded = result_of(handler, endpoint, "GET", f"{NS}/db/tables/t", headers=packed)
    names = {*loaded["headers"], *(loaded.get("multiValueHeaders") or {})}

    assert names >= {"ETag", "Content-Type", "Content-Length", "Content-Encoding", "X-Request-Id"}
    assert all(re.fullmatch(r"ETag|WWW-Authenticate|([A-Z][a-z]*-)*[A-Z][a-z]*", name) for name in names)


def test_through_a_rest_api_which_keeps_the_spelling_a_client_revalidates(service: HttpService) -> None:
    handler = with_a_table(service, Endpoint.REST_API)
    loaded = response_of(result_of(handler, Endpoint.REST_API, "GET", f"{NS}/db/tables/t"), Endpoint.REST_API)

    tag = dict(loaded.headers)["ETag"]
    again = result_of(handler, Endpoint.REST_API, "GET", f"{NS}/db/tables/t", headers=(("If-None-Match", tag),))

    assert again["statusCode"] == 304
    assert again["headers"]["ETag"] == tag


@every_endpoint
def test_an_event_that_is_no_request_is_answered_in_the_same_spelling(service: HttpService, endpoint: Endpoint) -> None:
    assert handler_of(service, endpoint)({}, None)["headers"] == {"Content-Type": "application/json"}
