"""What a handler gets does not outlive its request."""

import gc
from collections.abc import Iterator

import pytest

from arco_catalog.http.request_context import RequestContext
from tests.support.http_service import HttpService


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
