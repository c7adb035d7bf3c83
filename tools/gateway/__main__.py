"""`python -m tools.gateway --zip ZIP --endpoint KIND`: prints its URI, and serves until SIGINT or SIGTERM.

The function gets the variables of this process that begin with ARCO_, AWS_ or OTEL_.
"""

import argparse
import asyncio
import os
import signal
import sys
from pathlib import Path

from arco_catalog.http.lambda_adapter import Endpoint
from tools.gateway.running import API, PASSED_ON, open_gateway, unzipped
from tools.gateway.sandbox import Function


async def serve(options: argparse.Namespace, folder: Path) -> None:
    """Serve until SIGINT or SIGTERM; the first line on stdout is the URI."""
    environment = {name: value for name, value in os.environ.items() if name.startswith(PASSED_ON)}
    endpoint = Endpoint(options.endpoint)
    function = Function(folder, options.handler, {**environment, "ARCO_ENDPOINT": endpoint}, options.log)
    stop = asyncio.Event()
    for signum in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(signum, stop.set)
    async with open_gateway(
        function, endpoint, stage=options.stage, concurrency=options.processes, port=options.port, caller=options.caller
    ) as (uri, _):
        sys.stdout.write(f"{uri}\n")
        sys.stdout.flush()
        await stop.wait()


def main() -> int:
    """Serve the function of a zip as the command line describes. Returns 0 after a signal."""
    parser = argparse.ArgumentParser(prog="gateway", description=__doc__)
    parser.add_argument("--zip", type=Path, required=True, help="the zip that `make package` builds, or its folder")
    parser.add_argument("--endpoint", choices=list(Endpoint), default=Endpoint.HTTP_API, help="the type of endpoint")
    parser.add_argument("--handler", default=API, help=f"default {API}")
    parser.add_argument("--stage", help="the stage to call, by default `live` for a REST API")
    parser.add_argument("--port", type=int, default=0, help="default: a free one")
    parser.add_argument("--processes", type=int, default=4, help="how many events run concurrently, default 4")
    parser.add_argument("--caller", help="the ARN that the function receives as the verified signer of every request")
    parser.add_argument("--log", type=Path, default=Path(os.devnull), help="the function's log file")
    options = parser.parse_args()
    with unzipped(options.zip) as folder:
        asyncio.run(serve(options, folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
