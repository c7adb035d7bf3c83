"""DataFusion's and Polars' end of the talk: `python -m tests.engines.others.dataframes_shell SCRATCH URI WAREHOUSE`.

PyIceberg finds the table, the engine reads it. A statement is `ENGINE TABLE SQL`, where the SQL calls the table `t`;
`INSERT INTO t` before a query makes Polars write its rows.
"""

import sys
from typing import TextIO

import polars  # type: ignore[import-not-found]
from datafusion import SessionContext  # type: ignore[import-not-found]
from pyiceberg.catalog import load_catalog
from pyiceberg.table import Table

from tests.engines.shell import answer, outcomes

WRITE = "INSERT INTO t "
Rows = list[tuple[object, ...]]


def datafusion_run(table: Table, statement: str) -> Rows:
    # pyiceberg-core takes no properties but text, and PyIceberg keeps an object among them.
    table.io.properties = {name: value for name, value in table.io.properties.items() if isinstance(value, str)}
    context = SessionContext()
    context.register_table("t", table)
    return [tuple(row.values()) for row in context.sql(statement).to_pylist()]


def polars_run(table: Table, statement: str) -> Rows:
    query = polars.SQLContext(t=polars.scan_iceberg(table)).execute(statement.removeprefix(WRITE)).collect()
    if statement.startswith(WRITE):
        query.write_iceberg(table, mode="append")
        return []
    rows: Rows = query.rows()
    return rows


def main(out: TextIO, scratch: str, uri: str, warehouse: str) -> None:
    catalog = load_catalog("rest", type="rest", uri=uri, warehouse=warehouse)
    engines = {"datafusion": datafusion_run, "polars": polars_run}

    def run(statement: str) -> Rows:
        engine, table, sql = statement.split(" ", 2)
        return engines[engine](catalog.load_table(table), sql)

    answer(out, run, (Exception,))  # DataFusion raises nothing narrower


if __name__ == "__main__":
    with outcomes() as out:
        main(out, *sys.argv[1:])
