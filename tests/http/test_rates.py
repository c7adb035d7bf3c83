"""The rate of requests of each principal: 429 beyond it, for that principal alone."""

from contextlib import suppress

import pytest

from arco_catalog.http.app import create_app
from arco_catalog.http.options import HttpOptions
from arco_catalog.http.rates import MAX_PRINCIPALS, RequestRates
from arco_catalog.iceberg.errors import TooManyRequests
from arco_catalog.telemetry.lines import JsonLines
from arco_catalog.telemetry.telemetry import Telemetry
from tests.support.http_service import HttpService
from tests.support.realm_service import RealmApp, on_catalog
from tools.support.asgi_client import Client


class Clock:
    """A clock that stands still until a test moves it."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def taken(rates: RequestRates, principal: str, requests: int) -> int:
    """How many of so many requests are let in."""
    count = 0
    for _ in range(requests):
        with suppress(TooManyRequests):
            rates.take(principal)
            count += 1
    return count


@pytest.mark.parametrize("rate", [1, 3, 7, 10, 1_000])
def test_a_second_s_requests_are_let_in_at_once_and_then_as_many_each_second(rate: int) -> None:
    clock = Clock()
    rates = RequestRates(rate, clock)

    assert taken(rates, "ada", 3 * rate) == rate
    for _ in range(5):
        clock.now += 1
        assert taken(rates, "ada", 3 * rate) == rate
    clock.now += 100
    assert taken(rates, "ada", 3 * rate) == rate


def test_half_a_second_fills_half_of_a_bucket() -> None:
    clock = Clock()
    rates = RequestRates(10, clock)
    taken(rates, "ada", 10)

    clock.now += 0.5

    assert taken(rates, "ada", 10) == 5


def test_one_principal_takes_nothing_from_another() -> None:
    rates = RequestRates(2, Clock())

    assert [taken(rates, principal, 5) for principal in ("ada", "eve")] == [2, 2]


def test_memory_is_bounded_and_full_buckets_are_forgotten() -> None:
    clock = Clock()
    rates = RequestRates(2, clock)
    for number in range(MAX_PRINCIPALS + 500):
        rates.take(str(number))
    assert len(rates._full_at) == MAX_PRINCIPALS
    assert taken(rates, str(MAX_PRINCIPALS + 499), 5) == 1

    clock.now += 10
    for _ in range(MAX_PRINCIPALS):
        clock.now += 1
        rates.take("ada")

    assert len(rates._full_at) == 1


def test_one_bucket_that_rounding_fills_at_once_is_forgotten() -> None:
    clock = Clock()
    clock.now = 2.0**24 + 1
    rates = RequestRates(10**9, clock)

    rates.take("ada")

    assert not rates._full_at


async def test_requests_beyond_the_rate_get_429_in_the_form_of_iceberg() -> None:
    clock, service = Clock(), HttpService()
    options = HttpOptions(health=True)
    lines: list[str] = []
    telemetry = Telemetry([JsonLines(lines.append)], service.clock)
    client = Client(create_app({"wh": service.catalog()}, options, telemetry, rates=RequestRates(2, clock)))

    answers = [await client.get("/v1/wh/namespaces") for _ in range(3)]

    assert [each.status for each in answers] == [200, 200, 429]
    refused = answers[-1]
    assert (refused.error_type, refused.headers["Retry-After"]) == ("SlowDownException", "1")
    assert "More than 2 requests a second of this principal: nothing was done" in refused.message
    assert '"Operation":"listNamespaces"' in lines[-1]
    assert '"status":429' in lines[-1]
    assert [(await client.get("/health")).status for _ in range(9)] == [200] * 9
    clock.now += 1
    assert (await client.get("/v1/wh/namespaces")).status == 200


async def test_without_a_rate_none_is_refused() -> None:
    service = HttpService()

    assert {(await service.client.get("/v1/wh/namespaces")).status for _ in range(200)} == {200}


async def test_each_principal_of_a_realm_has_its_own_rate() -> None:
    app = await RealmApp().start()
    await app.catalog()
    for name in ("ada", "eve"):
        await app.principal(name, on_catalog("CATALOG_MANAGE_CONTENT"))
    app.rates = RequestRates(2, Clock())
    limited = app.serve()

    statuses = [
        [(await app.client(name, app=limited).get("/v1/lake/namespaces")).status for _ in range(4)]
        for name in ("ada", "eve")
    ]

    assert statuses == [[200, 200, 429, 429]] * 2
