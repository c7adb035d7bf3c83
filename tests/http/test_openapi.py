"""The document of the served endpoints: it is generated from the routes, and differs from the specifications only by
decision (docs/decisions/0054-the-openapi-document-is-made-of-routes.md)."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from openapi_spec_validator import validate

from arco_catalog.http.management.routes import MANAGEMENT
from arco_catalog.http.openapi import FILE, served
from arco_catalog.http.route import Effect, Route
from arco_catalog.http.routes import HEALTH, ROUTES
from arco_catalog.state.key_settings import Dialect
from arco_catalog.telemetry.names import operation
from tests.support.http_service import HttpService
from tools.openapi import ours
from tools.openapi.document import document
from tools.openapi.specifications import (
    ICEBERG,
    ICEBERG_SOURCE,
    POLARIS,
    POLARIS_SOURCE,
    components,
    extract,
    extract_management,
    extract_polaris,
    in_lines,
    nameless,
    operations,
    read,
)
from tools.openapi.specifications import (
    MANAGEMENT as MANAGEMENT_EXTRACT,
)
from tools.support.asgi_client import Client

EVERY_ROUTE = (*HEALTH, *ROUTES, *MANAGEMENT)
WHOLE: dict[str, Any] = json.loads(FILE.read_text())
METHODS = ("get", "head", "post", "put", "delete")

KEY_NOT_RECORDED = {
    f"{method} /v1/{{}}/namespaces/{{}}/tables/{{}}/{place}"
    for method, place in (("POST", "plan"), ("DELETE", "plan/{}"), ("POST", "tasks"))
}
"""Operations that change nothing, and take the key that the specification gives them."""

DEVIATIONS = {
    "takes Idempotency-Key",
    "takes deleted",
    "takes staged-location",
    "has labels",
    "has file-io",
    "has resolve-max-items",
    "must have a body",
    "takes a bare body, too",
    *(f"answers {status}" for status in (400, 401, 403, 404, 406, 409, 413, 415, 422, 429)),
    "answers 5XX",
    "never answers 419",
    "has a body in its errors",
    "has no body in answers to HEAD",
    "has an error where the specification has a bare ErrorModel",
    "has any of types where the specification has one of them",
}
"""All that the document has that the specifications have not, as the decision lists it."""


def described(whole: Mapping[str, Any]) -> dict[str, Any]:
    """The operations of a document, by their endpoints without names of parameters."""
    return {
        nameless(f"{method.upper()} {path}"): item[method]
        for path, item in whole["paths"].items()
        for method in METHODS
        if method in item
    }


def resolved(part: Any, known: Mapping[str, Any]) -> Any:
    """What a reference stands for, and whatever is none."""
    if isinstance(part, dict) and "$ref" in part:
        kind, name = part["$ref"].removeprefix("#/components/").split("/")
        return known[kind][name]
    return part


class Comparison:
    """What is different in our description of one operation, and in all that it refers to."""

    def __init__(self) -> None:
        self._compared: set[str] = set()

    def of(self, ours: Mapping[str, Any], theirs: Mapping[str, Any], *, to_head: bool) -> Iterator[str]:
        if ours["operationId"] != theirs["operationId"]:
            yield f"is called {ours['operationId']}"
        mine, specified = (_parameters(ours, WHOLE["components"]), _parameters(theirs, components()))
        yield from (f"takes {name}" for name in mine.keys() - specified.keys())
        yield from (f"does not take {name}" for name in specified.keys() - mine.keys())
        for name in mine.keys() & specified.keys():
            yield from self._parts(mine[name], specified[name], name)
        yield from self._bodies(ours.get("requestBody", {}), theirs.get("requestBody", {}))
        yield from (f"answers {status}" for status in ours["responses"].keys() - theirs["responses"].keys())
        yield from (f"never answers {status}" for status in theirs["responses"].keys() - ours["responses"].keys())
        for status in ours["responses"].keys() & theirs["responses"].keys():
            answers = ours["responses"][status], theirs["responses"][status]
            yield from self._answers(*answers, status, to_head=to_head)

    def _bodies(self, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Iterator[str]:
        if ours.get("required") and not theirs.get("required"):
            yield "must have a body"
        yield from self._parts(ours.get("content"), theirs.get("content"), "body")

    def _answers(self, ours: Any, theirs: Any, status: str, *, to_head: bool) -> Iterator[str]:
        mine, specified = (resolved(ours, WHOLE["components"]), resolved(theirs, components()))
        content, wanted = mine.get("content"), specified.get("content")
        if to_head and content is None and wanted is not None:
            yield "has no body in answers to HEAD"
        elif content is not None and wanted is None and status.startswith(("4", "5")):
            yield "has a body in its errors"
        else:
            yield from self._parts(content, wanted, f"answer {status}")
        yield from self._parts(mine.get("headers"), specified.get("headers"), f"headers of {status}")

    def _parts(self, ours: Any, theirs: Any, at: str) -> Iterator[str]:
        match ours, theirs:
            case {"$ref": "#/components/schemas/IcebergErrorResponse"}, {"$ref": "#/components/schemas/ErrorModel"}:
                yield "has an error where the specification has a bare ErrorModel"
            case {"$ref": str(mine)}, {"$ref": str(specified)} if mine == specified:
                if mine not in self._compared:
                    self._compared.add(mine)
                    yield from self._parts(resolved(ours, WHOLE["components"]), resolved(theirs, components()), mine)
            case {"$ref": "#/components/schemas/Labels"}, None:
                yield "has labels"
            case dict(), None if at.endswith("file-io"):
                yield "has file-io"
            case dict(), None if at.endswith("resolve-max-items"):
                yield "has resolve-max-items"
            case {"anyOf": [mine, _]}, {"$ref": str()} if at == "body/application/json/schema":
                yield "takes a bare body, too"
                yield from self._parts(mine, theirs, at)
            case {"anyOf": mine}, {"oneOf": specified}:
                yield "has any of types where the specification has one of them"
                yield from self._parts(mine, specified, at)
            case dict(), dict():
                for name in ours.keys() | theirs.keys():
                    if name != "description":
                        yield from self._parts(ours.get(name), theirs.get(name), f"{at}/{name}")
            case list(), list() if len(ours) == len(theirs):
                for place, (mine, specified) in enumerate(zip(ours, theirs, strict=True)):
                    yield from self._parts(mine, specified, f"{at}/{place}")
            case _:
                if ours != theirs:
                    yield f"{at} is {ours!r}, not {theirs!r}"


def _parameters(operation: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    return {each["name"]: each for each in (resolved(part, known) for part in operation.get("parameters", ()))}


def test_no_answer_is_described_that_no_server_sends() -> None:
    assert "419" not in {
        status
        for path in document()["paths"].values()
        for operation in path.values()
        for status in operation["responses"]
    }


def test_the_file_is_what_is_made_of_the_routes() -> None:
    assert FILE.read_text() == in_lines(document()) + "\n", "python -m tools.openapi writes it anew"


def test_it_is_an_openapi_document() -> None:
    validate(WHOLE)
    validate(served(route.endpoint for route in ROUTES))


def test_every_route_is_described_and_nothing_else() -> None:
    assert described(WHOLE).keys() == {nameless(route.endpoint) for route in EVERY_ROUTE}


@pytest.mark.parametrize("route", [*HEALTH, *ROUTES], ids=lambda route: route.endpoint)
def test_an_operation_is_called_as_telemetry_calls_it(route: Route) -> None:
    called = described(WHOLE)[nameless(route.endpoint)]["operationId"]

    assert called == operation(route.endpoint) or (route.method, called) == ("HEAD", "healthExists")


@pytest.mark.parametrize("route", EVERY_ROUTE, ids=lambda route: route.endpoint)
def test_an_idempotency_key_is_taken_by_what_changes_something_in_a_catalog(route: Route) -> None:
    documented = described(WHOLE)[nameless(route.endpoint)]

    takes = "Idempotency-Key" in _parameters(documented, WHOLE["components"])
    recorded = route.effect is not Effect.READS and route.has_prefix
    assert takes == (recorded or nameless(route.endpoint) in KEY_NOT_RECORDED)
    assert not recorded or {"409", "422"} <= documented["responses"].keys()
    assert ("security" in documented) == route.public


def test_the_difference_to_the_specifications_is_what_the_decision_names() -> None:
    documented = described(WHOLE)
    found: set[str] = set()
    for endpoint, specified in operations().items():
        if endpoint in documented:
            found |= {*Comparison().of(documented[endpoint], specified.described, to_head=endpoint.startswith("HEAD "))}

    assert found == DEVIATIONS
    assert {nameless(endpoint) for endpoint in ours.OPERATIONS} == documented.keys() - operations().keys()


def test_every_operation_of_the_specifications_is_served() -> None:
    assert operations().keys() <= {nameless(route.endpoint) for route in EVERY_ROUTE}


def test_a_body_that_may_be_bare_is_described_in_both_forms() -> None:
    found = described(WHOLE)
    for route in MANAGEMENT:
        if route.bare_field is not None:
            schema = found[nameless(route.endpoint)]["requestBody"]["content"]["application/json"]["schema"]
            wrapped, bare = schema["anyOf"]
            assert resolved(wrapped, WHOLE["components"])["properties"][route.bare_field] == bare


def test_a_comparison_finds_what_lies_deep_in_a_schema() -> None:
    specified = operations()["POST /v1/{}/namespaces/{}/tables/{}"].described
    documented = described(WHOLE)["POST /v1/{}/namespaces/{}/tables/{}"]
    other = {**documented, "responses": {**documented["responses"], "200": {"description": "another"}}}

    assert any("answer 200" in each for each in Comparison().of(other, specified, to_head=False))
    assert not any("answer 200" in each for each in Comparison().of(documented, specified, to_head=False))


def test_the_extracts_are_of_the_specifications_where_those_are_at_hand() -> None:
    made: list[tuple[str, object]] = []
    if ICEBERG_SOURCE.exists():
        made.append((ICEBERG.read_text(), extract(read(ICEBERG_SOURCE))))
    if POLARIS_SOURCE.exists():
        made.append((POLARIS.read_text(), extract_polaris(POLARIS_SOURCE)))
        made.append((MANAGEMENT_EXTRACT.read_text(), extract_management(POLARIS_SOURCE)))

    assert [kept for kept, _ in made] == [in_lines(extracted) + "\n" for _, extracted in made]


class TestServed:
    async def test_it_has_the_routes_of_this_server_and_no_others(self, client: Client) -> None:
        answer = await client.get("/openapi.json")

        assert answer.status == 200
        assert answer.headers["Content-Type"] == "application/json"
        assert described(answer.json).keys() == {nameless(route.endpoint) for route in ROUTES}
        assert not any(name.startswith("PrincipalRole") for name in answer.json["components"]["schemas"])  # type: ignore[index,call-overload,union-attr]

    async def test_a_server_without_authentication_has_no_security_in_its_document(self, client: Client) -> None:
        documented = (await client.get("/openapi.json")).json

        assert "security" not in documented
        assert "securitySchemes" not in documented["components"]  # type: ignore[operator]

    async def test_a_client_that_holds_it_is_not_sent_it_again(self, client: Client) -> None:
        first = await client.get("/openapi.json")
        again = await client.get("/openapi.json", **{"If-None-Match": first.headers["ETag"]})

        assert (again.status, again.body) == (304, b"")
        assert again.headers["ETag"] == first.headers["ETag"]
        assert first.headers["Cache-Control"] == again.headers["Cache-Control"] == "public, max-age=300"

    async def test_paths_begin_below_the_base_path(self, service_with: Callable[..., HttpService]) -> None:
        client = service_with(base_path=b"/iceberg").client

        assert (await client.get("/iceberg/openapi.json")).json["servers"] == [{"url": "/iceberg"}]

    async def test_where_keys_are_not_taken_they_are_not_listed(self, service_with: Callable[..., HttpService]) -> None:
        documented: Any = (await service_with(keys_enabled=False).client.get("/openapi.json")).json

        assert "idempotency-key" not in json.dumps(documented["paths"]).lower()
        assert "idempotency-key" not in documented["components"]["parameters"]
        assert "put" in documented["paths"]["/polaris/v1/{prefix}/namespaces/{namespace}/policies/{policy-name}"]

    @pytest.mark.parametrize("dialect", Dialect)
    async def test_keys_are_described_as_the_dialect_has_them(
        self, dialect: Dialect, service_with: Callable[..., HttpService]
    ) -> None:
        documented: Any = (await service_with(dialect=dialect).client.get("/openapi.json")).json

        schema = documented["components"]["parameters"]["idempotency-key"]["schema"]
        assert (schema.get("format"), schema["maxLength"]) == (
            (None, 255) if dialect is Dialect.POLARIS else ("uuid", 36)
        )
