"""A request as it arrived: line and headers at once, its body when it is asked for, and never more than allowed."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import quote

from arco_catalog.http.asgi import Receive, Scope
from arco_catalog.http.options import HttpOptions
from arco_catalog.http.principal import Caller, caller_of
from arco_catalog.http.query import Query
from arco_catalog.http.spelling import Spelling, spelling_of
from arco_catalog.iceberg.errors import BadRequest, PayloadTooLarge
from arco_catalog.iceberg.json import JsonObject, JsonValue, MalformedJson, loads
from arco_catalog.iceberg.shapes import kind_of
from arco_catalog.state.worker_threads import off_loop

MAX_VALUES = 500_000
"""Values in a body. A parsed one takes up to 70 bytes for each two that came, and some time in Python: without a bound
of their own, the 8 MB that a body may have would be hundreds of megabytes and many seconds."""

_MARKS = (b",", b"[", b"{")
"""No value comes without one of these before it, but the first. Those in strings are counted too."""


class ClientGone(Exception):
    """The client hung up before its request was complete. Nobody is left to answer."""


class SlowBody(Exception):
    """The body did not arrive in time. Unlike every other fault of a request this is none of the request itself: sent
    before, the very same may have arrived and been carried out."""


@dataclass(frozen=True, slots=True)
class Request:
    """`raw_path` and `raw_query` are as sent; header names are in lower case, repeated headers joined by commas.
    `server` is the address at which it arrived, if that is known."""

    method: str
    raw_path: bytes
    raw_query: bytes
    headers: Mapping[str, str]
    receive: Receive
    caller: Caller
    server: str | None = None

    @classmethod
    def of(cls, scope: Scope, receive: Receive) -> "Request":
        """Takes an ASGI scope apart."""
        raw_path = scope.get("raw_path")
        if raw_path is None:  # a server that decoded the path and kept nothing else
            raw_path = quote(scope["path"]).encode()
        return cls(
            scope["method"],
            raw_path,
            scope.get("query_string", b""),
            _joined(scope["headers"]),
            receive,
            caller_of(scope),
            (scope.get("server") or (None,))[0],
        )

    @property
    def spelling(self) -> Spelling:
        """How the client spells names in paths."""
        return spelling_of(self.headers)

    def query(self) -> Query:
        """The decoded query. Raises `BadRequest`."""
        return Query.parse(self.raw_query)

    async def body(self, options: HttpOptions) -> bytes:
        """All of the body. Raises `PayloadTooLarge`, `BadRequest` if it comes encoded, `SlowBody`, and `ClientGone`."""
        coding = self.headers.get("content-encoding", "identity").strip().lower()
        if coding not in ("", "identity"):
            raise BadRequest(f"Content-Encoding {coding[:64]!r} is not supported: send the body as it is")
        declared = self.headers.get("content-length", "")
        if declared.isascii() and declared.isdigit() and int(declared[:20]) > options.max_body_bytes:
            raise _too_large(options)
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
                    if not message.get("more_body", False):
                        return b"".join(chunks)
        except TimeoutError as error:
            raise SlowBody(f"The request body did not arrive within {options.body_seconds:g} s") from error

    async def json_object(self, options: HttpOptions) -> tuple[JsonObject, int]:
        """The body, which must be a JSON object, and how many bytes it had. Raises what `body` does, and
        `BadRequest`."""
        data = await self.body(options)
        return await off_loop(len(data), lambda: _object(data, options)), len(data)


def _object(data: bytes, options: HttpOptions) -> JsonObject:
    if not data.strip():
        raise BadRequest("The request body is empty: expected a JSON object")
    if sum(data.count(mark) for mark in _MARKS) > MAX_VALUES:
        raise PayloadTooLarge(f"The request body holds more than {MAX_VALUES:,} values")
    try:
        document = loads(data)
    except MalformedJson as error:
        raise BadRequest(f"The request body is not valid JSON: {error}") from error
    if not isinstance(document, dict):
        raise BadRequest(f"Invalid request body: expected a JSON object, found {kind_of(document)}")
    if deeper_than(document, options.max_body_depth):
        raise BadRequest(f"The request body nests more than {options.max_body_depth} levels deep")
    return document


def deeper_than(document: JsonObject, levels: int) -> bool:
    """Whether arrays and objects nest deeper than that. Level by level: whatever was sent, the stack stays flat."""
    level: list[JsonValue] = [document]
    for _ in range(levels):
        level = [item for node in level for item in _children(node) if isinstance(item, dict | list)]
        if not level:
            return False
    return True


def _children(node: JsonValue) -> Iterable[JsonValue]:
    match node:
        case dict():
            return node.values()
        case list():
            return node
        case _:
            return ()


def _joined(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    values: dict[str, list[str]] = {}
    for name, value in headers:
        values.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return {name: ", ".join(several) for name, several in values.items()}


def _too_large(options: HttpOptions) -> PayloadTooLarge:
    return PayloadTooLarge(f"The request body is larger than {options.max_body_bytes} bytes")
