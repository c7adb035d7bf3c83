"""The API, the scheduled reconciler, the task worker and the collector as Azure Functions. The platform imports this
module from the root of the package, and reads the functions from it. Each deployed app disables the functions of the
other apps (infra/azure).

The variables are those of `arco serve` and `ARCO_ENDPOINT`, which configures whether App Service authenticates callers.
With `ARCO_AUTH`, a realm is served.
"""

import asyncio
import logging
import os
from contextlib import aclosing

import azure.functions as func

from arco_catalog.config.variables import ENDPOINT, LOG_LEVEL
from arco_catalog.http.app import App
from arco_catalog.http.function_app import function_app, function_options
from arco_catalog.http.functions_adapter import FunctionsEndpoint, respond
from arco_catalog.operations.environment import catalog_to_serve, opened, task_policies_from_env
from arco_catalog.operations.reconcile_stats import ReconcileStats
from arco_catalog.protocol.catalog import Catalog, Session
from arco_catalog.state.runtime import SystemRuntime
from arco_catalog.telemetry.collection_line import collection_line
from arco_catalog.telemetry.logs import set_levels
from arco_catalog.telemetry.reconcile_line import reconcile_line
from arco_catalog.telemetry.setup import lines_telemetry
from arco_catalog.telemetry.tasks_line import tasks_line
from arco_catalog.upkeep.collection.collect import collect, collect_all
from arco_catalog.upkeep.collection.stats import CollectionStats
from arco_catalog.upkeep.delivery.sinks import sinks_from_env
from arco_catalog.upkeep.invocation import Invocation, Until
from arco_catalog.upkeep.reconcile import TimeLimit, reconcile
from arco_catalog.upkeep.reconcile_all import reconcile_all
from arco_catalog.upkeep.run_tasks import run_tasks

RUN_MS = 14 * 60_000
"""How long a run may take. It is less than `functionTimeout` of host.json."""

# Azure's worker has a log handler, which sends records to Application Insights: only levels are set here.
set_levels(LOG_LEVEL.read(os.environ))
_LINES = logging.getLogger("arco_lines")
_AUDIT = logging.getLogger("arco_audit")
_LINES.setLevel(logging.INFO)  # a line for each request at any level, as in every function
_AUDIT.setLevel(logging.INFO)

_endpoint = FunctionsEndpoint(ENDPOINT.require(os.environ))
_options = function_options(os.environ)
_runtime = SystemRuntime()
_telemetry = lines_telemetry(os.environ, _runtime, _LINES.info, _AUDIT.info)
_opening = asyncio.Lock()
_catalog: Catalog | None = None
_served: App | None = None

app = func.FunctionApp(
    http_auth_level=func.AuthLevel.ANONYMOUS
)  # keys of functions are shared secrets: Entra ID authenticates


@app.function_name("api")
@app.route(route="{*path}", methods=[*func.HttpMethod])
async def api(req: func.HttpRequest) -> func.HttpResponse:
    """Responds to a request of any API of the catalog: Iceberg's and Polaris's, its own endpoints, and those of a
    realm."""
    answer = await respond(await _app(), req, _endpoint)
    return func.HttpResponse(answer.body, status_code=answer.status, headers=dict(answer.headers))


@app.function_name("reconcile")
@app.timer_trigger(arg_name="timer", schedule="0 */15 * * * *")
async def reconcile_on_schedule(timer: func.TimerRequest) -> None:
    """Reconciles the catalogs that the variables name, every 15 minutes, for at most `RUN_MS`, and logs the counts of
    every catalog. What is not done by then is left to the next run. An error of the store is raised, so that the
    platform counts the run as failed; a catalog that can't be opened, or has a corrupt HEAD, is only logged with a
    failure."""
    began_ms = _runtime.now_ms()
    invocation = Invocation(Until(began_ms + RUN_MS, _runtime))

    async def walk(session: Session) -> ReconcileStats:
        return await reconcile(session, should_stop=invocation.should_stop)

    async with opened(os.environ, _runtime) as inventory:
        request = invocation.request("SCHEDULE", "reconcile", _runtime)
        async with aclosing(reconcile_all(inventory.catalogs, request, _runtime, walk)) as walked:
            async for catalog, stats in walked:
                ended_ms = _runtime.now_ms()
                _LINES.info(reconcile_line(catalog.name, stats, began_ms=began_ms, ended_ms=ended_ms, namespace=None))
                began_ms = ended_ms


@app.function_name("tasks")
@app.timer_trigger(arg_name="timer", schedule="0 */5 * * * *")
async def work_on_schedule(timer: func.TimerRequest) -> None:
    """Executes the background tasks that are due in the catalogs that the variables name, every 5 minutes, for at most
    `RUN_MS`, and logs the counts of every catalog. With ARCO_EVENTS it also fills the event feeds and delivers events.
    A task that is being executed when the catalog's share of that time is over is released for the next run. A catalog
    that can't be opened or read is only logged."""
    async with opened(os.environ, _runtime) as inventory:
        end_ms = _runtime.now_ms() + RUN_MS
        policies, sinks = task_policies_from_env(os.environ), sinks_from_env(os.environ, _runtime)
        worked = run_tasks(inventory.catalogs, _runtime, end_ms, policies, sinks=sinks)
        async with aclosing(worked):
            async for catalog, stats in worked:
                _LINES.info(tasks_line(catalog.name, stats, at_ms=_runtime.now_ms(), namespace=None))


@app.function_name("collect")
@app.timer_trigger(arg_name="timer", schedule="0 40 3 * * *")
async def collect_on_schedule(timer: func.TimerRequest) -> None:
    """Collects once a day, for at most `RUN_MS`: deletes the objects that the catalogs, realms and delegation service
    of the deployment no longer need, and logs the counts of every owner. What is not done by then is left to the next
    run."""
    invocation = Invocation(Until(_runtime.now_ms() + RUN_MS, _runtime))

    async def collection(session: Session) -> CollectionStats:
        return await collect(session, delete=True, should_stop=TimeLimit(session, invocation.should_stop))

    async with opened(os.environ, _runtime) as inventory:
        request = invocation.request("SCHEDULE", "collect", _runtime)
        async with aclosing(collect_all(inventory, request, _runtime, collection)) as collected:
            async for each, stats in collected:
                line = collection_line(
                    each.name,
                    completed=not stats.stopped,
                    collected=stats.count,
                    left=stats.left,
                    at_ms=_runtime.now_ms(),
                    namespace=None,
                )
                _LINES.info(line)


async def _app() -> App:
    """Returns the app that serves the API, always the same one. The first request opens it: opening awaits, and nothing
    can be awaited when the module is imported. If that fails, the next request tries again."""
    global _catalog, _served
    async with _opening:
        if _served is None:
            _catalog = await catalog_to_serve(os.environ, _runtime)
            _served = await function_app(os.environ, _catalog, _options, _telemetry, _runtime)
    return _served
