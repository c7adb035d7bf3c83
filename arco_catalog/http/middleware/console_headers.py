"""Adds the headers of the console to every response at its paths (`/`, `/ui` and below), also to errors."""

from collections.abc import Mapping
from dataclasses import replace

from arco_catalog.http.requests import Handle, Request
from arco_catalog.http.responses import Response


class ConsoleHeaders:
    """The layer that adds `headers` to each response at `/` and below `/ui` of the server's `base_path`, so that a
    browser which opens an error as a page is bound by them, too. The headers of the response itself win."""

    def __init__(self, inner: Handle, headers: Mapping[str, str], base_path: bytes) -> None:
        self._inner = inner
        self._headers = headers
        self._places = (base_path + b"/", base_path + b"/ui")
        self._below = base_path + b"/ui/"

    async def handle(self, request: Request) -> Response:
        """Passes the request on, and returns the response, with the headers of the console if the path is of the
        console."""
        response = await self._inner(request)
        if request.raw_path not in self._places and not request.raw_path.startswith(self._below):
            return response
        return replace(response, headers={**self._headers, **response.headers})
