"""`python -m tools.gateway --zip ZIP --endpoint KIND`: prints where it listens, and serves until it is told to stop.

The function's environment are the variables of this process that begin with ARCO_, AWS_ or OTEL_.
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
    """Serves until a signal."""
    environment = {name: value for name, value in os.environ.items() if name.startswith(PASSED_ON)}
    endpoint = Endpoint(options.endpoint)
    function = Function(folder, options.handler, {**environment, "ARCO_ENDPOINT": endpoint}, options.log)
    stop = asyncio.Event()
    for wish in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(wish, stop.set)
    async with open_gateway(
        function, endpoint, stage=options.stage, concurrency=options.processes, port=options.port, caller=options.caller
    ) as (uri, _):
        sys.stdout.write(f"{uri}\n")
        sys.stdout.flush()
        await stop.wait()


def main() -> int:
    """Returns zero when it was told to stop."""
    parser = argparse.ArgumentParser(prog="gateway", description=__doc__)
    parser.add_argument("--zip", type=Path, required=True, help="what `make package` builds")
    parser.add_argument("--endpoint", choices=list(Endpoint), default=Endpoint.HTTP_API, help="what to behave like")
    parser.add_argument("--handler", default=API, help=f"default {API}")
    parser.add_argument("--stage", help="the stage that is called; a REST API's is `live` unless named")
    parser.add_argument("--port", type=int, default=0, help="default: a free one")
    parser.add_argument("--processes", type=int, default=4, help="how many events are worked on at once, default 4")
    parser.add_argument("--caller", help="the ARN that signs every request, as far as the function is told")
    parser.add_argument("--log", type=Path, default=Path(os.devnull), help="where the function writes")
    options = parser.parse_args()
    with unzipped(options.zip) as folder:
        asyncio.run(serve(options, folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
