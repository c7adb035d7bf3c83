"""Which Iceberg Spark has: its procedures are called by arguments that older ones don't know."""

import re

from pyspark import SparkContext

OLDEST = (1, 10)
"""The first whose `remove_orphan_files` takes `prefix_listing`, and so lists as the catalog's file access allows."""


class IcebergUnfit(Exception):
    """Spark has no Iceberg, or one that is too old."""


def require_iceberg(spark: SparkContext) -> None:
    """Raises `IcebergUnfit`. Before anything is begun: a task of a table would be told as failed, one after another."""
    check_version(_version(spark))


def check_version(version: str | None) -> None:
    """The same, by what Iceberg says of itself; None where there is none. Vendors' builds have a suffix, and a build
    that does not know its version is let pass. Raises `IcebergUnfit`."""
    needed = (
        f"maintain needs Iceberg {OLDEST[0]}.{OLDEST[1]} or newer: say which by --jars or --packages of spark-submit"
    )
    if version is None:
        raise IcebergUnfit(f"Spark has no Iceberg. {needed}")
    numbers = re.match(r"(\d+)\.(\d+)", version)
    if numbers is not None and (int(numbers[1]), int(numbers[2])) < OLDEST:
        raise IcebergUnfit(f"Spark has Iceberg {version}. {needed}")


def _version(spark: SparkContext) -> str | None:
    jvm = spark._jvm
    assert jvm is not None
    build = jvm.org.apache.iceberg.IcebergBuild
    return str(build.version()) if hasattr(build, "version") else None
