"""Programs with iceberg-go, of the folder `others/iceberg_go`, which `make test-engines` builds."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.engines.shell import Sql, shell
from tools.demo.engines import PROJECT

SCANNER = PROJECT / ".tools" / "iceberg-go-scanner"
"""Reads: a statement is who plans, `local` or `remote`, and the name of a filter."""


@contextmanager
def go_program(
    program: Path, uri: str, warehouse: str, table: str, scratch: Path, properties: Mapping[str, str]
) -> Iterator[Sql]:
    """A program at a table of a catalog, which it knows by properties."""
    if not program.exists():
        raise LookupError(f"no {program}: `make test-engines` builds it")
    command = [str(program), uri, warehouse, *table.split(".")]
    with shell(command, PROJECT, scratch, {"ICEBERG_PROPERTIES": json.dumps(dict(properties))}) as run:
        yield run
