"""Error responses of the catalog's API: the table from the class of an error to the status and type that the client
gets. Only errors of idempotency keys have other entries in the Polaris dialect, and on commit routes one of these and
`InternalError`.

Clients choose what to do by the type. So every type is one of the specifications (Iceberg's, Polaris's) or of the
reference implementation; for a status without one (405, 413, 415) it is the nearest in meaning. Only
`AnswerTooLargeException`, for a response that the host cannot carry, is the catalog's own: clients treat it as a bad
request and show its message.
"""

import logging
from collections.abc import Mapping

from arco_catalog.http.responses import NO_HEADERS, Response
from arco_catalog.iceberg import errors as e
from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps
from arco_catalog.protocol.store_refusals import refused_by_store
from arco_catalog.state.key_settings import Dialect
from arco_catalog.state.memory import OutOfMemory
from storage_backends import InvalidKey, StoreDenied, StoreError

_LOG = logging.getLogger(__name__)

TABLE: Mapping[type[e.CatalogError], tuple[int, str]] = {
    e.BadRequest: (400, "BadRequestException"),
    e.MetadataTooLarge: (400, "BadRequestException"),
    e.IllegalArgument: (400, "IllegalArgumentException"),
    e.NotAuthorized: (401, "NotAuthorizedException"),
    e.UnknownPrincipal: (401, "NotAuthorizedException"),
    e.Forbidden: (403, "NotAuthorizedException"),
    e.ForbiddenObjects: (403, "NotAuthorizedException"),
    e.NoSuchWarehouse: (404, "NoSuchWarehouseException"),
    e.NoSuchNamespace: (404, "NoSuchNamespaceException"),
    e.NoSuchTable: (404, "NoSuchTableException"),
    e.NoSuchView: (404, "NoSuchViewException"),
    e.NoSuchFunction: (404, "NoSuchFunctionException"),
    e.NoSuchPlanId: (404, "NoSuchPlanIdException"),
    e.NoSuchPlanTask: (404, "NoSuchPlanTaskException"),
    e.NoSuchPolicy: (404, "NoSuchPolicyException"),
    e.NoSuchSemanticModel: (404, "NoSuchSemanticModelException"),
    e.SemanticModelVersionMismatch: (409, "SemanticModelVersionMismatchException"),
    e.NoSuchMapping: (404, "NoSuchMappingException"),
    e.PolicyInUse: (400, "PolicyInUseException"),
    e.PolicyVersionMismatch: (409, "PolicyVersionMismatchException"),
    e.ConflictPolicyAttachment: (409, "ConflictPolicyAttachmentException"),
    e.NoSuchRoute: (404, "NotFoundException"),
    e.NotFound: (404, "NotFoundException"),
    e.MethodNotAllowed: (405, "UnsupportedOperationException"),
    e.Unsupported: (406, "UnsupportedOperationException"),
    e.AlreadyExists: (409, "AlreadyExistsException"),
    e.NamespaceNotEmpty: (409, "NamespaceNotEmptyException"),
    e.CommitFailed: (409, "CommitFailedException"),
    e.PayloadTooLarge: (413, "BadRequestException"),
    e.UnsupportedMediaType: (415, "BadRequestException"),
    e.AnswerTooLarge: (400, "AnswerTooLargeException"),
    e.Unprocessable: (422, "UnprocessableEntityException"),
    e.TooManyRequests: (429, "SlowDownException"),
    e.KeyReused: (422, "UnprocessableEntityException"),
    e.KeyInProgress: (503, "SlowDownException"),
    e.Unavailable: (503, "ServiceUnavailableException"),
    e.CatalogChanged: (503, "ServiceUnavailableException"),
    e.CommitStateUnknown: (500, "CommitStateUnknownException"),
    e.PurgeFailed: (500, "InternalServerError"),
    e.InternalError: (500, "InternalServerError"),
}
NO_DETAILS: Mapping[str, JsonValue] = {}
_UNEXPECTED = "The server failed unexpectedly, and a requested change may have been made: see the server's log"
UNKNOWN_TYPE = TABLE[e.CommitStateUnknown][1]

_POLARIS: Mapping[type[e.CatalogError], tuple[int, str]] = {
    e.KeyReused: (422, "idempotency_key_conflict"),
    e.KeyInProgress: (409, "request_in_progress"),
}
"""The entries that differ in the Polaris dialect (docs/design/idempotency.md#duplicates)."""


def error_response(error: Exception, *, commits: bool, dialect: Dialect) -> Response:
    """Returns the error response for a request that raised `error`. `commits` is true on routes whose 5xx mean that the
    outcome is unknown: there an error of the store, `OutOfMemory`, an `InternalError` or an unexpected exception gives
    the response of an unknown outcome. On others an error of the store gives the response of an unavailable service, or
    of a refusal by the store, and `OutOfMemory` the former. The `dialect` decides on the response about an idempotency
    key that was used for another request, or whose request is in progress.

    An unexpected exception and an `InternalError` are logged with their tracebacks; `Unavailable`,
    `CommitStateUnknown`, and on commit routes errors of the store and `OutOfMemory`, as warnings. The response contains
    the message of an `InternalError`, but nothing of an unexpected exception.
    """
    match error:
        # Code that writes reports the outcome itself, so a store's error that arrives here comes from a read.
        case StoreDenied() | InvalidKey() if not commits:
            return error_response(refused_by_store(error), commits=commits, dialect=dialect)
        case OutOfMemory() if not commits:
            return error_response(e.Unavailable(str(error)), commits=commits, dialect=dialect)
        case StoreError() if not commits:
            unavailable = e.Unavailable(f"The object store failed, so this request was not completed: {error}")
            return error_response(unavailable, commits=commits, dialect=dialect)
        case e.InternalError():
            _LOG.error(
                "a request failed by an internal error, which an operator should examine, and a requested change may "
                "have been made: %s",
                error.message,
                exc_info=error,
            )
            return _failure(error.message, commits)
        case e.CatalogError():
            if isinstance(error, e.Unavailable | e.CommitStateUnknown):
                _LOG.warning("a request failed, or its outcome is unknown: %s", error.message)
            status, kind = _status_and_type(error, commits, dialect)
            return described(status, kind, error.message, error_headers(error), _details(error))
        case StoreError() | OutOfMemory():
            _LOG.warning("a request on a commit route failed by the store or for lack of memory: %s", error)
            return _failure(_UNEXPECTED, commits)
        case _:
            _LOG.error("a request failed unexpectedly", exc_info=error)
            return _failure(_UNEXPECTED, commits)


def _details(error: e.CatalogError) -> Mapping[str, JsonValue]:
    """Returns the fields that the body of an error has besides the usual ones: for `ForbiddenObjects` the names of the
    forbidden objects, none for any other error."""
    if not isinstance(error, e.ForbiddenObjects):
        return NO_DETAILS
    return {"forbidden-identifiers": [[*levels] for levels in error.identifiers]}


def unknown_reason(error: Exception) -> e.UnknownReason:
    """Returns why the outcome of a request that raised `error` is unknown: the reason of a `CommitStateUnknown`,
    otherwise `internal`."""
    return error.reason if isinstance(error, e.CommitStateUnknown) else "internal"


def described(
    status: int,
    kind: str,
    message: str,
    headers: Mapping[str, str] = NO_HEADERS,
    details: Mapping[str, JsonValue] = NO_DETAILS,
) -> Response:
    """Returns an error response with this status and these `headers`, in the form that the specification defines for
    all errors; `kind` is the type of the error in the body, and `details` are other fields of it."""
    body = dumps({"error": {**_model(status, kind, message), **details}})
    return Response(status, body, headers, error_type=kind)


def error_of_item(error: e.CatalogError) -> JsonObject:
    """Returns the error of one of the objects that a request names, as a response with outcomes for several has it: the
    message, and type and status by the table, as on a route that does not commit."""
    status, kind = _status_and_type(error, commits=False, dialect=Dialect.ICEBERG)
    return _model(status, kind, error.message)


def _model(status: int, kind: str, message: str) -> JsonObject:
    """Returns an error as the specification's `ErrorModel`."""
    return {"message": message, "type": kind, "code": status}


def _status_and_type(error: e.CatalogError, commits: bool, dialect: Dialect) -> tuple[int, str]:
    """Returns the HTTP status and the error type of an error: the ones of the nearest class in the table of the
    `dialect`. With `commits`, a reused idempotency key has in Iceberg's dialect the entry of a failed commit. Raises
    `TypeError` for a class that the table lacks."""
    for ancestor in type(error).__mro__:
        if dialect is Dialect.POLARIS and ancestor in _POLARIS:
            return _POLARIS[ancestor]
        if commits and ancestor is e.KeyReused:
            return TABLE[e.CommitFailed]
        if ancestor in TABLE:
            return TABLE[ancestor]
    raise TypeError(f"{type(error).__name__} has no entry in the table of errors (http/errors.py)")


def error_headers(error: Exception) -> Mapping[str, str]:
    """Returns the headers that belong to an error: `WWW-Authenticate` if the caller is not authenticated, `Allow` if
    the method is not supported, `Retry-After` if the request may succeed later, else none. Clients wait for the seconds
    in `Retry-After`, and retry a POST only if the header is there."""
    match error:
        case e.NotAuthorized() | e.UnknownPrincipal():
            return {"WWW-Authenticate": "Bearer"}
        case e.MethodNotAllowed():
            return {"Allow": ", ".join(error.allowed)}
        case e.KeyInProgress() | e.TooManyRequests():
            return {"Retry-After": str(error.retry_after)}
        case e.Unavailable() | StoreError():
            return {"Retry-After": "1"}
        case _:
            return NO_HEADERS


def _failure(message: str, commits: bool) -> Response:
    """Returns the response for an internal error. With `commits` it has the type of an unknown outcome, because the
    commit may have been applied before the error."""
    status, kind = TABLE[e.CommitStateUnknown] if commits else TABLE[e.InternalError]
    return described(status, kind, message)
