"""Queued jobs: each message of a batch is one job, and a message whose job failed goes back to its queue.

Deployed as `lambda.work.handler` behind an SQS queue with `ReportBatchItemFailures`, with the variables of
`lambda.reconcile`.
"""

import asyncio
import logging
import os
from collections.abc import Mapping

from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.operations.environment import opened
from arco_catalog.operations.invocation import Context, Invocation
from arco_catalog.operations.jobs import Workplace, run_job
from arco_catalog.state.runtime import SystemRuntime
from arco_catalog.telemetry.setup import function_log

function_log(os.environ)
_LOG = logging.getLogger(__name__)


def handler(event: Mapping[str, list[Mapping[str, str]]], context: Context) -> JsonObject:
    """Works through the records of a batch, in order. Returns those that failed; SQS forgets the others."""
    failed: list[JsonValue] = [{"itemIdentifier": item} for item in asyncio.run(_run(event["Records"], context))]
    return {"batchItemFailures": failed}


async def _run(records: list[Mapping[str, str]], context: Context) -> list[str]:
    """The ids of the messages that failed."""
    runtime, invocation = SystemRuntime(), Invocation(context)
    failed: list[str] = []
    async with opened(os.environ, runtime) as catalogs:
        request = invocation.request("QUEUE", "work", runtime)
        workplace = Workplace(catalogs, request, runtime, invocation.should_stop)
        for record in records:
            try:
                await run_job(record["body"], workplace)
            except Exception as error:  # one message's failure must not fail the others
                failed.append(record["messageId"])
                _LOG.error("message %s failed", record["messageId"], exc_info=error)
    return failed
