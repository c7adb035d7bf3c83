"""The history over HTTP: who did what, and whether it can be undone."""

import pytest

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.fields import integer, mapping, objects
from tests.support.http_service import HttpService
from tools.support.asgi_client import Client

HISTORY = "/v1/wh/history"
T = "/v1/wh/namespaces/db/tables/t"


@pytest.fixture
async def client(service: HttpService) -> Client:
    """The table `t` was renamed to `u` and dropped; a client without a login did it."""
    client = service.client
    identifiers: JsonObject = {
        "source": {"namespace": ["db"], "name": "t"},
        "destination": {"namespace": ["db"], "name": "u"},
    }
    assert (await client.post("/v1/wh/tables/rename", identifiers)).status == 204
    assert (await client.delete("/v1/wh/namespaces/db/tables/u")).status == 204
    return client


async def test_who_dropped_a_table_and_whether_it_comes_back(client: Client) -> None:
    answer = await client.get(f"{HISTORY}?namespace=db&table=u&pageSize=1")

    (dropped,) = objects(answer.json, "operations")
    assert {name: dropped[name] for name in ("kind", "principal", "namespace", "name", "to", "detail")} == {
        "kind": "drop-table",
        "principal": "anonymous",
        "namespace": ["db"],
        "name": "u",
        "to": None,
        "detail": {"purge": False},
    }
    assert mapping(dropped, "source")["kind"] == "IcebergRest"
    undo = mapping(dropped, "undo")
    assert (undo["possible"], undo["state"], undo["blocked-by"]) == (True, "dropped", None)
    assert integer(undo, "until-ms") > integer(dropped, "at-ms")


async def test_an_undrop_is_seen_at_the_drop_that_it_undid(client: Client) -> None:
    assert (await client.post("/v1/wh/namespaces/db/tables/u/undrop", {})).status == 204

    answer = await client.get(f"{HISTORY}?namespace=db&table=u&pageSize=2")

    undone, dropped = objects(answer.json, "operations")
    assert (undone["kind"], undone["undo"]) == ("undrop", None)
    assert (dropped["kind"], mapping(dropped, "undo")["state"]) == ("drop-table", "restored")


async def test_the_next_page_goes_on_where_this_one_ends(client: Client) -> None:
    kinds: list[object] = []
    token: object = ""
    while token is not None:
        answer = await client.get(f"{HISTORY}?pageSize=1&pageToken={token}")
        kinds += [each["kind"] for each in objects(answer.json, "operations")]
        token = answer.json["next-page-token"]
    assert kinds == ["drop-table", "rename-table", "create-table", "create-namespace"]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("table=t", "Query parameter 'table' needs 'namespace'"),
        ("namespace=db&table=", "table must not be empty"),
        ("namespace=.", "must not be '.'"),
        ("pageSize=0", "must be an integer of at least 1"),
        ("pageToken=x", "The page token is invalid"),
    ],
)
async def test_a_malformed_request_is_refused(client: Client, query: str, message: str) -> None:
    answer = await client.get(f"{HISTORY}?{query}")

    assert (answer.status, answer.error_type) == (400, "BadRequestException")
    assert message in answer.message
