"""An HTTP client that talks to the ASGI app directly, byte for byte as a server would."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast
from urllib.parse import unquote

from arco_catalog.http.asgi import Asgi, Message, Scope
from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps, loads


@dataclass(frozen=True)
class Answer:
    """A response of the ASGI app as sent: header names with their capitalisation."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> JsonObject:
        document = loads(self.body)
        assert isinstance(document, dict)
        return document

    @property
    def error(self) -> JsonObject:
        """The error, whose shape and code are checked on the way."""
        assert [*self.json] == ["error"]
        error = self.json["error"]
        assert isinstance(error, dict)
        shape = {name: type(value) for name, value in error.items()}
        assert shape.pop("forbidden-identifiers", list) is list
        assert shape == {"message": str, "type": str, "code": int}
        assert error["code"] == self.status
        assert error["message"]
        return error

    @property
    def error_type(self) -> str:
        return str(self.error["type"])

    @property
    def message(self) -> str:
        return str(self.error["message"])


@dataclass(frozen=True)
class Client:
    """A client of an ASGI app, which sends requests whose `target` is a path, already encoded, with a query if need
    be."""

    app: Asgi
    headers: Mapping[str, str] = field(default_factory=dict)

    async def get(self, target: str, **headers: str) -> Answer:
        return await self.send("GET", target, headers=headers)

    async def head(self, target: str) -> Answer:
        return await self.send("HEAD", target)

    async def delete(self, target: str, **headers: str) -> Answer:
        return await self.send("DELETE", target, headers=headers)

    async def post(self, target: str, body: object, **headers: str) -> Answer:
        """Sends any value that is JSON."""
        return await self.send("POST", target, dumps(cast(JsonValue, body)), headers)

    async def put(self, target: str, body: object, **headers: str) -> Answer:
        """Sends any value that is JSON."""
        return await self.send("PUT", target, dumps(cast(JsonValue, body)), headers)

    async def send(
        self, method: str, target: str, data: bytes = b"", headers: Mapping[str, str] | None = None, pieces: int = 1
    ) -> Answer:
        """One request. Underscores in header names become dashes; the body comes in that many `pieces`. A POST or
        PUT is said to be JSON unless the headers say what it is; an empty type is none."""
        size = -(-len(data) // pieces) or 1
        incoming = [data[start : start + size] for start in range(0, len(data), size)] or [b""]
        messages: list[Message] = [
            {"type": "http.request", "body": piece, "more_body": place < len(incoming)}
            for place, piece in enumerate(incoming, 1)
        ]
        given = {name.replace("_", "-").lower(): value for name, value in {**self.headers, **(headers or {})}.items()}
        if method in ("POST", "PUT"):
            given.setdefault("content-type", "application/json")
        return await self.exchange(scope_of(method, target, given), messages)

    async def exchange(self, scope: Scope, incoming: list[Message]) -> Answer:
        """The bare protocol."""
        outgoing: list[Message] = []

        async def receive() -> Message:
            return incoming.pop(0) if incoming else {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            outgoing.append(message)

        await self.app(scope, receive, send)
        start, *pieces = outgoing
        assert [piece.get("more_body", False) for piece in pieces] == [True] * (len(pieces) - 1) + [False]
        headers = {name.decode(): value.decode("latin-1") for name, value in start["headers"]}
        assert len(headers) == len(start["headers"]), "a header was sent twice"
        return Answer(start["status"], headers, b"".join(piece["body"] for piece in pieces))


def scope_of(method: str, target: str, headers: Mapping[str, str]) -> Scope:
    """The scope that a server would make of a request."""
    path, _, query = target.partition("?")
    return {
        "type": "http",
        "method": method,
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(name.replace("_", "-").lower().encode(), value.encode()) for name, value in headers.items()],
    }
