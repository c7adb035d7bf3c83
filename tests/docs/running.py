"""Runs the blocks of a page in order, in one folder, as a reader would: shell blocks and Python blocks by turns."""

import contextlib
import io
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from arco_catalog.embed import serving
from tests.docs.pages import OUTPUT, Block

PORT = "8181"
"""The port that pages name; a free one takes its place."""
SECONDS = 600
ATTEMPTS = 1800
"""How often, a tenth of a second apart, a server that a page starts is looked for."""


def perform(blocks: Sequence[Block], folder: Path) -> None:
    """Raises `AssertionError` for a block that fails, or prints something else than the page says.

    A page whose blocks start no server finds one at the address that pages name, over a folder of its own.
    """
    started = any("arco serve" in block.text for block in blocks if block.language == "sh")
    with contextlib.ExitStack() as stack:
        if started:
            port = _free_port()
        else:
            server = stack.enter_context(serving(f"file:{folder}/.served"))
            port = server.uri.rpartition(":")[2]
        here = os.getcwd()
        os.chdir(folder)
        stack.callback(os.chdir, here)
        shells: list[int] = []
        stack.callback(_end, shells)
        names: dict[str, object] = {"__name__": "__main__"}
        printed = ""
        for block in blocks:
            text = block.text.replace(PORT, port)
            if block.info == OUTPUT:
                assert printed == text, f"line {block.line}: printed\n{printed}"
            elif block.language == "sh":
                _shell(text, block.line, folder, shells)
                if "arco serve" in text:
                    _until_it_answers(int(port))
            else:
                printed = _python(text, block.line, names)


def _python(text: str, line: int, names: dict[str, object]) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(text, f"block at line {line}", "exec"), names)
    return out.getvalue()


def _shell(text: str, line: int, folder: Path, sessions: list[int]) -> None:
    """Runs a block in a session of its own, whose id joins `sessions`: what it leaves in the background is in it."""
    log = folder / f".log-{line}"
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("ARCO_", "PYTEST_"))}
    with log.open("w") as out:
        process = subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", text],
            cwd=folder,
            env={**environment, "PATH": path},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
        sessions.append(process.pid)
        try:
            code = process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            _end([process.pid])
            process.wait()
            raise
    assert code == 0, f"line {line}: {text}\n{log.read_text()}"


def _until_it_answers(port: int) -> None:
    """A reader waits for the line that says that the server serves."""
    for _ in range(ATTEMPTS):
        with contextlib.suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(0.1)
    raise AssertionError(f"nothing listens on port {port}")


def _end(sessions: Sequence[int]) -> None:
    for session in sessions:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(session, signal.SIGKILL)


def _free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return str(listener.getsockname()[1])
