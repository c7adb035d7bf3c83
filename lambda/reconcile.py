"""The scheduled reconciler, as a Lambda function. An invocation reconciles the catalogs of a deployment for a bounded
time, and the next one continues from there.

It is deployed as `lambda.reconcile.handler`, with `ARCO_STORE` and `ARCO_WAREHOUSE` as for `arco serve`.
"""

import asyncio
import os
from contextlib import aclosing

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.environment import opened
from arco_catalog.operations.reconcile_stats import ReconcileStats
from arco_catalog.protocol.catalog import Session
from arco_catalog.state.runtime import SystemRuntime
from arco_catalog.telemetry.reconcile_line import reconcile_line
from arco_catalog.telemetry.setup import function_log, metrics_namespace, to_stdout
from arco_catalog.upkeep.invocation import Context, Invocation
from arco_catalog.upkeep.reconcile import reconcile
from arco_catalog.upkeep.reconcile_all import reconcile_all

function_log(os.environ)


def handler(event: object, context: Context) -> JsonObject:
    """Reconciles every catalog that the variables name until the invocation's time is nearly over, and writes a log
    line for every catalog to stdout, which also has metrics unless these are turned off. The event is ignored. Returns
    the counts of all catalogs added up; `stopped` is true if work is left to the next invocation, since the time was
    over or a catalog could not be opened or has a corrupt HEAD. Raises `StoreError`, which ends the invocation."""
    return asyncio.run(_run(context)).to_json()


async def _run(context: Context) -> ReconcileStats:
    """Reconciles the catalogs one after the other until the invocation's time is nearly over, writes a log line for
    each, and returns the sum of their counts."""
    runtime, invocation = SystemRuntime(), Invocation(context)
    namespace, began_ms = metrics_namespace(os.environ), runtime.now_ms()
    total = ReconcileStats()

    async def walk(session: Session) -> ReconcileStats:
        return await reconcile(session, should_stop=invocation.should_stop)

    async with opened(os.environ, runtime) as inventory:
        request = invocation.request("SCHEDULE", "reconcile", runtime)
        async with aclosing(reconcile_all(inventory.catalogs, request, runtime, walk)) as walked:
            async for catalog, stats in walked:
                ended_ms = runtime.now_ms()
                to_stdout(
                    reconcile_line(catalog.name, stats, began_ms=began_ms, ended_ms=ended_ms, namespace=namespace)
                )
                total.add(stats)
                began_ms = ended_ms
    return total
