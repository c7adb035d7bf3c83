"""The state on which every step of the demo works."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa  # type: ignore[import-untyped]
from pyiceberg.catalog import Catalog
from pyspark.sql import Row, SparkSession

from tools.demo import checks


@dataclass
class Lake:
    """The lake of the demo: two engines over one catalog, the generated rows, and the rows that the catalog's tables
    must have by now.

    Every step changes a table through an engine and the same rows in `expected` with Arrow.
    """

    spark: SparkSession
    pyiceberg: Catalog
    files: dict[str, pa.Table]
    expected: dict[str, pa.Table] = field(default_factory=dict)

    def sql(self, statement: str) -> list[Row]:
        """Runs a statement in Spark, to its end."""
        return self.spark.sql(statement).collect()

    def check(self, table: str, version: str = "", expected: pa.Table | None = None) -> None:
        """Compares what Spark reads in `table`, at a version if one is named, with what it must hold."""
        rows = self.expected[table] if expected is None else expected
        found = checks.of_spark(self.spark, f"rest.{table} {version}")
        checks.compare(f"Spark reading {table} {version}".rstrip(), found, checks.of_arrow(rows))

    def check_with_both(self, table: str) -> None:
        """The same, with both engines."""
        self.check(table)
        found = checks.of_pyiceberg(self.pyiceberg.load_table(table))
        checks.compare(f"PyIceberg reading {table}", found, checks.of_arrow(self.expected[table]))


Step = Callable[[Lake], str | None]
"""Does one thing, checks it, and may say what came of it. The first line of its docstring is its title."""


def title(step: Step) -> str:
    """How a step is announced."""
    return (step.__doc__ or step.__name__).splitlines()[0].rstrip(".")
