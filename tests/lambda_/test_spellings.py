"""Every name, as every client spells it, behind each kind of endpoint: through the events that it makes."""

import base64
from collections.abc import Mapping

import pytest
from mangum import Mangum

from arco_catalog.http.app import create_app
from arco_catalog.http.lambda_adapter import Endpoint, WithRawPath, adapt
from arco_catalog.http.options import HttpOptions
from tests.http.naming import Naming, Send
from tests.http.spellings import JAVA, NAMES, NEVER, PYICEBERG, SPELLERS, Speller
from tests.support.http_service import HttpService
from tools.gateway.events import DEFAULT_STAGE, Arrival, event_of
from tools.gateway.http1 import Request
from tools.support.request_bodies import schema

every_endpoint = pytest.mark.parametrize("endpoint", [*Endpoint], ids=str)
every_client = pytest.mark.parametrize("speller", SPELLERS, ids=str)


def sender(service: HttpService, endpoint: Endpoint) -> Send:
    """Sends to a function behind the endpoint."""
    options = HttpOptions(unroutable=endpoint.unroutable)
    app = WithRawPath(create_app({"wh": service.catalog()}, options), endpoint)
    handler = adapt(Mangum(app, lifespan="off"), app)

    def send(method: str, target: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, bytes]:
        request = Request(method, target, [*headers.items()], body, 0)
        arrival = Arrival(request, "b6e1c2a0-0000-4000-8000-000000000000", 1_700_000_000_000, DEFAULT_STAGE)
        result = handler(event_of(arrival, endpoint), None)
        answer = result.get("body") or ""
        return result["statusCode"], base64.b64decode(answer) if result["isBase64Encoded"] else answer.encode()

    return send


@every_endpoint
@every_client
@pytest.mark.parametrize("name", NAMES)
def test_a_name_works_behind_an_endpoint_or_is_refused_where_it_would_be_lost(
    service: HttpService, endpoint: Endpoint, speller: Speller, name: str
) -> None:
    naming = Naming(speller, sender(service, endpoint))
    if {*name} & {*endpoint.unroutable}:
        naming.is_refused(name, "REST API or a function URL")
    else:
        naming.works_unless_lost(name)


@every_endpoint
@pytest.mark.parametrize(("name", "why"), NEVER)
def test_a_name_that_some_path_could_not_carry_is_refused_everywhere(
    service: HttpService, endpoint: Endpoint, name: str, why: str
) -> None:
    Naming(JAVA, sender(service, endpoint)).is_refused(name, why)


def test_behind_an_http_api_a_space_of_java_s_and_one_of_pyiceberg_s_are_one_name(service: HttpService) -> None:
    java, python = (Naming(speller, sender(service, Endpoint.HTTP_API)) for speller in (JAVA, PYICEBERG))
    java.make("we ird")
    made = java.done("POST", "/v1/wh/namespaces/we+ird/tables", {"name": "two words", "schema": schema("x")})

    found = python.done("GET", python.speller.target("namespaces", ("we ird",), "tables", "two words"))

    assert found["metadata-location"] == made["metadata-location"]


def test_a_table_whose_name_an_http_api_loses_can_be_renamed_there(service: HttpService) -> None:
    elsewhere, here = (
        Naming(JAVA, sender(service, endpoint)) for endpoint in (Endpoint.FUNCTION_URL, Endpoint.HTTP_API)
    )
    elsewhere.make("db")
    elsewhere.done("POST", "/v1/wh/namespaces/db/tables", {"name": "a+b", "schema": schema("x")})
    assert here.ask("GET", "/v1/wh/namespaces/db/tables/a%2Bb")[0] == 404, "it arrives as a space"

    to = {"namespace": ["db"], "name": "a-b"}
    here.done("POST", "/v1/wh/tables/rename", {"source": {"namespace": ["db"], "name": "a+b"}, "destination": to})

    assert here.done("GET", "/v1/wh/namespaces/db/tables")["identifiers"] == [to]
