"""What `arco serve` prints for engines at a realm, as each engine takes it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyiceberg.catalog import Catalog

from arco_catalog.cli.client_config import CATALOG, Login, client_config

_BLOCKS = re.compile(r"\n\n(?=# PyIceberg|# Trino|-- Flink|-- DuckDB)")
_CONF = re.compile(rf"--conf spark\.sql\.catalog\.{CATALOG}\.(\S+?)=(\S+)")


@dataclass(frozen=True)
class Printed:
    """One client's settings: `spark` and `trino` are a catalog's properties, `flink` and `duckdb` statements."""

    spark: Mapping[str, str]
    pyiceberg: str
    trino: Mapping[str, str]
    flink: str
    duckdb: Sequence[str]

    def pasted(self) -> Catalog:
        """The catalog of whoever pastes the block for PyIceberg."""
        names: dict[str, Catalog] = {}
        exec(self.pyiceberg, names)
        return names["catalog"]


def printed(uri: str, warehouse: str, store: str, environment: Mapping[str, str], login: str, auth: str) -> Printed:
    """What a server prints that lets clients in by `auth`, with a client's own login filled in: its id and secret, or
    its token. `environment` is the server's."""
    text = client_config(uri, warehouse, store, environment, Login.of([auth]))
    client_id, _, secret = login.partition(":")
    for placeholder, value in {
        "CLIENT_ID:CLIENT_SECRET": login,
        "CLIENT_ID": client_id,
        "CLIENT_SECRET": secret,
        "TOKEN": login,
    }.items():
        text = re.sub(rf"(?<=['\"=]){placeholder}\b", value, text)
    spark, pyiceberg, trino, flink, duckdb = _BLOCKS.split(text)
    return Printed(
        dict(_CONF.findall(spark)),
        pyiceberg,
        dict(line.split("=", 1) for line in trino.splitlines()[1:]),
        flink.partition("\n")[2].rstrip(";"),
        [line for line in duckdb.splitlines()[1:] if not line.startswith("INSTALL")],
    )
