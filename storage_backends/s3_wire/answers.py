"""What S3's answers mean, decided in one place. Sources: S3 user guide, "Conditional requests"; API reference, "Error
responses" and "Redirecting requests"."""

import re
from dataclasses import dataclass
from http import HTTPStatus

from storage_backends.base import StoreDenied, StoreError, StoreUnavailable
from storage_backends.s3_wire.dates import http_date_ms
from storage_backends.s3_wire.http1 import Response

# Statuses that say how things stand, as does a 404 that names the key; any other of 300 or more is a failure.
_ANSWERS = frozenset(
    {HTTPStatus.NOT_MODIFIED, HTTPStatus.PRECONDITION_FAILED, HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE}
)

# Answers after which nothing has landed and the same request may succeed.
_AGAIN = frozenset(
    {
        "ConditionalRequestConflict",
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
_DENIED = frozenset({"ExpiredToken", "InvalidToken", "TokenRefreshRequired"})  # these are 400s
_ELSEWHERE = frozenset({"AuthorizationHeaderMalformed", "IllegalLocationConstraintException"})  # these, too


class Ambiguous(StoreUnavailable):
    """The request left, and what became of it is not known."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A definite answer: success, or a status that says how things stand. `now_ms` is the store's clock, to the second,
    or ours where it told none."""

    status: int
    response: Response
    now_ms: int

    def header(self, name: str) -> str:
        """A header's value, or nothing."""
        return self.response.headers.get(name, "")


def date_ms(response: Response) -> int | None:
    """When the store says that it answered."""
    try:
        return http_date_ms(response.headers["date"])
    except (KeyError, ValueError):
        return None


def is_answer(response: Response, method: str) -> bool:
    """Whether it says how things stand, as opposed to a failure."""
    if response.status == HTTPStatus.NOT_FOUND:  # of a bucket, or from a proxy, it would not say that a key is free
        return method == "HEAD" or _element(response, "Code") == "NoSuchKey"
    return 200 <= response.status < 300 or response.status in _ANSWERS


def is_skewed(response: Response) -> bool:
    """Whether the request was refused for the time that it was signed with."""
    return response.status == HTTPStatus.FORBIDDEN and _element(response, "Code") == "RequestTimeTooSkewed"


def failure_of(response: Response, bucket: str) -> StoreError:
    """What a failure says of the request: `StoreUnavailable` that nothing landed and it may be sent again, `Ambiguous`
    that it may have landed, any other `StoreError` that nothing landed and nothing will."""
    status, code = response.status, _element(response, "Code")
    region = response.headers.get("x-amz-bucket-region") or _element(response, "Region")
    if 300 <= status < 400 or (code in _ELSEWHERE and region):
        return StoreError(f"the bucket {bucket!r} is elsewhere: {_place(response, region)} (status {status})")
    if code == "NoSuchBucket":
        return StoreError(f"there is no bucket {bucket!r}")
    reason = f"status {status} {code}: {_element(response, 'Message')}" if code else f"status {status}"
    if code in _AGAIN or status == HTTPStatus.TOO_MANY_REQUESTS:
        return StoreUnavailable(reason)
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN) or code in _DENIED:
        return StoreDenied(reason)
    if status >= 500 and status != HTTPStatus.NOT_IMPLEMENTED:  # that is a header which this store does not know
        return Ambiguous(reason)
    return StoreError(reason)


def _place(response: Response, region: str) -> str:
    if region:
        return f"in region {region!r}; set AWS_REGION"
    return _element(response, "Endpoint") or response.headers.get("location") or "it does not say where"


def _element(response: Response, name: str) -> str:
    """The text of an element in an error's body, which is too plain to load an XML parser for."""
    found = re.search(rb"<%s>([^<]*)</%s>" % (name.encode(), name.encode()), response.body[:65_536])
    return found[1].decode(errors="replace") if found else ""
