"""OpenLineage's integrations send to `/api/v1/lineage`, and what they send is kept."""

import gzip

import pytest

from arco_catalog.http.options import HttpOptions
from arco_catalog.iceberg.json import JsonObject, loads
from arco_catalog.operations.lineage import MAX_EVENT_BYTES
from arco_catalog.planning.lineage_names import event_name
from arco_catalog.state.lineage import StoredEvent, decode_event, read_event
from storage_backends import Found
from tests.state.test_lineage import EVENT
from tests.support.http_service import HttpService

LINEAGE = "/api/v1/lineage"


async def kept(service: HttpService) -> dict[str, bytes]:
    """Everything that lies beside the receipts, but for these."""
    listed = await service.store.list("wh/_catalog/events/")
    found = {}
    for each in listed.entries:
        if "/iceberg/" not in each.key:
            there = await service.store.get(each.key)
            assert isinstance(there, Found)
            found[each.key] = there.body
    return found


async def test_an_event_is_kept_as_it_came_under_the_day_of_its_receipt(service: HttpService) -> None:
    answer = await service.client.post(LINEAGE, EVENT)

    assert (answer.status, answer.body) == (201, b"")
    ((key, body),) = (await kept(service)).items()
    name = event_name(body, read_event(EVENT), "anonymous")
    assert key == f"wh/_catalog/events/2026-01-01/openlineage/{name}.json"
    assert decode_event(body, key) == StoredEvent(EVENT, "anonymous")


async def test_the_same_event_is_one_object_however_often_it_is_sent(service: HttpService) -> None:
    another: JsonObject = {**EVENT, "eventType": "FAIL"}
    sent = [await service.client.post(LINEAGE, event) for event in (EVENT, EVENT, another, EVENT)]

    assert {answer.status for answer in sent} == {201}
    assert len(await kept(service)) == 2


async def test_a_catalog_is_named_in_the_path_or_is_the_usual_one(service: HttpService) -> None:
    assert (await service.client.post("/api/v1/wh/lineage", EVENT)).status == 201
    assert (await service.client.post("/api/v1/other/lineage", EVENT)).status == 404
    assert len(await kept(service)) == 1


async def test_the_event_of_a_union_of_five_wide_tables_is_kept(service: HttpService) -> None:
    """An event as Spark sends it, with the columns of outputs that have at most 1,000."""
    how: JsonObject = {"type": "DIRECT", "subtype": "IDENTITY", "description": "", "masking": False}
    fields: JsonObject = {
        f"customer_attribute_{column}": {
            "inputFields": [
                {
                    "namespace": "s3://lakehouse",
                    "name": f"catalog/demo/warehouse/sales/wide{table}-01M83SAF2F2QHYX3M6ETB1MGZD",
                    "field": f"customer_attribute_{column}",
                    "transformations": [how],
                }
                for table in range(5)
            ]
        }
        for column in range(1_000)
    }
    union: JsonObject = {"namespace": "file", "name": "/union", "facets": {"columnLineage": {"fields": fields}}}

    assert (await service.client.post(LINEAGE, {**EVENT, "outputs": [union]})).status == 201
    ((_, body),) = (await kept(service)).items()
    assert len(body) > 1_000_000


async def test_what_is_no_event_is_refused_and_not_kept(service: HttpService) -> None:
    deep: object = 1
    for _ in range(HttpOptions().max_body_depth):
        deep = [deep]
    hostile: dict[str, tuple[object, int]] = {
        "nothing": ({}, 400),
        "no run": ({**EVENT, "run": {}}, 400),
        "deep": ({**EVENT, "more": deep}, 400),
        "long": ({**EVENT, "more": "x" * MAX_EVENT_BYTES}, 413),
    }

    for name, (body, status) in hostile.items():
        assert (await service.client.post(LINEAGE, body)).status == status, name
    assert await kept(service) == {}


@pytest.mark.parametrize("body", [b"[]", b"nonsense", b"", b'{"eventTime":NaN}', gzip.compress(b"{}")])
async def test_what_is_no_object_is_refused(service: HttpService, body: bytes) -> None:
    answer = await service.client.send("POST", LINEAGE, body, {"content-type": "application/json"})

    assert answer.status == 400
    assert isinstance(loads(answer.body), dict)


async def test_a_read_only_catalog_keeps_none(service: HttpService) -> None:
    answer = await service.serve(read_only_because="so").post(LINEAGE, EVENT)

    assert (answer.status, answer.error_type) == (406, "UnsupportedOperationException")
    assert await kept(service) == {}
