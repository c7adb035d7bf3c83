"""Writes the catalog's OpenAPI document: `python -m tools.openapi`. With `--check`, it only compares."""

import sys
from collections.abc import Sequence
from pathlib import Path

from tools.openapi.document import document
from tools.openapi.specifications import in_lines
from tools.support.environment import PROJECT
from tools.support.generated_files import write_or_check

FILE: Path = PROJECT / "arco_catalog/http/openapi.json"


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes or checks the document."""
    return write_or_check({FILE: in_lines(document()) + "\n"}, "tools.openapi", arguments)


if __name__ == "__main__":
    sys.exit(main())
