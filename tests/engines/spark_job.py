"""A Spark job of the usual kind: `python -m tests.engines.spark_job URI WAREHOUSE JAR`. Prints the rows it ends with.

It runs in a process of its own: a process has one JVM for Spark, with one set of jars.
"""

import json
import os
import sys

from pyspark.sql import SparkSession

from tools.demo.java import java_home

STATEMENTS = """
CREATE NAMESPACE shop
CREATE TABLE shop.orders (id BIGINT, amount BIGINT) USING iceberg PARTITIONED BY (bucket(2, id))
INSERT INTO shop.orders VALUES (1, 10), (2, 20)
INSERT INTO shop.orders VALUES (3, 30), (4, 40)
UPDATE shop.orders SET amount = amount + 1 WHERE id = 1
DELETE FROM shop.orders WHERE id = 2
ALTER TABLE shop.orders ADD COLUMN note STRING
MERGE INTO shop.orders t USING (SELECT 3L AS id UNION SELECT 5L) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET note = 'seen' WHEN NOT MATCHED THEN INSERT (id, amount, note) VALUES (s.id, 50, 'new')
CREATE TABLE shop.copy USING iceberg AS SELECT * FROM shop.orders
CREATE OR REPLACE TABLE shop.copy USING iceberg AS SELECT id FROM shop.orders WHERE id > 3
ALTER TABLE shop.copy RENAME TO shop.ids
CREATE TABLE shop.gone (id BIGINT) USING iceberg
DROP TABLE shop.gone
""".strip().splitlines()  # noqa: E501  one statement a line


def main(uri: str, warehouse: str, jar: str) -> None:
    os.environ["JAVA_HOME"] = str(java_home())
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    settings = {
        "spark.jars": jar,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.sql.catalog.rest": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.rest.type": "rest",
        "spark.sql.catalog.rest.uri": uri,
        "spark.sql.catalog.rest.warehouse": warehouse,
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.defaultCatalog": "rest",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
    }
    builder = SparkSession.Builder().master("local[2]").appName("lost answers")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    for statement in STATEMENTS:
        spark.sql(statement)
    rows = {
        table: [list(row) for row in spark.table(f"shop.{table}").sort("id").collect()] for table in ("orders", "ids")
    }
    print(json.dumps(rows))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
