"""Listing in pages."""

import pytest

from arco_catalog.iceberg.json import JsonValue
from tests.support.http_service import HttpService
from tools.support.asgi_client import Answer, Client

NAMES = [f"t{number:02}" for number in range(7)]
TABLES = "/v1/wh/namespaces/db/tables"


@pytest.fixture
async def pages(empty_service: HttpService) -> Client:
    """A namespace with seven tables and seven namespaces inside."""
    await empty_service.namespace("db", "db")
    for name in NAMES:
        await empty_service.table(name)
        await empty_service.namespace(f"db%1F{name}", "db", name)
    return empty_service.client


def names(answer: Answer) -> list[JsonValue]:
    """The last parts of what was listed."""
    if "namespaces" in answer.json:
        listed = answer.json["namespaces"]
        assert isinstance(listed, list)
        return [levels[-1] for levels in listed if isinstance(levels, list)]
    listed = answer.json["identifiers"]
    assert isinstance(listed, list)
    return [identifier["name"] for identifier in listed if isinstance(identifier, dict)]


LISTINGS = pytest.mark.parametrize("listing", [f"{TABLES}?", "/v1/wh/namespaces?parent=db&"])


@LISTINGS
@pytest.mark.parametrize("query", ["", "pageSize=2"])
async def test_without_a_page_token_everything_is_listed(pages: Client, listing: str, query: str) -> None:
    answer = await pages.get(listing + query)

    assert names(answer) == NAMES
    assert answer.json["next-page-token"] is None


@LISTINGS
@pytest.mark.parametrize("size", [1, 2, 3, 6, 7, 8, 999_999_999_999_999_999])
async def test_pages_add_up_to_the_whole_and_the_last_has_no_token(pages: Client, listing: str, size: int) -> None:
    found: list[JsonValue] = []
    token: JsonValue = ""
    for _ in range(len(NAMES) + 1):
        answer = await pages.get(f"{listing}pageToken={token}&pageSize={size}")
        assert 1 <= len(names(answer)) <= size
        found += names(answer)
        token = answer.json["next-page-token"]
        if token is None:
            break
    assert found == NAMES


async def test_pages_do_not_shift_under_a_reader(pages: Client) -> None:
    first = await pages.get(f"{TABLES}?pageToken=&pageSize=3")
    for name in ("t00", "t04"):
        await pages.delete(f"{TABLES}/{name}")

    token = first.json["next-page-token"]
    second = await pages.get(f"{TABLES}?pageToken={token}&pageSize=9")

    assert names(first) + names(second) == NAMES


@LISTINGS
@pytest.mark.parametrize("size", ["0", "-1", "1.5", "ten", "", "+1", "1e3", "%D9%A1", "9" * 40])
async def test_a_page_size_is_a_positive_integer(pages: Client, listing: str, size: str) -> None:
    answer = await pages.get(f"{listing}pageToken=&pageSize={size}")

    assert (answer.status, answer.error_type) == (400, "BadRequestException")


@LISTINGS
@pytest.mark.parametrize("token", ["x", "%00", "eyJ9", "W10", "%F0%9F%A7%8A", "W251bGwsMV0", "=" * 50])
async def test_a_token_that_is_not_ours_is_refused(pages: Client, listing: str, token: str) -> None:
    answer = await pages.get(f"{listing}pageToken={token}")

    assert (answer.status, answer.error_type) == (400, "BadRequestException")


async def test_a_token_of_another_listing_is_refused(pages: Client) -> None:
    token = (await pages.get(f"{TABLES}?pageToken=&pageSize=1")).json["next-page-token"]

    answer = await pages.get(f"/v1/wh/namespaces?pageToken={token}")

    assert (answer.status, answer.error_type) == (400, "BadRequestException")


@pytest.mark.parametrize("query", ["parent=a&parent=b", "pageToken=&pageToken=", "pageSize=1&pageSize=1"])
async def test_a_parameter_is_given_once(pages: Client, query: str) -> None:
    answer = await pages.get(f"/v1/wh/namespaces?{query}")

    assert (answer.status, answer.error_type) == (400, "BadRequestException")
    assert "2 times" in answer.message
