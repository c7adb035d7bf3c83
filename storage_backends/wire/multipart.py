"""Packs several requests into the body of one, and reads their responses: `multipart/mixed` of `application/http`.

Sources: Azure Storage REST API, "Blob Batch"; Cloud Storage documentation, "Sending batch requests".
"""

import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus

from storage_backends.base import StoreError, Unknown
from storage_backends.wire.bulk import BatchAnswer
from storage_backends.wire.exchange import Ambiguous, Answer, Dialect
from storage_backends.wire.http1 import AnswerLost, Response, ResponseReader

BOUNDARY = "batch-of-requests"
"""No line of a part begins with it: parts have no bodies."""
CONTENT_TYPE = f"multipart/mixed; boundary={BOUNDARY}"

_GONE = frozenset({HTTPStatus.OK, HTTPStatus.ACCEPTED, HTTPStatus.NO_CONTENT, HTTPStatus.NOT_FOUND})
_BOUNDARY = re.compile(r'boundary="?([^";]+)"?', re.IGNORECASE)
_CONTENT_ID = re.compile(rb"^content-id:\s*<?(?:response-)?(\d+)>?\s*$", re.IGNORECASE | re.MULTILINE)
_BLANK_LINE = re.compile(rb"\r?\n\r?\n")


def encode(heads: Sequence[bytes]) -> bytes:
    """Returns the multipart body that carries requests without bodies, of which `heads` are the request lines and
    headers. The id of each part is its number, from 0."""
    parts = (
        b"--%s\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\nContent-ID: %d\r\n\r\n%s\r\n"
        % (BOUNDARY.encode(), number, head)
        for number, head in enumerate(heads)
    )
    return b"".join(parts) + b"--%s--\r\n" % BOUNDARY.encode()


def decode(response: Response, method: str) -> Mapping[int, Response]:
    """Returns the responses in a multipart response, by the numbers of their requests, which all have the method
    `method`. A response without a number has that of its place. A response that can't be read is left out. Raises
    ValueError for a response that is not multipart."""
    boundary = _BOUNDARY.search(response.headers.get("content-type", ""))
    if boundary is None:
        raise ValueError("the answer to a batch of requests is not multipart")
    found: dict[int, Response] = {}
    parts = (b"\r\n" + response.body).split(b"\n--" + boundary[1].encode())
    for place, part in enumerate(parts[1:-1]):
        blank = _BLANK_LINE.search(part)
        if blank is None:
            continue
        number = _CONTENT_ID.search(part[: blank.start()])
        inner = _answer(part[blank.end() :], method)
        if inner is not None:
            found[place if number is None else int(number[1])] = inner
    return found


def judge_parts(keys: Sequence[str], answer: Answer | Unknown, dialect: Dialect) -> BatchAnswer | Unknown:
    """Returns the failures by key of a batch of deletions, from the responses to the parts of the one request; a
    missing object counts as deleted. A failure that is `Ambiguous`, as of a key without a readable response, means
    perhaps deleted. Returns `Unknown` if the response is not multipart, or the `answer` is that."""
    if isinstance(answer, Unknown):
        return answer
    try:
        found = decode(answer.response, "DELETE")
    except ValueError as error:
        return Unknown(f"it is unknown which of {len(keys)} objects are deleted: the answer cannot be read: {error}")
    failures: dict[str, StoreError] = {}
    for number, key in enumerate(keys):
        part = found.get(number)
        if part is None:
            failures[key] = Ambiguous(f"{key!r} may have been deleted: the store's answer has no outcome for it")
        elif not dialect.is_answer(part, "DELETE"):
            failures[key] = dialect.failure_of(part)
        elif part.status not in _GONE:
            failures[key] = StoreError(
                f"the object {key!r} was not deleted: the store answered with the unexpected status {part.status}"
            )
    return BatchAnswer(failures, answer.now_ms)


def _answer(data: bytes, method: str) -> Response | None:
    """Returns the HTTP response in a part of a multipart response; None if it can't be read."""
    reader = ResponseReader(method)
    try:
        # Some servers let the line break before the boundary be the end of the headers, too.
        return reader.feed(data.rstrip(b"\r\n") + b"\r\n\r\n") or reader.end()
    except AnswerLost:
        return None
