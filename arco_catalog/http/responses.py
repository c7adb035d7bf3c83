"""HTTP responses, and how they are made of answers and sent. Their header names are sent exactly as they are spelled in
the code."""

import asyncio
from collections.abc import Mapping
from dataclasses import field
from functools import cache

from arco_catalog.http.access_delegation import NOT_DELEGATED, DelegatedAccess
from arco_catalog.http.asgi import Send
from arco_catalog.iceberg.json import JsonObject, dumps
from arco_catalog.planning.answers import Answer, TableState
from storage_backends.lazy_dataclass import dataclass

PIECE_BYTES = 256 << 10
"""The size of the pieces in which a body is passed to the server."""
NO_HEADERS: Mapping[str, str] = {}


class ExactName(bytes):
    """A header name of a response that keeps its capital letters.

    uvicorn sends `name.lower()`, but Iceberg's Java client reads only a header that is spelled `ETag`, and caches
    nothing if it is `etag`.
    """

    def lower(self) -> bytes:
        """Returns the name as it is, with the capital letters."""
        return self


@cache  # unbounded, but only names in this code are keys
def _exact(name: str) -> ExactName:
    """Returns a header name that is sent as it is spelled."""
    return ExactName(name.encode())


_JSON = (_exact("Content-Type"), b"application/json")


@dataclass(frozen=True, slots=True)
class Response:
    """An HTTP response: a status, headers, and a body, which may be empty or compressed. The body is JSON, unless the
    headers have a `Content-Type`. `error_type` is the type in the body of an error; None for any other response, and
    for an error in the form of OAuth2."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    error_type: str | None = None

    @property
    def is_compressed(self) -> bool:
        """Whether the body of the response is compressed already."""
        return "Content-Encoding" in self.headers

    async def send(self, send: Send, *, to_head: bool, request_id: str | None = None) -> None:
        """Sends the response, without its body and `content-length` if `to_head` (the request was a HEAD), and with
        `request_id` in the header `X-Request-Id` if it is given."""
        body = b"" if to_head else self.body
        headers = [(_exact(name), value.encode("latin-1")) for name, value in self.headers.items()]
        if request_id is not None:
            headers.append((_exact("X-Request-Id"), request_id.encode()))
        if body and "Content-Type" not in self.headers:
            headers.append(_JSON)
        if self.status not in (204, 304) and not to_head:
            # In lower case, because uvicorn must recognise this one or it sends chunks.
            headers.append((ExactName(b"content-length"), b"%d" % len(body)))
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        # In pieces, each after the client has read most of those before. The server's buffer then holds no second copy
        # of the body, and the request gives its memory back only when nearly all of the body was sent.
        rest = memoryview(body)
        while len(rest) > PIECE_BYTES:
            await send({"type": "http.response.body", "body": bytes(rest[:PIECE_BYTES]), "more_body": True})
            rest = rest[PIECE_BYTES:]
            await asyncio.sleep(0)  # noqa: TID251 - no time passes: `send` never waits for a client that is fast
        await send({"type": "http.response.body", "body": body if len(rest) == len(body) else bytes(rest)})


NO_CONTENT = Response(204)


def json_response(body: JsonObject, status: int = 200, headers: Mapping[str, str] = NO_HEADERS) -> Response:
    """Returns a response with this status, with a JSON object as the body, and with these `headers`."""
    return Response(status, dumps(body), headers)


def answer_response(answer: Answer, headers: Mapping[str, str] = NO_HEADERS) -> Response:
    """Returns the HTTP response for the answer of an operation, with these `headers`. The state of a table or view
    gives a `table_response`, with `config` if the operation created it; a `Document` gives its status and its body."""
    if isinstance(answer, TableState):
        return table_response(answer, headers, config=answer.created)
    return Response(answer.status, b"" if answer.body is None else dumps(answer.body), headers)


def table_response(
    state: TableState, headers: Mapping[str, str], *, config: bool, delegated: DelegatedAccess = NOT_DELEGATED
) -> Response:
    """Returns a response 200 with the state of a table or view: its metadata between the bytes that `around_metadata`
    makes of `config` and `delegated`. The metadata are put in as bytes, and are not parsed here."""
    start, end = around_metadata(state, config=config, delegated=delegated)
    return Response(200, b"".join((start, state.metadata, end)), headers)


def around_metadata(
    state: TableState, *, config: bool, delegated: DelegatedAccess = NOT_DELEGATED
) -> tuple[bytes, bytes]:
    """Returns the bytes of a response's body before and after the metadata of a table or view. Before is the metadata
    location; after are the field `config` (with the client's configuration for the access) if `config` is true, the
    credentials of the access, if it has any, and the labels if the table or view has a governance document."""
    location = dumps({"metadata-location": state.metadata_location})
    fields: JsonObject = {"config": {**delegated.client_config}} if config else {}
    if delegated.credentials:
        fields["storage-credentials"] = [*delegated.credentials_json]
    if state.governance:
        # Imported here: a load of a table without governance, the usual case, saves the time.
        from arco_catalog.planning.governance import labels_of

        fields["labels"] = labels_of(state.governance)
    end = b"," + dumps(fields)[1:] if fields else b"}"
    return location[:-1] + b',"metadata":', end
