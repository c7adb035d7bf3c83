"""The zip behind each endpoint, on S3: whatever a client of `arco serve` can do, it can do here."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import cast
from urllib.parse import quote

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.types import LongType

from arco_catalog.http.lambda_adapter import Endpoint
from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps
from arco_catalog.state.runtime import SystemRuntime
from tests.lambda_.conftest import WAREHOUSE, Caller
from tests.support.dropping_proxy import DroppingProxy, Fate, Request
from tools.demo.engines import pyiceberg_catalog, pyiceberg_properties
from tools.gateway.running import API, open_gateway
from tools.gateway.sandbox import Function
from tools.support.asgi_client import Answer
from tools.support.request_bodies import schema, set_property, uuid7

ENDPOINTS = list(Endpoint)
KEEPING = [Endpoint.REST_API, Endpoint.FUNCTION_URL]
PLAIN_NAMES = ["two words", "ünïcödé 🧊", "a=b&c", "v1.2.3", "q\"u'o`te", "...", "a:b;c", "back\\slash"]
LOST_NAMES = ["a/b", "what?", "#1", "100%", "%2F", "a+b"]
NAMESPACES = f"/v1/{WAREHOUSE}/namespaces"

Behind = Callable[[Endpoint], Caller]


def encoded(*levels: str) -> str:
    return "%1F".join(quote(level, safe="") for level in levels)


def make(caller: Caller, *namespace: str) -> str:
    """Makes a namespace and those around it, where they are missing. Returns its path."""
    for depth in range(1, len(namespace) + 1):
        assert caller.post(NAMESPACES, {"namespace": namespace[:depth]}).status in (200, 409)
    return f"{NAMESPACES}/{encoded(*namespace)}"


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_the_configuration_is_served_and_what_is_for_servers_only_is_not(behind: Behind, endpoint: Endpoint) -> None:
    caller = behind(endpoint)
    overrides = cast(JsonObject, caller.get(f"/v1/config?warehouse={WAREHOUSE}").json["overrides"])
    assert overrides["prefix"] == WAREHOUSE
    assert [caller.get(path).status for path in ("/health", "/v1/nowhere")] == [404, 404]


def work_with(caller: Caller, parent: str, name: str) -> None:
    """Every kind of request that has a name in its path or its query."""
    namespace = make(caller, parent, name)
    listed = caller.get(f"{NAMESPACES}?parent={encoded(parent)}")
    assert [parent, name] in cast(list[object], listed.json["namespaces"])
    made = caller.post(f"{namespace}/tables", {"name": name, "schema": schema("x")})
    assert made.status == 200, made.body
    table = f"{namespace}/tables/{encoded(name)}"
    assert caller.get(table).json["metadata-location"] == made.json["metadata-location"]
    assert caller.send("HEAD", table).status == 204
    assert caller.post(table, set_property("k", name)).status == 200
    identifiers = caller.get(f"{namespace}/tables").json["identifiers"]
    assert identifiers == [{"namespace": [parent, name], "name": name}]
    assert caller.send("DELETE", table).status == 204
    assert caller.send("HEAD", table).status == 404
    assert caller.send("DELETE", namespace).status == 204


@pytest.mark.parametrize("name", PLAIN_NAMES)
@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_a_name_of_two_levels_and_odd_letters_works(behind: Behind, endpoint: Endpoint, name: str) -> None:
    work_with(behind(endpoint), "odd", name)


@pytest.mark.parametrize("name", LOST_NAMES)
@pytest.mark.parametrize("endpoint", KEEPING)
def test_where_paths_keep_their_encoding_every_name_works(behind: Behind, endpoint: Endpoint, name: str) -> None:
    work_with(behind(endpoint), "odd", name)


@pytest.mark.parametrize("name", LOST_NAMES)
def test_an_http_api_s_catalog_takes_no_name_that_it_could_not_be_asked_for(behind: Behind, name: str) -> None:
    caller = behind(Endpoint.HTTP_API)
    namespace = make(caller, "kept")
    for answer in (
        caller.post(NAMESPACES, {"namespace": ["kept", name]}),
        caller.post(f"{namespace}/tables", {"name": name, "schema": schema("x")}),
    ):
        assert answer.status == 400
        assert "REST API or a function URL" in answer.message
    assert caller.get(f"{namespace}/tables").json["identifiers"] == []


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_generic_tables_and_policies_work_below_polaris(behind: Behind, endpoint: Endpoint) -> None:
    caller, name, typed = behind(endpoint), "two words", ("Content-Type", "application/json")
    make(caller, "native", name)
    below = f"/polaris/v1/{WAREHOUSE}/namespaces/{encoded('native', name)}"
    table, mappings = f"{below}/generic-tables/{encoded(name)}", f"{below}/policies/ours/mappings"
    target = {"target": {"type": "table-like", "path": ["native", name, name]}}

    made = caller.post(f"{below}/generic-tables", {"name": name, "format": "csv"})
    assert made.status == 200, made.body
    assert caller.get(table).json == made.json
    assert caller.post(f"{below}/policies", {"name": "ours", "type": "retention", "content": "7 days"}).status == 200
    attached = caller.send("PUT", mappings, dumps(cast(JsonValue, target)), (typed,))
    assert (attached.status, attached.body) == (204, b"")
    query = f"namespace={encoded('native', name)}&target-name={encoded(name)}"
    applicable = caller.get(f"/polaris/v1/{WAREHOUSE}/applicable-policies?{query}").json["applicable-policies"]
    assert [each["name"] for each in cast(list[JsonObject], applicable)] == ["ours"]
    assert caller.post(mappings, target).status == 204
    assert caller.send("DELETE", table).status == 204
    assert caller.get(table).status == 404


def test_a_large_answer_is_compressed_for_who_asks(behind: Behind) -> None:
    caller = behind(Endpoint.HTTP_API)
    namespace = make(caller, "large")
    table = {"name": "t", "schema": schema("x"), "properties": {"long": "x" * 100_000}}
    assert caller.post(f"{namespace}/tables", table).status == 200
    plain = caller.get(f"{namespace}/tables/t")
    packed = caller.get(f"{namespace}/tables/t", ("Accept-Encoding", "gzip"))
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert len(packed.body) < len(plain.body) / 10


@pytest.mark.usefixtures("s3_endpoint")
def test_pyiceberg_s_whole_session(behind: Behind) -> None:
    catalog = pyiceberg_catalog(behind(Endpoint.HTTP_API).uri, WAREHOUSE, pyiceberg_properties("s3:"))
    rows = pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"]})
    catalog.create_namespace("shop")
    catalog.create_namespace(("shop", "inner"))
    table = catalog.create_table(("shop", "inner", "orders"), schema=rows.schema)
    table.append(rows)
    table.delete("id = 2")
    with table.update_schema() as evolution:
        evolution.add_column("amount", LongType())
    table.append(pa.table({"id": [4], "name": ["d"], "amount": [40]}))
    catalog.rename_table(("shop", "inner", "orders"), ("shop", "sales"))
    read = catalog.load_table("shop.sales").scan().to_arrow().sort_by("id").to_pydict()
    assert read == {"id": [1, 3, 4], "name": ["a", "c", "d"], "amount": [None, None, 40]}
    assert catalog.list_tables("shop") == [("shop", "sales")]
    with pytest.raises(NoSuchTableError):
        catalog.load_table(("shop", "inner", "orders"))
    catalog.drop_table("shop.sales")
    catalog.drop_namespace(("shop", "inner"))
    catalog.drop_namespace("shop")
    assert ("shop",) not in catalog.list_namespaces()


@pytest.mark.slow  # the compatibility kit, whose client is Iceberg's for Java, runs behind this gateway, too
@pytest.mark.needs("java", "mvn")
@pytest.mark.usefixtures("s3_endpoint")
async def test_a_spark_session(behind: Behind, tmp_path: Path) -> None:
    uri = await asyncio.to_thread(lambda: behind(Endpoint.HTTP_API).uri)
    job = [sys.executable, "-m", "tests.lambda_.spark_session", uri, WAREHOUSE, str(tmp_path)]
    process = await asyncio.create_subprocess_exec(*job, stdout=asyncio.subprocess.PIPE)
    async with asyncio.timeout(300):
        said, _ = await process.communicate()
    assert process.returncode == 0
    assert json.loads(said) == {"orders": [[1, 10, None], [2, 20, None], [3, 30, "new"]], "ids": [[3]]}


async def test_a_process_that_dies_in_a_commit_leaves_one_commit_to_be_found_by_the_retry(
    folder: Path, deployed: Callable[[], dict[str, str]], tmp_path: Path
) -> None:
    """The pointer's compare-and-swap lands, the process dies before it learns so, and the same key comes again."""
    swaps: list[str] = []
    pids: list[int] = []

    def judge(request: Request) -> Fate:
        if not pids or request.method != "PUT" or "/iceberg_pointers/" not in request.target:
            return Fate.DELIVERED
        swaps.append(request.target)
        if len(swaps) == 2:  # it asks again, so the first has landed
            os.kill(pids.pop(), signal.SIGKILL)
        return Fate.DROPPED

    environment = deployed()
    proxy = DroppingProxy(environment["AWS_ENDPOINT_URL_S3"], judge)
    async with proxy.listening() as store:
        environment |= {"AWS_ENDPOINT_URL_S3": store, "ARCO_ENDPOINT": Endpoint.HTTP_API}
        function = Function(folder, API, environment, tmp_path / "log")
        async with open_gateway(function, Endpoint.HTTP_API) as (uri, pool):
            caller = Caller(uri)
            namespace = await asyncio.to_thread(make, caller, "db")
            await asyncio.to_thread(caller.post, f"{namespace}/tables", {"name": "t", "schema": schema("x")})
            runtime = SystemRuntime()
            key = ("Idempotency-Key", uuid7(runtime.now_ms(), runtime))

            async def commit() -> Answer:
                change = set_property("k", "v")
                return await asyncio.to_thread(caller.post, f"{namespace}/tables/t", change, key)

            pids += pool.pids
            first = await commit()
            assert (first.status, first.json) == (500, {"message": "Internal Server Error"})
            assert pool.pids == []
            second = await commit()
            assert second.status == 200, second.body
            metadata = cast(JsonObject, second.json["metadata"])
            assert cast(JsonObject, metadata["properties"])["k"] == "v"
            assert len(cast(list[object], metadata["metadata-log"])) == 1
            loaded = await asyncio.to_thread(caller.get, f"{namespace}/tables/t")
            assert loaded.json["metadata-location"] == second.json["metadata-location"]
