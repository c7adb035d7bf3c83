"""Turns the exceptions of requests into error responses in Iceberg's form."""

from arco_catalog.http.errors import UNKNOWN_TYPE, error_response, unknown_reason
from arco_catalog.http.requests import ClientGone, Handle, Request
from arco_catalog.http.responses import Response
from arco_catalog.iceberg.errors import Refusal
from arco_catalog.protocol.request_stats import current_stats
from arco_catalog.state.key_settings import KeyPolicy


class Errors:
    """The layer that turns exceptions of the layers inside it, all but `ClientGone`, into error responses in Iceberg's
    form."""

    def __init__(self, inner: Handle, policy: KeyPolicy) -> None:
        self._inner = inner
        self._policy = policy

    async def handle(self, request: Request) -> Response:
        """Calls the layer inside, and returns its response, or an error response in the form of the specification for
        what was raised, whose class goes into the request's `error`, and a denied privilege or the reason of an unknown
        outcome into the statistics. Raises only `ClientGone`: then no client is left to read a response."""
        try:
            return await self._inner(request)
        except ClientGone:
            raise
        except Exception as error:  # the client gets every failure in the specification's form
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
