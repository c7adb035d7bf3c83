"""Adapts the events of API Gateway and function URLs, and what each leaves of a request's path (docs/decisions/0008).

The adapter between events and ASGI decodes paths whatever they are, so the app is given the path of the event itself.
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
"""Takes an event and its context, and returns what a response is made of."""

_RAW_PATH = "arco.raw_path"
"""Where the path is put into an event."""
_NAMES: Mapping[str, str] = {"etag": "ETag", "www-authenticate": "WWW-Authenticate"}
"""Headers whose parts do not simply begin with a capital."""
_UNREADABLE = frozenset(("host", "x-forwarded-port"))
"""Headers that only the adapter reads, as a name and a number. Behind a proxy the second may have several numbers
(`443,80`), which the adapter cannot parse."""


class Endpoint(StrEnum):
    """The kinds of gateway that the function can be deployed behind."""

    HTTP_API = "http-api"
    REST_API = "rest-api"
    FUNCTION_URL = "function-url"

    @property
    def unroutable(self) -> str:
        """Characters that a name loses, or can't be told apart by, in a path that has passed: `%2B` arrives as `+`, as
        does the space of a Java client."""
        return "/?#%+" if self is Endpoint.HTTP_API else ""


def raw_path(event: Mapping[str, Any], endpoint: Endpoint) -> bytes:
    """The path as the client sent it, below the stage. `event` is what the endpoint invokes a function with: payload
    format 2.0, of a REST API 1.0.

    An HTTP API decodes the path; encoding it again gives every name back but those with a slash, a question mark or a
    plus. The other two pass it on as it came.
    """
    match endpoint:
        case Endpoint.HTTP_API:
            path = _below_stage(event["rawPath"], event["requestContext"]["stage"])
            return quote(
                path, safe="/+", errors="surrogatepass"
            ).encode()  # what is no text is for the router to refuse
        case Endpoint.REST_API:
            path = event["path"]
        case Endpoint.FUNCTION_URL:
            path = event["rawPath"]
    return str(path).encode("utf-8", "surrogatepass")


def _below_stage(path: str, stage: str) -> str:
    """An HTTP API puts the name of a stage in front, but for `$default`."""
    return path.removeprefix(f"/{stage}") if path.startswith(f"/{stage}/") else path


class WithRawPath:
    """An app to be called by Mangum, with the `raw_path` that Mangum does not give it: `adapt` left it in the
    event."""

    def __init__(self, app: Asgi, endpoint: Endpoint) -> None:
        self._app = app
        self.endpoint = endpoint
        self.requests = 0
        """How many have reached the app."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.requests += 1
        await self._app({**scope, "raw_path": scope["aws.event"][_RAW_PATH]}, receive, send)


def adapt(adapter: Handler, app: WithRawPath) -> Handler:
    """Wraps `adapter`, Mangum around `app`, so that it takes any event.

    An event that is not a request (a test from the console, a warmer) is answered 400: if it raised, its text would be
    logged, the answer would be a stack trace, and an alarm would go off. An error behind the app is raised: only the
    app knows what became of its request.
    """

    def handler(event: Any, context: Any) -> dict[str, Any]:
        before = app.requests
        try:
            return _with_usual_header_names(adapter(_with_raw_path(event, app.endpoint), context))
        except Exception as error:
            if app.requests != before:
                raise
            _LOG.error("the event does not match the endpoint type", exc_info=error)
            refused = described(400, "BadRequestException", f"Event does not match endpoint type {app.endpoint}")
            return {
                "statusCode": refused.status,
                "headers": {"Content-Type": "application/json"},
                "body": refused.body.decode(),
                "isBase64Encoded": False,
            }

    return handler


def _with_usual_header_names(result: dict[str, Any]) -> dict[str, Any]:
    """The result with header names in their usual spelling, which the adapter lower-cased and a REST API passes on:
    Iceberg's Java client up to 1.11 finds an `ETag` under just that spelling (apache/iceberg#17978)."""
    renamed = {
        part: {_NAMES.get(name) or name.title(): value for name, value in result[part].items()}
        for part in ("headers", "multiValueHeaders")
        if result.get(part)
    }
    return {**result, **renamed}


def _with_raw_path(event: Mapping[str, Any], endpoint: Endpoint) -> dict[str, Any]:
    """The event with its path as it was sent, and without what breaks the adapter. Raises any exception for an
    event of another type."""
    kept = {
        part: {name: value for name, value in (event[part] or {}).items() if name.lower() not in _UNREADABLE}
        for part in ("headers", "multiValueHeaders")
        if part in event
    }
    return {**event, **kept, _RAW_PATH: raw_path(event, endpoint)}
