"""`Polaris-Realm: POLARIS`, which Polaris's clients, scripts and guides send."""

import pytest

from arco_catalog.iceberg.json import JsonObject
from tests.authentication.realm import own_tokens
from tests.support.fake_runtime import FakeRuntime
from tests.support.realm_service import MANAGEMENT, RealmApp
from tools.support.asgi_client import Answer, Client

TOKENS = "/v1/oauth/tokens"


async def app_of(*names: str) -> RealmApp:
    clock = FakeRuntime()
    return await RealmApp(names=names, clock=clock, tokens=own_tokens(clock)).start()


async def get_token(app: RealmApp, realm: str | None, secret: str | None = None) -> Answer:
    name = app.names[0]
    form = f"grant_type=client_credentials&client_id=root-{name}&client_secret={secret or app.clear[name]}"
    headers = {"content-type": "application/x-www-form-urlencoded"}
    if realm is not None:
        headers["polaris-realm"] = realm
    return await Client(app.app).send("POST", TOKENS, form.encode(), headers)


@pytest.mark.parametrize("realm", [None, "", "POLARIS", "r"])
async def test_a_realm_at_the_root_is_polaris(realm: str | None) -> None:
    app = await app_of("r")

    answer = await get_token(app, realm)
    assert answer.status == 200, answer.body
    client = Client(app.app, {"authorization": f"Bearer {answer.json['access_token']}"})
    named = {} if not realm else {"polaris-realm": realm}
    assert (await client.send("GET", f"{MANAGEMENT}/principals", b"", named)).status == 200
    assert (await client.send("GET", f"{MANAGEMENT}/principals", b"", {"polaris-realm": "other"})).status == 401


@pytest.mark.parametrize("realm", ["polaris", "POLARIS2", "other"])
async def test_another_name_at_the_root_is_no_fault_of_the_client_s_secret(realm: str) -> None:
    app = await app_of("r")
    refused: JsonObject = (await get_token(app, realm)).json

    assert refused["error"] == "invalid_request"
    assert "Polaris-Realm" in str(refused["error_description"])


async def test_polaris_is_a_name_as_any_where_realms_have_names() -> None:
    several = await app_of("a", "b")
    answers = [await get_token(several, "POLARIS"), await get_token(several, "a", "wrong")]

    assert [answer.status for answer in answers] == [401, 401]
    assert answers[0].body == answers[1].body
    assert "no such realm" in str(answers[0].json["error_description"])


async def test_a_realm_of_that_name_is_itself() -> None:
    several = await app_of("a", "POLARIS")

    assert (await get_token(several, "POLARIS")).status == 401
    assert (await get_token(several, "a")).status == 200
