"""Classifies the responses of GCS. Source: Cloud Storage documentation, "HTTP status and error codes for JSON"."""

from http import HTTPStatus

import orjson

from storage_backends.base import StoreError
from storage_backends.lazy_dataclass import dataclass
from storage_backends.wire.exchange import failure_by_status
from storage_backends.wire.http1 import Response

# Statuses that are definite answers, as is the 404 of an object; any other of 300 or more is a failure.
_ANSWERS = frozenset(
    {HTTPStatus.NOT_MODIFIED, HTTPStatus.PRECONDITION_FAILED, HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE}
)

# Statuses and reasons that mean: the request was not applied and may be retried. 429 is also the answer to more than
# one write a second to one object; 408 means that the upload did not arrive in time.
_AGAIN_STATUSES = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS})
_AGAIN_REASONS = frozenset({"rateLimitExceeded", "userRateLimitExceeded"})  # these come as 403, too


@dataclass(frozen=True, slots=True)
class _Error:
    """The error in a response of GCS: empty texts where the body has none. `is_json` is whether the body is an error as
    the JSON API writes it."""

    reason: str
    message: str
    is_json: bool


@dataclass(frozen=True, slots=True)
class GcsDialect:
    """Classifies the responses of GCS to requests about one bucket. An emulator (`emulated`) may respond with no more
    than "Not Found" for a missing object."""

    bucket: str
    emulated: bool = False

    def is_answer(self, response: Response, method: str) -> bool:
        """Whether the response is a definite answer to a request with this method, such as an object, a missing object
        or a refused condition; false for a failure. The status 404 is an answer only if the body is about an object,
        or an emulator's is `Not Found`, and never for a POST."""
        if response.status == HTTPStatus.NOT_FOUND:  # an upload finds no bucket, or no API: objects need not be there
            error = _error_in(response)
            missing = _is_of_object(error) or (self.emulated and error.message == "Not Found")
            return missing and method != "POST"
        return 200 <= response.status < 300 or response.status in _ANSWERS

    def is_skewed(self, response: Response, skew_ms: int) -> bool:
        """Returns False: requests are not signed by this machine's time, but have a token."""
        return False

    def failure_of(self, response: Response) -> StoreError:
        """Returns the exception for a response that is a failure: `StoreUnavailable` if the request was not applied and
        may be retried, `Ambiguous` if it may have been applied, and otherwise another `StoreError`, such as that for
        credentials that were not accepted."""
        status, error = response.status, _error_in(response)
        if 300 <= status < 400:
            place = response.headers.get("location") or "the store names none"
            return StoreError(
                f"the store redirects the request for bucket {self.bucket!r} to another place, and redirects are not "
                f"followed: {place} (status {status})"
            )
        if status == HTTPStatus.NOT_FOUND and _is_of_bucket(error):
            return StoreError(f"bucket {self.bucket!r} does not exist")
        details = f" {error.reason}: {error.message}" if error.reason else f": {error.message}" if error.message else ""
        reason = f"the store answered status {status}{details}"
        again = status in _AGAIN_STATUSES or error.reason in _AGAIN_REASONS
        return failure_by_status(status, reason, again=again)


def _is_of_object(error: _Error) -> bool:
    """Whether a response 404 with this error is GCS's answer for a missing object. A proxy would answer with an HTML
    page, and the message for a missing bucket names the bucket. The answer to a download is a line of text, all others
    are JSON."""
    return error.message.startswith("No such object") or (error.is_json and not _is_of_bucket(error))


def _is_of_bucket(error: _Error) -> bool:
    """Whether an error states that the bucket does not exist, and so is not about the object."""
    return "bucket does not exist" in error.message


def _error_in(response: Response) -> _Error:
    """Returns the error in the body of a response: from JSON in the form of Google's reference, or as message the first
    line of a text. Reason and message are empty for JSON in another form, and for HTML or XML."""
    body = response.body[:65_536]
    try:
        document = orjson.loads(body)
    except ValueError:
        line = body.split(b"\n", 1)[0].decode(errors="replace").strip()
        return _Error("", "" if line.startswith("<") else line[:200], is_json=False)
    match document:
        case {"error": {"message": str(message), "errors": [{"reason": str(reason)}, *_]}}:
            return _Error(reason, message, is_json=True)
        case {"error": {"code": int(), "message": str(message)}}:
            return _Error("", message, is_json=True)
    return _Error("", "", is_json=False)
