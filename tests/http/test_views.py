"""Views over HTTP."""

from typing import cast

import pytest

from arco_catalog.iceberg.json import JsonObject, JsonValue
from tests.support.http_service import HttpService
from tools.support.asgi_client import Answer
from tools.support.request_bodies import schema, set_property, view_request

VIEWS = "/v1/wh/namespaces/db/views"
VIEW = f"{VIEWS}/v"


def properties(answer: Answer) -> JsonValue:
    return cast(JsonObject, answer.json["metadata"])["properties"]


@pytest.fixture
async def viewed(service: HttpService) -> HttpService:
    """`service`, with the view `db.v`."""
    await service.view("v")
    return service


async def test_a_view_comes_back_as_it_was_created(service: HttpService) -> None:
    created = await service.client.post(VIEWS, view_request("v"))
    loaded = await service.client.get(VIEW)

    assert created.status == 200
    assert created.body == loaded.body
    assert [*loaded.json] == ["metadata-location", "metadata", "config"]
    assert "ETag" not in loaded.headers


async def test_a_replaced_view_comes_back_changed(viewed: HttpService) -> None:
    replaced = await viewed.client.post(VIEW, set_property("a", "b"))

    assert replaced.status == 200
    assert properties(replaced) == {"a": "b"}
    assert replaced.body == (await viewed.client.get(VIEW)).body


async def test_views_are_listed_apart_from_tables(viewed: HttpService) -> None:
    views = await viewed.client.get(VIEWS)
    tables = await viewed.client.get("/v1/wh/namespaces/db/tables")

    assert views.json == {"identifiers": [{"namespace": ["db"], "name": "v"}], "next-page-token": None}
    assert tables.json == {"identifiers": [{"namespace": ["db"], "name": "t"}], "next-page-token": None}


async def test_a_view_is_no_table_and_a_table_no_view(viewed: HttpService) -> None:
    assert (await viewed.client.get(f"{VIEWS}/t")).error_type == "NoSuchViewException"
    assert (await viewed.client.get("/v1/wh/namespaces/db/tables/v")).error_type == "NoSuchTableException"
    assert (await viewed.client.head(VIEW)).status == 204
    assert (await viewed.client.head(f"{VIEWS}/t")).status == 404


async def test_a_name_means_one_thing(viewed: HttpService) -> None:
    table = await viewed.client.post("/v1/wh/namespaces/db/tables", {"name": "v", "schema": schema("x")})
    view = await viewed.client.post(VIEWS, view_request("t"))

    assert (table.status, table.message) == (409, "View with same name already exists: db.v")
    assert (view.status, view.message) == (409, "Table with same name already exists: db.t")


async def test_a_view_is_renamed_dropped_and_registered(viewed: HttpService) -> None:
    location = (await viewed.client.get(VIEW)).json["metadata-location"]
    names = {"source": {"namespace": ["db"], "name": "v"}, "destination": {"namespace": ["db"], "name": "w"}}

    assert (await viewed.client.post("/v1/wh/views/rename", names)).status == 204
    assert (await viewed.client.delete(f"{VIEWS}/w")).status == 204
    assert (await viewed.client.get(f"{VIEWS}/w")).message == "View does not exist: db.w"
    registered = await viewed.client.post(
        "/v1/wh/namespaces/db/register-view", {"name": "x", "metadata-location": location}
    )
    assert registered.status == 200, registered.body
    assert registered.json["metadata-location"] == location


async def test_a_replacement_that_names_another_view_is_refused(viewed: HttpService) -> None:
    body: JsonObject = {"identifier": {"namespace": ["db"], "name": "w"}, **set_property("a", "b")}

    answer = await viewed.client.post(VIEW, body)

    assert (answer.status, answer.error_type) == (400, "BadRequestException")
    assert answer.message == (
        "Invalid request.identifier: in a commit it must be the namespace and the name of the view in the path"
    )


async def test_two_queries_in_one_dialect_are_an_illegal_argument(service: HttpService) -> None:
    body = view_request("v")
    version = cast(JsonObject, body["view-version"])
    version["representations"] = [*cast(list[JsonValue], version["representations"])] * 2

    answer = await service.client.post(VIEWS, body)

    assert (answer.status, answer.error_type) == (400, "IllegalArgumentException")
