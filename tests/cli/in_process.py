"""Commands of `arco` in the test's own process: what they print and their exit code, without the time of a start.

`tests.cli.process` has the same `arco` as a process, for what depends on one: signals, pipes, `serve`.
"""

import asyncio
import io
from contextlib import redirect_stderr, redirect_stdout

from arco_catalog.cli.program import main
from tests.cli.process import CompletedProcess, environment_of


async def arco(*arguments: str, **environment: str) -> CompletedProcess:
    """Runs a command to its end, in a thread: it has an event loop of its own."""
    return await asyncio.to_thread(_run, arguments, environment_of(environment))


def _run(arguments: tuple[str, ...], environment: dict[str, str]) -> CompletedProcess:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = main(arguments, environment)
        except SystemExit as end:  # wrong usage
            assert isinstance(end.code, int)
            code = end.code
    return CompletedProcess(code, out.getvalue(), err.getvalue())
