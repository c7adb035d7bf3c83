"""The scheduled reconciler: one bounded run of the walk an invocation; what it leaves, the next goes on with.

Deployed as `lambda.reconcile.handler`, with `ARCO_STORE` and `ARCO_WAREHOUSE` as `arco serve` has them.
"""

import asyncio
import os

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.environment import opened
from arco_catalog.operations.invocation import Context, Invocation
from arco_catalog.operations.reconcile import reconcile
from arco_catalog.operations.reconcile_stats import ReconcileStats
from arco_catalog.state.runtime import SystemRuntime
from arco_catalog.telemetry.reconcile_line import reconcile_line
from arco_catalog.telemetry.setup import function_log, metrics_namespace, to_stdout

function_log(os.environ)


def handler(event: object, context: Context) -> JsonObject:
    """Runs the walk for as long as there is time, and puts its metrics on stdout. Returns the counts; `stopped` says
    that there is more to do."""
    return asyncio.run(_run(context)).to_json()


async def _run(context: Context) -> ReconcileStats:
    runtime, invocation = SystemRuntime(), Invocation(context)
    async with opened(os.environ, runtime) as catalog:
        session = catalog.session(invocation.request("SCHEDULE", "reconcile", runtime))
        began_ms = runtime.now_ms()
        stats = await reconcile(session, should_stop=invocation.should_stop)
        namespace, ended_ms = metrics_namespace(os.environ), runtime.now_ms()
    to_stdout(
        reconcile_line(session.settings.warehouse, stats, began_ms=began_ms, ended_ms=ended_ms, namespace=namespace)
    )
    return stats
