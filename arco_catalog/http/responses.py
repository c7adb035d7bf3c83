"""Responses, with header names exactly as written here."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from arco_catalog.http.access_delegation import NOT_DELEGATED, Delegated
from arco_catalog.http.asgi import Send
from arco_catalog.iceberg.json import JsonObject, dumps
from arco_catalog.planning.answers import Answer, TableState

PIECE_BYTES = 256 << 10
"""How much of an answer is handed to the server at once."""
NO_HEADERS: Mapping[str, str] = {}


class ExactName(bytes):
    """A header name that no server lower-cases.

    uvicorn sends `name.lower()`; Iceberg's Java client looks for `ETag` with just that capitalisation in a plain hash
    map, and caches nothing when it reads `etag`.
    """

    def lower(self) -> bytes:
        return self


@cache  # every name is one of ours
def _exact(name: str) -> ExactName:
    return ExactName(name.encode())


_JSON = (_exact("Content-Type"), b"application/json")


@dataclass(frozen=True, slots=True)
class Response:
    """A status, headers, and a body, empty for none. A body is JSON; that of an error has an `error_type`."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    error_type: str | None = None

    @property
    def is_compressed(self) -> bool:
        """Whether the body is compressed already."""
        return "Content-Encoding" in self.headers

    async def send(self, send: Send, *, to_head: bool, request_id: str | None = None) -> None:
        """Sends the response, without its body if the request was a HEAD."""
        body = b"" if to_head else self.body
        headers = [(_exact(name), value.encode("latin-1")) for name, value in self.headers.items()]
        if request_id is not None:
            headers.append((_exact("X-Request-Id"), request_id.encode()))
        if body:
            headers.append(_JSON)
        if self.status not in (204, 304):
            # In lower case, because uvicorn must recognise this one or it sends chunks.
            headers.append((ExactName(b"content-length"), b"%d" % len(body)))
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        # Piece by piece, each when the client has taken those before: what waits to be read is not held twice, and
        # the request is not over, nor its memory given back, before nearly all of it has gone.
        rest = memoryview(body)
        while len(rest) > PIECE_BYTES:
            await send({"type": "http.response.body", "body": bytes(rest[:PIECE_BYTES]), "more_body": True})
            rest = rest[PIECE_BYTES:]
            await asyncio.sleep(0)  # noqa: TID251 - no time passes: `send` never waits for a client that is fast
        await send({"type": "http.response.body", "body": body if len(rest) == len(body) else bytes(rest)})


NO_CONTENT = Response(204)


def json_response(body: JsonObject, status: int = 200, headers: Mapping[str, str] = NO_HEADERS) -> Response:
    """A JSON object."""
    return Response(status, dumps(body), headers)


def answer_response(answer: Answer, headers: Mapping[str, str] = NO_HEADERS) -> Response:
    """What an operation answered."""
    if isinstance(answer, TableState):
        return table_response(answer, headers, config=answer.created)
    return Response(answer.status, b"" if answer.body is None else dumps(answer.body), headers)


def table_response(
    state: TableState, headers: Mapping[str, str], *, config: bool, delegated: Delegated = NOT_DELEGATED
) -> Response:
    """A table's state, its metadata spliced in as it was stored: no load pays for parsing it. What is told of its
    governance are labels."""
    start, end = around_metadata(state, config=config, delegated=delegated)
    return Response(200, b"".join((start, state.metadata, end)), headers)


def around_metadata(state: TableState, *, config: bool, delegated: Delegated = NOT_DELEGATED) -> tuple[bytes, bytes]:
    """The bytes of an answer before the metadata of a table, and those after it. Labels show its governance."""
    location = dumps({"metadata-location": state.metadata_location})
    told: JsonObject = {"config": {**delegated.config}} if config else {}
    if delegated.credentials:
        told["storage-credentials"] = [*delegated.credentials_json]
    if state.governance:
        from arco_catalog.planning.governance import labels_of  # a load of what has none does not pay for it

        told["labels"] = labels_of(state.governance)
    end = b"," + dumps(told)[1:] if told else b"}"
    return location[:-1] + b',"metadata":', end
