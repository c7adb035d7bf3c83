"""A location with an empty level is refused wherever one is sent (docs/design/state.md#rule-9)."""

import pytest

from arco_catalog.iceberg.json import JsonObject
from tests.support.http_service import HttpService
from tools.support.request_bodies import schema, view_request

PLACE = "memory:///wh/warehouse/db//t"
TABLE: JsonObject = {"name": "u", "schema": schema("x")}
GENERIC = "/polaris/v1/wh/namespaces/db/generic-tables"


REQUESTS: dict[str, tuple[str, JsonObject]] = {
    "create": ("namespaces/db/tables", {**TABLE, "location": PLACE}),
    "stage": ("namespaces/db/tables", {**TABLE, "location": PLACE, "stage-create": True}),
    "data path": ("namespaces/db/tables", {**TABLE, "properties": {"write.data.path": PLACE}}),
    "register": ("namespaces/db/register", {"name": "u", "metadata-location": f"{PLACE}/metadata/1.metadata.json"}),
    "set location": (
        "namespaces/db/tables/t",
        {"requirements": [], "updates": [{"action": "set-location", "location": PLACE}]},
    ),
    "set metadata path": (
        "namespaces/db/tables/t",
        {
            "requirements": [],
            "updates": [{"action": "set-properties", "updates": {"write.metadata.path": PLACE}}],
        },
    ),
    "view": ("namespaces/db/views", {**view_request("v"), "location": PLACE}),
    "namespace": ("namespaces", {"namespace": ["n"], "properties": {"location": PLACE}}),
}


@pytest.mark.parametrize(("path", "body"), REQUESTS.values(), ids=[*REQUESTS])
async def test_a_location_with_an_empty_level_is_refused(service: HttpService, path: str, body: JsonObject) -> None:
    before = service.store.keys("wh/warehouse/")
    refused = await service.client.post(f"/v1/wh/{path}", body)
    assert refused.status == 400, refused.json
    assert "empty level" in str(refused.json)
    assert [*service.store.keys("wh/warehouse/")] == [*before]


async def test_a_generic_table_with_an_empty_level_in_its_location_is_refused(service: HttpService) -> None:
    refused = await service.client.post(GENERIC, {"name": "g", "format": "csv", "base-location": PLACE})
    assert refused.status == 400
    assert "empty level" in str(refused.json)


async def test_a_slash_at_the_end_of_a_location_is_accepted(service: HttpService) -> None:
    place = "memory:///wh/warehouse/db/u/"
    made = await service.client.post("/v1/wh/namespaces/db/tables", {**TABLE, "location": place})
    assert made.status == 200
