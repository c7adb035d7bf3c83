"""Tables that Spark writes: every transform and type that it has, in a spec and a schema that change; deletes of every
kind, of which Iceberg's Java library writes the equality deletes; branches and tags; no rows, and many files."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from arco_catalog.iceberg.json import JsonValue
from tests.engines.lake import Lake
from tests.engines.scans.drawn_values import value
from tests.engines.scans.oracle import MadeTable, Oracle
from tests.engines.shell import Sql
from tools.demo.server import WAREHOUSE

NAMESPACE = "scans"
COLUMNS = {
    "id": "long",
    "n": "int",
    "r": "float",
    "x": "double",
    "price": "decimal(9, 2)",
    "day": "date",
    "at": "timestamptz",
    "local": "timestamp",
    "name": "string",
    "data": "binary",
    "Flag": "boolean",
    "s.x": "int",
    "s.Y": "string",
}
"""By its name, the type of each column with which a table begins."""
SQL_TYPES = {"long": "BIGINT", "timestamptz": "TIMESTAMP", "timestamp": "TIMESTAMP_NTZ"}
LITERALS = {
    "float": "float('{}')",
    "double": "double('{}')",
    "decimal(9, 2)": "CAST('{}' AS DECIMAL(9, 2))",
    "decimal(18, 2)": "CAST('{}' AS DECIMAL(18, 2))",
    "date": "DATE'{}'",
    "timestamptz": "TIMESTAMP'{}'",
    "timestamp": "TIMESTAMP_NTZ'{}'",
    "string": "'{}'",
    "binary": "X'{}'",
}


@dataclass
class SparkWriter:
    """Writes tables in a namespace of a catalog that Spark knows."""

    spark: Sql
    lake: Lake
    oracle: Oracle

    def table(self, name: str, version: int, seed: int) -> MadeTable:
        """A table of this format version. One of version 2 gets equality deletes, which PyIceberg does not read, and is
        upgraded to version 3 in the end."""
        writer = _Table(f"{self.lake.name}.{NAMESPACE}.{name}", version, Random(seed))
        for statement in writer.statements():
            self.spark(statement)
        if version == 2:
            self._delete_equal(name, writer)
        for statement in writer.last_statements():
            self.spark(statement)
        return self.made(name)

    def _delete_equal(self, name: str, writer: "_Table") -> None:
        """Of each partition spec, and of the whole table."""
        for columns, is_global in ((["id"], False), (["title", "n"], True)):
            rows: list[JsonValue] = [writer.row() for _ in range(2)]
            request = {"uri": self.lake.server.uri, "warehouse": WAREHOUSE, "table": f"{NAMESPACE}.{name}"}
            answer = self.oracle.java.answer(
                {"op": "delete-equal", **request, "columns": [*columns], "rows": rows, "global": is_global}
            )
            assert answer == {}, answer

    def empty(self, name: str) -> MadeTable:
        """A table that never had a row."""
        self.spark(f"CREATE TABLE {self.lake.name}.{NAMESPACE}.{name} (id BIGINT, at TIMESTAMP) USING iceberg")
        return self.made(name)

    def many_files(self, name: str, files: int) -> MadeTable:
        """A table of a file for each row, of which half were deleted by rows and some by files."""
        table = f"{self.lake.name}.{NAMESPACE}.{name}"
        self.spark(
            f"""CREATE TABLE {table} (id BIGINT, n INT, name STRING) USING iceberg PARTITIONED BY (id)
            TBLPROPERTIES ('format-version' = '2', 'write.delete.mode' = 'merge-on-read')"""
        )
        for first in (0, files // 2):
            self.spark(
                f"""INSERT INTO {table} SELECT /*+ COALESCE(1) */ id, CAST(id % 7 AS INT), concat('n', id % 40)
                FROM range({first}, {first + files // 2})"""
            )
        self.spark(f"DELETE FROM {table} WHERE n = 5")
        self.spark(f"DELETE FROM {table} WHERE id < 20")
        return self.made(name)

    def made(self, name: str) -> MadeTable:
        """A table as it is, with all of its files."""
        location = self.lake.bystander.load_table(f"{NAMESPACE}.{name}").metadata_location
        metadata = json.loads(Path(location.removeprefix("file://")).read_bytes())
        folder = Path(metadata["location"].removeprefix("file://"))
        paths = [f"file:{path}" for path in folder.rglob("*.parquet")]  # as Hadoop spells them
        return MadeTable({}, location, metadata, {path: {"path": path} for path in paths})


class _Table:
    def __init__(self, table: str, version: int, random: Random) -> None:
        self.table, self.version, self.random = table, version, random
        self.columns = {**COLUMNS}

    def statements(self) -> Iterator[str]:
        yield self.create()
        yield self.insert()
        yield from self.partition("ADD PARTITION FIELD days(at)", "ADD PARTITION FIELD bucket(3, id)")
        yield self.alter("CREATE TAG early")
        yield from self.partition("DROP PARTITION FIELD days(at)", "ADD PARTITION FIELD truncate(2, name)")
        yield self.rename("name", "title")
        yield from self.partition("ADD PARTITION FIELD Flag", "ADD PARTITION FIELD years(day)")
        yield self.alter("ALTER COLUMN n TYPE BIGINT")
        yield self.alter("ALTER COLUMN r TYPE DOUBLE")
        yield self.alter("ALTER COLUMN price TYPE DECIMAL(18, 2)")
        self.columns |= {"n": "long", "r": "double", "price": "decimal(18, 2)"}
        yield self.insert()
        yield from self.deletes()
        yield self.alter("CREATE BRANCH side")
        yield self.insert(to=".branch_side")
        yield from self.partition(
            "DROP PARTITION FIELD years(day)",
            "DROP PARTITION FIELD bucket(3, id)",
            "ADD PARTITION FIELD months(day)",
            "ADD PARTITION FIELD hours(at)",
        )
        yield self.alter("ADD COLUMN later INT")
        self.columns["later"] = "int"
        yield from self.partition("DROP PARTITION FIELD months(day)", "ADD PARTITION FIELD truncate(1, data)")
        yield self.drop("local")
        yield self.insert(rows=[self.sql({}), self.sql({})])
        yield self.insert(rows=[self.sql({**self.row(), "r": "NaN", "x": "NaN"})])
        yield from self.deletes()

    def last_statements(self) -> Iterator[str]:
        yield self.insert()
        if self.version > 1:
            yield self.alter("SET TBLPROPERTIES ('format-version' = '3')")
            yield self.insert()
            yield from self.deletes()
            yield self.alter("DROP PARTITION FIELD Flag")
            yield self.drop("Flag")  # Spark deletes no row of a table that had a partition field of the column
            yield self.insert()

    def create(self) -> str:
        columns = {name: sql_type(kind) for name, kind in self.columns.items() if "." not in name}
        columns["s"] = "STRUCT<x: INT, Y: STRING>"
        listed = ", ".join(f"{name} {kind}" for name, kind in columns.items())
        mode = "merge-on-read" if self.version > 1 else "copy-on-write"
        modes = ", ".join(f"'write.{change}.mode' = '{mode}'" for change in ("delete", "update", "merge"))
        return f"""CREATE TABLE {self.table} ({listed}) USING iceberg TBLPROPERTIES ({modes},
            'format-version' = '{self.version}', 'commit.manifest.min-count-to-merge' = '4',
            'write.delete.granularity' = 'partition', 'write.distribution-mode' = 'none',
            'write.spark.fanout.enabled' = 'true')"""

    def alter(self, change: str) -> str:
        return f"ALTER TABLE {self.table} {change}"

    def partition(self, *changes: str) -> Iterator[str]:
        yield from map(self.alter, changes)
        yield self.insert()

    def drop(self, name: str) -> str:
        del self.columns[name]
        return self.alter(f"DROP COLUMN {name}")

    def rename(self, name: str, to: str) -> str:
        self.columns = {to if each == name else each: kind for each, kind in self.columns.items()}
        return self.alter(f"RENAME COLUMN {name} TO {to}")

    def deletes(self) -> Iterator[str]:
        yield f"DELETE FROM {self.table} WHERE id IN (1, 5, 34)"
        yield f"UPDATE {self.table} SET title = 'iceberg' WHERE n < 0"

    def insert(self, to: str = "", rows: Sequence[str] = ()) -> str:
        """A file or more of few values each."""
        drawn = rows or [self.sql(self.row()) for _ in range(4)]
        return f"INSERT INTO {self.table}{to} VALUES {', '.join(drawn)}"

    def row(self) -> dict[str, JsonValue]:
        row: dict[str, JsonValue] = {name: value(self.random, kind) for name, kind in self.columns.items()}
        nested: dict[str, JsonValue] = {name: row.pop(f"s.{name}") for name in ("x", "Y")}
        return {**row, "s": None if self.random.random() < 0.2 else nested}

    def sql(self, row: Mapping[str, JsonValue]) -> str:
        """A row in the order of the table's columns, in which a column that came later is the last."""
        top = {name: kind for name, kind in self.columns.items() if "." not in name}
        literals = {name: literal(kind, row.get(name)) for name, kind in top.items()}
        nested = row.get("s")
        struct = "NULL"
        if isinstance(nested, dict):
            struct = f"named_struct('x', {literal('int', nested['x'])}, 'Y', {literal('string', nested['Y'])})"
        later = [literals.pop("later")] if "later" in literals else []
        return f"({', '.join([*literals.values(), struct, *later])})"


def sql_type(type_name: str) -> str:
    return SQL_TYPES.get(type_name, type_name.upper())


def literal(type_name: str, drawn: JsonValue) -> str:
    if drawn is None:
        return f"CAST(NULL AS {sql_type(type_name)})"
    return LITERALS.get(type_name, "{}").format(drawn)
