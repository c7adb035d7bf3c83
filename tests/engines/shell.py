"""Both ends of the talk with an engine in a process of its own: a line with a statement, a line with its outcome.

Imports nothing but the standard library: the engine's end runs in the engine's own environment.
"""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

Rows = list[tuple[object, ...]]
Sql = Callable[[str], Rows]
"""Runs one statement in an engine, to its end."""

STATEMENT_S = 180.0
LEAVE_S = 30.0


class EngineError(Exception):
    """What an engine says is wrong with a statement."""


@contextmanager
def shell(
    command: Sequence[str], folder: Path, scratch: Path, environment: Mapping[str, str] | None = None
) -> Iterator[Sql]:
    """Starts an engine's end in `folder`. A cell that is nothing in JSON, such as a date, comes as text.

    A statement that fails raises `EngineError`, an engine that ends `RuntimeError`. Its errors go to `scratch/stderr`.
    """
    complaints = scratch / "stderr"
    with (
        complaints.open("wb") as errors,
        subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):

        def run(statement: str) -> Rows:
            if process.stdin is None or process.stdout is None:
                raise RuntimeError("the pipes were asked for")
            watchdog = threading.Timer(STATEMENT_S, process.kill)
            watchdog.start()
            try:
                print(json.dumps(statement), file=process.stdin, flush=True)
                outcome = process.stdout.readline()
            finally:
                watchdog.cancel()
            if not outcome:
                raise RuntimeError(f"{command} ended: {complaints.read_text()[-4000:]}")
            said = json.loads(outcome)
            if "error" in said:
                raise EngineError(said["error"])
            return [tuple(row) for row in said["rows"]]

        try:
            yield run
            process.communicate(timeout=LEAVE_S)
        finally:
            process.kill()


@contextmanager
def outcomes() -> Iterator[TextIO]:
    """The engine's end: where its outcomes go. Whatever else prints from now on, its JVM too, does so on standard
    error."""
    with os.fdopen(os.dup(sys.stdout.fileno()), "w") as out:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        yield out


def answer(out: TextIO, run: Callable[[str], Iterable[Iterable[object]]], errors: tuple[type[Exception], ...]) -> None:
    """The engine's end: runs statements until there are no more."""
    for line in sys.stdin:
        try:
            said: dict[str, object] = {"rows": [list(row) for row in run(json.loads(line))]}
        except errors as error:
            said = {"error": str(error)}
        print(json.dumps(said, default=str), file=out, flush=True)
