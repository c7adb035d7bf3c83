"""Sends each response to its client."""

from arco_catalog.http.requests import Handle, Request
from arco_catalog.http.responses import Response


class Delivery:
    """The layer that sends each response to the client, with the request's id if it has one."""

    def __init__(self, inner: Handle) -> None:
        self._inner = inner

    async def handle(self, request: Request) -> Response:
        """Passes the request on, sets the `response` of it, calls `before_answer` if it has one, sends the response to
        the client, and returns it. A HEAD gets no body."""
        request.response = response = await self._inner(request)
        if request.before_answer is not None:
            request.before_answer()
        await response.send(request.send, to_head=request.method == "HEAD", request_id=request.id)
        return response
