"""`python -m tools.terraform` writes the Terraform that is made from the table of settings; `--check` compares it."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tools.support.generated_files import write_or_check
from tools.terraform.clouds import CLOUDS, Cloud
from tools.terraform.environment import locals_of
from tools.terraform.variables import variables_of

VARIABLES = "setting_variables.tf"
ENVIRONMENT = "setting_environment.tf"
HEAD = "# Made by `python -m tools.terraform` from arco_catalog/config/variables.py: do not edit.\n\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes or checks all files."""
    files = {file: text for cloud in CLOUDS for file, text in files_of(cloud)}
    return write_or_check(files, "tools.terraform", arguments)


def files_of(cloud: Cloud) -> Iterator[tuple[Path, str]]:
    """The files that are made for a cloud, with their texts."""
    yield cloud.folder / VARIABLES, HEAD + "\n".join(variable.block() for variable in variables_of(cloud))
    yield cloud.folder / ENVIRONMENT, HEAD + locals_of(cloud)


if __name__ == "__main__":
    sys.exit(main())
