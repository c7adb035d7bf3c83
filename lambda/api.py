"""The API as a Lambda function behind API Gateway or a function URL. The catalog and the app are made once, when the
process starts.

It is deployed as `lambda.api.handler`, with the variables of `arco serve` and `ARCO_ENDPOINT`, the type of the endpoint
(`http-api`, `rest-api` or `function-url`). A missing or invalid variable fails the start of the process."""

import asyncio
import os

from mangum import Mangum

from arco_catalog.config.variables import (
    BASE_PATH,
    ENDPOINT,
    IDEMPOTENCY_DIALECT,
    IDEMPOTENCY_ENABLED,
    IDEMPOTENCY_LIFETIME,
    MAX_BODY,
    METRICS,
    NAMESPACE_SEPARATOR,
    REQUEST_MEMORY,
    SOURCE_PRINCIPALS,
)
from arco_catalog.http.function_app import function_app
from arco_catalog.http.lambda_adapter import Endpoint, WithRawPath, adapt
from arco_catalog.http.options import HttpOptions
from arco_catalog.http.routes import import_handlers
from arco_catalog.operations.environment import catalog_to_serve
from arco_catalog.planning.answer_limit import LAMBDA_PAYLOAD_BYTES
from arco_catalog.state.key_settings import Dialect
from arco_catalog.state.runtime import SystemRuntime
from arco_catalog.telemetry.setup import function_log, function_telemetry

function_log(os.environ)

# Mangum runs every request on the current loop. This one is never closed, so that connections outlive their request.
_loop = asyncio.new_event_loop()
asyncio.set_event_loop(_loop)

_endpoint = Endpoint(ENDPOINT.require(os.environ))
_runtime = SystemRuntime()
_catalog = _loop.run_until_complete(catalog_to_serve(os.environ, _runtime))
_options = HttpOptions(
    base_path=BASE_PATH.read(os.environ).encode(),
    namespace_separator=NAMESPACE_SEPARATOR.read(os.environ),
    dialect=Dialect(IDEMPOTENCY_DIALECT.read(os.environ)),
    keys_enabled=IDEMPOTENCY_ENABLED.read(os.environ),
    key_lifetime_ms=IDEMPOTENCY_LIFETIME.read(os.environ),
    keep_reports=METRICS.read(os.environ) == "store",
    gzip=True,
    payload_bytes=LAMBDA_PAYLOAD_BYTES,
    unroutable=_endpoint.unroutable,
    source_principals=SOURCE_PRINCIPALS.read(os.environ),
    max_body_bytes=MAX_BODY.read(os.environ),
    request_memory_bytes=REQUEST_MEMORY.read(os.environ),
)
_app = WithRawPath(
    _loop.run_until_complete(
        function_app(os.environ, _catalog, _options, function_telemetry(os.environ, _runtime), _runtime)
    ),
    _endpoint,
)
if os.environ.get("AWS_LAMBDA_INITIALIZATION_TYPE", "on-demand") != "on-demand":
    import_handlers()  # SnapStart's snapshot then has them, and provisioned concurrency imports before requests come

handler = adapt(Mangum(_app, lifespan="off"), _app)
