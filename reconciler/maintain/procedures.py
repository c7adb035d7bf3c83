"""Iceberg's procedures on Spark, through the catalog's own REST endpoint."""

import asyncio
import re
from collections.abc import Sequence
from typing import Protocol

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from arco_catalog.iceberg.json import JsonObject, JsonValue
from reconciler.maintain.calls import Call
from reconciler.session import NO_SUBSTITUTION

CANCEL_SECONDS = 20.0
"""How long cancelled jobs are waited for: their executors stop by themselves then."""
CONFLICTS = re.compile(
    r"org\.apache\.iceberg\.exceptions\.(CommitFailed|Validation|CommitStateUnknown)Exception[^\n]*"
    r"|[^\n]*(No such file or directory|FileNotFoundException)[^\n]*"
)
"""What is raised when a writer was first, or when nobody knows who was: the table is what it is then. A writer that
lost a race removes its files, also while a folder is listed."""
MAX_EXPLANATION = 1_000


class ProcedureFailed(Exception):
    """A procedure did not end; `conflict` says that a writer was first."""

    def __init__(self, told: str, *, conflict: bool) -> None:
        super().__init__(told[:MAX_EXPLANATION])
        self.conflict = conflict


class Procedures(Protocol):
    """Calls Iceberg's procedures."""

    async def call(self, call: Call, table: Sequence[str]) -> JsonObject:
        """What a procedure answers for a table. Cancelled, it stops the procedure. Raises `ProcedureFailed`."""
        ...


class OnSpark:
    """Spark calls them, of a catalog that it knows by a name."""

    def __init__(self, spark: SparkSession, catalog: str) -> None:
        spark.conf.set(*NO_SUBSTITUTION)  # the application may be another's, with settings of its own
        self._spark = spark
        self._catalog = catalog
        self._calls = 0

    async def call(self, call: Call, table: Sequence[str]) -> JsonObject:
        self._calls += 1
        context, tag = self._spark.sparkContext, f"arco-maintain-{self._calls}"
        statement = call.statement(self._catalog, table)

        def run() -> JsonObject:
            context.addJobTag(tag)  # not a group: Iceberg's actions have groups of their own
            try:
                return _answered([row.asDict() for row in self._spark.sql(statement).collect()])
            except (PySparkException, Py4JError) as error:
                raise failure(str(error)) from error
            finally:
                context.removeJobTag(tag)

        running = asyncio.get_running_loop().run_in_executor(None, run)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            await asyncio.to_thread(context.cancelJobsWithTag, tag)
            await asyncio.wait([running], timeout=CANCEL_SECONDS)
            raise


def _answered(rows: Sequence[dict[str, JsonValue]]) -> JsonObject:
    """The one row of counts; of orphan files, which are listed a row each, how many there were."""
    if len(rows) == 1 and "orphan_file_location" not in rows[0]:
        return {**rows[0]}
    return {"removed_files_count": len(rows)}


def failure(told: str) -> ProcedureFailed:
    """What Spark's message means."""
    conflict = CONFLICTS.search(told)
    if conflict is not None:
        return ProcedureFailed(conflict[0], conflict=True)
    return ProcedureFailed(told.partition("\n\tat ")[0], conflict=False)
