"""Search over HTTP: its parameters, its pages, and what it shows of each kind of object."""

import pytest

from arco_catalog.iceberg.json import JsonObject, JsonValue
from tests.support.http_service import HttpService
from tools.support.asgi_client import Client

SEARCH = "/v1/wh/search"


@pytest.fixture
async def client(empty_service: HttpService) -> Client:
    """One object of each type with a word that begins with `ord`."""
    await empty_service.namespace("order_db", "order_db")
    await empty_service.namespace("db", "db")
    await empty_service.table("orders")
    await empty_service.view("v_orders")
    await empty_service.generic_table("RawOrders")
    await empty_service.semantic_model("order-model")
    await empty_service.table("items")
    return empty_service.client


def item(kind: str, name: str | None, *namespace: str) -> JsonObject:
    return {"type": kind, "namespace": [*(namespace or ("db",))], "name": name}


EVERYTHING = [
    item("namespace", None, "order_db"),
    item("generic-table", "RawOrders"),
    item("semantic-model", "order-model"),
    item("table", "orders"),
    item("view", "v_orders"),
]


async def test_each_type_of_object_is_found(client: Client) -> None:
    answer = await client.get(f"{SEARCH}?q=ord")

    assert (answer.status, answer.json["results"]) == (200, EVERYTHING)
    assert answer.json == {"results": EVERYTHING, "next-page-token": None}, "no count of names that are hidden"


@pytest.mark.parametrize("expected", EVERYTHING, ids=lambda each: each["type"])
@pytest.mark.parametrize("spelled", [str, str.upper])
async def test_one_type_is_found_alone(client: Client, expected: JsonObject, spelled: type[str]) -> None:
    answer = await client.get(f"{SEARCH}?q=ord&type={spelled(expected['type'])}")

    assert answer.json["results"] == [expected]


async def test_pages_add_up_to_the_whole(client: Client) -> None:
    found: list[JsonValue] = []
    token: JsonValue = ""
    while token is not None:
        answer = await client.get(f"{SEARCH}?q=ord&limit=2&pageToken={token}")
        results = answer.json["results"]
        assert isinstance(results, list)
        assert len(results) <= 2
        found += results
        token = answer.json["next-page-token"]
    assert found == EVERYTHING


async def test_a_drop_is_seen_by_the_next_page(client: Client) -> None:
    first = await client.get(f"{SEARCH}?q=ord&limit=2")
    assert (await client.delete("/v1/wh/namespaces/db/tables/orders")).status == 204

    second = await client.get(f"{SEARCH}?q=ord&pageToken={first.json['next-page-token']}")

    assert second.json["results"] == [EVERYTHING[2], EVERYTHING[4]]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("", "Query parameter 'q' is missing"),
        ("q=", "The query 'q' has 0 characters"),
        (f"q={'x' * 256}", "The query 'q' has 256 characters"),
        ("q=a+b+c+d+e+f+g+h+i", "The query 'q' has 9 words"),
        ("q=a&q=b", "given 2 times"),
        ("q=a&type=tables", "Query parameter 'type' must be namespace or table"),
        ("q=a&limit=0", "must be an integer of at least 1"),
        ("q=a&pageToken=x", "The page token is invalid"),
    ],
)
async def test_a_malformed_search_is_refused(client: Client, query: str, message: str) -> None:
    answer = await client.get(f"{SEARCH}?{query}")

    assert (answer.status, answer.error_type) == (400, "BadRequestException")
    assert message in answer.message
