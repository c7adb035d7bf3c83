"""What a handler gets does not outlive its request."""

import gc
from collections.abc import Iterator

import pytest

from arco_catalog.http.request_context import RequestContext
from tests.support.http_service import HttpService
from tools.support.request_bodies import set_property

REQUESTS = 20


@pytest.fixture
def without_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("namespace", ["n", "missing"])
@pytest.mark.usefixtures("without_collector")
async def test_a_request_and_its_body_are_freed_without_a_collection_of_garbage(
    service: HttpService, namespace: str
) -> None:
    await service.client.post("/v1/wh/namespaces", {"namespace": ["n"]})
    gc.collect()
    body = {"updates": {"a": "1"}, "removals": []}
    answer = await service.client.post(f"/v1/wh/namespaces/{namespace}/properties", body)

    assert answer.status in (200, 404)
    assert [each for each in gc.get_objects() if isinstance(each, RequestContext)] == []


@pytest.mark.usefixtures("without_collector")
async def test_requests_leave_nothing_to_the_collection_of_cycles(service: HttpService) -> None:
    """While a thread reads a long document no collection runs, and the next one would free all that requests left in
    cycles in one step of the event loop."""
    await service.namespace("n", "n")
    await service.table("t", namespace="n")
    table = "/v1/wh/namespaces/n/tables/t"

    async def send(value: str) -> None:
        assert (await service.client.get(table)).status == 200
        assert (await service.client.get(f"{table}-missing")).status == 404
        assert (await service.client.post(table, set_property("a", value))).status == 200

    await send("first")  # imports what these requests need, and imports leave cycles
    gc.collect()
    for number in range(REQUESTS):
        await send(f"{number}")

    assert gc.collect() < REQUESTS
