"""ClickHouse's end of the talk: `python -m tests.engines.others.clickhouse_shell SCRATCH URI WAREHOUSE`."""

import json
import sys
from typing import TextIO

from chdb import session  # type: ignore[import-not-found]

from tests.engines.shell import answer, outcomes


def main(out: TextIO, scratch: str, uri: str, warehouse: str) -> None:
    server = session.Session(f"{scratch}/chdb")

    def run(statement: str) -> list[list[object]]:
        return [json.loads(line) for line in str(server.query(statement, "JSONCompactEachRow")).splitlines()]

    run("SET allow_database_iceberg = 1")
    run("SET allow_insert_into_iceberg = 1")
    run(
        f"CREATE DATABASE rest ENGINE = DataLakeCatalog('{uri}/v1') "
        f"SETTINGS catalog_type = 'rest', warehouse = '{warehouse}', vended_credentials = false"
    )
    answer(out, run, (RuntimeError,))


if __name__ == "__main__":
    with outcomes() as out:
        main(out, *sys.argv[1:])
