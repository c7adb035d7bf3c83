"""Makes the catalog's OpenAPI document from the table of routes.

The summary of an operation is from the route's handler; parameters, bodies and responses are from the specification
that has the operation, or from `ours`. The parameters and responses that the routes of this catalog have in common are
added by the fields of the route."""

import re
from collections.abc import Iterator
from http import HTTPStatus
from importlib.metadata import version

from arco_catalog.http.management.routes import MANAGEMENT, TOKENS
from arco_catalog.http.openapi import referred
from arco_catalog.http.route import Effect, Route
from arco_catalog.http.routes import DELEGATION, HEALTH, ROUTES
from tools.openapi import ours
from tools.openapi.specifications import Json, components, corrected, nameless, operations

VERSION = "3.1.1"
NEVER_SENT = "419"
"""Of an expired token, whose answer is 401 (RFC 6750, section 3.1). Iceberg's client in Java has no exception for 419,
and PyIceberg fetches a new token after either."""
KEY: Json = {"$ref": "#/components/parameters/idempotency-key"}
ERROR: Json = {"$ref": "#/components/schemas/IcebergErrorResponse"}
ABOUT = (
    "An Apache Iceberg REST catalog whose only state is an object store. Where there are realms, all of it but their "
    "management is also served below /api/catalog, where Apache Polaris has it. Errors have the shape of Iceberg's; "
    "Idempotency-Key makes each change happen at most once."
)


def document() -> Json:
    """The OpenAPI document of all routes of all servers. Raises `LookupError` for a route that neither a specification
    nor `ours` describes."""
    routes = {route.endpoint: route for route in (*HEALTH, *ROUTES, *DELEGATION, TOKENS, *MANAGEMENT)}
    paths: dict[str, Json] = {}
    for route in routes.values():
        path, operation = _operation(route)
        paths.setdefault(path, {})[route.method.lower()] = operation
    paths = corrected(paths)
    return {
        "openapi": VERSION,
        "info": {
            "title": "Arco catalog",
            "version": version("arco-catalog"),
            "description": ABOUT,
            "license": {"name": "Apache 2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0.html"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {**_components(paths), "securitySchemes": _security_schemes()},
    }


def _operation(route: Route) -> tuple[str, Json]:
    """The path and the operation of a route in the document."""
    specified = operations().get(nameless(route.endpoint))
    path, described = (specified.path, specified.described) if specified else (route.template, _ours(route))
    parameters = [*described["parameters"], *ours.QUERIES.get(route.endpoint, ())]
    if route.effect is not Effect.READS and route.has_prefix and KEY not in parameters:
        parameters.append(KEY)
    responses = {
        status: _answer(route, status, answer)
        for status, answer in described["responses"].items()
        if status != NEVER_SENT
    }
    for status in _refusals(route):
        responses.setdefault(status, _answer(route, status, {}))
    operation = {
        "tags": described.get("tags", ["Management API"]),
        "summary": _summary(route),
        "operationId": described["operationId"],
        **({"deprecated": True} if described.get("deprecated") else {}),
        **({"security": []} if route.public else {}),
        "parameters": parameters,
        **({"requestBody": _body(route, described["requestBody"])} if "requestBody" in described else {}),
        "responses": dict(sorted(responses.items())),
    }
    return path, {name: part for name, part in operation.items() if part != [] or name == "security"}


def _ours(route: Route) -> Json:
    described = ours.OPERATIONS.get(route.endpoint)
    if described is None:
        raise LookupError(f"no specification has {route.endpoint}: describe it in tools/openapi/ours.py")
    return described


def _summary(route: Route) -> str:
    """The first sentence of the docstring of the route's handler, without the full stop."""
    text = " ".join((route.handler.__doc__ or "").partition("\n\n")[0].split())
    return re.split(r"(?<=[a-z`)])\. ", text)[0].rstrip(".").replace("`", "")


def _body(route: Route, body: Json) -> Json:
    """The request body of a route in each form that the route takes. It is required if the route requires it, even if
    the specification does not."""
    if route.bare_field is not None:
        body = {**body, "content": {kind: _or_bare(media, route.bare_field) for kind, media in body["content"].items()}}
    return {**body, "required": True} if route.has_body else body


def _or_bare(media: Json, field: str) -> Json:
    """The schema of a body, or that of its field `field` in its place."""
    name = media["schema"]["$ref"].rpartition("/")[2]
    return {**media, "schema": {"anyOf": [media["schema"], components()["schemas"][name]["properties"][field]]}}


def _answer(route: Route, status: str, answer: Json) -> Json:
    """A response with the description that OpenAPI requires. Errors have the body of Iceberg's errors; responses to
    HEAD have none."""
    if route.method == "HEAD":
        return {"description": _phrase(status)}
    if "$ref" in answer:
        return answer
    body = {} if status.startswith(("2", "3")) else {"content": {"application/json": {"schema": ERROR}}}
    return {"description": _phrase(status), **body, **answer}


RENAMED = {413: "Content Too Large", 414: "URI Too Long", 416: "Range Not Satisfiable", 422: "Unprocessable Content"}
"""Reasons by RFC 9110, section 15.5, whose names Python has since 3.13."""


def _phrase(status: str) -> str:
    if not status.isdigit():
        return "Server Error"
    return RENAMED.get(int(status)) or HTTPStatus(int(status)).phrase


def _refusals(route: Route) -> Iterator[str]:
    """Yield the statuses with which a route of this kind may refuse a request."""
    changes = route.effect is not Effect.READS
    takes_body = route.has_body or route.optional_json or route.takes_form
    yield from ("400", "403", "5XX", *ours.REFUSALS.get(route.endpoint, ()))
    if not route.public:
        yield "401"
    if "{" in route.template:
        yield "404"
    if changes:
        yield from ("409", "415")
    if changes and route.has_prefix:
        yield from ("406", "422")
    if takes_body:
        yield from ("413", "415")


def _components(paths: Json) -> Json:
    """The components that paths refer to."""
    known: Json = corrected({**components(), "parameters": {**components()["parameters"], **ours.PARAMETERS}})
    known["schemas"] = {**known["schemas"], **ours.SCHEMAS}
    for name, fields in ours.FIELDS.items():
        schema = known["schemas"][name]
        known["schemas"][name] = {**schema, "properties": {**schema["properties"], **fields}}
    found: Json = {kind: dict(sorted(named.items())) for kind, named in referred(paths, known).items()}
    for name, answer in found["responses"].items():
        words = re.findall("[A-Z]+[a-z0-9]*", name)
        found["responses"][name] = {"description": " ".join(words).capitalize(), **answer}
    return found


def _security_schemes() -> Json:
    return {
        "OAuth2": {
            "type": "oauth2",
            "flows": {
                "clientCredentials": {"tokenUrl": "/v1/oauth/tokens", "scopes": {"catalog": "All that there is"}}
            },
        },
        "BearerAuth": {"type": "http", "scheme": "bearer"},
    }
