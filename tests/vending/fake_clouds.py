"""The services that give credentials, on loopback, each strict about what it is asked."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

from aiohttp import web

from arco_catalog.vending.outbound import WireOutbound
from storage_backends.base import StoreDenied, StoreUnavailable
from storage_backends.s3.signature import Credentials
from tests.support.fake_runtime import FakeRuntime
from tests.support.stub_server import stub_server


@dataclass(frozen=True)
class Asked:
    """One request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def form(self) -> dict[str, str]:
        return dict(parse_qsl(self.body.decode(), strict_parsing=True))


@dataclass
class FakeCloud:
    """Answers each request with the next of `answers`, the last for ever, and remembers what it was asked."""

    answers: list[Callable[[Asked], web.Response]]
    asked: list[Asked] = field(default_factory=list)
    uri: str = ""

    async def handle(self, request: web.BaseRequest) -> web.Response:
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.asked.append(Asked(request.method, request.path_qs, headers, await request.read()))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return answer(self.asked[-1])


@asynccontextmanager
async def fake_cloud(*answers: Callable[[Asked], web.Response]) -> AsyncIterator[FakeCloud]:
    cloud = FakeCloud([*answers])
    async with stub_server(cloud.handle) as server:
        cloud.uri = server.uri
        yield cloud


@asynccontextmanager
async def connections(runtime: FakeRuntime) -> AsyncIterator[WireOutbound]:
    outbound = WireOutbound(runtime.sleep, runtime.random)
    try:
        yield outbound
    finally:
        await outbound.close()


class OwnKeys:
    """The catalog's own keys, or the reason that there are none."""

    def __init__(self, failure: StoreDenied | StoreUnavailable | None = None) -> None:
        self.failure = failure

    async def current(self) -> Credentials:
        if self.failure is not None:
            raise self.failure
        return Credentials("AKOWN", "own-secret", "own-token")


def text(body: str, status: int = 200, kind: str = "text/xml", **headers: str) -> Callable[[Asked], web.Response]:
    """An answer that is always the same."""
    return lambda _: web.Response(status=status, text=body, content_type=kind, headers=headers)
