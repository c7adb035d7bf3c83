"""A job's Spark, and the catalog that its command line names."""

import argparse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark import SparkConf, SparkContext

from reconciler.catalog_config import CatalogConfig
from reconciler.packages import shipped

NO_SUBSTITUTION = ("spark.sql.variable.substitute", "false")
"""Spark replaces `${...}` in a statement before it parses it, also within the name of a table: names of users must not
become those of other tables, or show settings."""


def catalog_of(parsed: argparse.Namespace) -> CatalogConfig:
    """The catalog that the options name."""
    return CatalogConfig(parsed.store, parsed.warehouse, tuple(parsed.allowed_location), realm=parsed.realm)


@contextmanager
def spark_of(
    parsed: argparse.Namespace, name: str, settings: Mapping[str, str] | None = None
) -> Iterator[SparkContext]:
    """A Spark application of these settings, with the project's packages on its executors. On one machine it listens on
    loopback."""
    conf = SparkConf().setAppName(name).setAll([*(settings or {}).items(), NO_SUBSTITUTION])
    if parsed.master is not None:
        conf.setMaster(parsed.master)
        if parsed.master.startswith("local"):
            conf.setIfMissing("spark.driver.bindAddress", "127.0.0.1").setIfMissing("spark.driver.host", "127.0.0.1")
            conf.setIfMissing("spark.ui.enabled", "false")
    with SparkContext.getOrCreate(conf) as spark, shipped(spark):
        yield spark
