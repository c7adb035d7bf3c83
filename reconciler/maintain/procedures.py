"""Calls Iceberg's procedures on Spark, which reaches tables through the catalog's REST endpoint."""

import re
from collections.abc import Sequence
from functools import partial
from typing import Protocol

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from arco_catalog.iceberg.json import JsonObject, JsonValue
from reconciler.maintain.calls import Call
from reconciler.session import NO_SUBSTITUTION
from reconciler.spark_jobs import run_cancellable

CONFLICTS = re.compile(
    r"org\.apache\.iceberg\.exceptions\.(CommitFailed|Validation|CommitStateUnknown)Exception[^\n]*"
    r"|[^\n]*(No such file or directory|FileNotFoundException)[^\n]*"
)
"""Messages of failures that a concurrent writer may have caused, after which the table must be read again: a lost or
unknown commit, and a missing file, since a writer that loses a race removes files, even during a listing."""
MAX_EXPLANATION = 1_000


class ProcedureFailed(Exception):
    """One of Iceberg's procedures failed; `conflict` is true if a concurrent writer may be the cause. The message is
    cut after `MAX_EXPLANATION` characters."""

    def __init__(self, message: str, *, conflict: bool) -> None:
        super().__init__(message[:MAX_EXPLANATION])
        self.conflict = conflict


class Procedures(Protocol):
    """The interface of what calls Iceberg's procedures for tables."""

    async def call(self, call: Call, table: Sequence[str]) -> JsonObject:
        """Calls a procedure for a table, given by the levels of the namespace followed by the name, and returns the
        counts that the procedure reports. If the asyncio task is cancelled, the procedure is stopped. Raises
        `ProcedureFailed` if the procedure fails."""
        ...


class SparkProcedures:
    """Calls Iceberg's procedures with `CALL` statements of Spark SQL; `catalog` is the catalog's name in Spark."""

    def __init__(self, spark: SparkSession, catalog: str) -> None:
        spark.conf.set(*NO_SUBSTITUTION)  # a Spark application that was there before has its own settings
        self._spark = spark
        self._catalog = catalog
        self._calls = 0

    async def call(self, call: Call, table: Sequence[str]) -> JsonObject:
        """Calls a procedure for a table, and returns its result. If the caller is cancelled, cancels the jobs on Spark.
        Raises `ProcedureFailed`."""
        self._calls += 1
        context, tag = self._spark.sparkContext, f"arco-maintain-{self._calls}"
        statement = call.statement(self._catalog, table)

        def run() -> JsonObject:
            context.addJobTag(tag)  # not a group: Iceberg's actions have groups of their own
            try:
                return _result([row.asDict() for row in self._spark.sql(statement).collect()])
            except (PySparkException, Py4JError) as error:
                raise parse_failure(str(error)) from error
            finally:
                context.removeJobTag(tag)

        return await run_cancellable(run, partial(context.cancelJobsWithTag, tag))


def _result(rows: Sequence[dict[str, JsonValue]]) -> JsonObject:
    """Returns the result of a procedure: the one row of counts that it returned; or, for `remove_orphan_files`, which
    returns a row for each file, the number of rows as `removed_files_count`."""
    if len(rows) == 1 and "orphan_file_location" not in rows[0]:
        return {**rows[0]}
    return {"removed_files_count": len(rows)}


def parse_failure(message: str) -> ProcedureFailed:
    """Makes an exception of Spark's error message: a conflict, with the part that matches `CONFLICTS`, or another
    failure, with the message without the stack trace."""
    conflict = CONFLICTS.search(message)
    if conflict is not None:
        return ProcedureFailed(conflict[0], conflict=True)
    return ProcedureFailed(message.partition("\n\tat ")[0], conflict=False)
