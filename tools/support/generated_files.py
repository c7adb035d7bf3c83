"""The command line of programs that write files of the repository from code: `--check` only compares."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tools.support.environment import PROJECT


def write_or_check(files: Mapping[Path, str], module: str, arguments: Sequence[str] | None) -> int:
    """Writes files with these texts, or with `--check` among the arguments compares them. Returns 1 if one is not
    current, which is named with the `module` that writes it, otherwise 0."""
    command = f"python -m {module}"
    parser = argparse.ArgumentParser(prog=command, description=f"Write {', '.join(file.name for file in files)}.")
    parser.add_argument("--check", action="store_true", help="write nothing, and fail if a file is not current")
    if not parser.parse_args(arguments).check:
        for file, text in files.items():
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
        return 0
    stale = [file for file, text in files.items() if not file.exists() or file.read_text() != text]
    for file in stale:
        name = file.relative_to(PROJECT) if file.is_relative_to(PROJECT) else file
        sys.stderr.write(f"{name} is not current: run .venv/bin/{command}\n")
    return 1 if stale else 0
