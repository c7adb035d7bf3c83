"""The zip over a store with a realm: whom it lets in, by tokens of its own and by what the gateway verified."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlencode

import pytest

from arco_catalog.http.lambda_adapter import Endpoint
from arco_catalog.iceberg.json import JsonObject
from tests.cli.in_process import arco
from tests.lambda_.conftest import ONE_ENDPOINT, WAREHOUSE, Caller, Start
from tools.gateway.events import API_ID
from tools.support.asgi_client import Answer

CONFIG = f"/v1/config?warehouse={WAREHOUSE}"
NAMESPACES = f"/v1/{WAREHOUSE}/namespaces"
MANAGEMENT = "/api/management/v1"
ADA = "arn:aws:sts::123456789012:assumed-role/ada/her-session"
KEY = "an-example-0123456789-abcdefghijklmnopqrstuvwxyz"
INTERNAL = {"ARCO_AUTH": "internal", "ARCO_TOKEN_KEY": KEY}


@pytest.fixture(scope="module")
def environment(deployed: Callable[[], dict[str, str]]) -> dict[str, str]:
    """Of functions over one bucket, in which there is a realm."""
    return deployed()


@pytest.fixture(scope="module")
def root(environment: dict[str, str]) -> tuple[str, str]:
    """What the root principal logs in with."""
    made = asyncio.run(arco("bootstrap", "--json", **environment))
    assert made.code == 0, made.err
    credentials = json.loads(made.out)
    return credentials["client_id"], credentials["client_secret"]


def token(caller: Caller, client: tuple[str, str]) -> Answer:
    form = {"grant_type": "client_credentials", "client_id": client[0], "client_secret": client[1]}
    typed = (("Content-Type", "application/x-www-form-urlencoded"),)
    return caller.send("POST", "/v1/oauth/tokens", urlencode(form).encode(), typed)


def bearer(caller: Caller, client: tuple[str, str]) -> tuple[str, str]:
    answer = token(caller, client)
    assert answer.status == 200, answer.body
    return "Authorization", f"Bearer {answer.json['access_token']}"


def test_clients_with_a_secret_are_let_in_and_nobody_else(
    start: Start, environment: dict[str, str], root: tuple[str, str], tmp_path: Path
) -> None:
    with start({**environment, **INTERNAL, "ARCO_AUDIT_LOG": "-"}) as caller:
        assert caller.get(CONFIG).status == 401
        assert token(caller, (root[0], "wrong")).status == 401
        login = bearer(caller, root)
        assert caller.get(CONFIG, login).json["overrides"] == {"prefix": WAREHOUSE, "namespace-separator": "%1F"}
        assert caller.post(NAMESPACES, {"namespace": ["internal"]}, login).status == 200
        made = caller.post(f"{MANAGEMENT}/principals", {"principal": {"name": "stranger"}}, login)
        credentials = made.json["credentials"]
        assert isinstance(credentials, dict)
        stranger = str(credentials["clientId"]), str(credentials["clientSecret"])
        assert caller.get(CONFIG, bearer(caller, stranger)).status == 404
    [denial] = [line for line in (tmp_path / "function.log").read_text().splitlines() if "arco_catalog.audit" in line]
    assert (json.loads(denial)["event"], json.loads(denial)["operation"]) == ("denied", "getConfig")


@pytest.mark.parametrize("endpoint", ONE_ENDPOINT)
def test_whom_the_gateway_verified_may_do_what_was_granted(
    start: Start, environment: dict[str, str], root: tuple[str, str], endpoint: Endpoint
) -> None:
    names: JsonObject = {"catalogRole": {"name": "catalog_admin"}}
    person = ADA.replace("/ada/", f"/{endpoint}/")
    known = f"aws {person.rpartition('/')[0]}"
    with start({**environment, **INTERNAL}) as managed:
        login = bearer(managed, root)
        registered = {"principal": {"name": str(endpoint), "properties": {"arco.subject": known}}}
        assert managed.post(f"{MANAGEMENT}/principals", registered, login).status == 201
        role = {"principalRole": {"name": f"role-{endpoint}"}}
        assert managed.post(f"{MANAGEMENT}/principal-roles", role, login).status == 201
        by_gateway = {**environment, "ARCO_AUTH": "gateway", "ARCO_GATEWAY_APIS": API_ID}
        with start(by_gateway, endpoint, "--caller", person) as caller:
            assert caller.get(CONFIG).status == 404
            for path, body in (
                (f"principals/{endpoint}/principal-roles", role),
                (f"principal-roles/role-{endpoint}/catalog-roles/{WAREHOUSE}", names),
            ):
                typed = ("Content-Type", "application/json")
                put = managed.send("PUT", f"{MANAGEMENT}/{path}", json.dumps(body).encode(), (typed, login))
                assert put.status == 201, put.body
            assert caller.get(CONFIG).status == 200
            assert caller.post(NAMESPACES, {"namespace": [str(endpoint)]}).status == 200


@pytest.mark.parametrize(
    ("apis", "options"), [(API_ID, ()), ("zzzzzzzzzz", ("--caller", ADA)), (API_ID, ("--caller", ADA))]
)
def test_nobody_is_let_in_whom_no_trusted_gateway_verified_or_whom_nobody_registered(
    start: Start, environment: dict[str, str], root: tuple[str, str], apis: str, options: tuple[str, ...]
) -> None:
    assert root
    by_gateway = {**environment, "ARCO_AUTH": "gateway", "ARCO_GATEWAY_APIS": apis}
    with start(by_gateway, Endpoint.HTTP_API, *options) as caller:
        assert caller.get(CONFIG).status == 401


def test_a_function_that_is_to_ask_serves_nobody_before_there_is_a_realm(
    start: Start, deployed: Callable[[], dict[str, str]], tmp_path: Path
) -> None:
    by_gateway = {**deployed(), "ARCO_AUTH": "gateway,internal", "ARCO_GATEWAY_APIS": API_ID, "ARCO_TOKEN_KEY": KEY}
    with start(by_gateway) as caller:
        assert caller.get(CONFIG).status == 401
        assert token(caller, ("root", "any")).status == 401
    with start(by_gateway, Endpoint.HTTP_API, "--caller", ADA) as caller:
        refused = caller.get(CONFIG)
        assert (refused.status, caller.post(NAMESPACES, {"namespace": ["a"]}).status) == (403, 403)
        assert "no realm yet" in refused.message
    assert "there is no realm at _realm/core/manifest.json yet" in (tmp_path / "function.log").read_text()


@pytest.mark.parametrize("off", [False, True])
def test_without_a_realm_whom_the_gateway_verified_may_do_everything_only_if_that_is_written_out(
    start: Start, deployed: Callable[[], dict[str, str]], off: bool
) -> None:
    said = {"ARCO_AUTHORIZATION": "off"} if off else {}
    by_gateway = {**deployed(), "ARCO_AUTH": "gateway", "ARCO_GATEWAY_APIS": API_ID, **said}
    with start(by_gateway, Endpoint.HTTP_API, "--caller", ADA) as caller:
        assert caller.post(NAMESPACES, {"namespace": ["a"]}).status == (200 if off else 403)
    if off:
        with start(by_gateway) as caller:
            assert caller.get(CONFIG).status == 401


def test_a_function_that_was_not_told_to_ask_serves_nobody_where_there_is_a_realm(
    start: Start, environment: dict[str, str], root: tuple[str, str], tmp_path: Path
) -> None:
    assert root
    for options in ((), ("--caller", ADA)):
        with start(environment, Endpoint.HTTP_API, *options) as caller:
            assert [caller.get(target).status for target in (CONFIG, NAMESPACES)] == [403, 403]
            assert caller.post(NAMESPACES, {"namespace": ["a"]}).status == 403
    assert "set ARCO_AUTH, or ARCO_AUTHORIZATION=off" in (tmp_path / "function.log").read_text()
    with start({**environment, "ARCO_AUTHORIZATION": "off"}) as caller:
        assert caller.get(NAMESPACES).status == 200


def test_whoever_is_authenticated_may_do_everything_in_a_realm_whose_grants_were_turned_off(
    start: Start, environment: dict[str, str], root: tuple[str, str]
) -> None:
    assert root
    off = {**environment, "ARCO_AUTH": "gateway", "ARCO_GATEWAY_APIS": API_ID, "ARCO_AUTHORIZATION": "off"}
    with start(off, Endpoint.HTTP_API, "--caller", ADA.replace("/ada/", "/unknown/")) as caller:
        assert caller.post(NAMESPACES, {"namespace": ["off"]}).status == 200


def test_a_zip_without_cryptography_says_at_its_start_that_it_verifies_no_tokens_of_others(
    start: Start, environment: dict[str, str], tmp_path: Path
) -> None:
    issuers = {"ARCO_OIDC_ISSUERS": "https://issuer.example", "ARCO_OIDC_AUDIENCES": "arco"}
    with start({**environment, "ARCO_AUTH": "oidc", **issuers}) as caller:
        assert caller.get(CONFIG).status >= 500
    assert "cryptography is not installed" in (tmp_path / "function.log").read_text()
    assert "make package ARGS=--oidc" in (tmp_path / "function.log").read_text()
