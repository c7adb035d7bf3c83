"""`arco serve --workers`: several processes behind one address."""

import asyncio
import json
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from arco_catalog.cli.capacity import usual_workers
from arco_catalog.config.parsing import MAX_WORKERS
from tests.cli import in_process
from tests.cli.process import TIMEOUT_SECONDS, Server, arco, finished, serving, start
from tools.support.ports import free_port
from tools.support.request_bodies import schema, set_property

NS = "/v1/arco/namespaces"


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"file:{tmp_path}/store"


def workers(server: Server) -> set[int]:
    """The processes of the workers: children of the server's main thread, its event loop's. Others come and go."""
    return children_of(server.process.pid)


def children_of(pid: int) -> set[int]:
    """The processes that a process's main thread has started."""
    return set(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


def alive(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # it may go between the open and the read
        return False


async def replaced(server: Server, gone: int, count: int) -> None:
    """Returns when a worker stands in the place of another."""
    while await asyncio.to_thread(alive, gone):
        continue
    while len(workers(server) - {gone}) < count:
        assert server.process.returncode is None
        await server.call("GET", "/v1/config")  # answered by those who live


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
async def test_they_serve_one_address_and_end_cleanly(store: str, how: signal.Signals) -> None:
    async with serving(store, "--workers", "2") as server:
        assert server.printed == f"Arco serves the warehouse 'arco' of {store} at {server.uri} (Ctrl-C stops it)\n"
        started = workers(server)
        assert len(started) == 2
        ended = await server.stop(how)

    assert (ended.code, ended.err) == (0, "")
    assert f'"uri": "{server.uri}"' in ended.out
    assert not any(alive(pid) for pid in started)


async def test_there_are_as_many_as_the_machine_has_room_for_unless_reported_otherwise(store: str) -> None:
    count = usual_workers(store, (256 + 100) << 20, MAX_WORKERS)
    async with serving(store, ARCO_WORKERS="") as server:
        assert len(workers(server)) == (count if count > 1 else 0)
        ended = await server.stop()

    assert (ended.code, ended.err) == (0, "")
    report = (
        f"{count} workers, each with up to 420 MB: 256 MB for requests, 100 MB for caches, 64 MB for itself (--workers)"
    )
    assert (report in ended.out) == (count > 1)


async def test_one_is_one_process(store: str) -> None:
    async with serving(store, "--workers", "1") as server:
        assert workers(server) == set()
        ended = await server.stop()

    assert (ended.code, "workers" in ended.out) == (0, False)


async def test_a_store_in_memory_is_served_by_one() -> None:
    async with serving("memory:", "--quiet", ARCO_WORKERS="") as server:
        assert workers(server) == set()
        assert (await server.stop()).code == 0


async def test_each_sees_what_the_others_changed(store: str) -> None:
    async with serving(store, "--quiet", ARCO_WORKERS="3") as server:
        assert (await server.call("POST", NS, {"namespace": ["db"]}))[0] == 200
        assert (await server.call("POST", f"{NS}/db/tables", {"name": "t", "schema": schema("x")}))[0] == 200
        for number in range(12):  # each on a connection of its own, and so perhaps to another worker
            assert (await server.call("POST", f"{NS}/db/tables/t", set_property("n", str(number))))[0] == 200
            _, loaded = await server.call("GET", f"{NS}/db/tables/t")
            assert loaded["metadata"]["properties"]["n"] == str(number)
        assert (await server.stop()).code == 0


async def test_a_worker_that_dies_is_replaced(store: str) -> None:
    async with serving(store, "--workers", "2", "--quiet") as server:
        gone, kept = sorted(workers(server))
        os.kill(gone, signal.SIGKILL)
        await replaced(server, gone, 2)
        for _ in range(6):
            assert (await server.call("GET", "/v1/config"))[0] == 200
        assert kept in workers(server)
        ended = await server.stop()

    assert ended.code == 0
    assert ended.err == f"arco: worker process {gone} ended with exit code -9: another one is started\n"


async def test_one_of_them_fills_the_event_feed_and_its_successor_does(store: str) -> None:
    def fillers(server: Server) -> list[int]:
        lines = {pid: Path(f"/proc/{pid}/cmdline").read_text().split("\0") for pid in workers(server)}
        return [pid for pid, line in lines.items() if "--events" in line and "--no-feed" not in line]

    async with serving(store, "--workers", "3", "--events") as server:
        [filler] = fillers(server)
        os.kill(filler, signal.SIGKILL)
        await replaced(server, filler, 3)

        [another] = fillers(server)
        assert another != filler


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
async def test_a_server_that_ends_while_a_worker_starts_has_not_failed(store: str, how: signal.Signals) -> None:
    async with serving(store, "--workers", "2", "--quiet") as server:
        gone = min(workers(server))
        os.kill(gone, signal.SIGKILL)
        await replaced(server, gone, 2)  # by one that has hardly begun
        ended = await server.stop(how)

    report = f"arco: worker process {gone} ended with exit code -9: another one is started\n"
    assert (ended.code, ended.err) == (0, report)


async def test_a_worker_that_died_while_it_started_and_was_replaced_is_no_failure(store: str) -> None:
    async with serving(store, "--workers", "2", "--quiet") as server:
        first, kept = sorted(workers(server))
        os.kill(first, signal.SIGKILL)
        await replaced(server, first, 2)
        [second] = workers(server) - {kept}
        os.kill(second, signal.SIGKILL)
        await replaced(server, second, 2)
        ended = await server.stop()

    report = [
        f"arco: worker process {gone} ended with exit code -9: another one is started" for gone in (first, second)
    ]
    assert (ended.code, ended.err.splitlines()) == (0, report)


async def test_workers_that_die_again_and_again_end_the_server(store: str) -> None:
    async with serving(store, "--workers", "2", "--quiet") as server:
        for _ in range(5):
            gone = min(workers(server))
            os.kill(gone, signal.SIGKILL)
            await replaced(server, gone, 2)
        os.kill(min(workers(server)), signal.SIGKILL)
        ended = await finished(server.process)

    assert ended.code == 1
    assert ended.err.endswith("arco: more than 5 workers have died within 60 s: the server stops\n")


async def test_they_do_not_outlive_the_server(store: str) -> None:
    async with serving(store, "--workers", "2", "--quiet") as server:
        started = workers(server)
        server.process.kill()
        await finished(server.process)

    async with asyncio.timeout(TIMEOUT_SECONDS):
        while any([await asyncio.to_thread(alive, pid) for pid in started]):
            continue


@pytest.fixture
def port() -> Iterator[str]:
    """One that is in use."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield str(listener.getsockname()[1])


async def test_a_port_in_use_is_one_clear_line(store: str, port: str) -> None:
    ended = await arco("serve", "--store", store, "--port", port, "--workers", "2")

    assert (ended.code, ended.out) == (1, "")
    assert ended.err == f"arco: cannot listen on 127.0.0.1 port {port}: Address already in use\n"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (
            ["--store", "memory:"],
            "arco: --workers above 1 is not supported with a store in memory: each process would have a store of its "
            "own; leave --workers and ARCO_WORKERS out",
        ),
        (
            ["--store", "ftp://x"],
            "arco: the server cannot open the store ftp://x: unsupported store URL 'ftp://x': expected "
            "file:/absolute/path",
        ),
    ],
)
async def test_what_cannot_be_served_is_one_clear_line(arguments: list[str], why: str) -> None:
    ended = await arco("serve", "--port", "0", "--workers", "2", *arguments)

    assert (ended.code, ended.out) == (1, "")
    assert why in ended.err
    assert ended.err.count("\n") == 1


@pytest.mark.parametrize("workers", ["1", "2"])
async def test_every_receipt_is_written_before_the_end(store: str, workers: str) -> None:
    async with serving(store, "--quiet", "--workers", workers) as server:
        await server.call("POST", NS, {"namespace": ["db"]})
        await server.call("POST", f"{NS}/db/tables", {"name": "t", "schema": schema("x")})
        for number in range(5):
            await server.call("POST", f"{NS}/db/tables/t", set_property("n", str(number)))
        assert (await server.stop()).code == 0

    receipts = json.loads((await in_process.arco("receipts", "db.t", "--json", "--store", store)).out)
    assert [receipt["state"] for receipt in receipts] == ["committed"] * 6


async def starting_workers(process: asyncio.subprocess.Process) -> set[int]:
    """The workers of a server that has just started them, and does not serve yet."""
    while not (children := await asyncio.to_thread(children_of, process.pid)):
        assert process.returncode is None
    return children


async def test_a_server_starts_at_the_address_of_one_that_was_killed_while_it_started(store: str) -> None:
    port = str(free_port())
    killed = await start("serve", "--store", store, "--port", port, "--workers", "2")
    orphans = await starting_workers(killed)
    killed.kill()

    async with serving(store, "--port", port, "--workers", "2", "--quiet") as server:
        assert (await server.call("GET", "/v1/config"))[0] == 200
        assert not any(map(alive, orphans))
        assert (await server.stop()).code == 0
    assert (await finished(killed)).err == ""


async def test_a_server_starts_at_the_address_of_one_that_was_killed_at_once_again_and_again(store: str) -> None:
    port = str(free_port())
    for _ in range(3):
        async with serving(store, "--port", port, "--workers", "2", "--quiet") as server:
            assert (await server.call("GET", "/v1/config"))[0] == 200
            server.process.kill()  # its workers learn of it while the next server starts


@pytest.mark.parametrize("workers", ["1", "2"])
async def test_an_address_in_use_hides_no_other_mistake(port: str, workers: str) -> None:
    ended = await arco("serve", "--store", "ftp://x", "--port", port, "--workers", workers)

    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("arco: the server cannot open the store ftp://x")


async def test_an_address_in_use_hides_no_setting_of_telemetry(store: str, port: str) -> None:
    ended = await arco("serve", "--store", store, "--port", port, "--workers", "2", "--metrics-namespace", "arco")

    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("arco: --metrics-namespace requires --log-format json")


@pytest.mark.parametrize("command", ["serve", "serve --workers 2", "delegation-service"])
async def test_an_address_in_use_hides_no_bad_property_of_tasks(store: str, port: str, command: str) -> None:
    ended = await arco(*command.split(), "--store", store, "--port", port, "--task-property", "x=1")

    assert (ended.code, ended.out) == (1, "")
    assert "no such property" in ended.err


@pytest.mark.parametrize("workers", ["1", "2"])
async def test_an_address_in_use_hides_no_bad_variable_of_delegation(store: str, port: str, workers: str) -> None:
    ended = await arco(
        *("serve", "--store", store, "--port", port, "--workers", workers),
        ARCO_PURGE_EXECUTOR="delegated",
    )

    assert (ended.code, ended.out) == (1, "")
    assert "ARCO_PURGE_EXECUTOR=delegated needs ARCO_DELEGATION_URL" in ended.err


@pytest.mark.parametrize("workers", ["1", "2"])
async def test_a_start_prints_how_much_is_in_the_store(store: str, workers: str) -> None:
    async with serving(store, "--workers", workers) as server:
        await server.call("POST", NS, {"namespace": ["db"]})
        await server.call("POST", f"{NS}/db/tables", {"name": "t", "schema": schema("x")})
        assert "New catalog: it has no commit yet\n" in (await server.stop()).out

    async with serving(store, "--workers", workers) as server:
        assert "It has 1 table or view\n" in (await server.stop()).out
