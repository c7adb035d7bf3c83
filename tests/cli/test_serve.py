"""`arco serve` as a process: how it starts, what it serves, how it ends."""

import asyncio
import json
import signal
import socket
import sys
from asyncio.subprocess import PIPE
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from tests.cli import in_process
from tests.cli.process import TIMEOUT_SECONDS, Server, arco, finished, serving, start
from tools.support.request_bodies import schema, set_property
from tools.support.s3_servers import S3Server

NS = "/v1/arco/namespaces"
HEALTHY = {"status": "ok", "warehouses": [{"name": "arco", "read_only_because": None}]}


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"file:{tmp_path}/store"


async def make_table(server: Server) -> None:
    assert (await server.call("POST", NS, {"namespace": ["db"]}))[0] == 200
    assert (await server.call("POST", f"{NS}/db/tables", {"name": "t", "schema": schema("x")}))[0] == 200


async def test_it_states_where_it_listens_and_ends_cleanly_on_ctrl_c(store: str) -> None:
    async with serving(store) as server:
        assert server.printed == f"Arco serves the warehouse 'arco' of {store} at {server.uri} (Ctrl-C stops it)\n"
        assert server.uri.startswith("http://127.0.0.1:")
        assert await server.call("GET", "/health") == (200, HEALTHY)
        assert (await server.call("GET", "/v1/config?warehouse=arco"))[0] == 200

        ended = await server.stop()

    assert (ended.code, ended.err) == (0, "")
    assert f'"uri": "{server.uri}"' in ended.out


async def test_it_ends_cleanly_when_terminated(store: str) -> None:
    async with serving(store, "--quiet") as server:
        ended = await server.stop(signal.SIGTERM)

    assert (ended.code, ended.out, ended.err) == (0, "", "")


async def test_a_start_imports_no_cloud_sdk_and_no_data_library() -> None:
    heavy = ["aiobotocore", "botocore", "pyarrow", "pydantic", "pyiceberg", "pyspark"]
    look = f"import sys, arco_catalog.cli.serve; print([name for name in {heavy} if name in sys.modules])"

    process = await asyncio.create_subprocess_exec(sys.executable, "-c", look, stdout=PIPE, stderr=PIPE)

    assert (await finished(process)).out == "[]\n"


async def test_a_request_under_way_is_answered_before_the_end(store: str) -> None:
    body = json.dumps({"namespace": ["late"]}).encode()
    async with serving(store, "--workers", "1") as server:  # which answers /health, too
        port = int(server.uri.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(
            b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
            % (NS.encode(), len(body))
        )
        writer.write(body[:5])
        await writer.drain()
        assert (await server.call("GET", "/health"))[0] == 200  # by now it has read what came before
        server.process.send_signal(signal.SIGINT)
        async with asyncio.timeout(10):
            while await listens(port):
                continue
        writer.write(body[5:])
        async with asyncio.timeout(10):
            answer = await reader.read()
        writer.close()
        await writer.wait_closed()
        ended = await finished(server.process)

    assert answer.startswith(b"HTTP/1.1 200 OK")
    assert (ended.code, ended.err) == (0, "")
    async with serving(store) as again:
        assert (await again.call("HEAD", f"{NS}/late"))[0] == 204


async def listens(port: int) -> bool:
    """Whether anybody takes connections there."""
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True


async def test_a_port_in_use_is_one_clear_line(store: str) -> None:
    async with serving(store) as server:
        port = server.uri.rpartition(":")[2]
        ended = await arco("serve", "--store", store, "--port", port)

    assert (ended.code, ended.out) == (1, "")
    assert ended.err == f"arco: cannot listen on 127.0.0.1 port {port}: Address already in use\n"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (
            ["--store", "ftp://x"],
            "arco: the server cannot open the store ftp://x: unsupported store URL 'ftp://x': expected "
            "file:/absolute/path",
        ),
        (["--store", "file:relative"], "absolute path"),
        (
            ["--store", "memory:", "--allowed-location", "nonsense"],
            "--allowed-location or ARCO_ALLOWED_LOCATIONS, nonsense: Not a valid location: 'nonsense'",
        ),
    ],
)
async def test_what_cannot_be_served_is_one_clear_line(arguments: list[str], why: str) -> None:
    ended = await in_process.arco("serve", "--port", "0", "--workers", "1", *arguments)

    assert (ended.code, ended.out) == (1, "")
    assert why in ended.err
    assert ended.err.count("\n") == 1


async def test_a_host_that_there_is_not_is_one_clear_line() -> None:
    ended = await arco("serve", "--port", "0", "--store", "memory:", "--host", "no.such.host.invalid")

    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("arco: cannot listen on no.such.host.invalid")
    assert ended.err.count("\n") == 1


async def test_options_come_from_the_environment_too() -> None:
    async with serving("memory:", ARCO_WAREHOUSE="lake", ARCO_QUIET="true") as server:
        assert (await server.call("GET", "/v1/config?warehouse=lake"))[0] == 200
        assert (await server.call("GET", "/v1/config?warehouse=arco"))[0] == 404
        assert (await server.stop()).out == ""


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("file", marks=pytest.mark.slow),  # test_workers.py has processes over a folder
        "s3",
    ],
)
async def test_servers_over_one_store_see_each_others_changes_at_once(
    kind: str, request: pytest.FixtureRequest
) -> None:
    """For S3 the environment leads to a server of its own."""
    shared = request.getfixturevalue("store") if kind == "file" else f"s3://{request.getfixturevalue('s3_bucket')}/c"
    async with serving(shared) as one, serving(shared) as two, serving(shared) as three:
        await make_table(one)
        servers = [one, two, three]
        for number in range(9):
            writer, reader = servers[number % 3], servers[(number + 1) % 3]
            status, _ = await writer.call("POST", f"{NS}/db/tables/t", set_property("n", str(number)))
            assert status == 200
            _, loaded = await reader.call("GET", f"{NS}/db/tables/t")
            assert loaded["metadata"]["properties"]["n"] == str(number)
        assert (await two.call("DELETE", f"{NS}/db/tables/t"))[0] == 204
        assert (await three.call("GET", f"{NS}/db/tables/t"))[0] == 404


async def test_what_was_committed_survives_a_kill(store: str) -> None:
    async with serving(store) as server:
        await make_table(server)
        _, before = await server.call("POST", f"{NS}/db/tables/t", set_property("a", "b"))
        server.process.send_signal(signal.SIGKILL)
        await finished(server.process)
    async with serving(store) as again:
        _, after = await again.call("GET", f"{NS}/db/tables/t")

    assert after["metadata"] == before["metadata"]


async def test_allowed_locations_hold(store: str, tmp_path: Path) -> None:
    inside, outside = f"file://{tmp_path}/inside/t", f"file://{tmp_path}/outside/t"
    async with serving(store, "--allowed-location", f"file:{tmp_path}/inside") as server:
        await make_table(server)
        path, body = f"{NS}/db/tables", {"name": "u", "schema": schema("x")}
        assert (await server.call("POST", path, {**body, "location": outside}))[0] == 400
        status, made = await server.call("POST", path, {**body, "location": inside})

    assert (status, made["metadata"]["location"]) == (200, inside)


async def test_debug_shows_each_request_in_a_line(store: str) -> None:
    async with serving(store, "--log-level", "debug") as server:
        await server.call("GET", f"{NS}/missing?token=hunter2")
        ended = await server.stop()

    [line] = [line for line in ended.err.splitlines() if f"GET {NS}/missing 404" in line]
    assert "arco_catalog.http" in line
    assert "hunter2" not in ended.err


async def test_a_store_that_ignores_conditions_is_served_read_only(careless_s3: S3Server) -> None:
    careless_s3.make_bucket("careless-served")
    async with serving("s3://careless-served/catalog", **careless_s3.environment) as server:
        status, refused = await server.call("POST", NS, {"namespace": ["db"]})
        assert (await server.call("GET", NS))[0] == 200
        ended = await server.stop()

    assert (status, refused["error"]["type"]) == (406, "UnsupportedOperationException")
    assert "READ-ONLY" in ended.err
    assert ended.code == 0


async def test_pyiceberg_works_with_the_settings_as_printed(store: str) -> None:
    async with serving(store) as server:
        assert server.process.stdout is not None
        printed = (await server.process.stdout.readuntil(b"# Trino")).decode()
        pasted = printed.partition("# PyIceberg\n")[2].removesuffix("# Trino")

        def work() -> list[int]:
            names: dict[str, Any] = {}
            exec(pasted, names)
            catalog = names["catalog"]
            catalog.create_namespace("db")
            catalog.create_namespace(("db", "in n.er"))
            table = catalog.create_table(("db", "in n.er", "a/b"), schema=pa.schema([("x", pa.int64())]))
            table.append(pa.table({"x": [1, 2]}))
            table.append(pa.table({"x": [3]}))
            assert catalog.list_tables(("db", "in n.er")) == [("db", "in n.er", "a/b")]
            return sorted(catalog.load_table(("db", "in n.er", "a/b")).scan().to_arrow()["x"].to_pylist())

        assert await asyncio.to_thread(work) == [1, 2, 3]
        assert (await server.stop()).code == 0  # every receipt is written then

    listed = await in_process.arco("receipts", 'db."in n.er".a/b', "--store", store)
    assert listed.code == 0
    lines = listed.out.splitlines()
    assert [line.split("  ")[0] for line in lines[:1]] == ["TIME (UTC)"]
    assert [line.count("add-snapshot") for line in lines[1:]] == [1, 1, 0]
    assert all("anonymous (PyIceberg/" in line and " committed " in line for line in lines[1:])
    whole = await in_process.arco("receipts", 'db."in n.er".a/b', "--json", ARCO_STORE=store)
    receipts = json.loads(whole.out)
    assert [receipt["state"] for receipt in receipts] == ["committed"] * 3
    assert receipts[0]["previous_metadata_location"] == receipts[1]["metadata_location"]


async def test_receipts_of_no_table_are_one_clear_line(store: str) -> None:
    async with serving(store) as server:
        await server.call("POST", NS, {"namespace": ["db"]})
    for name, why in (("db.t", "Table does not exist: db.t"), ("t", "expected NAMESPACE.TABLE, got 't'")):
        ended = await in_process.arco("receipts", name, "--store", store)
        assert (ended.code, ended.out) == (1, "")
        assert ended.err.startswith(f"arco: {why}")
        assert ended.err.count("\n") == 1


@pytest.mark.parametrize(("host", "warned"), [("127.0.0.1", False), ("0.0.0.0", True)])
async def test_an_address_that_other_machines_reach_is_warned_of(store: str, host: str, warned: bool) -> None:
    async with serving(store, "--host", host) as server:
        ended = await server.stop()

    assert ("clients need not authenticate" in ended.err) is warned
    assert ("No login: only this machine can connect" in ended.out) is not warned
    assert ("http://127.0.0.1:" in server.printed) is not warned


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize(("option", "served"), [((), True), (("--no-console",), False)])
async def test_the_start_names_the_address_of_the_console_where_it_is_served(
    store: str, option: Sequence[str], served: bool, workers: str
) -> None:
    async with serving(store, "--workers", workers, *option) as server:
        ended = await server.stop()

    assert ("The console, for browsers, is at http://127.0.0.1:" in ended.out) is served


async def test_a_store_that_keeps_one_waiting_is_reported_to() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        process = await start("history", "--store", "s3://bucket/x", **S3Server(endpoint).environment)
        assert process.stderr is not None
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                first = (await process.stderr.readline()).decode()
        finally:
            process.kill()
            await process.communicate()

    assert first == "arco: waiting for the store s3://bucket/x to answer ...\n"
