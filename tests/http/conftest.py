"""An app over a catalog in memory, with a fake clock."""

from collections.abc import Callable

import pytest

from arco_catalog.http.options import HttpOptions
from tests.support.http_service import HttpService
from tools.support.asgi_client import Client


@pytest.fixture
def service_with() -> Callable[..., HttpService]:
    """Makes services with the HTTP options given."""
    return lambda **options: HttpService(options=HttpOptions(**options))


@pytest.fixture
def empty_service() -> HttpService:
    """An empty catalog."""
    return HttpService()


@pytest.fixture
async def service(empty_service: HttpService) -> HttpService:
    """A catalog with the namespace `db` and in it the table `t`."""
    await empty_service.namespace("db", "db")
    await empty_service.table("t")
    return empty_service


@pytest.fixture
def client(service: HttpService) -> Client:
    return service.client
