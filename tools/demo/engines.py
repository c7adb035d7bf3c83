"""The two engines, connected to one catalog over REST."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyiceberg.catalog import Catalog, load_catalog
from pyspark.sql import SparkSession

from tools.demo.java import java_home, stderr_in

ICEBERG = "1.11.0"
JARS = (f"iceberg-spark-runtime-4.1_2.13-{ICEBERG}.jar", f"iceberg-aws-bundle-{ICEBERG}.jar")
PROJECT = Path(__file__).resolve().parents[2]


def jars() -> list[Path]:
    """Iceberg's jars for Spark, as `make jars` fetches them. Raises `LookupError` if they are not there."""
    found = [PROJECT / ".jars" / name for name in JARS]
    if missing := [jar.name for jar in found if not jar.exists()]:
        raise LookupError(f"no {', '.join(missing)} in .jars: run `make jars`")
    return found


def s3_properties() -> dict[str, str]:
    """Where S3 is, from the usual `AWS_*` variables, as both engines call it; keys they read there themselves."""
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3")
    named = {"s3.endpoint": endpoint, "s3.path-style-access": "true"} if endpoint else {}
    return {"s3.region": region, "client.region": region, **named}


@contextmanager
def spark_session(uri: str, warehouse: str, scratch: Path, properties: dict[str, str]) -> Iterator[SparkSession]:
    """Spark with the catalog as `rest`, listening on loopback only. Its log is `scratch/spark.log`."""
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
        **{f".{name}": value for name, value in properties.items()},
    }
    if properties:
        catalog[".io-impl"] = "org.apache.iceberg.aws.s3.S3FileIO"
    settings = {
        "spark.jars": ",".join(str(jar) for jar in jars()),
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
