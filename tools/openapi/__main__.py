"""Writes the catalog's OpenAPI document: `python -m tools.openapi`; `--check` says whether it is current."""

import argparse
import sys
from pathlib import Path

from tools.openapi.document import document
from tools.openapi.specifications import in_lines
from tools.support.environment import PROJECT

FILE: Path = PROJECT / "arco_catalog/http/openapi.json"


def main() -> int:
    """Writes or checks."""
    parser = argparse.ArgumentParser(prog="openapi", description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; exit with 1 if the file is not current")
    text = in_lines(document()) + "\n"
    if parser.parse_args().check:
        return int(FILE.read_text() != text)
    FILE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
