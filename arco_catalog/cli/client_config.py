"""Configuration of engines for a catalog that has just started, to be pasted.

No secret is in it: engines take keys from where the server took its own.
"""

from collections.abc import Mapping

from storage_backends.s3.config import S3Config

ICEBERG = "1.11.0"
SPARK_RUNTIME = f"org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:{ICEBERG}"
AWS_BUNDLE = f"org.apache.iceberg:iceberg-aws-bundle:{ICEBERG}"
CATALOG = "arco"
"""What engines call the catalog. Not the warehouse, whose name need not be an identifier in SQL."""

IN_MEMORY = """\
# The store lives in this process's memory: no engine can read or write files there, and it ends with the server.
# Take --store file:/absolute/path to work with tables."""


def client_config(uri: str, warehouse: str, store: str, environment: Mapping[str, str]) -> str:
    """Configuration for Spark, PyIceberg and Trino, each block ready to paste."""
    if store.startswith("memory:"):
        return IN_MEMORY
    s3 = _s3(environment) if store.startswith("s3:") else None
    return "\n\n".join([_spark(uri, warehouse, s3), _pyiceberg(uri, warehouse, s3), _trino(uri, warehouse, s3)])


def _s3(environment: Mapping[str, str]) -> dict[str, str]:
    """Region, and endpoint if it is not Amazon's own."""
    config = S3Config.from_environment(environment)
    region = {"region": config.region or "us-east-1"}
    return region if config.endpoint_url is None else {**region, "endpoint": config.endpoint_url}


def _spark(uri: str, warehouse: str, s3: Mapping[str, str] | None) -> str:
    catalog = f"spark.sql.catalog.{CATALOG}"
    packages = [SPARK_RUNTIME]
    settings = {
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.type": "rest",
        f"{catalog}.uri": uri,
        f"{catalog}.warehouse": warehouse,
        "spark.sql.defaultCatalog": CATALOG,
    }
    if s3 is not None:
        packages.append(AWS_BUNDLE)
        settings[f"{catalog}.io-impl"] = "org.apache.iceberg.aws.s3.S3FileIO"
        settings[f"{catalog}.client.region"] = s3["region"]
        if "endpoint" in s3:
            settings[f"{catalog}.s3.endpoint"] = s3["endpoint"]
            settings[f"{catalog}.s3.path-style-access"] = "true"
    lines = [
        f"spark-sql --packages {','.join(packages)}",
        *(f"--conf {name}={value}" for name, value in settings.items()),
    ]
    return "# Spark 4.1, on a command line\n" + " \\\n  ".join(lines)


def _pyiceberg(uri: str, warehouse: str, s3: Mapping[str, str] | None) -> str:
    settings = {"type": "rest", "uri": uri, "warehouse": warehouse}
    settings |= {f"s3.{name}": value for name, value in (s3 or {}).items()}
    lines = ["catalog = load_catalog(", f'    "{CATALOG}",', "    **{"]
    lines += [f'        "{name}": "{value}",' for name, value in settings.items()]
    return "\n".join(["# PyIceberg", "from pyiceberg.catalog import load_catalog", "", *lines, "    },", ")"])


def _trino(uri: str, warehouse: str, s3: Mapping[str, str] | None) -> str:
    settings = {
        "connector.name": "iceberg",
        "iceberg.catalog.type": "rest",
        "iceberg.rest-catalog.uri": uri,
        "iceberg.rest-catalog.warehouse": warehouse,
        "iceberg.rest-catalog.nested-namespace-enabled": "true",
        "iceberg.rest-catalog.view-endpoints-enabled": "true",
    }
    if s3 is None:
        settings |= {"fs.native-local.enabled": "true", "local.location": "/"}
    else:
        settings |= {"fs.native-s3.enabled": "true", "s3.region": s3["region"]}
        if "endpoint" in s3:
            settings |= {"s3.endpoint": s3["endpoint"], "s3.path-style-access": "true"}
    return "\n".join([f"# Trino, as etc/catalog/{CATALOG}.properties", *(f"{k}={v}" for k, v in settings.items())])
