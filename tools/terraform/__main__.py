"""`python -m tools.terraform` writes the Terraform that is made from the table of settings; `--check` compares it."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tools.support.environment import PROJECT
from tools.terraform.clouds import CLOUDS, Cloud
from tools.terraform.environment import locals_of
from tools.terraform.variables import variables_of

VARIABLES = "setting_variables.tf"
ENVIRONMENT = "setting_environment.tf"
HEAD = "# Made by `python -m tools.terraform` from arco_catalog/config/variables.py: do not edit.\n\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes all files, or with `--check` returns 1 if one is not current."""
    parser = argparse.ArgumentParser(prog="terraform", description="Write the Terraform of settings.")
    parser.add_argument("--check", action="store_true", help="write nothing, and fail if a file is not current")
    files = {file: text for cloud in CLOUDS for file, text in files_of(cloud)}
    if not parser.parse_args(arguments).check:
        for file, text in files.items():
            file.write_text(text)
        return 0
    stale = [file for file, text in files.items() if not file.exists() or file.read_text() != text]
    for file in stale:
        sys.stderr.write(f"{file.relative_to(PROJECT)} is not current: run .venv/bin/python -m tools.terraform\n")
    return 1 if stale else 0


def files_of(cloud: Cloud) -> Iterator[tuple[Path, str]]:
    """The files that are made for a cloud, with their texts."""
    yield cloud.folder / VARIABLES, HEAD + "\n".join(variable.block() for variable in variables_of(cloud))
    yield cloud.folder / ENVIRONMENT, HEAD + locals_of(cloud)


if __name__ == "__main__":
    sys.exit(main())
