"""The `polaris` command line of PyPI's apache-polaris, in an environment of its own."""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

ENVIRONMENT = Path(__file__).parents[2] / ".venv-polaris"
SCRIPT = ENVIRONMENT / "bin" / "polaris"

# What the console script does, many times in one process: it takes seconds to import its own parts.
_DRIVER = """
import contextlib, io, json, sys
from apache_polaris.cli.polaris_cli import PolarisCli
for line in sys.stdin:
    out, err, status = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            PolarisCli.execute(json.loads(line))
        except SystemExit as end:
            status = end.code or 0
    print(json.dumps([status, out.getvalue(), err.getvalue()]), flush=True)
"""


@dataclass(frozen=True)
class Ran:
    """How a command ended, and what it printed."""

    status: int
    out: str
    err: str


def environment(home: Path) -> dict[str, str]:
    """The variables that it is run with: its profiles lie in a home folder of their own."""
    return {"PATH": os.environ["PATH"], "HOME": str(home), "NO_PROXY": "127.0.0.1"}


class PolarisCli:
    """Runs commands of the CLI with the options for the server and the caller."""

    def __init__(self, uri: str, client_id: str, secret: str, home: Path) -> None:
        self.options = ["--base-url", uri, "--client-id", client_id, "--client-secret", secret]
        python = ENVIRONMENT / "bin" / "python"
        if not python.exists():
            raise FileNotFoundError(f"{python}: `make .venv-polaris/.complete` installs it")
        self._process = subprocess.Popen(
            [str(python), "-c", _DRIVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=home,
            env=environment(home),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def run(self, *command: str, options: list[str] | None = None) -> Ran:
        """Runs a command; `options` are others than the usual ones."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps([*(self.options if options is None else options), *command]), file=self._process.stdin)
        self._process.stdin.flush()
        return Ran(*json.loads(self._process.stdout.readline()))

    def __call__(self, command: str) -> str:
        """What a command prints that succeeds; its words are separated by spaces."""
        ran = self.run(*command.split())
        assert (ran.status, ran.err) == (0, ""), (command, ran)
        return ran.out

    def refused(self, command: str) -> str:
        """Run a command that the server must refuse, and return the server's message."""
        ran = self.run(*command.split())
        assert ran.status == 1, (command, ran)
        assert ran.err.startswith("Exception when communicating with the Polaris server. "), ran.err
        return ran.err.partition("server. ")[2].strip()

    def lines(self, command: str) -> list[dict[str, object]]:
        """The JSON documents, one a line, that a command prints."""
        return [json.loads(line) for line in self(command).splitlines()]

    def one(self, command: str) -> dict[str, object]:
        """The one JSON document that a command prints."""
        (document,) = self.lines(command)
        return document
