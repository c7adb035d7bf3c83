"""Flink's end of the talk, where a job appends by Iceberg's sink and requests a rebase:
`python -m tests.engines.others.flink_sink_shell SCRATCH JARS URI WAREHOUSE TABLE`. A statement is the id of a row.

SQL has no option for fields of the summary; the sink of Flink's DataStream API has.
"""

import sys
from typing import TextIO

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyflink.datastream import (  # type: ignore[import-not-found]
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
)
from pyflink.java_gateway import get_gateway  # type: ignore[import-not-found]
from pyflink.table import StreamTableEnvironment  # type: ignore[import-not-found]
from pyflink.util.java_utils import add_jars_to_context_class_loader  # type: ignore[import-not-found]

from tests.engines.others.flink_shell import configured, iceberg_runtime
from tests.engines.shell import answer, outcomes


def main(out: TextIO, scratch: str, jars: str, uri: str, warehouse: str, name: str) -> None:
    environment = StreamExecutionEnvironment.get_execution_environment(configured(scratch, jars))
    environment.set_runtime_mode(RuntimeExecutionMode.BATCH)
    tables = StreamTableEnvironment.create(environment)
    add_jars_to_context_class_loader([iceberg_runtime(jars)])
    jvm = get_gateway().jvm
    iceberg = jvm.org.apache.iceberg
    properties = jvm.java.util.HashMap()
    properties.put("uri", uri)
    properties.put("warehouse", warehouse)
    catalog = iceberg.flink.CatalogLoader.rest("rest", jvm.org.apache.hadoop.conf.Configuration(), properties)
    table = iceberg.flink.TableLoader.fromCatalog(catalog, iceberg.catalog.TableIdentifier.parse(name))

    def append(number: str) -> list[tuple[object, ...]]:
        row = tables.sql_query(f"SELECT CAST({int(number)} AS BIGINT) AS id, 'flink' AS engine")
        stream = tables.to_data_stream(row)._j_data_stream
        sink = iceberg.flink.sink.FlinkSink.forRow(stream, row._j_table.getResolvedSchema()).tableLoader(table)
        sink.setSnapshotProperty("arco.append", "rebase").append()
        environment.execute()
        return []

    answer(out, append, (Py4JJavaError,))


if __name__ == "__main__":
    with outcomes() as out:
        main(out, *sys.argv[1:])
