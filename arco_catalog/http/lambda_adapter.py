"""Adapts the events of API Gateway and function URLs to the app, and restores the path that the client sent
(docs/decisions/0008).

Mangum, the adapter between events and ASGI, decodes every path. So the app gets the path from the event instead.
"""

import logging
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any
from urllib.parse import quote

from arco_catalog.http.asgi import Asgi, Receive, Scope, Send
from arco_catalog.http.errors import described

_LOG = logging.getLogger(__name__)

Handler = Callable[[Any, Any], dict[str, Any]]
"""A Lambda handler: takes an event and its context, and returns the parts of an HTTP response."""

_RAW_PATH = "arco.raw_path"
"""The key under which an event carries the raw path to the app."""
_NAMES: Mapping[str, str] = {"etag": "ETag", "www-authenticate": "WWW-Authenticate"}
"""Headers whose usual spelling `str.title` does not give."""
_UNREADABLE = frozenset(("host", "x-forwarded-port"))
"""Headers that are removed, because only Mangum reads them, as host and port: behind a proxy the second may be a list
(`443,80`), on which Mangum fails."""


class Endpoint(StrEnum):
    """The kinds of AWS endpoint that a Lambda function can be deployed behind: an HTTP API, a REST API, or a function
    URL."""

    HTTP_API = "http-api"
    REST_API = "rest-api"
    FUNCTION_URL = "function-url"

    @property
    def unroutable(self) -> str:
        """The characters that a path loses on the way through this endpoint: none for a REST API and a function URL;
        `/`, `?`, `#`, `%` and `+` for an HTTP API. That decodes paths, so `%2F`, for example, arrives as a separator,
        and `%2B` as `+`, which is also the space of a Java client."""
        return "/?#%+" if self is Endpoint.HTTP_API else ""


def raw_path(event: Mapping[str, Any], endpoint: Endpoint) -> bytes:
    """Returns the path as the client sent it, but without the stage. `event` has payload format 1.0 from a REST API,
    and 2.0 from the others.

    An HTTP API decodes the path. Encoding it again restores every name without a character in `unroutable`. The other
    endpoints pass the path on as it is.
    """
    match endpoint:
        case Endpoint.HTTP_API:
            path = _below_stage(event["rawPath"], event["requestContext"]["stage"])
            # Bytes that are no UTF-8 pass here, and the router rejects them.
            return quote(path, safe="/+", errors="surrogatepass").encode()
        case Endpoint.REST_API:
            path = event["path"]
        case Endpoint.FUNCTION_URL:
            path = event["rawPath"]
    return str(path).encode("utf-8", "surrogatepass")


def _below_stage(path: str, stage: str) -> str:
    """Returns the path without the name of the stage, which is the first segment of each path from an HTTP API, except
    for the stage `$default`."""
    return path.removeprefix(f"/{stage}") if path.startswith(f"/{stage}/") else path


class WithRawPath:
    """An ASGI app for Mangum that passes the wrapped app the `raw_path`, which `adapt` put into the event and Mangum
    does not pass on."""

    def __init__(self, app: Asgi, endpoint: Endpoint) -> None:
        self._app = app
        self.endpoint = endpoint
        self.requests = 0
        """The number of requests that have reached the app."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.requests += 1
        await self._app({**scope, "raw_path": scope["aws.event"][_RAW_PATH]}, receive, send)


def adapt(adapter: Handler, app: WithRawPath) -> Handler:
    """Wraps `adapter`, which is Mangum around `app`, so that it accepts any event.

    An event that is not a request of this endpoint (a test from the console, a warmer) is logged as an error and gets a
    400, because an exception would log the event, return a stack trace to the client and trigger an alarm. An error
    after the request has reached the app is raised, because only the app can tell the outcome of the request.
    """

    def handler(event: Any, context: Any) -> dict[str, Any]:
        before = app.requests
        try:
            return _with_usual_header_names(adapter(_with_raw_path(event, app.endpoint), context))
        except Exception as error:
            if app.requests != before:
                raise
            _LOG.error(
                "the function was called with an event that is no request of the endpoint type in ARCO_ENDPOINT: "
                "nothing is to be done about a test or a warmer",
                exc_info=error,
            )
            refused = described(
                400,
                "BadRequestException",
                f"The function was called with an event that is no request of the endpoint type {app.endpoint}",
            )
            return {
                "statusCode": refused.status,
                "headers": {"Content-Type": "application/json"},
                "body": refused.body.decode(),
                "isBase64Encoded": False,
            }

    return handler


def _with_usual_header_names(result: dict[str, Any]) -> dict[str, Any]:
    """Returns the result with header names in their usual spelling. Mangum writes them in lower case, a REST API passes
    them on as they are, and Iceberg's Java client up to 1.11 reads only `ETag` (apache/iceberg#17978)."""
    renamed = {
        part: {_NAMES.get(name) or name.title(): value for name, value in result[part].items()}
        for part in ("headers", "multiValueHeaders")
        if result.get(part)
    }
    return {**result, **renamed}


def _with_raw_path(event: Mapping[str, Any], endpoint: Endpoint) -> dict[str, Any]:
    """Returns the event with the path that the client sent, and without `Host` and `X-Forwarded-Port`, on which Mangum
    may fail. Raises an exception of any class for an event of another type."""
    kept = {
        part: {name: value for name, value in (event[part] or {}).items() if name.lower() not in _UNREADABLE}
        for part in ("headers", "multiValueHeaders")
        if part in event
    }
    return {**event, **kept, _RAW_PATH: raw_path(event, endpoint)}
