"""An HTTP request as it arrived. Its body is read on demand, and never more than the limits allow."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TypeAlias
from urllib.parse import quote

from arco_catalog.http.asgi import Receive, Scope, Send
from arco_catalog.http.options import HttpOptions
from arco_catalog.http.principal import Caller, caller_of
from arco_catalog.http.query import NO_QUERY, Query
from arco_catalog.http.responses import Response
from arco_catalog.http.route import Route
from arco_catalog.http.spelling import Spelling, spelling_of
from arco_catalog.iceberg.errors import BadRequest, PayloadTooLarge, Unavailable, UnsupportedMediaType
from arco_catalog.iceberg.json import JsonObject, JsonValue, MalformedJson, count_values, loads
from arco_catalog.iceberg.shapes import kind_of
from arco_catalog.protocol.catalog import Catalog
from arco_catalog.state.memory import BODY_WEIGHT, VALUE_BYTES, Allocation, Hold, OutOfMemory
from arco_catalog.state.worker_threads import off_loop
from storage_backends.lazy_dataclass import dataclass

MAX_VALUES = 500_000
"""The limit of JSON values in a body. A parsed value takes up to 70 bytes where two bytes were sent, so that without
this limit a body of 8 MB could take hundreds of megabytes and many seconds."""

FORM = "application/x-www-form-urlencoded"
MAX_FORM_BYTES = 64 << 10
"""The limit of a form, which holds two tokens and a few short fields."""
UNDECLARED_BYTES = 128 << 10
"""The size for which memory is taken at first if a request has no Content-Length."""
LARGE_HEAD_BYTES = 8 << 10
HEAD_WEIGHT = 4
"""Bytes of memory for each byte of a large head: raw, decoded, and the values made from it."""


class ClientGone(Exception):
    """The client closed the connection before the request was complete, so no answer can be sent."""


class SlowBody(Exception):
    """The body of a request did not arrive in time. The request itself may be valid, and if it is a retry, the first
    one may have arrived and been applied."""


@dataclass(slots=True)
class Request:
    """One HTTP request. `raw_path` and `raw_query` are as sent, but a path that the server passes only in decoded form
    is encoded again. Header names are in lower case, and repeated headers are joined by commas. `server` is the address
    at which the request arrived, None if unknown; `hold` accounts for the memory that the request takes.

    The layers fill the fields from `id` on: the id in telemetry, its `route`, the name of its `warehouse` and the
    `catalog` of that name, the `response` that is sent, and the class name of the `error` that was raised.
    `before_answer`, if given, is called when the response is known, and before any of it is sent.
    """

    method: str
    raw_path: bytes
    raw_query: bytes
    headers: Mapping[str, str]
    scope: Scope
    receive: Receive
    send: Send
    caller: Caller
    server: str | None
    hold: Hold
    id: str | None = None
    route: Route | None = None
    warehouse: str | None = None
    response: Response | None = None
    error: str | None = None
    catalog: Catalog | None = None
    before_answer: Callable[[], None] | None = None

    @classmethod
    def of(cls, scope: Scope, receive: Receive, send: Send, hold: Hold) -> "Request":
        """Returns the request of an ASGI scope and its channels."""
        raw_path = scope.get("raw_path")
        if raw_path is None:  # optional in ASGI: some servers pass only the decoded path
            raw_path = quote(scope["path"]).encode()
        return cls(
            scope["method"],
            raw_path,
            scope.get("query_string", b""),
            _joined(list(scope["headers"])),
            scope,
            receive,
            send,
            caller_of(scope),
            (scope.get("server") or (None,))[0],
            hold,
        )

    @property
    def spelling(self) -> Spelling:
        """How the client encodes names in paths: whether a plus sign is a space, and which characters it loses."""
        return spelling_of(self.headers)

    def query(self) -> Query:
        """Returns the decoded query. Raises `BadRequest` if it does not decode."""
        return Query.parse(self.raw_query) if self.raw_query else NO_QUERY

    @property
    def head_bytes(self) -> int:
        """The number of bytes of path, query and header values together."""
        return len(self.raw_path) + len(self.raw_query) + sum(map(len, self.headers.values()))

    async def take_head(self) -> None:
        """Takes memory for path, query and headers, `HEAD_WEIGHT` times their size. The caller does this if they have
        more than `LARGE_HEAD_BYTES`. Raises `Unavailable` if there is none in time."""
        await self._take(HEAD_WEIGHT * self.head_bytes)

    async def body(self, options: HttpOptions) -> bytes:
        """Takes memory for the body, reads all of it, and returns it. Raises `PayloadTooLarge` for more than
        `max_body_bytes` of the options, `BadRequest` for a Content-Encoding other than `identity`, `SlowBody` if it
        does not arrive within `body_seconds`, `Unavailable` if there is no memory in time, and `ClientGone`."""
        coding = self.headers.get("content-encoding", "identity").strip().lower()
        if coding not in ("", "identity"):
            raise BadRequest(f"Content-Encoding {coding[:64]!r} is not supported: send the body uncompressed")
        declared = self.headers.get("content-length", "")
        is_declared = declared.isascii() and declared.isdigit()
        expected = int(declared[:20]) if is_declared else min(UNDECLARED_BYTES, options.max_body_bytes)
        if expected > options.max_body_bytes:
            raise _too_large(options)
        taken = await self._take(BODY_WEIGHT * expected)
        chunks: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(options.body_seconds):
                while True:
                    message = await self.receive()
                    if message["type"] == "http.disconnect":
                        raise ClientGone
                    chunks.append(message.get("body", b""))
                    size += len(chunks[-1])
                    if size > options.max_body_bytes:
                        raise _too_large(options)
                    if size > expected:
                        # Take the largest size at once: bodies that grow in steps could block each other.
                        expected = options.max_body_bytes
                        taken.shrink(0)
                        taken = await self._take(BODY_WEIGHT * expected)
                    if not message.get("more_body", False):
                        taken.shrink(BODY_WEIGHT * size)
                        return b"".join(chunks)
        except TimeoutError as error:
            raise SlowBody(
                f"The request body did not arrive within {options.body_seconds:g} s, a fixed limit"
            ) from error

    async def form(self, options: HttpOptions) -> bytes:
        """Returns the body of a request with the content type of a form, still encoded. Raises the errors of `body`,
        with `PayloadTooLarge` already beyond `MAX_FORM_BYTES`, and before these `UnsupportedMediaType` for another
        content type."""
        given = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        if given != FORM:
            raise UnsupportedMediaType(f"Content-Type must be {FORM}, not {given[:100]!r}")
        return await self.body(replace(options, max_body_bytes=min(MAX_FORM_BYTES, options.max_body_bytes)))

    async def json_object(self, options: HttpOptions, *, optional: bool = False) -> tuple[JsonObject | None, int]:
        """Reads the body as a JSON object, and returns it with its size in bytes. An `optional` body may be empty: the
        object is then None. Raises the errors of `body`, `PayloadTooLarge` for more than `MAX_VALUES` values, and
        `BadRequest` if the body is no JSON object or nests too deep."""
        data = await self.body(options)
        if optional and not data.strip():
            return None, len(data)
        values = await off_loop(len(data), partial(count_values, data))
        if values > MAX_VALUES:
            raise PayloadTooLarge(
                f"The request body has more than {MAX_VALUES:,} JSON values, a fixed limit: send several requests"
            )
        await self._take(VALUE_BYTES * values - BODY_WEIGHT * len(data) // 2)
        return await off_loop(len(data), partial(_object, data, options)), len(data)

    async def _take(self, size: int) -> Allocation:
        """Takes memory for this request, and waits for it if there is none. Raises `Unavailable` if there is none in
        time."""
        try:
            return await self.hold.take(size)
        except OutOfMemory as error:  # a 503 on every route: no request was sent to the store yet
            raise Unavailable(str(error)) from error


Handle: TypeAlias = Callable[[Request], Awaitable[Response]]
"""A layer of the app: takes a request and returns its response."""


def _object(data: bytes, options: HttpOptions) -> JsonObject:
    """Reads the body as a JSON object. Raises `BadRequest` for any other body, and for one with too many levels."""
    if not data.strip():
        raise BadRequest("The request body is empty: expected a JSON object")
    try:
        document = loads(data)
    except MalformedJson as error:
        raise BadRequest(f"The request body is not valid JSON: {error}") from error
    if not isinstance(document, dict):
        raise BadRequest(f"Invalid request body: expected a JSON object, found {kind_of(document)}")
    if deeper_than(document, options.max_body_depth):
        raise BadRequest(
            f"The JSON of the request body nests more than {options.max_body_depth} levels deep, a fixed limit"
        )
    return document


def deeper_than(document: JsonObject, levels: int) -> bool:
    """Whether arrays and objects nest deeper than this number of levels. The document itself is the first level."""
    level: list[JsonObject | list[JsonValue]] = [document]
    # A loop over levels instead of recursion, which deeply nested input would make fail.
    for _ in range(levels):
        children = chain.from_iterable(node.values() if isinstance(node, dict) else node for node in level)
        level = [child for child in children if isinstance(child, dict | list)]
        if not level:
            return False
    return True


def _joined(headers: Sequence[tuple[bytes, bytes]]) -> dict[str, str]:
    """Returns headers by lower-case name; the values of a repeated one are joined by commas."""
    joined = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in headers}
    if len(joined) == len(headers):  # no header is repeated: the usual case, without the second dictionary
        return joined
    values: dict[str, list[str]] = {}
    for name, value in headers:
        values.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return {name: ", ".join(several) for name, several in values.items()}


def _too_large(options: HttpOptions) -> PayloadTooLarge:
    """Returns the error for too large a body."""
    return PayloadTooLarge(
        f"The request body is larger than {options.max_body_bytes} bytes, the limit for this request"
    )
