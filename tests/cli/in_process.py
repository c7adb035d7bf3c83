"""Commands of `arco` in the test's own process: what they print and their exit code, without the time of a start.

`tests.cli.process` has the same `arco` as a process, for what depends on one: signals, pipes, `serve`.
"""

import asyncio
import io
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout

from arco_catalog.cli.program import main
from tests.cli.process import CompletedProcess, environment_of
from tests.support import loggers


async def arco(*arguments: str, **environment: str) -> CompletedProcess:
    """Runs a command to its end, in a thread: it has an event loop of its own."""
    return await asyncio.to_thread(run, arguments, environment_of(environment))


def run(arguments: Sequence[str], environment: Mapping[str, str]) -> CompletedProcess:
    """Runs a command to its end, in a thread without an event loop. Loggers are then what they were."""
    out, err = io.StringIO(), io.StringIO()
    with loggers.restored(), redirect_stdout(out), redirect_stderr(err):
        try:
            code = main(arguments, environment)
        except SystemExit as end:  # wrong usage
            code = end.code if isinstance(end.code, int) else 1
    return CompletedProcess(code, out.getvalue(), err.getvalue())
