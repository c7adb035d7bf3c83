"""The worker for queued jobs, as a Lambda function. Each message of a batch is one job, and a message of a failed job
returns to the queue. Tasks, and a collection that has deleted something, are continued by a new message if the time is
over; a reconciliation that is not complete counts as failed.

It is deployed as `lambda.work.handler` behind an SQS queue with `ReportBatchItemFailures`, with the variables of
`lambda.reconcile` and `ARCO_WORK_QUEUE`, the queue's URL. A schedule may invoke it with a message and without a queue:
a job that fails then fails the invocation.
"""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import cast

from arco_catalog.iceberg.json import JsonObject, JsonValue, dumps
from arco_catalog.operations.environment import opened, task_policies_from_env
from arco_catalog.operations.work_queue import WorkQueue
from arco_catalog.state.runtime import SystemRuntime
from arco_catalog.tasks.work_stats import WorkStats
from arco_catalog.telemetry.collection_line import collection_line
from arco_catalog.telemetry.setup import function_log, metrics_namespace, to_stdout
from arco_catalog.telemetry.tasks_line import tasks_line
from arco_catalog.upkeep.collection.stats import CollectionStats
from arco_catalog.upkeep.delivery.sinks import sinks_from_env
from arco_catalog.upkeep.invocation import Context, Invocation
from arco_catalog.upkeep.jobs import Unfinished, Workplace, run_job
from arco_catalog.upkeep.purge.worker import delegate_from_env

function_log(os.environ)
_LOG = logging.getLogger(__name__)


Record = Mapping[str, str]


def handler(event: Mapping[str, object], context: Context) -> JsonObject:
    """Runs the jobs of a batch of SQS records in order, and returns `batchItemFailures` with the ids of the messages of
    failed jobs, which SQS delivers again, up to the limit of the queue; SQS deletes the other messages. An event
    without records is itself the message of one job: returns an empty object, and raises the error of a job that fails,
    but not `Unfinished`: tasks whose time was over, or a collection that has deleted something and ran out of time, or
    could not open a catalog."""
    if "Records" not in event:
        asyncio.run(_one(dumps(cast(JsonObject, {**event})).decode(), context))
        return {}
    records = cast(list[Record], event["Records"])
    failed: list[JsonValue] = [{"itemIdentifier": item} for item in asyncio.run(_batch(records, context))]
    return {"batchItemFailures": failed}


async def _one(body: str, context: Context) -> None:
    """Runs the job of one message that a schedule sent. `Unfinished` is no failure: a warning is logged, and the rest
    is left to the schedule's next run. Raises the job's other errors, such as `RetryLater`."""
    async with _workplace(context, "SCHEDULE") as workplace:
        try:
            await run_job(body, workplace)
        except Unfinished as error:
            _LOG.warning(
                "the job of a message from a schedule, not from a queue, is not finished, since the time was over or a "
                "catalog could not be opened, and the next run of the schedule continues it: %s",
                error,
            )


async def _batch(records: list[Record], context: Context) -> list[str]:
    """Runs the job of each SQS record, one after the other, and returns the ids of the messages of failed jobs; any
    error of a job is logged, and does not prevent the next job."""
    queue, failed = WorkQueue.from_env(os.environ, SystemRuntime()), list[str]()
    async with _workplace(context, "QUEUE") as workplace:
        for record in records:
            try:
                await _do(record["body"], workplace, queue)
            except Exception as error:  # one message's failure must not fail the others
                failed.append(record["messageId"])
                _LOG.error(
                    "the job of message %s failed or is not complete, and SQS redelivers the message, up to the "
                    "queue's limit",
                    record["messageId"],
                    exc_info=error,
                )
    return failed


@asynccontextmanager
async def _workplace(context: Context, method: str) -> AsyncIterator[Workplace]:
    """Yields what jobs need: the opened catalogs, the request and the time limit of this invocation, and functions that
    write log lines with metrics to stdout. Closes the catalogs afterwards."""
    runtime, invocation = SystemRuntime(), Invocation.start(context)
    namespace = metrics_namespace(os.environ)

    def report(catalog: str, stats: WorkStats) -> None:
        to_stdout(tasks_line(catalog, stats, at_ms=runtime.now_ms(), namespace=namespace))

    def report_collection(catalog: str, stats: CollectionStats) -> None:
        line = collection_line(
            catalog,
            completed=not stats.stopped,
            collected=stats.count,
            left=stats.left,
            at_ms=runtime.now_ms(),
            namespace=namespace,
        )
        to_stdout(line)

    async with opened(os.environ, runtime) as inventory:
        request = invocation.request(method, "work", runtime)
        policies, delegate = task_policies_from_env(os.environ), delegate_from_env(os.environ, runtime)
        yield Workplace(
            inventory,
            request,
            runtime,
            invocation.should_stop,
            policies,
            report,
            delegate,
            report_collection,
            sinks=sinks_from_env(os.environ, runtime),
            margin_ms=invocation.margin_ms,
        )


async def _do(body: str, workplace: Workplace, queue: WorkQueue | None) -> None:
    """Runs the job of one message. If it raises `Unfinished`, the message is resent as a new one to `queue`: a return
    of the old one would count as a failure, and wait for the visibility timeout. Without a queue (None), `Unfinished`
    is raised. Raises the job's other errors, such as `RetryLater`."""
    try:
        await run_job(body, workplace)
    except Unfinished:
        if queue is None:
            raise
        await queue.send(body)
