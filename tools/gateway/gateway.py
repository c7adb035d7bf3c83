"""The local gateway: turns a request into an event for a function, and the function's result into a response, within
AWS's limits."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass

from arco_catalog.http.lambda_adapter import Endpoint
from arco_catalog.state.runtime import SystemRuntime
from tools.gateway.events import DEFAULT_STAGE, Arrival, NoResponse, NotRoutable, event_of, response_of
from tools.gateway.http1 import Request, Response
from tools.gateway.sandbox import MAX_PAYLOAD_BYTES, FunctionFailed, Pool

_RUNTIME = SystemRuntime()


@dataclass(frozen=True)
class Limits:
    """The limits of an endpoint of the local gateway: how long it waits for the function, the largest body and head of
    a request in bytes, and status and message of its own responses when the function times out or fails."""

    seconds: float
    body_bytes: int
    head_bytes: int
    timed_out: tuple[int, str]
    failed: tuple[int, str]


LIMITS: Mapping[Endpoint, Limits] = {
    Endpoint.HTTP_API: Limits(30.0, 10 << 20, 10_240, (503, "Service Unavailable"), (500, "Internal Server Error")),
    Endpoint.REST_API: Limits(
        29.0, 10 << 20, 10_240, (504, "Endpoint request timed out"), (502, "Internal server error")
    ),
    Endpoint.FUNCTION_URL: Limits(900.0, 6 << 20, 1 << 20, (504, "Gateway Timeout"), (502, "Internal Server Error")),
}
"""The quotas of API Gateway and Lambda, and the responses that clients get from the endpoint itself."""


class Gateway:
    """An endpoint of API Gateway, or a function URL, on this machine, in front of a function. A call takes a request
    and returns the response."""

    def __init__(
        self, pool: Pool, endpoint: Endpoint, stage: str, limits: Limits | None = None, caller: str | None = None
    ) -> None:
        self.endpoint = endpoint
        self.stage = stage
        self.caller = caller
        self._pool = pool
        self._limits = limits or LIMITS[endpoint]
        self._left_alone: set[asyncio.Task[bytes]] = set()

    @property
    def base_path(self) -> str:
        """The prefix of the function's paths: the stage, or nothing for the default stage."""
        return "" if self.stage == DEFAULT_STAGE else f"/{self.stage}"

    async def __call__(self, request: Request) -> Response:
        request_id = _RUNTIME.uuid()
        response = await self._respond(request, request_id)
        return Response(response.status, [*response.headers, ("apigw-requestid", request_id)], response.body)

    async def _respond(self, request: Request, request_id: str) -> Response:
        limits = self._limits
        if request.head_bytes > limits.head_bytes:
            return _message(431, "Request Header Fields Too Large")
        if len(request.body) > limits.body_bytes:
            return _message(413, "Request Entity Too Large")
        if self.base_path and not request.target.startswith(f"{self.base_path}/"):
            return _message(*((404, "Not Found") if self.endpoint is Endpoint.HTTP_API else (403, "Forbidden")))
        try:
            arrival = Arrival(request, request_id, _RUNTIME.now_ms(), self.stage, self.caller)
            event = json.dumps(event_of(arrival, self.endpoint)).encode()
        except NotRoutable:
            return _message(400, "Bad Request")
        if len(event) > MAX_PAYLOAD_BYTES:
            return _message(413, "Request Entity Too Large")
        return await self._invoke(event)

    async def _invoke(self, event: bytes) -> Response:
        """Invoke the function, and return its response, or the endpoint's own one if it fails or takes too long. A
        function that takes too long runs on, as on AWS."""
        work = asyncio.get_running_loop().create_task(self._pool.invoke(event))
        self._left_alone.add(work)
        work.add_done_callback(self._forget)
        done, _ = await asyncio.wait({work}, timeout=self._limits.seconds)
        if not done:
            return _message(*self._limits.timed_out)
        try:
            return response_of(json.loads(work.result()), self.endpoint)
        except (FunctionFailed, NoResponse, json.JSONDecodeError):
            return _message(*self._limits.failed)

    async def close(self) -> None:
        """Cancels work whose client has disconnected."""
        for work in self._left_alone:
            work.cancel()
        await asyncio.gather(*self._left_alone, return_exceptions=True)

    def _forget(self, work: asyncio.Task[bytes]) -> None:
        self._left_alone.discard(work)
        if not work.cancelled():
            work.exception()  # retrieved, so that asyncio does not log it


def _message(status: int, text: str) -> Response:
    return Response(status, [("content-type", "application/json")], json.dumps({"message": text}).encode())
