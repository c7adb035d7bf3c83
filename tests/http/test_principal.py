"""Who asks, as the event of a front door says."""

from collections.abc import Mapping
from typing import Any

import pytest

from arco_catalog.http.asgi import Receive, Scope, Send
from arco_catalog.http.principal import ANONYMOUS, MAX_TEXT, principal_of
from arco_catalog.iceberg.json import loads
from arco_catalog.state.receipt import base_of
from storage_backends import Found
from tests.http.client import Client
from tests.http.conftest import Site
from tests.operations.desk import set_property

TABLE = "/v1/wh/namespaces/db/tables/t"
USER = "arn:aws:iam::123456789012:user/ada"
ROLE = "arn:aws-us-gov:sts::123456789012:assumed-role/spark"


def signed(arn: object) -> dict[str, Any]:
    """What an HTTP API or a function URL says of a signed request."""
    return {"authorizer": {"iam": {"accessKey": "AKIA", "userArn": arn, "userId": "AIDA:ada"}}}


def with_token(**claims: object) -> dict[str, Any]:
    return {"authorizer": {"jwt": {"claims": claims, "scopes": None}}}


@pytest.mark.parametrize(
    ("context", "principal"),
    [
        (signed(USER), USER),
        (signed(f"{ROLE}/driver-1"), ROLE),
        ({"identity": {"userArn": f"{ROLE}/driver-2", "sourceIp": "127.0.0.1"}}, ROLE),
        (with_token(sub="ada@example.org", iss="https://id.example.org"), "ada@example.org"),
        (with_token(sub="a\nb" + "x" * 1_000), "a?b" + "x" * (MAX_TEXT - 3)),
        (with_token(iss="https://id.example.org"), ANONYMOUS),
        (with_token(sub=7), ANONYMOUS),
        (signed(None), ANONYMOUS),
        (signed(""), ANONYMOUS),
        ({"identity": {"userArn": None}}, ANONYMOUS),
        ({"authorizer": None}, ANONYMOUS),
        ({"authorizer": "x", "identity": []}, ANONYMOUS),
        ({}, ANONYMOUS),
        (None, ANONYMOUS),
    ],
)
def test_a_principal_is_who_was_checked_at_the_door(context: object, principal: str) -> None:
    assert principal_of({"aws.event": {"requestContext": context}}) == principal


def test_without_a_door_everybody_is_anonymous() -> None:
    assert principal_of({}) == ANONYMOUS


def client_of(site: Site, context: Mapping[str, object]) -> Client:
    """A client whose requests come through a door."""

    async def behind(scope: Scope, receive: Receive, send: Send) -> None:
        await site.client.app({**scope, "aws.event": {"requestContext": context}}, receive, send)

    return Client(behind)


async def test_receipts_say_who_signed(site: Site) -> None:
    answer = await client_of(site, signed(USER)).post(TABLE, set_property("a", "b"))

    keys = [key for key in site.store.keys("") if "/iceberg/committed/" in key]
    receipts = [loads(found.body) for key in keys if isinstance(found := await site.store.get(key), Found)]
    assert answer.status == 200
    assert [each["principal"] for each in receipts if isinstance(each, dict) and base_of(each)] == [USER]


async def test_a_key_is_its_principals_own(site: Site) -> None:
    key = site.key()
    first = await client_of(site, signed(f"{ROLE}/one")).post(TABLE, set_property("a", "b"), idempotency_key=key)
    again = await client_of(site, signed(f"{ROLE}/two")).post(TABLE, set_property("a", "b"), idempotency_key=key)
    other = await client_of(site, signed(USER)).post(TABLE, set_property("a", "b"), idempotency_key=key)

    assert (first.status, again.status, other.status) == (200, 200, 409)
    assert again.json["metadata-location"] == first.json["metadata-location"]
