"""Converts requests to the events with which API Gateway and function URLs invoke a function, and results to responses.

Sources: the developer guides of API Gateway ("Lambda proxy integrations", payload formats 1.0 and 2.0) and Lambda
("Invoking function URLs"), and observations in docs/decisions/0008.
"""

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, unquote_to_bytes

from arco_catalog.http.lambda_adapter import Endpoint
from tools.gateway.http1 import Headers, Request, Response

DEFAULT_STAGE = "$default"
ACCOUNT, API_ID, SOURCE_IP = "123456789012", "a1b2c3d4e5", "127.0.0.1"
DOMAIN = f"{API_ID}.execute-api.us-east-1.amazonaws.com"
TEXT_TYPES = ("text/", "application/json", "application/javascript", "application/xml")

Event = dict[str, Any]


class NotRoutable(ValueError):
    """The endpoint of the local gateway refuses the request's path, as AWS would."""


class NoResponse(ValueError):
    """A function behind the local gateway returned a result that cannot be converted to a response."""


@dataclass(frozen=True)
class Arrival:
    """A request at an endpoint of the local gateway: its time and id, the called stage, and the ARN of the caller whose
    signature the endpoint has verified (None if it verifies none)."""

    request: Request
    request_id: str
    now_ms: int
    stage: str
    caller: str | None = None

    @property
    def path(self) -> str:
        return self.request.target.partition("?")[0]

    @property
    def query(self) -> str:
        return self.request.target.partition("?")[2]

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The names and values of the query, decoded."""
        return parse_qsl(self.query, keep_blank_values=True)

    def header(self, name: str) -> str:
        """The first value of a header, given by its name in lower case; empty if the request does not have it."""
        return next((value for each, value in self.request.headers if each.lower() == name), "")


def event_of(arrival: Arrival, endpoint: Endpoint) -> Event:
    """The event of a request at a type of endpoint. Raises `NotRoutable` if the endpoint refuses the path."""
    return _EVENTS[endpoint](arrival)


def _http_api(arrival: Arrival) -> Event:
    """An event of payload format 2.0. The path is decoded, and cut at a question mark that decoding yields."""
    try:
        path = unquote_to_bytes(arrival.path).decode()
    except UnicodeDecodeError as error:
        raise NotRoutable(arrival.path) from error
    return _format_2(arrival, path.partition("?")[0])


def _function_url(arrival: Arrival) -> Event:
    """An event of payload format 2.0, with the path as it was sent."""
    return _format_2(arrival, arrival.path)


def _format_2(arrival: Arrival, path: str) -> Event:
    request = arrival.request
    headers: dict[str, str] = {}
    for name, value in (*request.headers, *_added(arrival)):
        key = name.lower()
        headers[key] = f"{headers[key]},{value}" if key in headers else value
    cookies = headers.pop("cookie", "")
    query: dict[str, str] = {}
    for name, value in arrival.pairs:
        query[name] = f"{query[name]},{value}" if name in query else value
    body, is_base64 = _body(arrival, binary=not arrival.header("content-type").startswith(TEXT_TYPES))
    return {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": arrival.query,
        **({"cookies": cookies.split("; ")} if cookies else {}),
        "headers": headers,
        **({"queryStringParameters": query} if query else {}),
        "requestContext": {
            "accountId": ACCOUNT,
            "apiId": API_ID,
            **({} if arrival.caller is None else {"authorizer": {"iam": {"userArn": arrival.caller}}}),
            "domainName": DOMAIN,
            "domainPrefix": API_ID,
            "http": {
                "method": request.method,
                "path": path,
                "protocol": "HTTP/1.1",
                "sourceIp": SOURCE_IP,
                "userAgent": arrival.header("user-agent"),
            },
            "requestId": arrival.request_id,
            "routeKey": "$default",
            "stage": arrival.stage,
            "time": _time(arrival),
            "timeEpoch": arrival.now_ms,
        },
        **({} if body is None else {"body": body}),
        "isBase64Encoded": is_base64,
    }


def _rest_api(arrival: Arrival) -> Event:
    """An event of payload format 1.0, with the path as it was sent, without the stage. Every media type is binary, as
    infra/ configures it."""
    request = arrival.request
    headers: dict[str, list[str]] = {}
    for name, value in (*request.headers, *_added(arrival)):
        headers.setdefault(name, []).append(value)
    query: dict[str, list[str]] = {}
    for name, value in arrival.pairs:
        query.setdefault(name, []).append(value)
    body, is_base64 = _body(arrival, binary=True)
    path = arrival.path.removeprefix(f"/{arrival.stage}")
    return {
        "resource": "/{proxy+}",
        "path": path,
        "httpMethod": request.method,
        "headers": {name: values[-1] for name, values in headers.items()},
        "multiValueHeaders": headers,
        "queryStringParameters": {name: values[-1] for name, values in query.items()} or None,
        "multiValueQueryStringParameters": query or None,
        "pathParameters": {"proxy": path.removeprefix("/")},
        "stageVariables": None,
        "requestContext": {
            "accountId": ACCOUNT,
            "apiId": API_ID,
            "domainName": DOMAIN,
            "domainPrefix": API_ID,
            "httpMethod": request.method,
            "identity": {
                "sourceIp": SOURCE_IP,
                "userAgent": arrival.header("user-agent"),
                "userArn": arrival.caller,
            },
            "path": arrival.path,
            "protocol": "HTTP/1.1",
            "requestId": arrival.request_id,
            "requestTime": _time(arrival),
            "requestTimeEpoch": arrival.now_ms,
            "resourcePath": "/{proxy+}",
            "stage": arrival.stage,
        },
        "body": body,
        "isBase64Encoded": is_base64,
    }


_EVENTS: Mapping[Endpoint, Callable[[Arrival], Event]] = {
    Endpoint.HTTP_API: _http_api,
    Endpoint.REST_API: _rest_api,
    Endpoint.FUNCTION_URL: _function_url,
}


def _added(arrival: Arrival) -> Headers:
    """The headers that the endpoint adds to the client's."""
    return [
        ("X-Amzn-Trace-Id", f"Root=1-{arrival.now_ms // 1000:08x}-{arrival.request_id.replace('-', '')[:24]}"),
        ("X-Forwarded-For", SOURCE_IP),
        ("X-Forwarded-Port", "443"),
        ("X-Forwarded-Proto", "https"),
    ]


def _body(arrival: Arrival, *, binary: bool) -> tuple[str | None, bool]:
    """The body as the text of an event (None without a body), and whether that is base64."""
    body = arrival.request.body
    if not body:
        return None, False
    if binary or arrival.header("content-encoding"):
        return base64.b64encode(body).decode(), True
    return body.decode("utf-8", "replace"), False


def _time(arrival: Arrival) -> str:
    return datetime.fromtimestamp(arrival.now_ms / 1000, UTC).strftime("%d/%b/%Y:%H:%M:%S +0000")


def response_of(result: object, endpoint: Endpoint) -> Response:
    """Convert the result of a function to a response. Raises `NoResponse` if it has no integer `statusCode`."""
    if not isinstance(result, dict) or not isinstance(result.get("statusCode"), int):
        raise NoResponse("no statusCode")
    headers: list[tuple[str, str]] = []
    if endpoint is Endpoint.REST_API:
        many = result.get("multiValueHeaders") or {}
        headers += [(name, value) for name, values in many.items() for value in values]
        headers += [(name, value) for name, value in (result.get("headers") or {}).items() if name not in many]
    else:
        headers += [(name.lower(), value) for name, value in (result.get("headers") or {}).items()]
        headers += [("set-cookie", cookie) for cookie in result.get("cookies") or []]
    body = result.get("body") or ""
    data = base64.b64decode(body) if result.get("isBase64Encoded") else body.encode()
    return Response(result["statusCode"], headers, data)
