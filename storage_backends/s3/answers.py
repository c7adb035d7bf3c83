"""Classifies the responses of S3. Sources: S3 user guide, "Conditional requests"; API reference, "Error responses" and
"Redirecting requests"."""

from http import HTTPStatus

from storage_backends.base import StoreDenied, StoreError, StoreUnavailable
from storage_backends.lazy_dataclass import dataclass
from storage_backends.wire.exchange import Ambiguous, failure_by_status
from storage_backends.wire.http1 import Response
from storage_backends.wire.xml import element_text

# Statuses that are definite answers, as is a 404 that names the key; any other of 300 or more is a failure.
_ANSWERS = frozenset(
    {HTTPStatus.NOT_MODIFIED, HTTPStatus.PRECONDITION_FAILED, HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE}
)

# Error codes that mean: the request was not applied and may be retried.
_AGAIN = frozenset(
    {
        "ConditionalRequestConflict",
        "ExistingObjectIsDirectory",  # Versity's gateway, also while another request removes the folder of the key
        "OperationAborted",
        "RequestTimeout",  # a 400: the body did not arrive in time
        "BandwidthLimitExceeded",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "SlowDown",
        "SlowDownRead",
        "SlowDownWrite",
        "Throttling",
        "ThrottlingException",
        "TooManyRequests",
        "TooManyRequestsException",
    }
)
_FAILED = frozenset({"InternalError", "ServiceUnavailable"})  # these are 5xx
_DENIED = frozenset({"ExpiredToken", "InvalidToken", "TokenRefreshRequired"})  # these are 400s
_ELSEWHERE = frozenset({"AuthorizationHeaderMalformed", "IllegalLocationConstraintException"})  # these, too


@dataclass(frozen=True, slots=True)
class S3Dialect:
    """Classifies the responses of S3 to requests about one bucket: as answers, or by the kind of failure."""

    bucket: str

    def is_answer(self, response: Response, method: str) -> bool:
        """Whether the response is a definite answer to a request with this method, such as an object, a missing object
        or a refused condition; false for a failure. The status 404 is an answer only with the code of a missing key, or
        for a HEAD, which has no body."""
        if 200 <= response.status < 300 or response.status in _ANSWERS:
            return True
        if response.status != HTTPStatus.NOT_FOUND:
            return False
        # A 404 without the code may be the bucket's or a proxy's, not the key's.
        return method == "HEAD" or element_text(response.body, "Code") == "NoSuchKey"

    def is_skewed(self, response: Response, skew_ms: int) -> bool:
        """Whether S3 refused the request because of the time in its signature."""
        return response.status == HTTPStatus.FORBIDDEN and element_text(response.body, "Code") == "RequestTimeTooSkewed"

    def failure_of(self, response: Response) -> StoreError:
        """Returns the exception for a response that is a failure: `StoreUnavailable` if the request was not applied and
        may be retried, `Ambiguous` if it may have been applied, and otherwise another `StoreError`, such as that for
        credentials that were not accepted."""
        status, code = response.status, element_text(response.body, "Code")
        region = response.headers.get("x-amz-bucket-region") or element_text(response.body, "Region")
        if 300 <= status < 400 or (code in _ELSEWHERE and region):
            return StoreError(
                f"the bucket {self.bucket!r} is in another place: {_place(response, region)} (status {status})"
            )
        if code == "NoSuchBucket":
            return StoreError(f"bucket {self.bucket!r} does not exist{_request_ids(response)}")
        reason = f"the store answered status {status}"
        reason += f" {code}: {element_text(response.body, 'Message')}" if code else ""
        reason += _request_ids(response)
        return failure_by_status(status, reason, again=code in _AGAIN, forbidden=code in _DENIED)


def failure_of_key(code: str, message: str) -> StoreError | None:
    """Returns the failure for the error code of one key in the response to a deletion of many: `StoreUnavailable` if
    the deletion may be retried, `Ambiguous` if it may have applied, `StoreDenied` if it is not allowed, else
    `StoreError`. None for a key without an object, which counts as deleted."""
    reason = f"the store did not confirm the deletion of an object: {code}: {message}"
    if code == "NoSuchKey":
        return None
    if code in _AGAIN:
        return StoreUnavailable(reason)
    if code in _FAILED:
        return Ambiguous(reason)
    return StoreDenied(reason) if code == "AccessDenied" or code in _DENIED else StoreError(reason)


def _place(response: Response, region: str) -> str:
    """Returns the place of a bucket, for a message: the `region` that the response names, else the address in the
    response, else the words that the store names none."""
    if region:
        return f"region {region!r}; set AWS_REGION"
    return element_text(response.body, "Endpoint") or response.headers.get("location") or "the store names none"


def _request_ids(response: Response) -> str:
    """Returns the ids of the request in a response, in parentheses for a message, since the vendor's support needs
    them; empty without any."""
    ids = [response.headers.get(name, "") for name in ("x-amz-request-id", "x-amz-id-2")]
    return f" (request id {', '.join(id_ for id_ in ids if id_)})" if any(ids) else ""
