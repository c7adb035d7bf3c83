"""`arco export`: the plan, and what it names as left out; and a run against a second server of ours."""

import asyncio
import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from aiohttp import web
from pyiceberg.catalog import load_catalog

from tests.cli.in_process import arco
from tests.cli.process import Server, serving
from tests.support.stub_server import stub_server
from tools.support.request_bodies import view_request

POLARIS = "/polaris/v1/arco/namespaces/sales"


async def fill(server: Server) -> None:
    """A namespace with two tables, a view, a generic table, a policy and tags."""

    def tables() -> None:
        with closing(load_catalog("a", type="rest", uri=server.uri, warehouse="arco")) as catalog:
            catalog.create_namespace("sales", {"comment": "c"})
            catalog.create_namespace("web")
            for name in ("orders", "visits"):
                rows = pa.table({"x": pa.array([1, 2], pa.int64())})
                catalog.create_table(f"sales.{name}", schema=rows.schema).append(rows)

    await asyncio.to_thread(tables)
    for path, body in (
        ("/v1/arco/namespaces/sales/views", view_request("recent")),
        (f"{POLARIS}/generic-tables", {"name": "raw", "format": "delta"}),
        (f"{POLARIS}/policies", {"name": "p", "type": "ours", "content": "{}"}),
        ("/v1/arco/namespaces/sales/tables/orders/governance", {"arco.owner": "finance"}),
    ):
        status, answer = await server.call("POST", path, body)
        assert status == 200, answer


def lines(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines()]


async def test_a_plan_has_what_can_be_registered_and_names_what_can_not(tmp_path: Path) -> None:
    store = f"file:{tmp_path}/lake"
    async with serving(store, "--quiet") as server:
        await fill(server)
        loaded = (await server.call("GET", "/v1/arco/namespaces/sales/tables/orders"))[1]
    plan = lines((await arco("export", "--store", store)).out)
    assert {"type": "namespace", "namespace": ["sales"], "properties": {"comment": "c"}} in plan
    location = loaded["metadata-location"]
    assert {"type": "table", "namespace": ["sales"], "name": "orders", "metadata-location": location} in plan
    assert [(line["type"], line.get("name")) for line in plan if line["type"] in ("table", "view")] == [
        ("table", "orders"),
        ("table", "visits"),
        ("view", "recent"),
    ]
    assert {(line["kind"], line["name"]) for line in plan if line["type"] == "left-out"} == {
        ("generic-table", "raw"),
        ("policy", "p"),
        ("governance", "orders"),
    }
    seen: set[tuple[str, ...]] = set()
    for line in plan:  # a namespace before what is in it
        if line["type"] == "namespace":
            seen.add(tuple(line["namespace"]))
        assert tuple(line["namespace"]) in seen
    only = lines((await arco("export", "--only", "web", "--store", store)).out)
    assert only == [{"type": "namespace", "namespace": ["web"], "properties": {}}]


async def test_a_second_server_gets_tables_and_views_once(tmp_path: Path) -> None:
    store = f"file:{tmp_path}/lake"
    async with serving(store, "--quiet") as server:
        await fill(server)
    allowed = ("--allowed-location", f"file://{tmp_path}/lake")
    async with serving(f"file:{tmp_path}/other", "--quiet", *allowed) as other:
        to = ("export", "--store", store, "--to", other.uri, "--to-warehouse", "arco")
        planned = await arco(*to)
        assert "Nothing was written" in planned.out
        assert (await other.call("GET", "/v1/arco/namespaces"))[1]["namespaces"] == []
        made = json.loads((await arco(*to, "--apply", "--json")).out)
        assert (made["counts"]["made"], made["counts"]["no counterpart"]) == (5, 3)
        views = (await other.call("GET", "/v1/arco/namespaces/sales/views"))[1]["identifiers"]
        assert [view["name"] for view in views] == ["recent"]
        again = json.loads((await arco(*to, "--apply", "--json")).out)
        assert (again["counts"]["made"], again["counts"]["equal"]) == (0, 5)


async def test_properties_of_a_namespace_that_differ_there_are_named_and_replaced(tmp_path: Path) -> None:
    store = f"file:{tmp_path}/lake"
    async with serving(store, "--quiet") as server:
        await fill(server)
    async with serving(f"file:{tmp_path}/other", "--quiet", "--allowed-location", f"file://{tmp_path}/lake") as other:
        made = {"namespace": ["sales"], "properties": {"comment": "old", "their": "own"}}
        assert (await other.call("POST", "/v1/arco/namespaces", made))[0] == 200
        to = ("export", "--store", store, "--to", other.uri, "--to-warehouse", "arco", "--apply", "--json")

        async def namespace(*options: str) -> Any:
            report = json.loads((await arco(*to, *options)).out)
            [line] = (each for each in report["objects"] if each["kind"] == "namespace" and each["name"] == "sales")
            return line["result"], line["reason"]

        assert await namespace() == ("different", "there differ, until --replace sets them: property comment")
        assert await namespace("--replace") == ("replaced", "property comment")
        assert await namespace() == ("equal", None)
        there = (await other.call("GET", "/v1/arco/namespaces/sales"))[1]["properties"]
        assert (there["comment"], there["their"]) == ("c", "own")


async def test_a_view_that_is_another_state_there_is_to_be_dropped_there(tmp_path: Path) -> None:
    store = f"file:{tmp_path}/lake"
    update = {"action": "set-properties", "updates": {"comment": "new"}}
    allowed = ("--allowed-location", f"file://{tmp_path}/lake")
    async with serving(store, "--quiet") as server, serving(f"file:{tmp_path}/other", "--quiet", *allowed) as other:
        await fill(server)
        to = ("export", "--store", store, "--to", other.uri, "--to-warehouse", "arco", "--apply", "--replace", "--json")
        await arco(*to)
        status, _ = await server.call("POST", "/v1/arco/namespaces/sales/views/recent", {"updates": [update]})
        assert status == 200
        report = json.loads((await arco(*to)).out)
        [line] = (each for each in report["objects"] if each["kind"] == "view")
        assert line["result"] == "different"
        assert line["reason"].startswith("the same view, which Iceberg's API can't replace: drop it there, then export")
        await other.call("DELETE", "/v1/arco/namespaces/sales/views/recent")
        assert json.loads((await arco(*to)).out)["counts"]["made"] == 1


async def test_a_failure_at_the_other_server_is_a_line_and_the_rest_goes_on(tmp_path: Path) -> None:
    store = f"file:{tmp_path}/lake"
    async with serving(store, "--quiet") as server:
        await fill(server)
    sent: list[str] = []

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/v1/config":
            return web.json_response({"defaults": {}, "overrides": {}})
        if request.method == "GET":
            return web.json_response({"error": {"type": "NoSuchTableException", "code": 404}}, status=404)
        sent.append(request.path)
        if "orders" in await request.text():
            return web.json_response({"error": {"type": "BadRequestException", "message": "not this one"}}, status=400)
        return web.json_response({"metadata": {"a": 1}, "namespace": ["x"]})

    async with stub_server(handle) as other:
        ended = await arco("export", "--store", store, "--to", other.uri, "--apply", "--json")
    report = json.loads(ended.out)
    assert ended.code == 1
    failed = [each for each in report["objects"] if each["result"] == "failed"]
    assert [(each["name"], each["reason"]) for each in failed] == [("sales.orders", "not this one")]
    assert sent.count("/v1/namespaces/sales/register") == 2
    # It lists no endpoint that registers views.
    assert ("view", "no counterpart") in [(each["kind"], each["result"]) for each in report["objects"]]


@pytest.mark.parametrize("option", ["--apply", "--to-warehouse=a", "--token-file=a", "--json"])
async def test_options_of_a_run_without_a_server_are_wrong_usage(tmp_path: Path, option: str) -> None:
    ended = await arco("export", option, "--store", f"file:{tmp_path}")

    assert (ended.code, ended.out) == (2, "")
    assert "the plan without --to is JSON already, an object on each line" in " ".join(ended.err.split())
