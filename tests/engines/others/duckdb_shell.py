"""DuckDB's end of the talk: `python -m tests.engines.others.duckdb_shell SCRATCH [STATEMENT]...`."""

import sys
from typing import TextIO

import duckdb  # type: ignore[import-not-found]
from duckdb_extensions import import_extension  # type: ignore[import-not-found]

from tests.engines.shell import answer, outcomes


def main(out: TextIO, scratch: str, *statements: str) -> None:
    # Its extensions come from PyPI, and must not go to the home folder.
    settings = {"extension_directory": f"{scratch}/extensions", "autoinstall_known_extensions": "false"}
    with duckdb.connect(":memory:", config=settings) as connection:
        for extension in ("avro", "httpfs", "iceberg"):
            import_extension(extension, con=connection)
        connection.execute("LOAD iceberg")
        for statement in statements:
            connection.execute(statement)

        def run(statement: str) -> list[tuple[object, ...]]:
            rows: list[tuple[object, ...]] = connection.execute(statement).fetchall()
            return rows

        answer(out, run, (duckdb.Error,))


if __name__ == "__main__":
    with outcomes() as out:
        main(out, *sys.argv[1:])
