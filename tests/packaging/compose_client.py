"""A client of the catalog of the compose files, with the settings that Spark has there: `compose_client.py CONF LOGIN`.
Writes a table, and prints its rows."""

import sys
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
from pyiceberg.catalog import load_catalog

PREFIX = "spark.sql.catalog.arco."


def main(defaults: str, login: str) -> None:
    lines = (line.split(maxsplit=1) for line in Path(defaults).read_text().splitlines())
    properties = {name.removeprefix(PREFIX): value.strip() for name, value in lines if name.startswith(PREFIX)}
    kind, variable = properties.pop("credential").split(":")
    exported = dict([Path(login).read_text().strip().removeprefix("export ").split("=", 1)])
    assert kind == "env"
    catalog = load_catalog("arco", **properties, credential=exported[variable])
    catalog.create_namespace("sales")
    table = catalog.create_table("sales.orders", pa.schema([("amount", pa.int64())]))
    table.append(pa.table({"amount": [10, 20]}))
    print(catalog.load_table("sales.orders").scan().to_arrow()["amount"].to_pylist())
    catalog.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
