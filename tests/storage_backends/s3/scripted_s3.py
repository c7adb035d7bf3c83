"""An S3 that misbehaves by a script: each request takes the next step of a script, and is served honestly after its
end."""

import asyncio
import hashlib
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

from tests.support.stub_server import StubServer, stub_server

DATE = "Sat, 21 Nov 2026 12:00:00 GMT"
DATE_MS = 1_795_262_400_000
LAST_MODIFIED = "Sat, 21 Nov 2026 11:59:00 GMT"


@dataclass(frozen=True)
class Serve:
    """Serves the request, with its conditions."""


@dataclass(frozen=True)
class Reply:
    """Answers with a status, an S3 error code and headers of its own, and does nothing."""

    status: int
    code: str = ""
    text: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Drop:
    """Reads the request, serves it or not, and drops the connection without an answer."""

    applied: bool
    last: bool = False
    """Stops listening, too."""


@dataclass(frozen=True)
class Truncate:
    """Drops the connection in the middle of the body of its answer."""


@dataclass(frozen=True)
class Hang:
    """Reads the request and never answers."""


@dataclass(frozen=True)
class Raw:
    """Answers with these bytes, whatever they are, and ends the connection."""

    data: bytes


@dataclass(frozen=True)
class Trickle:
    """Answers with a head, and with more of it or of its body every now and then, without an end."""

    head: bytes
    more: bytes


@dataclass(frozen=True)
class Early:
    """Answers before it has read the body of the request, of which it reads no more."""

    reply: Reply


@dataclass(frozen=True)
class Deaf:
    """Neither reads the body of the request nor answers."""


Step = Serve | Reply | Drop | Truncate | Hang | Raw | Trickle | Early | Deaf


@dataclass
class ScriptedS3:
    """`requests` is what came over the wire, `objects` what landed."""

    script: list[Step]
    objects: dict[str, bytes] = field(default_factory=dict)
    requests: list[web.BaseRequest] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    connections: set[object] = field(default_factory=set)
    endpoint: str = ""
    hanging: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))
    """Released by each request that comes and is not answered."""
    _server: StubServer | None = None

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if "Expect" in request.headers:  # the body would never come
            return web.Response(status=417)
        if self.script and isinstance(self.script[0], Early | Deaf):
            return await self._without_reading(request, self.script.pop(0))
        body = await request.read()
        self.requests.append(request)
        self.bodies.append(body)
        self.connections.add(request.transport)
        step = self.script.pop(0) if self.script else Serve()
        match step:
            case Serve():
                return self._serve(request, body)
            case Reply():
                return respond(step)
            case Drop(applied, last):
                if applied:
                    self._serve(request, body)
                if last and self._server:
                    await self._server.stop_listening()
                return self._abort(request)
            case Truncate():
                response = web.StreamResponse(headers={"Content-Length": "100", "ETag": '"x"'})
                await response.prepare(request)
                await response.write(b"some")
                return self._abort(request)
            case Hang():
                self.hanging.release()
                await asyncio.Event().wait()
            case Raw(data):
                assert request.transport is not None
                request.transport.write(data)
                request.transport.close()
            case Trickle(head, more):
                await self._trickle(request, head, more)
        return web.Response()

    async def _without_reading(self, request: web.BaseRequest, step: Step) -> web.Response:
        if isinstance(step, Early):
            assert request.transport is not None
            request.transport.write(raw(step.reply, framed=True))
        await asyncio.Event().wait()
        return web.Response()

    @staticmethod
    async def _trickle(request: web.BaseRequest, head: bytes, more: bytes) -> None:
        assert request.transport is not None
        request.transport.write(head)
        while not request.transport.is_closing():
            request.transport.write(more)
            await asyncio.sleep(0.02)

    @property
    def landed(self) -> Mapping[str, bytes]:
        """The objects that were written."""
        return self.objects

    @staticmethod
    def _abort(request: web.BaseRequest) -> web.Response:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    def _serve(self, request: web.BaseRequest, body: bytes) -> web.Response:
        key = request.path
        current = self.objects.get(key)
        held = None if current is None else _etag(current)
        if request.method == "GET" and current is not None:
            if request.headers.get("If-None-Match") == held:
                return web.Response(status=304, headers={"Date": DATE})
            headers = {"ETag": _etag(current), "Date": DATE, "Last-Modified": LAST_MODIFIED}
            return web.Response(body=current, headers=headers)
        if "If-Match" in request.headers and current is None:
            return _error(404, "NoSuchKey")
        if request.headers.get("If-Match", held) != held or (
            "If-None-Match" in request.headers and current is not None
        ):
            return _error(412, "PreconditionFailed")
        match request.method:
            case "PUT":
                self.objects[key] = body
                return web.Response(headers={"ETag": _etag(body), "Date": DATE})
            case "DELETE":
                self.objects.pop(key, None)
                return web.Response(status=204, headers={"Date": DATE})
        return _error(404, "NoSuchKey")


def raw(reply: Reply, *, framed: bool) -> bytes:
    """The answer's bytes, which say how long its body is or leave that to the connection's end."""
    body = _text(reply).encode()
    headers = {**reply.headers, **({"Content-Length": str(len(body))} if framed else {})}
    lines = [f"HTTP/1.1 {reply.status} As Scripted", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "\r\n"]).encode() + body


def respond(reply: Reply) -> web.Response:
    """The answer as a server gives it."""
    xml = "application/xml"
    return web.Response(status=reply.status, text=_text(reply), content_type=xml, headers=reply.headers)


def _text(reply: Reply) -> str:
    error = f"<Error><Code>{reply.code}</Code><Message>as scripted</Message></Error>" if reply.code else ""
    return reply.text or error


def _etag(body: bytes) -> str:
    return f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"'


def _error(status: int, code: str) -> web.Response:
    text = f"<Error><Code>{code}</Code><Message>as in S3</Message></Error>"
    return web.Response(status=status, text=text, content_type="application/xml", headers={"Date": DATE})


@asynccontextmanager
async def scripted_s3(script: Sequence[Step], tls: ssl.SSLContext | None = None) -> AsyncIterator[ScriptedS3]:
    """Runs one on a free port of 127.0.0.1."""
    s3 = ScriptedS3(list(script))
    async with stub_server(s3.handle, tls) as server:
        s3._server, s3.endpoint = server, server.uri
        yield s3
