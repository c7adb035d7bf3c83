"""Checks the version of Iceberg in Spark: older procedures lack arguments that `maintain` calls them with."""

import re

from pyspark import SparkContext

MIN_VERSION = (1, 10)
"""The first version in which `remove_orphan_files` has the argument `prefix_listing`, which lists files with the
table's vended credentials."""


class UnsupportedIceberg(Exception):
    """Spark has no Iceberg, or one older than `MIN_VERSION`."""


def require_iceberg(spark: SparkContext) -> None:
    """Raises `UnsupportedIceberg` unless Spark has Iceberg of `MIN_VERSION` or newer, or of a version that does not
    begin with two numbers. A run checks this first: without Iceberg, every procedure of every table would be reported
    as failed."""
    check_version(_version(spark))


def check_version(version: str | None) -> None:
    """Raises `UnsupportedIceberg` if `version` is None, which means that Spark has no Iceberg, or older than
    `MIN_VERSION`. Suffixes of vendors' builds are ignored. A version that does not begin with two numbers is accepted,
    since some builds report `unknown`."""
    needed = (
        f"maintain needs Iceberg {MIN_VERSION[0]}.{MIN_VERSION[1]} or newer, and changed no table: add it, in place of "
        "an older one, by --jars or --packages, of spark-submit or of this job"
    )
    if version is None:
        raise UnsupportedIceberg(f"Spark has no Iceberg. {needed}")
    numbers = re.match(r"(\d+)\.(\d+)", version)
    if numbers is not None and (int(numbers[1]), int(numbers[2])) < MIN_VERSION:
        raise UnsupportedIceberg(f"Spark has Iceberg {version}. {needed}")


def _version(spark: SparkContext) -> str | None:
    """Returns the version of Iceberg in Spark's JVM; None if the JVM has no Iceberg."""
    jvm = spark._jvm
    assert jvm is not None
    build = jvm.org.apache.iceberg.IcebergBuild
    return str(build.version()) if hasattr(build, "version") else None
