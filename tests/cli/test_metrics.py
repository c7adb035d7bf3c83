"""`arco serve --metrics-port`: what a scrape gets, from one process and from workers, whatever dies."""

import asyncio
import os
import shutil
import signal
import socket
import stat
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from http.client import HTTPException
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families as plain_families

from arco_catalog.cli import metrics_server
from arco_catalog.cli.listening import listen
from arco_catalog.cli.metrics_server import AT_ONCE, MAX_HEAD_BYTES, answering_scrapes
from arco_catalog.telemetry.metrics import METRICS, OF_COLLECTIONS, OF_JOBS, OF_PURGES, OF_WALKS
from tests.cli import in_process
from tests.cli.metrics_page import scrape
from tests.cli.process import Server, arco, environment_of, serving
from tests.cli.test_workers import children_of, workers
from tools.support.ports import free_port
from tools.support.request_bodies import schema

NS = "/v1/arco/namespaces"
PATIENT = (
    "import sys; from arco_catalog.cli import program, workers;"
    "workers.MAX_DEATHS = 1_000; sys.exit(program.main(sys.argv[1:]))"
)
"""`arco`, which replaces workers however many die."""
KILLS = 10


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"file:{tmp_path}/store"


@pytest.fixture
def port() -> int:
    return free_port()


async def malformed(uri: str) -> bytes:
    """Sends bytes that are no request, and returns the first line of the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(uri.rpartition(":")[2]))
    writer.write(b"what?\r\n\r\n")
    line = await reader.readline()
    writer.close()
    return line.strip()


async def counted(port: int) -> float:
    """The requests that the page has."""
    return sum((await scrape(port)).get("arco_requests_total", {}).values())


@pytest.mark.parametrize("count", ["1", "2"])
async def test_a_page_has_all_metrics_of_all_processes(store: str, port: int, count: str) -> None:
    async with serving(store, "--workers", count, "--metrics-port", str(port)) as server:
        await server.call("POST", NS, {"namespace": ["db"]})
        await server.call("POST", f"{NS}/db/tables", {"name": "t", "schema": schema("x")})
        for _ in range(10):
            await server.call("GET", f"{NS}/db/tables/t")
        assert await malformed(server.uri) == b"HTTP/1.1 400 Bad Request"
        found = await scrape(port)
        ended = await server.stop()

    elsewhere = (*OF_JOBS, *OF_PURGES)
    series = {metric.series.name for metric in METRICS if metric.series is not None and metric not in elsewhere}
    missing = {name for name in series if name not in found and f"{name}_count" not in found}
    assert missing == {"arco_conflicts_total", "arco_denials_total"}, "those have labels, and did not happen"
    assert sum(found["arco_requests_total"].values()) == 12
    assert sum(found["arco_request_duration_seconds_count"].values()) == 12
    assert found["arco_outcomes_total"][("moved",)] == 2
    assert found["arco_workers"] == {(): float(count)}
    assert found["arco_connections_limit"] == {(): 512.0 * float(count)}
    assert list(found["arco_build_info"].values()) == [1.0]
    assert f"Metrics for Prometheus are at http://127.0.0.1:{port}/metrics\n" in ended.out
    assert found["arco_refused_requests_total"][("malformed",)] == 1
    assert (ended.code, ended.err.count("Invalid HTTP request received"), ended.err.count("\n")) == (0, 1, 1)


async def test_there_is_no_page_unless_a_port_is_given_and_never_at_the_catalogs(store: str, port: int) -> None:
    async with serving(store, "--metrics-port", str(port)) as server:
        assert (await server.call("GET", "/metrics"))[0] == 404
    async with serving(store) as server:
        assert (await server.call("GET", "/metrics"))[0] == 404


@asynccontextmanager
async def serving_patiently(store: str, port: int) -> AsyncIterator[Server]:
    """A server with two workers, which goes on however many die."""
    options = ("--store", store, "--port", "0", "--workers", "2", "--quiet", "--metrics-port", str(port))
    command = (sys.executable, "-c", PATIENT, "serve", *options)
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=PIPE, env=environment_of({}))
    assert process.stdout is not None
    try:
        first = (await process.stdout.readline()).decode()
        yield Server(process, first.partition(" at ")[2].partition(" ")[0], first)
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def test_counters_equal_the_requests_sent_beside_ten_killed_workers(store: str, port: int) -> None:
    async with serving_patiently(store, port) as server:
        sent = 0
        for number in range(KILLS):
            for _ in range(5):
                assert (await server.call("GET", "/v1/config"))[0] == 200
                sent += 1
            gone = sorted(workers(server))[number % 2]
            os.kill(gone, signal.SIGKILL)
            while gone in workers(server) or len(workers(server)) < 2:
                await asyncio.to_thread(children_of, server.process.pid)
        found = await scrape(port)

    assert sum(found["arco_requests_total"].values()) == sent
    assert sum(found["arco_request_duration_seconds_count"].values()) == sent
    assert found["arco_worker_deaths_total"] == {(): float(KILLS)}


async def test_no_answered_request_is_missing_where_workers_die_over_requests(store: str, port: int) -> None:
    answered = lost = 0

    async def call(server: Server) -> None:
        nonlocal answered, lost
        try:
            await server.call("GET", "/v1/config")
            answered += 1
        except (OSError, HTTPException):  # no connection, or one that ended before the answer did
            lost += 1

    async def client(server: Server, ended: asyncio.Event) -> None:
        while not ended.is_set():
            await call(server)

    async with serving_patiently(store, port) as server:
        ended = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            for _ in range(3):
                group.create_task(client(server, ended))
            for number in range(3):
                before = answered
                while answered < before + 20:
                    await call(server)
                gone = sorted(workers(server))[number % 2]
                os.kill(gone, signal.SIGKILL)
                while gone in workers(server) or len(workers(server)) < 2:
                    await call(server)
            ended.set()
        count = await counted(port)

    assert answered >= 60
    assert answered <= count <= answered + lost


async def test_a_scrape_calls_no_store(store: str, port: int) -> None:
    async with serving(store, "--workers", "2", "--metrics-port", str(port), "--tasks", "false") as server:
        await server.call("GET", "/v1/config")
        shutil.rmtree(store.removeprefix("file:"))
        assert await counted(port) == 1


async def test_the_folder_of_workers_goes_with_the_server(store: str, port: int) -> None:
    def folders() -> set[Path]:
        return {path for path in Path("/dev/shm").glob("arco-metrics-*") if path.is_dir()}

    async with serving(store, "--workers", "2", "--metrics-port", str(port)) as server:
        open_files = {
            os.readlink(f"/proc/{server.process.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{server.process.pid}/fd")
        }
        [mine] = [folder for folder in folders() if str(folder) in open_files]
        assert (await server.stop()).code == 0

    assert not mine.exists()


@pytest.mark.parametrize("count", ["1", "2"])
async def test_a_port_of_metrics_in_use_is_one_clear_line(store: str, count: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        ended = await arco(*("serve", "--store", store, "--port", "0", "--workers", count, "--metrics-port", port))

    assert ended.code == 1
    assert ended.err == f"arco: cannot listen on 127.0.0.1 port {port}: Address already in use\n"


def listen_with_a_small_buffer(host: str, port: int) -> socket.socket:
    listener = listen(host, port)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
    return listener


class TestHostileScrapes:
    @pytest.fixture
    async def address(self) -> AsyncIterator[tuple[str, int]]:
        port = free_port()
        async with answering_scrapes("127.0.0.1", port, lambda accept: (accept.encode(), "text/plain")) as uri:
            assert uri == f"http://127.0.0.1:{port}/metrics"
            yield "127.0.0.1", port

    async def exchange(self, address: tuple[str, int], sent: bytes) -> bytes:
        reader, writer = await asyncio.open_connection(*address)
        try:
            writer.write(sent)
            return await reader.read()
        except ConnectionError:
            return b""
        finally:
            writer.close()

    @pytest.mark.parametrize(
        ("sent", "status"),
        [
            (b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", b"200 OK"),
            (b"GET /metrics?name=x HTTP/1.0\r\n\r\n", b"200 OK"),
            (b"HEAD /metrics HTTP/1.1\r\n\r\n", b"200 OK"),
            (b"GET / HTTP/1.1\r\n\r\n", b"404 Not Found"),
            (b"GET /metrics/../v1/config HTTP/1.1\r\n\r\n", b"404 Not Found"),
            (b"POST /metrics HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello", b"405 Method Not Allowed"),
            (b"GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n", b"403 Forbidden"),
            (b"GET /metrics HTTP/1.1\r\nOrigin: http://evil.example\r\n\r\n", b"403 Forbidden"),
            (b"\xff\x00 no request\r\n\r\n", b"404 Not Found"),
            (b"\r\n\r\n", b"404 Not Found"),
        ],
    )
    async def test_get_an_answer(self, address: tuple[str, int], sent: bytes, status: bytes) -> None:
        answer = await self.exchange(address, sent)

        assert answer.startswith(b"HTTP/1.1 " + status + b"\r\n")
        head, _, body = answer.partition(b"\r\n\r\n")
        assert (b"Content-Length: 0" in head) == (body == b"") or sent.startswith(b"HEAD")

    async def test_with_a_head_that_is_too_long_get_none(self, address: tuple[str, int]) -> None:
        assert await self.exchange(address, b"GET /metrics HTTP/1.1\r\nA: " + b"a" * 2 * MAX_HEAD_BYTES) == b""

    async def test_that_send_nothing_are_cut_off(
        self, address: tuple[str, int], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(metrics_server, "SECONDS", 0.01)
        assert await self.exchange(address, b"GET /metrics") == b""

    async def test_that_read_no_answer_count_until_they_are_cut_off(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(metrics_server, "listen", listen_with_a_small_buffer)
        port = free_port()
        loop = asyncio.get_running_loop()
        async with answering_scrapes("127.0.0.1", port, lambda accept: (b"x" * 40_000, "text/plain")):
            with ExitStack() as stack:
                for _ in range(AT_ONCE):
                    client = stack.enter_context(socket.socket())
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
                    client.setblocking(False)
                    await loop.sock_connect(client, ("127.0.0.1", port))
                    await loop.sock_sendall(client, b"GET /metrics HTTP/1.1\r\n\r\n")
                    assert await loop.sock_recv(client, 4) == b"HTTP"
                assert await self.exchange(("127.0.0.1", port), b"GET /metrics HTTP/1.1\r\n\r\n") == b""

    async def test_are_few_at_once(self, address: tuple[str, int]) -> None:
        held = [await asyncio.open_connection(*address) for _ in range(AT_ONCE)]
        try:
            assert await self.exchange(address, b"GET /metrics HTTP/1.1\r\n\r\n") == b""
        finally:
            for _, writer in held:
                writer.close()
        while not await self.exchange(address, b"GET /metrics HTTP/1.1\r\n\r\n"):
            continue  # the others' ends have not arrived yet

    async def test_get_no_reason_why_a_page_could_not_be_made(self, caplog: pytest.LogCaptureFixture) -> None:
        def fail(accept: str) -> tuple[bytes, str]:
            raise RuntimeError("secret")

        port = free_port()
        async with answering_scrapes("127.0.0.1", port, fail):
            answer = await self.exchange(("127.0.0.1", port), b"GET /metrics HTTP/1.1\r\n\r\n")

        assert answer.startswith(b"HTTP/1.1 500 ")
        assert b"secret" not in answer
        assert "the page of metrics for a scrape could not be made" in caplog.text


class TestFilesOfJobs:
    async def series(self, file: Path) -> dict[str, float]:
        text = await asyncio.to_thread(file.read_text)
        return {sample.name: sample.value for family in plain_families(text) for sample in family.samples}

    async def test_have_the_metrics_of_a_run_that_reached_its_end(self, store: str, tmp_path: Path) -> None:
        file = tmp_path / "arco.prom"
        await in_process.arco("init", "--store", store)
        for command, metrics in (("reconcile", OF_WALKS), ("gc --delete", OF_COLLECTIONS)):
            ran = await in_process.arco(*command.split(), "--store", store, "--metrics-file", str(file))
            assert (ran.code, ran.err) == (0, "")
            assert set(await self.series(file)) == {metric.series.name for metric in metrics if metric.series}

    @pytest.mark.parametrize("command", ["reconcile", "gc --delete"])
    async def test_name_the_store_or_what_the_operator_calls_it(self, store: str, tmp_path: Path, command: str) -> None:
        file = tmp_path / "arco.prom"
        await in_process.arco("init", "--store", store)
        await in_process.arco("bootstrap", "--store", f"{store}/realms", "--realm", "acme")
        for words, name in (
            (("--store", store), store),
            (("--store", f"{store}/realms", "--realm", "acme"), f"{store}/realms/acme"),
            (("--store", store, "--metrics-store", "lake"), "lake"),
        ):
            ran = await in_process.arco(*command.split(), *words, "--metrics-file", str(file))
            assert (ran.code, ran.err) == (0, "")
            text = await asyncio.to_thread(file.read_text)
            labels = [sample.labels for family in plain_families(text) for sample in family.samples]
            assert labels
            assert all(each == {"store": name} for each in labels)

    async def test_are_not_written_by_a_run_that_only_lists(self, store: str, tmp_path: Path) -> None:
        file = tmp_path / "arco.prom"
        await in_process.arco("init", "--store", store)
        for command in ("reconcile --dry-run", "gc"):
            await in_process.arco(*command.split(), "--store", store, "--metrics-file", str(file))
            assert not file.exists()

    @pytest.mark.parametrize("command", ["reconcile", "gc --delete"])
    @pytest.mark.parametrize(
        ("name", "problem"),
        [
            ("none/arco.prom", "No such file or directory"),
            ("file/arco.prom", "Not a directory"),
            ("folder", "Is a directory"),
        ],
    )
    async def test_that_cannot_be_written_are_one_clear_line_before_the_run(
        self, tmp_path: Path, command: str, name: str, problem: str
    ) -> None:
        (tmp_path / "file").touch()
        (tmp_path / "folder").mkdir()
        ran = await in_process.arco(
            *command.split(), "--store", f"file:{tmp_path}/no-store", "--metrics-file", str(tmp_path / name)
        )
        assert (ran.code, ran.out) == (1, "")
        assert ran.err == f"arco: cannot write the metrics to {tmp_path / name}: {problem}\n"

    async def test_may_be_read_by_all_users_whatever_the_umask(self, store: str, tmp_path: Path) -> None:
        await in_process.arco("init", "--store", store)
        before = os.umask(0o077)
        try:
            await in_process.arco("reconcile", "--store", store, "--metrics-file", f"{tmp_path}/arco.prom")
        finally:
            os.umask(before)
        assert stat.S_IMODE((tmp_path / "arco.prom").stat().st_mode) == 0o644
        assert {*os.listdir(tmp_path)} == {"store", "arco.prom"}
