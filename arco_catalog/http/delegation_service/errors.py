"""Error responses of the delegation service's API: the one table from the class of an error to status and code."""

import logging
from collections.abc import Mapping

from arco_catalog.http.errors import error_headers
from arco_catalog.http.requests import ClientGone, Handle, Request
from arco_catalog.http.responses import NO_HEADERS, Response
from arco_catalog.iceberg import errors as e
from arco_catalog.iceberg.json import dumps
from arco_catalog.state.memory import OutOfMemory
from arco_catalog.upkeep.delegation_service.places import LocationHeld
from arco_catalog.upkeep.delegation_service.storage import CredentialsMissing
from storage_backends import StoreError

_LOG = logging.getLogger(__name__)

TABLE: Mapping[type[Exception], tuple[int, str]] = {
    CredentialsMissing: (400, "CREDENTIALS_NEEDED"),
    e.BadRequest: (400, "BAD_REQUEST"),
    e.NotAuthorized: (401, "UNAUTHORIZED"),
    e.UnknownPrincipal: (401, "UNAUTHORIZED"),
    e.Forbidden: (403, "FORBIDDEN"),
    e.NotFound: (404, "NOT_FOUND"),
    e.NoSuchRoute: (404, "NOT_FOUND"),
    e.MethodNotAllowed: (405, "METHOD_NOT_ALLOWED"),
    LocationHeld: (409, "LOCATION_HELD"),
    e.KeyReused: (409, "IDEMPOTENCY_KEY_REUSED"),
    e.PayloadTooLarge: (413, "PAYLOAD_TOO_LARGE"),
    e.UnsupportedMediaType: (415, "UNSUPPORTED_MEDIA_TYPE"),
    e.TooManyRequests: (429, "TOO_MANY_TASKS"),
    e.CommitStateUnknown: (500, "OUTCOME_UNKNOWN"),
    e.Unavailable: (503, "UNAVAILABLE"),
    OutOfMemory: (503, "UNAVAILABLE"),
    StoreError: (503, "UNAVAILABLE"),
}
_INTERNAL = (500, "INTERNAL_ERROR")


class TaskErrors:
    """The layer that turns exceptions of the layers inside it, all but `ClientGone`, into error responses in the form
    of the delegation service's API."""

    def __init__(self, inner: Handle) -> None:
        self._inner = inner

    async def handle(self, request: Request) -> Response:
        """Passes a request to the delegation service on, and returns its response, or an error response in the form of
        the service's API for what was raised; the class of that goes into the request's `error`. Raises only
        `ClientGone`."""
        try:
            return await self._inner(request)
        except ClientGone:
            raise
        except Exception as error:  # the client gets every failure in the API's form
            request.error = type(error).__name__
            return error_response(error)


def error_response(error: Exception) -> Response:
    """Returns the error response for a request that raised `error`, with the message and with status and code by the
    table. An exception that is not in the table is logged, and its response contains nothing of it."""
    found = next((TABLE[ancestor] for ancestor in type(error).__mro__ if ancestor in TABLE), None)
    if found is None:
        _LOG.error("a request to the delegation service failed unexpectedly", exc_info=error)
        return _described(
            *_INTERNAL,
            "The delegation service failed unexpectedly, and may execute a submitted task nevertheless: see the log",
            NO_HEADERS,
        )
    return _described(*found, str(error), error_headers(error))


def _described(status: int, code: str, message: str, headers: Mapping[str, str]) -> Response:
    """Returns the response for an error, in the service's own form."""
    return Response(status, dumps({"error_code": code, "message": message}), headers, error_type=code)
