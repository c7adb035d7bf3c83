from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from arco_catalog.http.delegation_service.app import create_delegation_app
from arco_catalog.http.delegation_service.shapes import BASE
from arco_catalog.http.principal import AUTHENTICATED_CALLER, Caller
from arco_catalog.iceberg.json import JsonObject
from tests.http.delegation_service.openapi import conforms
from tests.support.foreign_tables import ForeignTable, foreign_table
from tests.upkeep.delegation_service.conftest import Services
from tools.support.asgi_client import Answer, Client

TASKS = f"{BASE}/tasks"
SYNCHRONOUS = f"{TASKS}/execute/synchronous"


@dataclass
class Http:
    """A delegation service over HTTP, to several callers; each answer is held to the file that describes the API."""

    services: Services

    def client(self, caller: str = "them") -> Client:
        app = create_delegation_app(self.services.service)

        async def known(scope, receive, send):  # type: ignore[no-untyped-def]  # ASGI's
            await app({**scope, AUTHENTICATED_CALLER: Caller(caller)}, receive, send)

        return Client(known)

    async def execute(self, body: object, *, caller: str = "them", **headers: str) -> Answer:
        answer = await self.client(caller).post(SYNCHRONOUS, body, **headers)
        return conforms(answer, "POST", "/v1/tasks/execute/synchronous")

    async def submit(self, body: object, *, caller: str = "them", **headers: str) -> Answer:
        return conforms(await self.client(caller).post(TASKS, body, **headers), "POST", "/v1/tasks")

    async def show(self, task: str, *, caller: str = "them") -> Answer:
        return conforms(await self.client(caller).get(f"{TASKS}/{task}"), "GET", "/v1/tasks/{task}")

    async def list(self, *, caller: str = "them", query: str = "") -> Answer:
        return conforms(await self.client(caller).get(f"{TASKS}{query}"), "GET", "/v1/tasks")


@pytest.fixture
def services(tmp_path: Path) -> Services:
    return Services(tmp_path)


@pytest.fixture
def http(services: Services) -> Http:
    return Http(services)


@pytest.fixture
def table(tmp_path: Path) -> ForeignTable:
    return foreign_table(tmp_path)


def changed(body: JsonObject, path: Sequence[str], value: object) -> JsonObject:
    """A copy of a payload with another value at a path; None removes it."""
    if not path:
        raise ValueError("no path")
    copy = dict(body)
    if len(path) == 1:
        if value is None:
            copy.pop(path[0], None)
        else:
            copy[path[0]] = value  # type: ignore[assignment]  # whatever a test sends
        return copy
    inner = copy.get(path[0])
    assert isinstance(inner, Mapping)
    copy[path[0]] = changed(dict(inner), path[1:], value)
    return copy
