"""A stand-in for Open Policy Agent: it reads what the catalog sends it, and answers by functions of a test."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from arco_catalog.authentication.opa import PolicyAgent
from arco_catalog.iceberg.json import dumps, loads
from storage_backends import StoreUnavailable
from storage_backends.wire.http1 import Response

URL, BATCH_URL = "http://127.0.0.1/v1/data/arco/allow", "http://127.0.0.1/v1/data/arco/batch"

Allows = Callable[[str, str, str, str], bool]
"""Whether a principal may do an action on a securable, of a type and with a dotted name."""


def everything(principal: str, action: str, kind: str, name: str) -> bool:
    return True


@dataclass
class PolicyStub:
    """Answers questions by `allows`; while it is `silent`, it cannot be reached, while it `hangs`, it does not answer,
    and while it has an `answer`, it answers by that. `calls` are the inputs that it was sent, by URL."""

    allows: Allows = everything
    allows_id: Callable[[str], bool] = bool
    """Whether a principal with an id may do anything at all."""
    silent: bool = False
    hangs: bool = False
    answer: Response | None = None
    calls: list[tuple[str, Any]] = field(default_factory=list)

    async def send(self, url: str, body: bytes) -> Response:
        """Answers one call, as `arco_catalog.authentication.opa.Send`."""
        document = loads(body)
        assert isinstance(document, dict)
        given: Any = document["input"]
        self.calls.append((url, given))
        await asyncio.sleep(0)
        if self.hangs:
            await asyncio.Event().wait()
        if self.silent:
            raise StoreUnavailable("nothing answers")
        if self.answer is not None:
            return self.answer
        result: Any
        if "requests" in given:
            result = [place for place, each in enumerate(given["requests"]) if self._allowed(given, each)]
        else:
            result = self._allowed(given, given)
        return Response(200, {}, dumps({"result": result}))

    def _allowed(self, given: Any, question: Any) -> bool:
        [target] = question["resource"]["targets"]
        levels = [each["name"] for each in target["parents"] if each["type"] == "NAMESPACE"]
        name = ".".join([*levels, target["name"]]) if target["type"] not in ("CATALOG", "ROOT") else target["name"]
        return self.allows_id(given["actor"]["id"]) and self.allows(
            given["actor"]["principal"], question["action"], target["type"], name
        )

    def agent(self, now_ms: Callable[[], int], *, cache_ms: int = 0, batch: bool = True) -> PolicyAgent:
        """A policy that queries this stub."""
        return PolicyAgent(URL, BATCH_URL if batch else None, self.send, now_ms, cache_ms)

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answers one call by HTTP, as `tests.support.stub_server.Handle`."""
        answer = await self.send(str(request.url), await request.read())
        return web.Response(status=answer.status, body=answer.body)

    @property
    def actions(self) -> list[str]:
        """What was queried, in order: action and name."""
        return [
            f"{each['action']} {each['resource']['targets'][0]['name']}"
            for _, given in self.calls
            for each in given.get("requests", [given])
        ]
