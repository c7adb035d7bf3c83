"""The table of routes has names of handlers, which are imported at their first use."""

import subprocess
import sys
from inspect import iscoroutinefunction, signature

import pytest

from arco_catalog.http.request_context import RequestContext
from arco_catalog.http.responses import NO_CONTENT, Response
from arco_catalog.http.route import Route
from arco_catalog.http.router import REMEMBERED_PATH_BYTES, Router
from arco_catalog.http.routes import HEALTH, ROUTES, import_handlers
from tools.support.environment import PROJECT

FIRST_REQUESTS = """
import asyncio, sys
from arco_catalog.http.app import create_app
from arco_catalog.protocol.catalog import Settings
from arco_catalog.operations.open import build_catalog
from arco_catalog.state.runtime import SystemRuntime
from storage_backends.memory import MemoryStore
from tools.support.asgi_client import Client

app = create_app({"wh": build_catalog(Settings("wh"), MemoryStore(), "memory:///", (), SystemRuntime())})

def loaded():
    others = {"create", "drop", "register", "rename", "undrop", "tasks"}
    scans = {"arco_catalog.operations.scans", "arco_catalog.iceberg.expressions"}
    names = {"arco_catalog.iceberg.updates", *scans, *(f"arco_catalog.operations.{name}" for name in others)}
    return sorted({*names, *sys.argv[1:]} & set(sys.modules))

async def main():
    client = Client(app)
    assert (await client.get("/v1/config")).status == 200
    print(*loaded())
    assert (await client.get("/v1/wh/namespaces/a/tables/t")).status == 404
    print(*loaded())
    commit = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]}
    assert (await client.post("/v1/wh/namespaces/a/tables/t", commit)).status == 404
    print(*loaded())

asyncio.run(main())
"""


@pytest.mark.parametrize("route", [*HEALTH, *ROUTES], ids=lambda route: route.endpoint)
def test_every_handler_is_there(route: Route) -> None:
    assert isinstance(route.handling, str)
    assert iscoroutinefunction(route.handler)
    assert [parameter.annotation for parameter in signature(route.handler).parameters.values()] == [RequestContext]


def test_a_cold_start_imports_only_the_handlers_of_its_requests() -> None:
    modules = {f"arco_catalog.http.{str(route.handling).rpartition('.')[0]}" for route in ROUTES}
    command = [sys.executable, "-c", FIRST_REQUESTS, *modules]
    done = subprocess.run(command, cwd=PROJECT, check=True, capture_output=True, text=True, timeout=60)
    config, load, commit = done.stdout.splitlines()
    assert config.split() == ["arco_catalog.http.config"]
    assert load.split() == ["arco_catalog.http.config", "arco_catalog.http.tables"]
    assert commit.split() == [
        "arco_catalog.http.config",
        "arco_catalog.http.table_commits",
        "arco_catalog.http.tables",
        "arco_catalog.iceberg.updates",
    ]


def test_a_process_that_imports_all_handlers_finds_a_broken_one(monkeypatch: pytest.MonkeyPatch) -> None:
    import_handlers()
    monkeypatch.setattr("arco_catalog.http.routes.ROUTES", (Route("GET", "/v1/x", "tables.nowhere"),))
    with pytest.raises(AttributeError, match="nowhere"):
        import_handlers()


async def _nothing(_: RequestContext) -> Response:
    return NO_CONTENT


@pytest.mark.parametrize("templates", [("/v1/{name}", "/v1/config"), ("/v1/config", "/v1/{name}")])
def test_a_literal_segment_wins_over_a_parameter_however_routes_are_ordered(templates: tuple[str, str]) -> None:
    router = Router(Route("GET", template, _nothing) for template in templates)
    match = router.match(b"/v1/config")
    assert match is not None
    assert match.routes["GET"].template == "/v1/config"


@pytest.mark.parametrize("longer", [0, 1])
def test_only_short_paths_are_remembered(longer: int) -> None:
    router = Router([Route("GET", "/v1/{name}", _nothing)])
    path = b"/v1/".ljust(REMEMBERED_PATH_BYTES + longer, b"x")
    first = router.match(path)
    assert first is not None
    assert router.match(path) == first
    assert (router.match(path) is first) == (longer == 0)
