"""The principal of a request, as the gateway's event names it."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from arco_catalog.authentication.gateway import MAX_TEXT
from arco_catalog.cli.columns import format_author
from arco_catalog.http.asgi import Receive, Scope, Send
from arco_catalog.http.principal import NO_CALLER, Caller, caller_of
from arco_catalog.iceberg.json import loads
from arco_catalog.protocol.operation_request import OperationRequest
from arco_catalog.state.key_settings import Dialect
from arco_catalog.state.marker import key_hash
from arco_catalog.state.receipt import base_of
from storage_backends import Found
from tests.http.test_source import stored
from tests.support.http_service import HttpService
from tools.support.asgi_client import Client
from tools.support.request_bodies import set_property

TABLE = "/v1/wh/namespaces/db/tables/t"
USER = "arn:aws:iam::123456789012:user/ada"
ROLE = "arn:aws-us-gov:sts::123456789012:assumed-role/spark"


def signed(arn: object) -> dict[str, Any]:
    """The event of an HTTP API or a function URL for a signed request."""
    return {"authorizer": {"iam": {"accessKey": "AKIA", "userArn": arn, "userId": "AIDA:ada"}}}


def with_token(**claims: object) -> dict[str, Any]:
    return {"authorizer": {"jwt": {"claims": claims, "scopes": None}}}


@pytest.mark.parametrize(
    ("context", "principal"),
    [
        (signed(USER), Caller(USER)),
        (signed(f"{ROLE}/driver-1"), Caller(ROLE, "driver-1")),
        (signed(f"{ROLE}/ada@example.org"), Caller(ROLE, "ada@example.org")),
        (signed(f"{ROLE}/"), Caller(ROLE)),
        ({"identity": {"userArn": f"{ROLE}/driver-2", "sourceIp": "127.0.0.1"}}, Caller(ROLE, "driver-2")),
        (with_token(sub="ada@example.org", iss="https://id.example.org"), Caller("ada@example.org")),
        ({"identity": {"userArn": None}}, NO_CALLER),
        ({"authorizer": None}, NO_CALLER),
        ({"authorizer": "x", "identity": []}, NO_CALLER),
        ({}, NO_CALLER),
        (None, NO_CALLER),
    ],
)
def test_a_principal_is_who_was_checked_at_the_door(context: object, principal: Caller) -> None:
    assert called({"requestContext": context}) == principal


def called(event: object) -> Caller:
    return caller_of({"aws.event": event})


def test_without_a_door_everybody_is_anonymous() -> None:
    assert caller_of({}) == NO_CALLER


@pytest.mark.parametrize(
    ("one", "other"),
    [("a\nb", "a?b"), ("a\nb", "a\rb"), ("x" * 300 + "1", "x" * 300 + "2"), ("x" * 300, "x" * MAX_TEXT)],
)
def test_two_subjects_stay_two_however_they_must_be_changed_to_be_shown(one: str, other: str) -> None:
    principals = [called({"requestContext": with_token(sub=subject)}).principal for subject in (one, other)]

    assert principals[0] != principals[1]
    assert all(len(each) <= MAX_TEXT and each.isprintable() for each in principals)


NAMELESS = [
    with_token(iss="https://id.example.org"),
    with_token(sub=7),
    with_token(sub=""),
    with_token(sub=None),
    {"authorizer": {"jwt": {"claims": None}}},
    {"authorizer": {"jwt": {}}},
    signed(None),
    signed(""),
    {"authorizer": {"iam": {}}},
]


@pytest.mark.parametrize("context", NAMELESS, ids=str)
@pytest.mark.parametrize(("method", "target"), [("GET", TABLE), ("DELETE", TABLE), ("GET", "/v1/config")])
async def test_who_was_let_in_without_a_name_is_refused_lest_all_of_them_be_one(
    service: HttpService, context: Mapping[str, object], method: str, target: str
) -> None:
    answer = await client_of(service, context).send(method, target)

    assert (answer.status, answer.error_type) == (401, "NotAuthorizedException")
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert (await service.client.head(TABLE)).status == 204


def client_of(service: HttpService, context: Mapping[str, object]) -> Client:
    """A client whose requests come through a door."""

    async def behind(scope: Scope, receive: Receive, send: Send) -> None:
        await service.client.app({**scope, "aws.event": {"requestContext": context}}, receive, send)

    return Client(behind)


async def test_receipts_say_who_signed(service: HttpService) -> None:
    answer = await client_of(service, signed(USER)).post(TABLE, set_property("a", "b"))

    keys = [key for key in service.store.keys("") if "/iceberg/committed/" in key]
    receipts = [loads(found.body) for key in keys if isinstance(found := await service.store.get(key), Found)]
    assert answer.status == 200
    assert [each["principal"] for each in receipts if isinstance(each, dict) and base_of(each)] == [USER]


async def test_receipts_and_history_tell_apart_who_assumed_a_role(service: HttpService) -> None:
    for session in ("ada@example.org", "bob@example.org"):
        await client_of(service, signed(f"{ROLE}/{session}")).post(TABLE, set_property("by", session))
    await client_of(service, signed(f"{ROLE}/eve")).delete(TABLE)

    receipts = [each for each in (await stored(service, "/iceberg/committed/")).values() if base_of(each)]
    history = [str(each["operations"]) for each in (await stored(service, "/core/commits/")).values()]
    assert {each["principal"] for each in receipts} == {ROLE}
    assert {str(each["session"]) for each in receipts} == {"ada@example.org", "bob@example.org"}
    assert [each for each in history if "drop-table" in each and "'session': 'eve'" in each]
    assert {format_author(each) for each in receipts} == {f"{ROLE}/ada@example.org", f"{ROLE}/bob@example.org"}


async def test_a_key_is_its_principals_own(service: HttpService) -> None:
    key = service.key()
    first = await client_of(service, signed(f"{ROLE}/one")).post(TABLE, set_property("a", "b"), idempotency_key=key)
    again = await client_of(service, signed(f"{ROLE}/two")).post(TABLE, set_property("a", "b"), idempotency_key=key)
    other = await client_of(service, signed(USER)).post(TABLE, set_property("a", "b"), idempotency_key=key)

    assert (first.status, again.status, other.status) == (200, 200, 409)
    assert again.json["metadata-location"] == first.json["metadata-location"]


async def test_in_the_polaris_dialect_one_key_of_two_principals_is_two(
    service_with: Callable[..., HttpService],
) -> None:
    """Anybody may choose any text for a key there: the first caller kept it from all others."""
    service = service_with(dialect=Dialect.POLARIS)
    await service.namespace("db", "db")
    await service.table("t")
    for number, context in enumerate((signed(USER), signed(f"{ROLE}/one"), with_token(sub="ada"), {})):
        client = client_of(service, context)
        first = await client.post(TABLE, set_property("a", str(number)), idempotency_key="job-1")
        again = await client.post(TABLE, set_property("a", str(number)), idempotency_key="job-1")
        other = await client.post(TABLE, set_property("a", "other"), idempotency_key="job-1")
        assert (first.status, again.status, other.status) == (200, 200, 422)
        assert again.json["metadata-location"] == first.json["metadata-location"]


@contextmanager
def an_older_version(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Of the time before principals were part of a Polaris key's path."""
    with monkeypatch.context() as older:
        older.setattr(OperationRequest, "key_hash", lambda call: key_hash(f"{call.method} {call.path}", call.key.text))
        older.setattr(OperationRequest, "earlier_key_hash", lambda call: None)
        yield


@pytest.mark.parametrize("read_only", [None, "it must be"])
async def test_a_request_whose_marker_an_older_version_made_is_not_applied_again(
    service_with: Callable[..., HttpService], monkeypatch: pytest.MonkeyPatch, read_only: str | None
) -> None:
    service = service_with(dialect=Dialect.POLARIS)
    await service.namespace("db", "db")
    await service.table("t")
    with an_older_version(monkeypatch):
        first = await client_of(service, signed(USER)).post(TABLE, set_property("a", "b"), idempotency_key="job-1")

    service.client = service.serve(read_only_because=read_only)
    again = await client_of(service, signed(USER)).post(TABLE, set_property("a", "b"), idempotency_key="job-1")

    assert (first.status, again.status) == (200, 200)
    assert again.json["metadata-location"] == first.json["metadata-location"]


async def test_another_caller_s_marker_of_an_older_version_blocks_no_request(
    service_with: Callable[..., HttpService], monkeypatch: pytest.MonkeyPatch
) -> None:
    service = service_with(dialect=Dialect.POLARIS)
    await service.namespace("db", "db")
    await service.table("t")
    with an_older_version(monkeypatch):
        await client_of(service, signed(USER)).post(TABLE, set_property("a", "b"), idempotency_key="job-1")

    answer = await client_of(service, signed(f"{ROLE}/one")).post(
        TABLE, set_property("a", "c"), idempotency_key="job-1"
    )

    assert answer.status == 200
