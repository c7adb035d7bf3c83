"""What stands between clients and a function, and what each leaves of a request's path (docs/decisions/0008).

The adapter between events and ASGI decodes paths whatever they are, so the app is given the path of the event itself.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any
from urllib.parse import quote

from arco_catalog.http.asgi import Asgi, Receive, Scope, Send


class Endpoint(StrEnum):
    """The kinds of front door that the function can be deployed behind."""

    HTTP_API = "http-api"
    REST_API = "rest-api"
    FUNCTION_URL = "function-url"

    @property
    def unroutable(self) -> str:
        """Characters that a name loses, or can't be told apart by, in a path that has passed."""
        return "/?#%" if self is Endpoint.HTTP_API else ""


def raw_path(event: Mapping[str, Any], endpoint: Endpoint) -> bytes:
    """The path as the client sent it, below the stage. `event` is what the endpoint invokes a function with: payload
    format 2.0, of a REST API 1.0.

    An HTTP API decodes the path; encoding it again gives every name back but those with a slash or a question mark. The
    other two pass it on as it came.
    """
    match endpoint:
        case Endpoint.HTTP_API:
            path = _below_stage(event["rawPath"], event["requestContext"]["stage"])
            return quote(path, safe="/", errors="surrogatepass").encode()  # what is no text is for the router to refuse
        case Endpoint.REST_API:
            path = event["path"]
        case Endpoint.FUNCTION_URL:
            path = event["rawPath"]
    return str(path).encode("utf-8", "surrogatepass")


def _below_stage(path: str, stage: str) -> str:
    """An HTTP API puts the name of a stage in front, but for `$default`."""
    return path.removeprefix(f"/{stage}") if path.startswith(f"/{stage}/") else path


class WithRawPath:
    """An app to be called by Mangum, with the `raw_path` that Mangum does not give it."""

    def __init__(self, app: Asgi, endpoint: Endpoint) -> None:
        self._app = app
        self._endpoint = endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app({**scope, "raw_path": raw_path(scope["aws.event"], self._endpoint)}, receive, send)
