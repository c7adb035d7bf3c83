"""Writes the catalog's OpenAPI document: `python -m tools.openapi`. With `--check`, it only compares."""

import argparse
import sys
from pathlib import Path

from tools.openapi.document import document
from tools.openapi.specifications import in_lines
from tools.support.environment import PROJECT

FILE: Path = PROJECT / "arco_catalog/http/openapi.json"


def main() -> int:
    """Write the document, or compare it with `--check`. Returns 1 if the file is not current, otherwise 0."""
    parser = argparse.ArgumentParser(prog="openapi", description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; exit with 1 if the file is not current")
    text = in_lines(document()) + "\n"
    if parser.parse_args().check:
        return int(FILE.read_text() != text)
    FILE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
