"""What the module runs in its container, run here: over a store that speaks Google's protocol."""

import asyncio
import json
import re
import signal
import socket
import time
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.cli.process import TIMEOUT_SECONDS, Server, arco, finished, start
from tests.infra.google.conftest import Values
from tests.support.gcs_protocol_fake import gcs_protocol_fake
from tools.support.gcs_servers import GcsServer
from tools.support.ports import free_port


@pytest.fixture
def gcs(values: Values) -> Iterator[GcsServer]:
    with gcs_protocol_fake() as server:
        server.make_bucket(values["fresh"]["bucket"])
        yield server


@pytest.fixture
def environment(values: Values, gcs: GcsServer) -> Mapping[str, str]:
    """The container's and Cloud Run's own, but for an address of this machine alone and a port that is free."""
    port = str(free_port())
    return {
        **values["fresh"]["environment"],
        **gcs.environment,
        "ARCO_HOST": "127.0.0.1",
        "ARCO_PORT": port,
        "PORT": port,
    }


@asynccontextmanager
async def served(values: Values, environment: Mapping[str, str]) -> AsyncIterator[Server]:
    process: Process = await start(*values["fresh"]["serve"], **environment)
    assert process.stdout is not None
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            line = (await process.stdout.readline()).decode()
            if not line:
                raise AssertionError((await finished(process)).err)
        yield Server(process, f"http://127.0.0.1:{environment['PORT']}", line)
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def test_it_serves_at_the_port_that_cloud_run_calls(values: Values, environment: Mapping[str, str]) -> None:
    async with served(values, environment) as server:
        assert (await server.call("GET", "/health"))[0] == 200
        assert (await server.call("GET", "/v1/config?warehouse=main"))[0] == 200
        ended = await server.stop(signal.SIGTERM)

    assert server.printed.startswith("Arco serves the warehouse 'main' of gs://my-project-lake at ")
    assert ended.code == 0


def test_the_port_is_said_to_both_and_all_addresses_listen(values: Values) -> None:
    settings = values["fresh"]["environment"]

    assert (settings["ARCO_PORT"], settings["ARCO_HOST"]) == (str(values["fresh"]["port"]), "0.0.0.0")
    assert values["folder"]["environment"]["ARCO_HOST"] == "0.0.0.0"  # environment does not replace the module's own
    assert values["folder"]["environment"]["ARCO_MAX_BODY"] == "16MB"
    assert values["folder"]["environment"]["ARCO_WORKERS"] == "2"


def test_keys_of_idempotency_are_as_the_module_says(values: Values) -> None:
    knobs = ("ENABLED", "LIFETIME", "CLEANUP_ENABLED")
    said = {name: [values[name]["environment"][f"ARCO_IDEMPOTENCY_{knob}"] for knob in knobs] for name in values}

    assert said["fresh"] == ["true", "PT30M", "true"]
    assert said["folder"] == ["false", "PT1H30M", "false"]


async def test_its_log_lines_have_what_metrics_are_made_of(values: Values, environment: Mapping[str, str]) -> None:
    async with served(values, environment) as server:
        assert (await server.call("POST", "/v1/main/namespaces", {"namespace": ["sales"]}))[0] == 200
        ended = await server.stop(signal.SIGTERM)

    lines: list[dict[str, Any]] = [json.loads(line) for line in ended.err.splitlines() if line.startswith("{")]
    [line] = [line for line in lines if line.get("Operation") == "createNamespace"]
    assert line["Requests"] == 1
    assert {
        field for field in values["fresh"]["request_metric"].values() if not isinstance(line[field], int | float)
    } == set()


async def test_a_request_under_way_is_answered_after_cloud_run_says_stop(
    values: Values, environment: Mapping[str, str]
) -> None:
    body = json.dumps({"namespace": ["late"]}).encode()
    async with served(values, environment) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(environment["PORT"]))
        writer.write(
            b"POST /v1/main/namespaces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n" % len(body)
        )
        writer.write(body[:5])
        await writer.drain()
        assert (await server.call("GET", "/health"))[0] == 200  # by now it has read what came before
        server.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(TIMEOUT_SECONDS):
            await asyncio.to_thread(_refused, int(environment["PORT"]))
            writer.write(body[5:])
            answer = await reader.readline()
        writer.close()
        ended = await finished(server.process)

    assert (answer.split()[1], ended.code) == (b"200", 0)


def _refused(port: int) -> None:
    """Returns when the server takes no new connections, which is how it shows that it has read the signal."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
        except OSError:
            return
        time.sleep(0.02)
    raise AssertionError("it goes on listening")


async def test_the_job_walks_and_says_so_in_the_line_that_is_counted(
    values: Values, environment: Mapping[str, str]
) -> None:
    command, counted = values["fresh"]["jobs"]["reconcile"]["args"], re.compile(values["fresh"]["walk_completed"])
    before = await arco(*command, **environment)
    async with served(values, environment) as server:
        await server.call("POST", "/v1/main/namespaces", {"namespace": ["sales"]})
        await server.stop(signal.SIGTERM)
    after = await arco(*command, **environment)

    assert (before.code == 0, "arco init" in before.err) == (False, True)
    assert [line for line in before.out.splitlines() if counted.search(line)] == []
    assert (after.code, json.loads(after.out)["stopped"]) == (0, False)
    assert len([line for line in after.out.splitlines() if counted.search(line)]) == 1
    assert not counted.search(after.out.replace("false", "true"))


async def test_the_job_of_tasks_tells_of_each_look_in_the_line_that_is_counted(
    values: Values, environment: Mapping[str, str]
) -> None:
    async with served(values, environment) as server:
        await server.call("POST", "/v1/main/namespaces", {"namespace": ["sales"]})
        await server.stop(signal.SIGTERM)
    done = await arco(*values["fresh"]["jobs"]["tasks"]["args"], **environment)

    [line] = [json.loads(text) for text in done.out.splitlines()]
    assert (done.code, line["Operation"], line["Warehouse"]) == (0, "tasks", "main")
    counted = {re.findall(r"jsonPayload\.(\w+)", said)[0] for said in values["fresh"]["task_metric"].values()}
    assert {field for field in counted if not isinstance(line[field], int)} == set()


async def test_the_job_of_collection_says_in_one_line_that_it_reached_its_end_and_how_many_objects_the_state_has(
    values: Values, environment: Mapping[str, str]
) -> None:
    counted, listed = (re.compile(values["fresh"][f"collection_{name}"]) for name in ("completed", "listed"))
    async with served(values, environment) as server:
        await server.call("POST", "/v1/main/namespaces", {"namespace": ["sales"]})
        await server.stop(signal.SIGTERM)
    done = await arco(*values["fresh"]["jobs"]["collect"]["args"], **environment)

    assert (done.code, json.loads(done.out)["deleted"], json.loads(done.out)["stopped"]) == (0, True, False)
    assert len([line for line in done.out.splitlines() if counted.search(line)]) == 1
    assert not counted.search(done.out.replace("false", "true"))
    told = [found for line in done.out.splitlines() if (found := listed.search(line))]
    assert [int(found[1]) for found in told] == [json.loads(done.out)["listed"]] != [0]


def test_the_service_leaves_tasks_to_the_job(values: Values) -> None:
    assert values["fresh"]["environment"]["ARCO_TASKS"] == "false"


def test_a_run_stops_by_itself_before_its_task_is_ended_and_the_task_before_the_next(values: Values) -> None:
    stops_after, ends_after = values["fresh"]["seconds"]

    for job in values["fresh"]["jobs"].values():
        assert job["args"][-2:] == ["--seconds", str(stops_after)]
    assert stops_after + 60 < ends_after < 15 * 60
