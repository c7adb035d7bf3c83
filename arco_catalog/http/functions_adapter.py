"""Adapts requests of Azure Functions to the app: the path as sent, and the caller that App Service authenticated
(docs/decisions/0036).

The platform's front end decodes `%2F` before the host routes a request, and keeps the original request target in a
header. While its authentication is on, it also sets headers about the caller, and removes headers with these names that
the client sent.
"""

import base64
from collections.abc import Mapping
from enum import StrEnum
from typing import Protocol

from arco_catalog.authentication.gateway import printable
from arco_catalog.http.asgi import Asgi, Scope
from arco_catalog.http.buffered_exchange import BufferedExchange
from arco_catalog.http.errors import described
from arco_catalog.http.principal import AUTHENTICATED_CALLER, GATEWAY_EVENT, NO_CALLER, Caller
from arco_catalog.iceberg.json import JsonObject, JsonValue, loads
from arco_catalog.protocol.operation_request import ANONYMOUS
from storage_backends.lazy_dataclass import dataclass

TARGET = "x-waws-unencoded-url"
"""Path and query as the front end received them."""
PRINCIPAL = "x-ms-client-principal"
"""The claims of the caller's token: JSON in base64 (App Service, "Access user claims in app code")."""

EASY_AUTH_API = "easyauth"
"""The entry of `ARCO_GATEWAY_APIS` by which the catalog trusts the identities that App Service passes on."""

_OBJECT_ID = ("oid", "http://schemas.microsoft.com/identity/claims/objectidentifier")
_SHORT_NAMES: Mapping[str, str] = {
    "http://schemas.microsoft.com/identity/claims/objectidentifier": "oid",
    "http://schemas.microsoft.com/identity/claims/tenantid": "tid",
    "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/nameidentifier": "sub",
    "http://schemas.microsoft.com/ws/2008/06/identity/claims/role": "roles",
}
"""The types under which App Service passes on claims of a token, and the names of these claims in the token."""
_NOT_PASSED_ON = (
    "App Service authenticated the request, but did not pass on valid claims of the caller (X-MS-CLIENT-PRINCIPAL)"
)
_NO_OBJECT_ID = (
    "The caller's token has no object id (claim 'oid'): send a token of a user or application, which has one"
)


class FunctionsEndpoint(StrEnum):
    """The authentication in front of the function app: App Service's ("Easy Auth"), or none."""

    EASY_AUTH = "easy-auth"
    UNAUTHENTICATED = "unauthenticated"


class HttpRequest(Protocol):
    """The part of `azure.functions.HttpRequest` that the adapter uses."""

    @property
    def method(self) -> str:
        """The HTTP method."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers, by their names as they were sent."""

    def get_body(self) -> bytes:
        """Returns the whole body of the request; empty if it has none."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The app's response to a request of Azure Functions: status, headers and body, from which the function makes an
    `azure.functions.HttpResponse`."""

    status: int
    headers: Mapping[str, str]
    body: bytes


async def respond(app: Asgi, request: HttpRequest, endpoint: FunctionsEndpoint) -> Answer:
    """Passes a request to the app and returns the response. A request gets a 400 if the header of the original target
    is missing, or does not begin with a slash: in the decoded path a slash in a name looks like a separator, so the
    request could act on another object. Raises what the app raises."""
    headers = {name.lower(): value for name, value in request.headers.items()}
    target = headers.get(TARGET, "")
    if not target.startswith("/"):
        refused = described(
            400,
            "BadRequestException",
            f"Azure Functions did not pass on the path as the client sent it, in the header {TARGET}",
        )
        return Answer(refused.status, {"content-type": "application/json"}, refused.body)
    path, _, query = target.partition("?")
    scope: Scope = {
        "type": "http",
        "method": request.method,
        "raw_path": path.encode("utf-8", "surrogatepass"),
        "query_string": query.encode("utf-8", "surrogatepass"),
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        AUTHENTICATED_CALLER: caller_in(headers, endpoint),
        GATEWAY_EVENT: event_in(headers, endpoint),
    }
    exchange = BufferedExchange(request.get_body())
    await app(scope, exchange.receive, exchange.send)
    return Answer(exchange.status, exchange.headers, exchange.answer)


def caller_in(headers: Mapping[str, str], endpoint: FunctionsEndpoint) -> Caller:
    """Returns the caller that App Service authenticated, by the object id of the user or application. If the claims are
    missing or malformed, or the id is missing, the caller has the reason in `unidentified_because`. An unauthenticated
    endpoint has `NO_CALLER`: clients can send these headers themselves there. Header names are in lower case."""
    if endpoint is FunctionsEndpoint.UNAUTHENTICATED:
        return NO_CALLER
    claims = _claims(headers.get(PRINCIPAL, ""))
    if claims is None:
        return Caller(ANONYMOUS, unidentified_because=_NOT_PASSED_ON)
    for name in _OBJECT_ID:
        if object_id := claims.get(name):
            return Caller(printable(object_id))
    return Caller(ANONYMOUS, unidentified_because=_NO_OBJECT_ID)


def event_in(headers: Mapping[str, str], endpoint: FunctionsEndpoint) -> JsonObject | None:
    """Returns the claims that App Service verified in the form of an API Gateway event (authentication/gateway.py),
    under their names in the token. The event has no claims if their header is missing or malformed. Returns None for
    an unauthenticated endpoint."""
    if endpoint is FunctionsEndpoint.UNAUTHENTICATED:
        return None
    claims = _claims(headers.get(PRINCIPAL, ""))
    authorizer: JsonObject = {} if claims is None else {"claims": {**_by_short_names(claims)}}
    return {"requestContext": {"apiId": EASY_AUTH_API, "authorizer": authorizer}}


def _by_short_names(claims: Mapping[str, str]) -> Mapping[str, str]:
    """Returns the claims under their names in tokens. If two types have one name and different values, the values are
    joined by a comma, so that the claim equals neither."""
    named: dict[str, str] = {}
    for kind, value in claims.items():
        name = _SHORT_NAMES.get(kind, kind)
        known = named.get(name, value)
        named[name] = value if known == value else f"{known},{value}"
    return named


def _claims(encoded: str) -> Mapping[str, str] | None:
    """Returns the values of the claims in the header by their types, with a comma between the values of one type; None
    if the header is empty or malformed. Leaves out an item of the list that is no claim (`_claim`)."""
    try:
        document = loads(base64.b64decode(encoded, validate=True))
    except ValueError:  # of base64, of a character that is not ASCII, and `MalformedJson`
        return None
    pairs = document.get("claims") if isinstance(document, dict) else None
    if not isinstance(pairs, list):
        return None
    claims: dict[str, str] = {}
    for name, value in filter(None, map(_claim, pairs)):
        claims[name] = f"{claims[name]},{value}" if name in claims else value
    return claims


def _claim(claim: JsonValue) -> tuple[str, str] | None:
    """Returns the type and the value of a claim in the header, an object with texts as `typ` and `val`; None for any
    other value."""
    match claim:
        case {"typ": str(name), "val": str(value)}:
            return name, value
    return None
