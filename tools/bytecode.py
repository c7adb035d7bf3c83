"""Makes the bytecode of modules ahead, for folders that Python can't write to: without it, each start compiles each
module."""

import shutil
import subprocess
import sys
from pathlib import Path

RUNS_AT = "/var/task"
"""Where a function's zip is unpacked, which tracebacks name."""


def interpreter(version: str) -> str | None:
    """A Python of a version such as 3.13: this one, or what is on the path by that name; None if there is none."""
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        return sys.executable
    found = shutil.which(f"python{version}")
    works = found is not None and subprocess.run([found, "-c", ""], capture_output=True, timeout=30).returncode == 0
    return found if works else None


def compile_ahead(folder: Path, python: str) -> None:
    """Writes the bytecode of all modules in a folder, each Python's under names of its own. It is not checked against
    its source, whose time is lost when it is zipped. The same modules and the same Python give the same bytes. Raises
    `subprocess.CalledProcessError` for what does not compile."""
    command: list[str | Path] = [python, "-S", "-m", "compileall", "-q", "-f"]
    options: list[str | Path] = ["--invalidation-mode", "unchecked-hash", "-s", folder, "-p", RUNS_AT]
    subprocess.run([*command, *options, folder], check=True, timeout=300, env={"PYTHONHASHSEED": "0"})
