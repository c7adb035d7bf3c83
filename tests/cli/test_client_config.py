"""What a server prints for engines, store by store."""

from collections.abc import Mapping

import pytest

from arco_catalog.cli.client_config import client_config

URI = "http://127.0.0.1:8181"
KEYS = {"AWS_ACCESS_KEY_ID": "AKIAEXAMPLE", "AWS_SECRET_ACCESS_KEY": "hunter2", "AWS_SESSION_TOKEN": "hunter3"}


def blocks(store: str, environment: Mapping[str, str] | None = None) -> tuple[str, str, str]:
    """The blocks for Spark, PyIceberg and Trino."""
    text = client_config(URI, "lake", store, environment or {})
    spark, rest = text.split("\n\n# PyIceberg\n")
    python, trino = rest.split("\n\n# Trino")
    return spark, python, trino


def test_the_settings_for_local_files_are_pinned() -> None:
    assert (
        client_config(URI, "lake", "file:/data", KEYS)
        == """\
# Spark 4.1, on a command line
spark-sql --packages org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0 \\
  --conf spark.sql.extensions=org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions \\
  --conf spark.sql.catalog.arco=org.apache.iceberg.spark.SparkCatalog \\
  --conf spark.sql.catalog.arco.type=rest \\
  --conf spark.sql.catalog.arco.uri=http://127.0.0.1:8181 \\
  --conf spark.sql.catalog.arco.warehouse=lake \\
  --conf spark.sql.defaultCatalog=arco

# PyIceberg
from pyiceberg.catalog import load_catalog

catalog = load_catalog(
    "arco",
    **{
        "type": "rest",
        "uri": "http://127.0.0.1:8181",
        "warehouse": "lake",
    },
)

# Trino, as etc/catalog/arco.properties
connector.name=iceberg
iceberg.catalog.type=rest
iceberg.rest-catalog.uri=http://127.0.0.1:8181
iceberg.rest-catalog.warehouse=lake
iceberg.rest-catalog.nested-namespace-enabled=true
iceberg.rest-catalog.view-endpoints-enabled=true
fs.native-local.enabled=true
local.location=/"""
    )


def test_amazons_own_s3_needs_a_region_and_no_endpoint() -> None:
    spark, python, trino = blocks("s3://bucket/x", {**KEYS, "AWS_DEFAULT_REGION": "eu-west-1"})

    assert "iceberg-aws-bundle" in spark
    assert "spark.sql.catalog.arco.io-impl=org.apache.iceberg.aws.s3.S3FileIO" in spark
    assert "spark.sql.catalog.arco.client.region=eu-west-1" in spark
    assert '"s3.region": "eu-west-1"' in python
    assert "fs.native-s3.enabled=true\ns3.region=eu-west-1" in trino
    assert "fs.native-local" not in trino
    for block in (spark, python, trino):
        assert "s3.endpoint" not in block
        assert "path-style" not in block


@pytest.mark.parametrize("variable", ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"])
def test_another_s3_needs_its_endpoint_and_paths(variable: str) -> None:
    spark, python, trino = blocks("s3://bucket/x", {**KEYS, variable: "http://127.0.0.1:9000", "AWS_REGION": "r"})

    assert "spark.sql.catalog.arco.s3.endpoint=http://127.0.0.1:9000" in spark
    assert "spark.sql.catalog.arco.s3.path-style-access=true" in spark
    assert '"s3.endpoint": "http://127.0.0.1:9000"' in python
    assert "s3.endpoint=http://127.0.0.1:9000\ns3.path-style-access=true" in trino


@pytest.mark.parametrize("store", ["file:/data", "s3://bucket/x", "memory:"])
def test_no_secret_is_printed(store: str) -> None:
    text = client_config(URI, "lake", store, {**KEYS, "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:9000"})

    assert not [value for value in KEYS.values() if value in text]


def test_a_store_in_memory_is_said_to_be_out_of_reach() -> None:
    assert "no engine can read or write files there" in client_config(URI, "lake", "memory:", {})
