"""Starts the two engines of the demo, Spark and PyIceberg, connected to one catalog over REST."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyiceberg.catalog import Catalog, load_catalog
from pyspark.sql import SparkSession

from arco_catalog.cli.client_config import store_settings
from tools.demo.java import java_home, stderr_in

ICEBERG = "1.11.0"
JARS = (f"iceberg-spark-runtime-4.1_2.13-{ICEBERG}.jar", f"iceberg-aws-bundle-{ICEBERG}.jar")
GCP_JARS = (f"iceberg-gcp-bundle-{ICEBERG}.jar",)
PROJECT = Path(__file__).resolve().parents[2]
AZURE_SDK = PROJECT / "tools" / "azuresdk" / "jars.sha256"


def jars(store: str, runtime: str = JARS[0]) -> list[Path]:
    """Iceberg's jars for Spark over a store; `runtime` is Iceberg for one release of Spark. Raises `LookupError` if one
    is not there."""
    return [*_fetched(runtime, *JARS[1:]), *jars_of_store(store)]


def jars_of_store(store: str) -> list[Path]:
    """What Iceberg's client needs besides its AWS bundle to read and write files in a store. Raises `LookupError` if it
    is not there."""
    match store.partition(":")[0]:
        case "gs":
            return _fetched(*GCP_JARS)
        case "abfss" | "abfs" | "az":
            return _fetched(*(f"azure-sdk/{line.split()[1]}" for line in AZURE_SDK.read_text().splitlines()))
        case _:
            return []


def _fetched(*names: str) -> list[Path]:
    """Files in `.jars`, as `make jars` fetches them."""
    found = [PROJECT / ".jars" / name for name in names]
    if missing := [jar.name for jar in found if not jar.exists()]:
        raise LookupError(f"no {', '.join(missing)} in .jars: run `make jars`")
    return found


def spark_properties(store: str) -> dict[str, str]:
    """What `arco serve` prints for Spark over a store, with Azure's keys in place of the variables that are named."""
    return {name: os.path.expandvars(value) for name, value in store_settings(store, os.environ).spark.items()}


def pyiceberg_properties(store: str) -> dict[str, str]:
    """What `arco serve` prints for PyIceberg over a store. Keys it reads in the environment itself."""
    return dict(store_settings(store, os.environ).pyiceberg)


@contextmanager
def spark_session(
    uri: str, warehouse: str, scratch: Path, store: str = "", runtime: str = JARS[0]
) -> Iterator[SparkSession]:
    """Spark with the catalog as `rest` over a store, local files if none is named, listening on loopback only.

    Iceberg is the jar `runtime`, which must be for this Spark. The log is `scratch/spark.log`."""
    os.environ["JAVA_HOME"] = str(java_home())
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    log4j = PROJECT / "tools" / "demo" / "log4j2.properties"
    logging = f"-Dlog4j2.configurationFile={log4j} -Ddemo.log={scratch / 'spark.log'}"
    catalog = {
        "": "org.apache.iceberg.spark.SparkCatalog",
        ".type": "rest",
        ".uri": uri,
        ".warehouse": warehouse,
        ".cache-enabled": "false",  # each statement sees what the other engine has just committed
        **{f".{name}": value for name, value in spark_properties(store).items()},
    }
    settings = {
        "spark.jars": ",".join(str(jar) for jar in jars(store, runtime)),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.driver.extraJavaOptions": logging,
        "spark.local.dir": str(scratch / "spark"),
        "spark.sql.warehouse.dir": str(scratch / "spark-warehouse"),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.defaultCatalog": "rest",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **{f"spark.sql.catalog.rest{name}": value for name, value in catalog.items()},
    }
    builder = SparkSession.Builder().master("local[2]").appName("arco-demo")
    for name, value in settings.items():
        builder = builder.config(name, value)
    with stderr_in(scratch / "spark.stderr"):
        session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()


def pyiceberg_catalog(uri: str, warehouse: str, properties: dict[str, str]) -> Catalog:
    """PyIceberg, connected to the same catalog."""
    return load_catalog("rest", type="rest", uri=uri, warehouse=warehouse, **properties)
