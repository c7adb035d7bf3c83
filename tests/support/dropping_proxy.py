"""An HTTP proxy that applies requests and loses answers: the moment in which clients and catalogs lie to each other."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass, field
from enum import Enum
from urllib.parse import urlsplit

TIMEOUT_S = 60.0
GATEWAY_TIMEOUT = b"HTTP/1.1 504 Gateway Timeout\r\nContent-Length: 0\r\n\r\n"


class Fate(Enum):
    """What becomes of an answer. In each case the server has got the whole request, and does its work."""

    DELIVERED = "the client gets it"
    DROPPED = "the connection closes when the whole answer is there"
    CUT_SHORT = "the connection closes in the middle of the answer"
    TIMED_OUT = "a gateway's 504 comes in its place"
    ABANDONED = "the connection closes while the server is at work"


@dataclass(frozen=True)
class Request:
    """A request as it passed."""

    method: str
    target: str
    headers: Mapping[str, str]  # names in lower case

    @property
    def key(self) -> str | None:
        """Its idempotency key."""
        return self.headers.get("idempotency-key")

    @property
    def mutates(self) -> bool:
        """Whether it changes the catalog."""
        return self.method in ("POST", "DELETE") and not self.target.endswith("/metrics")


@dataclass(frozen=True)
class Exchange:
    """A request, the status of the server's answer, and what became of that answer."""

    request: Request
    status: int
    fate: Fate


Judge = Callable[[Request], Fate]


def first_time(fate: Fate) -> Judge:
    """Every mutation meets this fate once. When its key comes again, the answer is delivered."""
    seen: set[str] = set()

    def judge(request: Request) -> Fate:
        if not request.mutates or request.key is None or request.key in seen:
            return Fate.DELIVERED
        seen.add(request.key)
        return fate

    return judge


def always(fate: Fate) -> Judge:
    """Every mutation meets this fate, however often it comes."""
    return lambda request: fate if request.mutates else Fate.DELIVERED


@dataclass(frozen=True)
class Message:
    """An HTTP/1.1 message as it came: its head with the blank line, its headers by their names in lower case."""

    start: str
    headers: dict[str, str]
    head: bytes
    body: bytes = b""

    @classmethod
    async def read(cls, reader: asyncio.StreamReader, *, bodiless: bool = False) -> "Message":
        """The next message. Raises `asyncio.IncompleteReadError` if there is none."""
        head = await reader.readuntil(b"\r\n\r\n")
        start, *lines = head.decode("latin-1").strip().split("\r\n")
        pairs = (line.split(":", 1) for line in lines)
        headers = {name.lower(): value.strip() for name, value in pairs}
        if "transfer-encoding" in headers:
            raise NotImplementedError("neither Iceberg's client nor our server sends chunks")
        length = 0 if bodiless else int(headers.get("content-length", 0))
        return cls(start, headers, head, await reader.readexactly(length))


@dataclass
class DroppingProxy:
    """Passes requests on to `upstream`, a URI, and lets `judge` decide on each answer.

    `exchanges` are those whose answer has come, in order. With `strip_keys` the server sees no idempotency keys: the
    negative control.
    """

    upstream: str
    judge: Judge
    strip_keys: bool = False
    exchanges: list[Exchange] = field(default_factory=list)

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[str]:
        """Yields the URI to call it by, on loopback. Leaves when every request is answered and every client is gone."""
        async with asyncio.TaskGroup() as connections:

            def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                connections.create_task(self._serve(reader, writer))

            server = await asyncio.start_server(accept, "127.0.0.1", 0)
            try:
                yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            finally:
                server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection of a client, request after request."""
        with closing(writer), suppress(asyncio.IncompleteReadError, ConnectionError):  # the client hangs up
            while await self._relay(await Message.read(reader), writer):
                pass

    async def _relay(self, message: Message, writer: asyncio.StreamWriter) -> bool:
        """One request to the server, and of its answer to the client what the judge grants. False ends it."""
        method, target, _ = message.start.split(" ")
        request = Request(method, target, message.headers)
        fate = self.judge(request)
        if fate is Fate.ABANDONED:
            writer.close()
        answer = await self._ask(message, bodiless=method == "HEAD")
        self.exchanges.append(Exchange(request, int(answer.start.split(" ")[1]), fate))
        match fate:
            case Fate.DELIVERED:
                writer.write(answer.head + answer.body)
            case Fate.TIMED_OUT:
                writer.write(GATEWAY_TIMEOUT)
            case Fate.CUT_SHORT:
                whole = answer.head + answer.body
                writer.write(whole[: len(whole) // 2])
        await writer.drain()
        return fate in (Fate.DELIVERED, Fate.TIMED_OUT)

    async def _ask(self, message: Message, *, bodiless: bool) -> Message:
        """The server's whole answer, over a connection of its own. Raises `RuntimeError` if there is none: only this
        proxy loses answers."""
        address = urlsplit(self.upstream)
        try:
            async with asyncio.timeout(TIMEOUT_S):
                reader, writer = await asyncio.open_connection(address.hostname, address.port)
                with closing(writer):
                    writer.write((_without_key(message.head) if self.strip_keys else message.head) + message.body)
                    return await Message.read(reader, bodiless=bodiless)
        except (OSError, EOFError) as error:  # a timeout is an OSError, a message cut short an EOFError
            raise RuntimeError(f"the server did not answer {message.start}") from error


def _without_key(head: bytes) -> bytes:
    lines = head.split(b"\r\n")
    return b"\r\n".join(line for line in lines if not line.lower().startswith(b"idempotency-key:"))
