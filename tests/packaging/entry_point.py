"""The server that the image's entry point starts with its command."""

import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE

SECONDS = 120


@contextmanager
def entry_point(command: Sequence[str], environment: Mapping[str, str], folder: Path) -> Iterator[tuple[int, str]]:
    """Starts the server in a folder, where its errors are in the file `log`, and terminates it at the end. Yields its
    port, and the line that it prints when it listens."""
    with (
        open(folder / "log", "w+") as log,
        subprocess.Popen(command, cwd=folder, env=environment, stdout=PIPE, stderr=log, text=True) as process,
    ):
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            found = re.search(r" at http://127\.0\.0\.1:(\d+) ", line)
            assert found, line + (folder / "log").read_text()
            yield int(found[1]), line
        finally:
            process.terminate()
            process.wait(SECONDS)
