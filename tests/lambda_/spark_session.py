"""A Spark session on S3: `python -m tests.lambda_.spark_session URI WAREHOUSE SCRATCH`. Prints the rows it ends with.

In a process of its own, as every JVM of Spark.
"""

import json
import sys
from pathlib import Path

from tools.demo.engines import spark_session

STATEMENTS = """
CREATE NAMESPACE lake
CREATE TABLE lake.orders (id BIGINT, amount BIGINT) USING iceberg
INSERT INTO lake.orders VALUES (1, 10), (2, 20)
ALTER TABLE lake.orders ADD COLUMN note STRING
INSERT INTO lake.orders VALUES (3, 30, 'new')
CREATE TABLE lake.copy USING iceberg AS SELECT id FROM lake.orders WHERE id > 2
ALTER TABLE lake.copy RENAME TO lake.ids
""".strip().splitlines()

if __name__ == "__main__":
    uri, warehouse, scratch = sys.argv[1:]
    with spark_session(uri, warehouse, Path(scratch), "s3:") as spark:
        for statement in STATEMENTS:
            spark.sql(statement)
        rows = {
            table: [list(row) for row in spark.table(f"lake.{table}").sort("id").collect()]
            for table in ("orders", "ids")
        }
    print(json.dumps(rows))
