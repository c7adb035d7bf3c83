"""The API as a Lambda function behind API Gateway or a function URL. The catalog and the app are made once, when the
process starts.

It is deployed as `lambda.api.handler`, with the variables of `arco serve` and `ARCO_ENDPOINT`, the type of the endpoint
(`http-api`, `rest-api` or `function-url`). A missing or invalid variable fails the start of the process."""

import gc

gc.disable()  # the imports below create 30,000 objects that stay: a tenth of their time is the search for garbage

import asyncio
import os
from dataclasses import replace

from mangum import Mangum

from arco_catalog.config.variables import ENDPOINT
from arco_catalog.http.function_app import function_app, function_options
from arco_catalog.http.lambda_adapter import Endpoint, WithRawPath, adapt
from arco_catalog.http.routes import import_handlers
from arco_catalog.operations.environment import catalog_to_serve
from arco_catalog.planning.answer_limit import LAMBDA_PAYLOAD_BYTES
from arco_catalog.state.cycle_collector import CYCLE_COLLECTOR
from arco_catalog.state.runtime import SystemRuntime
from arco_catalog.telemetry.setup import function_log, function_telemetry

function_log(os.environ)

# Mangum runs every request on the current loop. This one is never closed, so that connections outlive their request.
_loop = asyncio.new_event_loop()
asyncio.set_event_loop(_loop)

_endpoint = Endpoint(ENDPOINT.require(os.environ))
_runtime = SystemRuntime()
_catalog = _loop.run_until_complete(catalog_to_serve(os.environ, _runtime))
_options = replace(function_options(os.environ), payload_bytes=LAMBDA_PAYLOAD_BYTES, unroutable=_endpoint.unroutable)
_app = WithRawPath(
    _loop.run_until_complete(
        function_app(os.environ, _catalog, _options, function_telemetry(os.environ, _runtime), _runtime)
    ),
    _endpoint,
)
if os.environ.get("AWS_LAMBDA_INITIALIZATION_TYPE", "on-demand") != "on-demand":
    import_handlers()  # SnapStart's snapshot then has them, and provisioned concurrency imports before requests come

handler = adapt(Mangum(_app, lifespan="off"), _app)

CYCLE_COLLECTOR.tune_for_server()
gc.enable()
