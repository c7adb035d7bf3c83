"""The label for the engine that sent a request, from the products that its User-Agent names."""

from functools import lru_cache

ENGINES = {
    "trino": "trino",
    "pyiceberg": "pyiceberg",
    "spark": "spark",
    "flink": "flink",
    "duckdb": "duckdb",
    "clickhouse": "clickhouse",
    "starrocks": "starrocks",
    "doris": "doris",
    "dremio": "dremio",
    "snowflake": "snowflake",
    "daft": "daft",
    "polars": "polars",
    "datafusion": "datafusion",
    "iceberg-rust": "iceberg-rust",
    "iceberg-go": "iceberg-go",
    "iceberg": "iceberg-java",
    "apache-httpclient": "iceberg-java",
    "arco": "arco",
}
"""The label of each product that has its own, by its name in lower case; engines come before the
libraries that they use."""
OTHER = "other"
"""The label of any other client, and of one that names no product."""


@lru_cache(maxsize=256)  # keys of bounded length: at most four products
def engine_of(client: str | None) -> str:
    """Returns the label of a client, whose products and versions are separated by spaces: the first in `ENGINES` that
    it names; otherwise, and for None, `OTHER`."""
    named = {product.partition("/")[0].lower() for product in (client or "").split()}
    return next((label for product, label in ENGINES.items() if product in named), OTHER)
