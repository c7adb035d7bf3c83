"""The scheduled reconciler: one bounded run of the walk an invocation; what it leaves, the next goes on with.

Deployed as `lambda.reconcile.handler`, with `ARCO_STORE` and `ARCO_WAREHOUSE` as `arco serve` has them.
"""

import asyncio
import os
from typing import Protocol

from arco_catalog.http.telemetry.setup import metrics_namespace, to_stdout
from arco_catalog.http.telemetry.walks import walk_line
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.call import Call
from arco_catalog.operations.environment import opened
from arco_catalog.operations.reconcile import Tally, reconcile
from arco_catalog.state.runtime import SystemRuntime

MARGIN_MS = 10_000
"""Kept of the time limit, to finish the batch under way and to write down what was walked."""


class Context(Protocol):
    """What Lambda tells a function of its invocation."""

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until Lambda ends it."""
        ...


def handler(event: object, context: Context) -> JsonObject:
    """Runs the walk for as long as there is time, and puts its metrics on stdout. Returns the counts; `stopped` says
    that there is more to do."""
    return asyncio.run(_run(context)).to_json()


async def _run(context: Context) -> Tally:
    runtime = SystemRuntime()
    async with opened(os.environ, runtime) as catalog:
        deadline_ms = runtime.now_ms() + context.get_remaining_time_in_millis()
        call = Call("SCHEDULE", "reconcile", "", None, "reconciler", {"kind": "Reconciler"}, deadline_ms)
        began_ms, session = runtime.now_ms(), catalog.session(call)
        tally = await reconcile(session, enough=lambda: context.get_remaining_time_in_millis() < MARGIN_MS)
        namespace, ended_ms = metrics_namespace(os.environ), runtime.now_ms()
    to_stdout(walk_line(session.settings.warehouse, tally, began_ms=began_ms, ended_ms=ended_ms, namespace=namespace))
    return tally
