"""The function app over a store with a realm: authentication by its own tokens, and by App Service."""

import asyncio
import base64
import importlib
import json
import logging
import sys
from collections.abc import Mapping
from urllib.parse import urlencode

import pytest

from arco_catalog.http.functions_adapter import FunctionsEndpoint, event_in
from arco_catalog.iceberg.json import JsonObject
from tests.azure_functions.conftest import OBJECT_ID, PRINCIPAL, WAREHOUSE, FunctionApp, principal
from tests.cli.in_process import arco
from tools.support.asgi_client import Answer
from tools.support.request_bodies import schema, set_property

pytestmark = pytest.mark.needs("node", "npm")

CONFIG = f"/v1/config?warehouse={WAREHOUSE}"
NAMESPACES = f"/v1/{WAREHOUSE}/namespaces"
MANAGEMENT = "/api/management/v1"
ISSUER = "https://login.microsoftonline.com/a-tenant/v2.0"
OBJECT_ID_TYPE = "http://schemas.microsoft.com/identity/claims/objectidentifier"
INTERNAL = {"ARCO_AUTH": "internal", "ARCO_TOKEN_KEY": "an-example-0123456789-abcdefghijklmnopqrstuvwxyz"}
BY_EASY_AUTH = {
    **INTERNAL,
    "ARCO_AUTH": "gateway,internal",
    "ARCO_GATEWAY_APIS": "easyauth",
    "ARCO_GATEWAY_PRINCIPAL_CLAIM": "oid",
}
ANONYMOUS = {PRINCIPAL: ""}
ADA = {PRINCIPAL: principal(iss=ISSUER, **{OBJECT_ID_TYPE: OBJECT_ID})}


@pytest.fixture
async def root(environment: dict[str, str]) -> tuple[str, str]:
    """What the root principal of a new realm logs in with."""
    made = await arco("bootstrap", "--json", **environment)
    assert made.code == 0, made.err
    credentials = json.loads(made.out)
    return credentials["client_id"], credentials["client_secret"]


@pytest.fixture
def settings(request: pytest.FixtureRequest, root: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings of the app. A test must request them before `app`."""
    for name, value in request.param.items():
        monkeypatch.setenv(name, value)


def with_settings(*settings: Mapping[str, str]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("settings", settings, indirect=True)


async def login(app: FunctionApp, client: tuple[str, str]) -> dict[str, str]:
    form = {"grant_type": "client_credentials", "client_id": client[0], "client_secret": client[1]}
    typed = {"content-type": "application/x-www-form-urlencoded", **ANONYMOUS}
    answer = await app.send("POST", "/v1/oauth/tokens", urlencode(form).encode(), typed)
    assert answer.status == 200, answer.body
    return {"authorization": f"Bearer {answer.json['access_token']}", **ANONYMOUS}


async def send(app: FunctionApp, method: str, target: str, body: JsonObject, headers: dict[str, str]) -> Answer:
    return await app.send(method, target, json.dumps(body).encode(), {"content-type": "application/json", **headers})


@with_settings(INTERNAL, {**INTERNAL, "ARCO_ENDPOINT": "unauthenticated"})
@pytest.mark.usefixtures("settings")
async def test_clients_with_a_secret_are_let_in_and_do_what_was_granted(
    root: tuple[str, str], app: FunctionApp
) -> None:
    headers = await login(app, root)
    assert (await send(app, "POST", NAMESPACES, {"namespace": ["db"]}, headers)).status == 200
    table: JsonObject = {"name": "t", "schema": schema("a")}
    assert (await send(app, "POST", f"{NAMESPACES}/db/tables", table, headers)).status == 200
    commit = set_property("p", "1")
    assert (await send(app, "POST", f"{NAMESPACES}/db/tables/t", commit, headers)).status == 200
    new: JsonObject = {"principal": {"name": "stranger"}}
    made = await send(app, "POST", f"{MANAGEMENT}/principals", new, headers)
    credentials = made.json["credentials"]
    assert isinstance(credentials, dict)
    stranger = await login(app, (str(credentials["clientId"]), str(credentials["clientSecret"])))

    assert (await app.get(CONFIG, stranger)).status == 404
    assert (await app.get(f"{NAMESPACES}/db/tables/t", stranger)).status == 404
    for unknown in (ANONYMOUS, {**ANONYMOUS, "authorization": "Bearer a.b.c"}, ADA):
        assert (await app.get(CONFIG, unknown)).status == 401


@with_settings(BY_EASY_AUTH)
@pytest.mark.usefixtures("settings")
async def test_whom_app_service_verified_is_known_by_issuer_and_object_id_where_its_word_is_taken(
    root: tuple[str, str], app: FunctionApp
) -> None:
    headers = await login(app, root)
    known: JsonObject = {"principal": {"name": "ada", "properties": {"arco.subject": f"{ISSUER} {OBJECT_ID}"}}}
    assert (await app.get(CONFIG, ADA)).status == 401
    assert (await send(app, "POST", f"{MANAGEMENT}/principals", known, headers)).status == 201
    assert (await app.get(CONFIG, ADA)).status == 404
    role: JsonObject = {"principalRole": {"name": "people"}}
    admin: JsonObject = {"catalogRole": {"name": "catalog_admin"}}
    assert (await send(app, "POST", f"{MANAGEMENT}/principal-roles", role, headers)).status == 201
    for path, body in (
        ("principals/ada/principal-roles", role),
        (f"principal-roles/people/catalog-roles/{WAREHOUSE}", admin),
    ):
        assert (await send(app, "PUT", f"{MANAGEMENT}/{path}", body, headers)).status == 201

    assert (await app.get(CONFIG, ADA)).status == 200
    assert (await app.get(CONFIG, {PRINCIPAL: principal(iss=ISSUER, oid="another")})).status == 401
    assert (await app.get(CONFIG, {PRINCIPAL: principal(iss="https://other.example", oid=OBJECT_ID)})).status == 401


@with_settings({**BY_EASY_AUTH, "ARCO_ENDPOINT": "unauthenticated"})
@pytest.mark.usefixtures("settings")
async def test_a_header_that_nobody_removes_from_requests_lets_nobody_in(
    root: tuple[str, str], app: FunctionApp
) -> None:
    headers = await login(app, root)
    known: JsonObject = {"principal": {"name": "ada", "properties": {"arco.subject": f"{ISSUER} {OBJECT_ID}"}}}
    assert (await send(app, "POST", f"{MANAGEMENT}/principals", known, headers)).status == 201

    assert (await app.get(CONFIG, ADA)).status == 401


@with_settings({})
@pytest.mark.usefixtures("settings")
async def test_an_app_that_was_not_told_to_ask_serves_nobody_where_there_is_a_realm(app: FunctionApp) -> None:
    assert {answer.status for answer in await asyncio.gather(*(app.get(CONFIG) for _ in range(4)))} == {403}
    assert (await app.post(NAMESPACES, {"namespace": ["db"]})).status == 403


@with_settings({"ARCO_AUTHORIZATION": "off"})
@pytest.mark.usefixtures("settings")
async def test_it_serves_whom_app_service_lets_in_where_grants_were_turned_off(app: FunctionApp) -> None:
    assert (await app.post(NAMESPACES, {"namespace": ["db"]})).status == 200


@with_settings(INTERNAL)
@pytest.mark.usefixtures("settings")
async def test_the_timer_walks_every_catalog_of_the_realm(
    root: tuple[str, str], app: FunctionApp, environment: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    headers = await login(app, root)
    shown = (await app.get(f"{MANAGEMENT}/catalogs/{WAREHOUSE}", headers)).json
    properties = shown["properties"]
    assert isinstance(properties, dict)
    base = str(properties["default-base-location"]).removesuffix(f"{WAREHOUSE}/warehouse") + "pond"
    storage: JsonObject = {"storageType": "AZURE", "allowedLocations": [base], "tenantId": "a-tenant"}
    pond: JsonObject = {
        "type": "INTERNAL",
        "name": "pond",
        "properties": {"default-base-location": base},
        "storageConfigInfo": storage,
    }
    made = await send(app, "POST", f"{MANAGEMENT}/catalogs", {"catalog": pond}, headers)
    assert made.status == 201, made.body
    caplog.set_level(logging.INFO)
    caplog.clear()

    await app.call("reconcile", None)

    walked = [json.loads(record.getMessage()) for record in caplog.records if record.name == "arco_lines"]
    assert [(line["Warehouse"], line["ReconcileCompleted"]) for line in walked] == [("pond", 1), (WAREHOUSE, 1)]


def test_several_roles_of_a_token_are_all_told() -> None:
    """They come as several claims of one type."""
    role = "http://schemas.microsoft.com/ws/2008/06/identity/claims/role"
    listed = [{"typ": role, "val": "a"}, {"typ": role, "val": "b"}, {"typ": "iss", "val": ISSUER}]
    headers = {PRINCIPAL.lower(): base64.b64encode(json.dumps({"claims": listed}).encode()).decode()}

    assert event_in(headers, FunctionsEndpoint.EASY_AUTH) == {
        "requestContext": {"apiId": "easyauth", "authorizer": {"claims": {"roles": "a,b", "iss": ISSUER}}}
    }
    assert event_in(headers, FunctionsEndpoint.UNAUTHENTICATED) is None


@with_settings({**INTERNAL, "ARCO_AUDIT_LOG": "-"})
@pytest.mark.usefixtures("settings")
async def test_a_denial_is_an_audit_line_by_a_logger_of_its_own(
    root: tuple[str, str], app: FunctionApp, caplog: pytest.LogCaptureFixture
) -> None:
    headers = await login(app, root)
    new: JsonObject = {"principal": {"name": "stranger"}}
    made = await send(app, "POST", f"{MANAGEMENT}/principals", new, headers)
    credentials = made.json["credentials"]
    assert isinstance(credentials, dict)
    stranger = await login(app, (str(credentials["clientId"]), str(credentials["clientSecret"])))
    caplog.set_level(logging.INFO)

    assert (await app.get(NAMESPACES, stranger)).status == 404

    [line] = [json.loads(record.getMessage()) for record in caplog.records if record.name == "arco_audit"]
    assert (line["logger"], line["event"], line["operation"]) == ("arco_catalog.audit", "denied", "listNamespaces")


@with_settings({**INTERNAL, "ARCO_AUDIT_LOG": "/var/log/audit"})
@pytest.mark.usefixtures("settings")
def test_a_file_for_audit_lines_fails_the_start() -> None:
    sys.modules.pop("azure_functions.function_app", None)

    with pytest.raises(ValueError, match="ARCO_AUDIT_LOG must be - on a function, for lines in the log"):
        importlib.import_module("azure_functions.function_app")
