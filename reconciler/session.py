"""Opens a job's Spark application, and reads the catalog from the command line."""

import argparse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark import SparkConf, SparkContext

from arco_catalog.config.variables import MAX_METADATA
from reconciler.catalog_config import CatalogConfig, own_environment
from reconciler.packages import shipped

NO_SUBSTITUTION = ("spark.sql.variable.substitute", "false")
"""The setting that turns variable substitution off. Spark replaces `${...}` in a statement before it parses it, even in
the name of a table: a user's name could become that of another table, or expose settings."""


def catalog_of(parsed: argparse.Namespace) -> CatalogConfig:
    """Returns the configuration of the catalog that a job's options `--store`, `--warehouse`, `--allowed-location` and
    `--realm` name; `ARCO_MAX_METADATA` limits its metadata files, as for a server. Raises `ValueError` if that variable
    is invalid."""
    return CatalogConfig(
        parsed.store,
        parsed.warehouse,
        tuple(parsed.allowed_location),
        realm=parsed.realm,
        max_metadata_bytes=MAX_METADATA.read(own_environment()),
    )


@contextmanager
def spark_of(
    parsed: argparse.Namespace, name: str, settings: Mapping[str, str] | None = None
) -> Iterator[SparkContext]:
    """Starts a Spark application called `name` with these settings, or takes the one that runs in this process, and
    sends the project's packages to the executors. Stops the application on exit. With a local `--master` it listens
    only on the loopback interface and has no web interface, unless Spark's own settings differ."""
    conf = SparkConf().setAppName(name).setAll([*(settings or {}).items(), NO_SUBSTITUTION])
    if parsed.master is not None:
        conf.setMaster(parsed.master)
        if parsed.master.startswith("local"):
            conf.setIfMissing("spark.driver.bindAddress", "127.0.0.1").setIfMissing("spark.driver.host", "127.0.0.1")
            conf.setIfMissing("spark.ui.enabled", "false")
    with SparkContext.getOrCreate(conf) as spark, shipped(spark):
        yield spark
