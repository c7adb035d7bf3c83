"""`arco prove`: against servers of this catalog, killed ones too, and against one that lies."""

import asyncio
import json
import os
import random
import shlex
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from arco_catalog.cli import prove as command
from arco_catalog.prove.program import MAX_CLIENTS, MAX_OPERATIONS, Features, draw_program
from tests.cli.in_process import arco
from tests.cli.process import CompletedProcess, serving, start
from tests.prove.lying_catalog import Lie, LyingCatalog
from tests.prove.restart_server import restart_command


async def prove(*arguments: str) -> CompletedProcess:
    """Runs the command as a process, for up to five minutes."""
    process = await start("prove", *arguments)
    out, err = await asyncio.wait_for(process.communicate(), 300)
    assert process.returncode is not None
    return CompletedProcess(process.returncode, out.decode(), err.decode())


async def test_two_servers_over_one_store_show_nothing(tmp_path: Path) -> None:
    store = f"file:{tmp_path}/store"
    async with serving(store) as one, serving(store) as two:
        ended = await prove(one.uri, two.uri, "--operations", "600", "--linearizable", "--json")
    assert ended.code == 0, ended.err + ended.out
    report = json.loads(ended.out)
    assert report["findings"] == []
    assert report["operations"] >= 600
    assert (report["searches_given_up"], report["answers_not_understood"]) == (0, 0)
    assert report["requests_repeated"] > 0
    assert {"commit done", "transaction done", "drop done"} <= {*report["outcomes"]}


@pytest.fixture
def restarted(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """The URI of a server, and the command that kills it and starts the next one."""
    files, ports, command = restart_command(tmp_path, 1)
    subprocess.run(command, check=True, timeout=120)
    try:
        yield f"http://127.0.0.1:{ports[0]}", shlex.join(command)
    finally:
        os.kill(int(files[0].read_text()), signal.SIGKILL)


async def test_a_server_that_is_killed_shows_nothing(restarted: tuple[str, str]) -> None:
    uri, restart = restarted
    ended = await prove(uri, "--operations", "500", "--restart", restart, "--json")
    assert ended.code == 0, ended.err + ended.out
    report = json.loads(ended.out)
    assert report["findings"] == []
    assert report["kills"] > 0


async def test_a_lie_is_printed_with_a_replay_that_shows_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The replay is tried twice instead of twenty times: how well replays show lies is for `prove/test_lies.py`."""
    monkeypatch.setattr(command, "TIMES", 2)
    replay = str(tmp_path / "replay.json")
    async with LyingCatalog(Lie.ALWAYS_NOT_MODIFIED).listening() as uri:
        found = await arco("prove", uri, "--linearizable", "--output", replay, "--shrink-seconds", "5")
        again = await arco("prove", uri, "--linearizable", "--replay", replay)
    async with LyingCatalog().listening() as uri:
        mended = await arco("prove", uri, "--linearizable", "--replay", replay)
    assert found.code == 1, found.err
    assert "FOUND  " in found.out
    assert "breaks what the catalog states of itself" in found.out
    assert (again.code, again.out.split()[1:3]) == (1, ["of", "2"]), again.err
    assert (mended.code, mended.out.split()[:3]) == (0, ["0", "of", "2"]), mended.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["http://127.0.0.1:1"], "No server answers"),
        (["http://127.0.0.1:1", "--replay", "missing.json"], "missing.json"),
        (["http://127.0.0.1:1", "--token-file", "missing"], "missing"),
    ],
)
async def test_what_is_missing_is_named(arguments: list[str], message: str) -> None:
    ended = await arco("prove", *arguments)
    assert ended.code == 1
    assert message in ended.err


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        '{"version": 2}',
        '{"version": 1, "clients": 1}',
        '{"version": 1, "clients": [], "kills": [Infinity]}',
        "[" * 100_000,
    ],
)
async def test_a_file_that_is_no_replay_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "replay.json"
    file.write_text(text)
    ended = await arco("prove", "http://127.0.0.1:1", "--replay", str(file))
    assert ended.code == 1
    assert "replay" in ended.err


async def test_a_command_for_restarts_that_cannot_be_started_is_named(tmp_path: Path) -> None:
    async with serving(f"file:{tmp_path}/store") as server:
        ended = await prove(server.uri, "--operations", "500", "--restart", f"{tmp_path}/missing")

    assert ended.code == 1
    assert f"The command {tmp_path}/missing of --restart was not started: No such file or directory" in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.parametrize("clients", [MAX_CLIENTS + 1, 1_000])
async def test_more_clients_than_a_program_has_room_for_are_wrong_usage(clients: int) -> None:
    ended = await arco("prove", "http://127.0.0.1:1", "--clients", str(clients))

    assert ended.code == 2
    assert f"expected at most {MAX_CLIENTS} clients, got {clients}" in " ".join(ended.err.split())
    for seed in range(50):
        assert draw_program(random.Random(seed), Features(), MAX_CLIENTS).steps <= MAX_OPERATIONS


async def test_a_catalog_in_which_nothing_can_be_committed_is_an_error() -> None:
    async with LyingCatalog(refuses_creations=True).listening() as uri:
        ended = await prove(uri, "--operations", "100")
    assert ended.code == 1
    assert "No commit was completed" in ended.err
    assert "Nothing was found" not in ended.out
