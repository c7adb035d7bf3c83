"""Who has access in a catalog without a realm: no grants are checked there, and there are none."""

import pytest

from tests.support.http_service import HttpService

DB = "/v1/wh/namespaces/db"


@pytest.mark.parametrize("of", [DB, f"{DB}/tables/t"])
async def test_without_a_realm_nothing_is_checked(service: HttpService, of: str) -> None:
    answer = await service.client.get(f"{of}/access")

    assert (answer.status, answer.json) == (200, {"checked": False, "access": [], "next-page-token": None})


@pytest.mark.parametrize("of", [f"{DB}/tables/none", f"{DB}/views/t", "/v1/wh/namespaces/none"])
async def test_what_does_not_exist_is_not_found(service: HttpService, of: str) -> None:
    assert (await service.client.get(f"{of}/access")).status == 404
