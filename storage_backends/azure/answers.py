"""Classifies the responses of Azure Blob Storage. Sources: Azure Storage REST API, "Status and error codes", "Blob
service error codes", "Specify conditional headers for Blob service operations"."""

from http import HTTPStatus

from storage_backends.base import StoreError
from storage_backends.clock import system_now_ms
from storage_backends.lazy_dataclass import dataclass
from storage_backends.wire.exchange import date_ms, failure_by_status
from storage_backends.wire.http1 import Response
from storage_backends.wire.xml import element_text

# Definite answers beside success, each by its status and error code. A 412 also has the codes of leases, which are no
# condition of ours; a 404 may be the container's, a 409 a rule's against writing.
_ANSWERS = frozenset(
    {
        (HTTPStatus.NOT_FOUND, "BlobNotFound"),
        (HTTPStatus.CONFLICT, "BlobAlreadyExists"),
        (HTTPStatus.PRECONDITION_FAILED, "ConditionNotMet"),
        (HTTPStatus.PRECONDITION_FAILED, "TargetConditionNotMet"),
    }
)
_AGAIN = frozenset({"ServerBusy", "TooManyRequests", "AccountBeingCreated"})
_NO_CONTAINER = frozenset({"ContainerNotFound", "ContainerDisabled", "ContainerBeingDeleted", "ResourceNotFound"})
_LARGEST_SKEW_MS = 10 * 60_000  # Azure refuses dates that are a quarter of an hour off


@dataclass(frozen=True, slots=True)
class AzureDialect:
    """Classifies the responses of Azure to requests about one container: as answers, or by the kind of failure."""

    container: str

    def is_answer(self, response: Response, method: str) -> bool:
        """Whether the response is a definite answer to a request with this method, such as an object, a missing object
        or a refused condition; false for a failure. The statuses 404, 409 and 412 are answers only with the error codes
        of a missing blob, an existing blob, and a condition that did not hold."""
        status = response.status
        if 200 <= status < 300 or status in (HTTPStatus.NOT_MODIFIED, HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE):
            return True
        return (status, _code(response)) in _ANSWERS

    def is_skewed(self, response: Response, skew_ms: int) -> bool:
        """Whether Azure refused the request because of its date. Azure has no error code for that, so this is taken to
        be so if a request was not authenticated (403 AuthenticationFailed) and the date of the response is more than
        ten minutes off that of the request, this machine's and `skew_ms` milliseconds; False without a date."""
        if response.status != HTTPStatus.FORBIDDEN or _code(response) != "AuthenticationFailed":
            return False
        store_ms = date_ms(response)
        return store_ms is not None and abs(store_ms - system_now_ms() - skew_ms) > _LARGEST_SKEW_MS

    def failure_of(self, response: Response) -> StoreError:
        """Returns the exception for a response that is a failure: `StoreUnavailable` if the request was not applied and
        may be retried, `Ambiguous` if it may have been applied, and otherwise another `StoreError`, such as that for
        credentials that were not accepted."""
        status, code = response.status, _code(response)
        if code in _NO_CONTAINER and status in (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):
            return StoreError(f"container {self.container!r} does not exist, is disabled, or is being deleted ({code})")
        reason = f"the store answered status {status}"
        reason += f" {code}: {_message(response)}" if code else ""
        if request_id := response.headers.get("x-ms-request-id"):
            reason = f"{reason} (request {request_id})"
        return failure_by_status(status, reason, again=code in _AGAIN)


def _code(response: Response) -> str:
    """Returns the error code in the headers or body of a response; empty if it has none."""
    return response.headers.get("x-ms-error-code") or element_text(response.body, "Code")


def _message(response: Response) -> str:
    """Returns the first line of the message in an error response of Azure; empty if it has none. The further lines are
    left out: they repeat the request's id and time, and have what a wrong signature was made of."""
    return element_text(response.body, "Message").partition("\n")[0].strip()
