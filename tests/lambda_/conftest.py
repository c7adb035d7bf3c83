"""The zip that is deployed, built once, and gateways in front of it."""

import asyncio
import http.client
import itertools
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import pytest

from arco_catalog.http.lambda_adapter import Endpoint
from arco_catalog.iceberg.json import JsonValue, dumps
from tests.support import loggers
from tests.support.http_service import HttpService
from tools.gateway.running import running, unzipped
from tools.support.asgi_client import Answer
from tools.support.s3_servers import S3Server

WAREHOUSE = "wh"
ONE_ENDPOINT = [
    Endpoint.HTTP_API,  # test_endpoints.py, and authentication/test_gateway.py, have the events of each
    *(pytest.param(each, marks=pytest.mark.slow) for each in Endpoint if each is not Endpoint.HTTP_API),
]
"""Each kind of endpoint, all but one of them with `make test-thorough`: for what is the same behind each."""
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Caller:
    """Sends requests below a URI, byte for byte as they are given."""

    uri: str

    def get(self, target: str, *headers: tuple[str, str]) -> Answer:
        return self.send("GET", target, headers=headers)

    def post(self, target: str, body: object, *headers: tuple[str, str]) -> Answer:
        """Sends any value that is JSON."""
        typed = ("Content-Type", "application/json")
        return self.send("POST", target, dumps(cast(JsonValue, body)), (typed, *headers))

    def send(self, method: str, target: str, body: bytes = b"", headers: tuple[tuple[str, str], ...] = ()) -> Answer:
        where = urlsplit(self.uri)
        connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=60)
        try:
            connection.putrequest(method, f"{where.path}{target}", skip_accept_encoding=True)
            for name, value in (("Content-Length", str(len(body))), *headers):
                connection.putheader(name, value)
            connection.endheaders(body)
            response = connection.getresponse()
            named = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, named, response.read())
        finally:
            connection.close()


@pytest.fixture(autouse=True)
def loggers_restored() -> Iterator[None]:
    """Handlers set up the log of their process when they are imported."""
    with loggers.restored():
        yield


@pytest.fixture
def service() -> Iterator[HttpService]:
    """An empty catalog, and the current loop that the adapter wants."""
    asyncio.set_event_loop(loop := asyncio.new_event_loop())
    yield HttpService()
    asyncio.set_event_loop(None)
    loop.close()


@pytest.fixture(scope="session")
def folder(archive: Path) -> Iterator[Path]:
    """The zip, unzipped."""
    with unzipped(archive) as path:
        yield path


@pytest.fixture(scope="session")
def deployed(s3_server: S3Server) -> Callable[[], dict[str, str]]:
    """Makes the environment of a function with a bucket of its own."""

    def deploy() -> dict[str, str]:
        bucket = f"lambda-{next(_numbers)}"
        s3_server.make_bucket(bucket)
        return {**s3_server.environment, "ARCO_STORE": f"s3://{bucket}/catalog", "ARCO_WAREHOUSE": WAREHOUSE}

    return deploy


Start = Callable[..., AbstractContextManager[Caller]]


@pytest.fixture
def start(folder: Path, tmp_path: Path) -> Start:
    """Starts a gateway over a function with these variables; the function's log is `function.log`."""

    @contextmanager
    def started(
        environment: dict[str, str], endpoint: Endpoint = Endpoint.HTTP_API, *options: str, zipped: Path = folder
    ) -> Iterator[Caller]:
        with running(zipped, endpoint, tmp_path / "function.log", environment, *options) as uri:
            yield Caller(uri)

    return started


@pytest.fixture(scope="session")
def behind(
    folder: Path, deployed: Callable[[], dict[str, str]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[Endpoint], Caller]]:
    """A function that returns a client of the API behind an endpoint. Each endpoint is started once for all tests."""
    callers: dict[Endpoint, Caller] = {}
    logs = tmp_path_factory.mktemp("gateways")
    with ExitStack() as stack:

        def start(endpoint: Endpoint) -> Caller:
            if endpoint not in callers:
                gateway = running(folder, endpoint, logs / f"{endpoint}.log", deployed())
                callers[endpoint] = Caller(stack.enter_context(gateway))
            return callers[endpoint]

        yield start
    shutil.rmtree(logs)
