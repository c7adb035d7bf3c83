"""The request to a store and the response, as every transport takes and returns them."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from http import HTTPStatus
from typing import Protocol

from storage_backends.base import StoreDenied, StoreError, StoreUnavailable
from storage_backends.lazy_dataclass import dataclass
from storage_backends.wire.dates import http_date_ms
from storage_backends.wire.http1 import Response


@dataclass(frozen=True, slots=True)
class Request:
    """One request to a store: about the object with the key `key`, or about the bucket itself if it is empty. Header
    names are in lower case. `parts` are requests without bodies that are sent within this one, in place of a body of
    its own."""

    method: str
    key: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    parts: Sequence["Request"] = ()


class Ambiguous(StoreUnavailable):
    """A request was sent to a store, and whether it was applied is not known."""


class OversizedAnswer(Ambiguous):
    """The response of a store is larger than the limit. A repeated read would get the same response, so it is not
    retried."""


def failure_by_status(status: int, reason: str, *, again: bool, forbidden: bool = False) -> StoreError:
    """Returns the exception, with this reason, for a response that is a failure. `again` and `forbidden` are whether
    the error code in the response means that the request may be retried, or that the credentials were not accepted;
    otherwise the status decides. From 500 on the request may have been applied, except for 501, by which a store
    answers that it does not know a header."""
    if again or status == HTTPStatus.TOO_MANY_REQUESTS:
        return StoreUnavailable(reason)
    if forbidden or status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return StoreDenied(reason)
    if status >= 500 and status != HTTPStatus.NOT_IMPLEMENTED:
        return Ambiguous(reason)
    return StoreError(reason)


@dataclass(frozen=True, slots=True)
class Answer:
    """A definite answer of a store, with the HTTP response. `now_ms` is the store's time in milliseconds since 1970,
    exact to a second, or this machine's where the response has no date."""

    status: int
    response: Response
    now_ms: int

    def header(self, name: str) -> str:
        """Returns the value of a header of the response; empty if it has no such header. `name` is in lower case."""
        return self.response.headers.get(name, "")


def date_ms(response: Response) -> int | None:
    """Returns the time of the header `Date` in milliseconds since 1970; None without the header, or if it is
    invalid."""
    try:
        return http_date_ms(response.headers["date"])
    except (KeyError, ValueError):
        return None


def retry_after_s(response: Response) -> float:
    """Returns the pause of the header `Retry-After` in seconds, a date being taken by the store's clock (RFC 9110,
    section 10.2.3); 0 without the header, if it is invalid, and for a date if the response has no earlier `Date`."""
    text = response.headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        until_ms, now_ms = http_date_ms(text), date_ms(response)
    except ValueError:
        return 0.0
    return 0.0 if now_ms is None else max(0.0, (until_ms - now_ms) / 1_000)


class Dialect(Protocol):
    """The interface of what classifies the responses of one vendor's store: as answers, or by the kind of failure."""

    def is_answer(self, response: Response, method: str) -> bool:
        """Whether the response is a definite answer to a request with this method, such as an object, a missing object
        or a refused condition. All other responses are failures."""
        ...

    def failure_of(self, response: Response) -> StoreError:
        """Returns the exception for a response that is a failure: `StoreUnavailable` if the request was not applied and
        may be retried, `Ambiguous` if it may have been applied, any other `StoreError` if it was not applied and a
        retry would fail too."""
        ...

    def is_skewed(self, response: Response, skew_ms: int) -> bool:
        """Whether the request was refused, and not applied, because of the time in its signature, which was this
        machine's and `skew_ms` milliseconds."""
        ...


class Transport(Protocol):
    """The interface of what sends one request to a store, once, or a second time after the status 401: over connections
    of our own, or by the vendor's SDK. Belongs to one event loop."""

    async def send(self, request: Request, clock_skew_ms: int) -> Response:
        """Sends one request, and returns its response; after the status 401 it may send it a second time.
        `clock_skew_ms` is how far the store's clock is ahead of this machine's.

        Raises `StoreUnavailable` if nothing was sent, `Ambiguous` if no whole answer came, and any other `StoreError`
        for a request that can't be made. Where it can't get a token after a 401, it raises `StoreUnavailable` or
        another `StoreError`, too: the request was not applied.
        """
        ...

    async def close(self) -> None:
        """Closes the connections to the store."""
        ...
