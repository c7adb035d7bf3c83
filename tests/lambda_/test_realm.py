"""The zip over a store with a realm: whom it lets in, by tokens of its own and by what the gateway verified."""

import asyncio
import json
from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from urllib.parse import urlencode

import pytest

from arco_catalog.http.lambda_adapter import Endpoint
from arco_catalog.iceberg.json import JsonObject
from tests.cli.process import arco
from tests.lambda_.conftest import WAREHOUSE, Caller
from tools.gateway.events import API_ID
from tools.gateway.running import running
from tools.support.asgi_client import Answer

CONFIG = f"/v1/config?warehouse={WAREHOUSE}"
NAMESPACES = f"/v1/{WAREHOUSE}/namespaces"
MANAGEMENT = "/api/management/v1"
ADA = "arn:aws:sts::123456789012:assumed-role/ada/her-session"
INTERNAL = {"ARCO_AUTH": "internal", "ARCO_TOKEN_KEY": "an-example-0123456789-abcdefghijklmnopqrstuvwxyz"}

Start = Callable[..., AbstractContextManager[Caller]]


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


@pytest.fixture
def start(archive: Path, tmp_path: Path) -> Start:
    """Starts a gateway over a function with these variables."""

    @contextmanager
    def started(environment: dict[str, str], endpoint: Endpoint = Endpoint.HTTP_API, *options: str):  # type: ignore[no-untyped-def]
        with running(archive, endpoint, tmp_path / "function.log", environment, *options) as uri:
            yield Caller(uri)

    return started


def token(caller: Caller, client: tuple[str, str]) -> Answer:
    form = {"grant_type": "client_credentials", "client_id": client[0], "client_secret": client[1]}
    typed = (("Content-Type", "application/x-www-form-urlencoded"),)
    return caller.send("POST", "/v1/oauth/tokens", urlencode(form).encode(), typed)


def bearer(caller: Caller, client: tuple[str, str]) -> tuple[str, str]:
    answer = token(caller, client)
    assert answer.status == 200, answer.body
    return "Authorization", f"Bearer {answer.json['access_token']}"


def test_clients_with_a_secret_are_let_in_and_nobody_else(
    start: Start, environment: dict[str, str], root: tuple[str, str]
) -> None:
    with start({**environment, **INTERNAL}) as caller:
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


@pytest.mark.parametrize("endpoint", list(Endpoint))
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
    start: Start, deployed: Callable[[], dict[str, str]]
) -> None:
    with start({**deployed(), **INTERNAL}) as caller:
        assert caller.get(CONFIG).status in (500, 502)
