"""Writes tables by Spark whose rows are deleted by delete files, and prints the size of each one's data file. A process
of its own: the Spark of the tests has no Iceberg."""

import json
import sys
from pathlib import Path

from tools.demo.engines import spark_session

ROWS = 1_000
TABLES = {"half": (2, 2), "tenth": (2, 10), "vectors": (3, 2)}
"""The format version of each, and that every how manieth row is deleted."""


def main(uri: str, warehouse: str, scratch: str) -> None:
    sizes: dict[str, int] = {}
    with spark_session(uri, warehouse, Path(scratch)) as spark:
        for name, (version, every) in TABLES.items():
            properties = f"'format-version' = '{version}', 'write.delete.mode' = 'merge-on-read'"
            spark.sql(f"CREATE TABLE db.{name} (id bigint) USING iceberg TBLPROPERTIES ({properties})")
            spark.sql(f"INSERT INTO db.{name} SELECT /*+ COALESCE(1) */ id FROM range({ROWS})")
            spark.sql(f"DELETE FROM db.{name} WHERE id % {every} = 0")
            [[size]] = spark.sql(f"SELECT file_size_in_bytes FROM db.{name}.data_files").collect()
            sizes[name] = size
    print(json.dumps(sizes))


if __name__ == "__main__":
    main(*sys.argv[1:])
