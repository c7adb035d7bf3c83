"""Turns every failure into an error in Iceberg's shape."""

from arco_catalog.http.errors import UNKNOWN_TYPE, error_response, unknown_reason
from arco_catalog.http.requests import ClientGone, Handle, Request
from arco_catalog.http.responses import Response
from arco_catalog.iceberg.errors import Refusal
from arco_catalog.protocol.request_stats import current_stats
from arco_catalog.state.key_settings import KeyPolicy


class Errors:
    """Answers whatever is raised inside, but `ClientGone`, which nobody is left to read."""

    def __init__(self, inner: Handle, policy: KeyPolicy) -> None:
        self._inner = inner
        self._policy = policy

    async def handle(self, request: Request) -> Response:
        """Passes the request on. Raises `ClientGone`."""
        try:
            return await self._inner(request)
        except ClientGone:
            raise
        except Exception as error:  # whatever it is, the client is told in a shape that it can read
            request.error = type(error).__name__
            if isinstance(error, Refusal):
                current_stats().denied = error.denied
            commits = request.route is not None and request.route.commits
            catalog = request.catalog
            policy = self._policy if catalog is None else catalog.key_settings(self._policy).policy
            response = error_response(error, commits=commits, dialect=policy.dialect)
            if response.error_type == UNKNOWN_TYPE:
                current_stats().unknown_outcome = unknown_reason(error)
            return response
