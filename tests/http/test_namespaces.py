"""Namespaces over HTTP."""

import pytest

from tests.support.http_service import HttpService
from tools.support.asgi_client import Client

NS = "/v1/wh/namespaces"


async def test_a_namespace_comes_back_with_its_properties_and_its_location(client: Client) -> None:
    made = await client.post(NS, {"namespace": ["n"], "properties": {"owner": "ada"}})

    expected = {"namespace": ["n"], "properties": {"owner": "ada", "location": "memory:///wh/warehouse/n"}}
    assert (made.status, made.json) == (200, expected)
    assert (await client.get(f"{NS}/n")).json == expected


async def test_changes_of_properties_are_reported(client: Client) -> None:
    await client.post(NS, {"namespace": ["n"], "properties": {"a": "1", "b": "2"}})

    answer = await client.post(f"{NS}/n/properties", {"removals": ["a", "x", "x"], "updates": {"b": "3", "c": "4"}})

    assert answer.status == 200
    assert answer.json == {"updated": ["b", "c"], "removed": ["a"], "missing": ["x"]}
    properties = (await client.get(f"{NS}/n")).json["properties"]
    assert isinstance(properties, dict)
    assert {name: properties[name] for name in properties if name != "location"} == {"b": "3", "c": "4"}


@pytest.mark.parametrize("query", ["", "?parent="])
async def test_only_direct_children_are_listed(service: HttpService, query: str) -> None:
    await service.namespace("db%1Fin", "db", "in")

    assert (await service.client.get(f"{NS}{query}")).json["namespaces"] == [["db"]]
    assert (await service.client.get(f"{NS}?parent=db")).json["namespaces"] == [["db", "in"]]


async def test_a_dropped_namespace_is_gone(service: HttpService) -> None:
    await service.namespace("n", "n")

    dropped = await service.client.delete(f"{NS}/n")

    assert (dropped.status, dropped.body) == (204, b"")
    assert "content-length" not in dropped.headers
    assert (await service.client.head(f"{NS}/n")).status == 404


async def test_servers_over_one_store_see_each_others_changes_at_once(service: HttpService) -> None:
    other = service.serve()
    assert (await other.head(f"{NS}/n")).status == 404
    await service.client.post(NS, {"namespace": ["n"]})
    assert (await other.head(f"{NS}/n")).status == 204
    await other.delete(f"{NS}/n")
    assert (await service.client.head(f"{NS}/n")).status == 404
