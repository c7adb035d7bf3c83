"""Entity tags: pinned on the wire, distinct for distinct answers, and a 304 only for what is still there."""

import itertools

import pytest

from arco_catalog.http.etag import Snapshots, none_match, table_etag
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.protocol.catalog import Settings
from tests.support.http_service import HttpService
from tools.support.asgi_client import Client
from tools.support.request_bodies import set_property

TAG = '"cafe"'
LOCATION = "s3://bucket/wh/t-1/metadata/00001-a.metadata.json"
TABLE = "/v1/wh/namespaces/db/tables/t"


def test_the_wire_format_is_pinned() -> None:
    assert table_etag(LOCATION) == '"9d4c398c4cbe3b9ad22aaea80fb6be03"'
    assert table_etag(LOCATION, snapshots="refs") == '"6482a88b24a3f0010ae0da3918776a46"'


def test_every_representation_has_its_own_tag() -> None:
    modes: list[Snapshots] = ["all", "refs"]
    tags = [
        table_etag(location, snapshots=snapshots, delegation=delegation, grants=grants)
        for location, snapshots, delegation, grants in itertools.product(
            ["s3://b/1", "s3://b/2"],
            modes,
            ["", "vended-credentials", "remote-signing"],
            [(), ("read",), ("read", "write")],
        )
    ]
    assert len(set(tags)) == len(tags)


def test_the_order_of_grants_does_not_matter() -> None:
    assert table_etag(LOCATION, grants=("read", "write")) == table_etag(LOCATION, grants=("write", "read"))


@pytest.mark.parametrize(
    "sent", [TAG, f"W/{TAG}", f'"other", {TAG}', f'W/"other" ,W/{TAG}', "*", " * ", "cafe", f'"a,b",{TAG}']
)
def test_a_client_holds_the_state(sent: str) -> None:
    assert not none_match(sent, TAG)


@pytest.mark.parametrize(
    "sent", [None, "", '"other"', 'W/"other"', "caf", '"caf', "other, tags", '"a", "b"', '"*"', 'x"cafe']
)
def test_a_client_does_not_hold_the_state(sent: str | None) -> None:
    assert none_match(sent, TAG)


async def test_create_load_commit_and_register_all_give_the_tag_of_a_load(service: HttpService) -> None:
    client = service.client
    created = await service.table("u")
    path = "/v1/wh/namespaces/db/tables/u"
    assert created.headers["ETag"] == (await client.get(path)).headers["ETag"]

    committed = await client.post(path, set_property("a", "b"))
    assert committed.headers["ETag"] != created.headers["ETag"]
    assert committed.headers["ETag"] == (await client.get(path)).headers["ETag"]

    await client.delete(path)
    again = {"name": "v", "metadata-location": committed.json["metadata-location"]}
    registered = await client.post("/v1/wh/namespaces/db/register", again)
    assert registered.headers["ETag"] == (await client.get("/v1/wh/namespaces/db/tables/v")).headers["ETag"]


async def test_a_client_that_holds_the_state_gets_304_without_a_body(client: Client) -> None:
    tag = (await client.get(TABLE)).headers["ETag"]

    answer = await client.get(TABLE, if_none_match=tag)

    assert (answer.status, answer.body) == (304, b"")
    assert answer.headers == {"ETag": tag}


async def test_a_tag_of_one_representation_does_not_stand_for_the_other(client: Client) -> None:
    everything = (await client.get(TABLE)).headers["ETag"]
    visible = (await client.get(f"{TABLE}?snapshots=refs")).headers["ETag"]

    assert everything != visible
    assert (await client.get(f"{TABLE}?snapshots=refs", if_none_match=everything)).status == 200
    assert (await client.get(f"{TABLE}?snapshots=refs", if_none_match=visible)).status == 304
    assert (await client.get(f"{TABLE}?snapshots=all", if_none_match=everything)).status == 304


async def test_a_tag_ends_with_the_next_commit(client: Client) -> None:
    tag = (await client.get(TABLE)).headers["ETag"]
    await client.post(TABLE, set_property("a", "b"))

    assert (await client.get(TABLE, if_none_match=tag)).status == 200


async def test_there_is_no_304_for_a_table_whose_metadata_is_gone(service: HttpService) -> None:
    loaded = await service.client.get(TABLE)
    location = str(loaded.json["metadata-location"])
    await service.store.delete(location.removeprefix("memory:///"))
    service.clock.ms += Settings("wh").file_confirmed_ms

    for client in (service.client, service.serve()):
        answer = await client.get(TABLE, if_none_match=loaded.headers["ETag"])
        assert (answer.status, answer.error_type) == (404, "NotFoundException")
        assert answer.message == f"Failed to open input stream for file: {location}"


async def test_there_is_no_304_for_a_table_that_was_dropped(client: Client) -> None:
    tag = (await client.get(TABLE)).headers["ETag"]
    await client.delete(TABLE)

    assert (await client.get(TABLE, if_none_match=tag)).error_type == "NoSuchTableException"


async def test_a_staged_table_has_no_tag(client: Client) -> None:
    body: JsonObject = {"name": "s", "schema": {"type": "struct", "fields": []}, "stage-create": True}

    answer = await client.post("/v1/wh/namespaces/db/tables", body)

    assert answer.status == 200
    assert "ETag" not in answer.headers
    assert answer.json.get("metadata-location") is None
