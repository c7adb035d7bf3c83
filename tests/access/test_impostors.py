"""Attempts to get another identity, to outlive one's credentials, and to exhaust the server: by tokens and by the token
endpoint."""

import asyncio
from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

import pytest

from arco_catalog.authentication.signatures import sign
from arco_catalog.iceberg.json import JsonObject
from tests.access.lake import NAMESPACES
from tests.authentication.realm import OTHER_KEY, own_tokens
from tests.support.fake_runtime import FakeRuntime
from tests.support.realm_service import MANAGEMENT, RealmApp, on_catalog
from tools.support.asgi_client import Answer, Client

FORM = {"content-type": "application/x-www-form-urlencoded", "authorization": ""}


class Office:
    """A realm with real tokens: `root`, `ada` who reads, and `eve` who may do nothing."""

    async def open(self) -> "Office":
        clock = FakeRuntime()
        self.app = RealmApp(clock=clock, tokens=own_tokens(clock))
        await self.app.start()
        self.root = await self.client("root-r", self.app.clear["r"])
        self.app.root = self.root
        await self.app.catalog()
        self.credentials: dict[str, tuple[str, str]] = {}
        for name in ("ada", "eve"):
            await self.add(name)
        await self.app.ok("POST", "principal-roles", {"principalRole": {"name": "readers"}})
        await self.app.ok("PUT", "principals/ada/principal-roles", {"principalRole": {"name": "readers"}})
        role: JsonObject = {"catalogRole": {"name": "reader"}}
        await self.app.ok("POST", "catalogs/lake/catalog-roles", role)
        await self.app.ok("PUT", "principal-roles/readers/catalog-roles/lake", role)
        await self.app.ok(
            "PUT", "catalogs/lake/catalog-roles/reader/grants", {"grant": on_catalog("NAMESPACE_FULL_METADATA")}
        )
        return self

    async def add(self, name: str, **properties: str) -> None:
        made = await self.app.ok("POST", "principals", {"principal": {"name": name, "properties": {**properties}}})
        self.credentials[name] = credentials_in(made)

    async def ask(self, headers: Mapping[str, str] | None = None, /, **form: str) -> Answer:
        """The token endpoint's answer."""
        client = Client(self.app.app)
        return await client.send("POST", "/v1/oauth/tokens", urlencode(form).encode(), {**FORM, **(headers or {})})

    async def client(self, client_id: str, secret: str, scope: str = "PRINCIPAL_ROLE:ALL") -> Client:
        """A client with a fresh token."""
        form = {"client_id": client_id, "client_secret": secret, "scope": scope}
        answer = await self.ask(grant_type="client_credentials", **form)
        assert answer.status == 200, answer.body
        return self.bearing(str(answer.json["access_token"]))

    def bearing(self, token: str) -> Client:
        return Client(self.app.app, {"authorization": f"Bearer {token}"})

    async def login(self, name: str) -> Client:
        return await self.client(*self.credentials[name])


def credentials_in(answer: JsonObject) -> tuple[str, str]:
    found = answer["credentials"]
    assert isinstance(found, dict)
    return str(found["clientId"]), str(found["clientSecret"])


@pytest.fixture
async def office() -> Office:
    return await Office().open()


async def test_the_credentials_of_a_principal_get_it_in(office: Office) -> None:
    assert (await (await office.login("ada")).get(NAMESPACES)).status == 200
    assert (await (await office.login("eve")).get(NAMESPACES)).status == 404


async def test_a_reset_takes_the_tokens_with_it_that_were_given_for_the_old_secret(office: Office) -> None:
    ada = await office.login("ada")
    elsewhere = Client(office.app.serve(), ada.headers)
    assert [(await client.get(NAMESPACES)).status for client in (ada, elsewhere)] == [200, 200]

    reset = await office.app.manage("POST", "principals/ada/reset")
    assert reset.status == 200, reset.body

    change: JsonObject = {"namespace": ["late"]}
    assert [(await client.get(NAMESPACES)).status for client in (ada, elsewhere)] == [401, 401]
    assert [(await client.post(NAMESPACES, change)).status for client in (ada, elsewhere)] == [401, 401]
    assert (await office.app.manage("POST", "principals/ada/rotate", client=ada)).status == 401
    again = await office.client(*credentials_in(reset.json))
    assert (await again.get(NAMESPACES)).json["namespaces"] == []


async def test_a_rotation_leaves_the_token_of_its_request_valid(office: Office) -> None:
    ada = await office.login("ada")
    assert (await office.app.manage("POST", "principals/ada/rotate", client=ada)).status == 200
    assert (await ada.get(NAMESPACES)).status == 200
    assert (await office.app.manage("POST", "principals/ada/rotate", client=ada)).status == 200
    assert (await ada.get(NAMESPACES)).status == 401


async def test_who_acts_for_others_does_so_only_while_it_may(office: Office) -> None:
    await office.add("trino", **{"arco.act-for-others": "true"})
    trino = await office.login("trino")
    unsigned = sign_none({"sub": "ada", "iss": "trino", "iat": 1})
    form = {
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "subject_token": unsigned,
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
    }

    async def acting() -> Client:
        answer = await office.ask({"authorization": trino.headers["authorization"]}, **form)
        assert answer.status == 200, answer.body
        return office.bearing(str(answer.json["access_token"]))

    for_ada = await acting()
    assert (await for_ada.get(NAMESPACES)).status == 200

    await office.app.ok("PUT", "principals/ada/principal-roles", {"principalRole": {"name": "service_admin"}})
    assert (await for_ada.get(NAMESPACES)).status == 401
    assert (await office.app.manage("GET", "principals", client=for_ada)).status == 401
    await office.app.ok("DELETE", "principals/ada/principal-roles/service_admin")
    assert (await for_ada.get(NAMESPACES)).status == 200

    await office.app.ok("PUT", "principals/trino", {"currentEntityVersion": 1, "properties": {}})
    assert (await for_ada.get(NAMESPACES)).status == 401
    await office.app.ok(
        "PUT", "principals/trino", {"currentEntityVersion": 2, "properties": {"arco.act-for-others": "true"}}
    )
    assert (await (await acting()).get(NAMESPACES)).status == 200
    await office.app.ok("DELETE", "principals/trino")
    assert (await for_ada.get(NAMESPACES)).status == 401


async def test_who_must_rotate_acts_for_no_one_before(office: Office) -> None:
    made = await office.app.manage(
        "POST",
        "principals",
        {
            "principal": {"name": "trino", "properties": {"arco.act-for-others": "true"}},
            "credentialRotationRequired": True,
        },
    )
    trino = await office.client(*credentials_in(made.json))
    form = {
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "subject_token": sign_none({"sub": "ada", "iss": "trino", "iat": 1}),
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
    }

    refused = await office.ask({"authorization": trino.headers["authorization"]}, **form)
    assert (refused.status, refused.json["error"]) == (400, "unauthorized_client")
    assert "must rotate its credentials" in str(refused.json["error_description"])

    rotated = await office.app.manage("POST", "principals/trino/rotate", client=trino)
    trino = await office.client(*credentials_in(rotated.json))
    assert (await office.ask({"authorization": trino.headers["authorization"]}, **form)).status == 200


def sign_none(claims: JsonObject) -> str:
    """A JWT without a signature."""
    import jwt

    return jwt.encode(claims, "", "none")


# Names that look alike.

LOOK_ALIKES: Sequence[str] = (
    *("ROOT", "Root", "root ", " root", "root\t", "root\n", "ro\u200bot", "ro\u00adot", "r\u043e\u043et"),
    *(
        "root\u0000",
        "root%00",
        "r%6fot",
        "../root",
        "root/",
        "root.",
        "ａda",
        "a\u0308da",
        "ADA",
        "ada\u200d",
        "\u202eada",
    ),
    *("service_admin", "system$ada", "SYSTEM$x", "", "a" * 257, ".", "..", "root\u2028", "ad\u0430"),
)


@pytest.mark.parametrize("name", LOOK_ALIKES, ids=range(len(LOOK_ALIKES)))
async def test_a_principal_with_the_name_of_a_dropped_one_is_another(office: Office, name: str) -> None:
    made = await office.app.manage("POST", "principals", {"principal": {"name": name}})
    if made.status == 201:
        client = await office.client(*credentials_in(made.json))
        assert (await client.get(NAMESPACES)).status == 404
        assert (await office.app.manage("GET", "principals", client=client)).status == 403
        for path in ("principals/ada/rotate", "principals/root/rotate", "principals/ada/reset"):
            assert (await office.app.manage("POST", path, client=client)).status == 403
    else:
        assert made.status == 400, made.body
    assert (await (await office.login("ada")).get(NAMESPACES)).status == 200
    assert (await office.app.manage("GET", "principals")).status == 200


RESETS: Sequence[JsonObject] = (
    {"clientId": "root-r"},
    {"clientId": "root-r", "clientSecret": "guessed"},
    {"clientId": ""},
    {"clientId": " "},
    {"clientId": "x" * 1_000},
    {"clientId": "a\nb"},
    {"clientId": "a:b"},
    {"clientSecret": ""},
    {"clientSecret": "x" * 10_000},
    {"clientSecret": "a\u0000b"},
    {"clientId": 1},
    {"clientSecret": None, "clientId": "root-r"},
)


@pytest.mark.parametrize("body", RESETS, ids=range(len(RESETS)))
async def test_no_principal_gets_the_client_id_of_another(office: Office, body: JsonObject) -> None:
    for place in (1, 2):
        answer = await office.app.manage("POST", "principals/eve/reset", body)
        assert answer.status in (400, 409), (place, answer.status, answer.body)
    assert (await (await office.client("root-r", office.app.clear["r"])).get(f"{MANAGEMENT}/principals")).status == 200
    assert (await office.login("eve")) is not None


async def test_a_subject_belongs_to_one_principal(office: Office) -> None:
    subject = {"arco.subject": "https://issuer.example ada"}
    await office.app.ok("POST", "principals", {"principal": {"name": "one", "properties": {**subject}}})
    second = await office.app.manage("POST", "principals", {"principal": {"name": "two", "properties": {**subject}}})
    assert second.status == 409
    update: JsonObject = {"currentEntityVersion": 1, "properties": {**subject}}
    assert (await office.app.manage("PUT", "principals/eve", update)).status == 409
    await office.app.ok("DELETE", "principals/one")
    assert (await office.app.manage("PUT", "principals/eve", update)).status == 200


# Forged tokens.


def forged(claims: JsonObject, root: JsonObject, header: Mapping[str, str]) -> Sequence[str]:
    """Tokens that were forged without the key."""
    made = [
        sign(claims | {"sub": root["sub"]}, OTHER_KEY.encode(), "HS256", header),
        sign(claims | {"sub": root["sub"]}, b"\x00" * 32, "HS256", header),
        sign_none(claims | {"sub": root["sub"]}),
    ]
    return made


def tampered(token: str) -> list[str]:
    """A token with something of it changed."""
    head, body, seal = token.split(".")
    cut = [".".join(part) for part in ((head, body, ""), (head, "", seal), ("", body, seal), (head, body, seal[:-2]))]
    places = range(0, len(body), 4)
    changed = [f"{head}.{body[:at]}{'A' if body[at] != 'A' else 'B'}{body[at + 1 :]}.{seal}" for at in places]
    heads = [
        f"{head[:at]}{'A' if head[at] != 'A' else 'B'}{head[at + 1 :]}.{body}.{seal}" for at in range(0, len(head), 4)
    ]
    seals = [f"{head}.{body}.{seal[:at]}{'A' if seal[at] != 'A' else 'B'}{seal[at + 1 :]}" for at in range(0, 40)]
    return [*cut, *changed, *heads, *seals, f"{token}.{seal}", token + "=", f"{head}..{seal}", "." * 2_000]


async def test_no_token_is_taken_that_was_not_given(office: Office) -> None:
    import jwt

    token = (await office.login("ada")).headers["authorization"].removeprefix("Bearer ")
    claims = jwt.decode(token, options={"verify_signature": False})
    root = jwt.decode(office.root.headers["authorization"].removeprefix("Bearer "), options={"verify_signature": False})
    tries = [
        *tampered(token),
        *forged(claims, root, {"typ": "at+jwt", "kid": str(jwt.get_unverified_header(token)["kid"])}),
    ]
    for wrong in tries:
        assert (await office.bearing(wrong).get(NAMESPACES)).status == 401, wrong
    assert len(tries) > 150
    assert (await office.bearing(token).get(NAMESPACES)).status == 200


HEADERS: Sequence[Mapping[str, str]] = (
    {"x-arco-principal": "root"},
    {"x-amzn-oidc-identity": "root"},
    {"x-forwarded-user": "root"},
    {"x-remote-user": "root"},
    {"remote-user": "root"},
    {"x-iceberg-principal": "root"},
    {"polaris-principal": "root"},
    {"x-arco-admin-user": "root"},
    {"x-auth-request-user": "root"},
    {"x-ms-client-principal": "eyJ1c2VySWQiOiJyb290In0="},
    {"x-ms-client-principal-name": "root"},
    {"x-goog-authenticated-user-email": "root"},
    {"cookie": "token=root"},
    {"x-http-method-override": "DELETE"},
    {"x-original-url": "/api/management/v1/principals"},
    {"x-rewrite-url": "/api/management/v1/principals"},
)


@pytest.mark.parametrize("headers", HEADERS, ids=lambda headers: next(iter(headers)))
async def test_no_header_gives_another_identity(office: Office, headers: Mapping[str, str]) -> None:
    eve = await office.login("eve")
    stranger = Client(office.app.app)
    root = office.app.ids["r", "root"]
    for sent in (headers, dict.fromkeys(headers, root)):
        assert (await eve.send("GET", f"{MANAGEMENT}/principals", headers=sent)).status == 403
        assert (await eve.send("GET", NAMESPACES, headers=sent)).status == 404
        assert (await stranger.send("GET", NAMESPACES, headers=sent)).status == 401


# Exhaustion.


async def test_the_token_endpoint_takes_thousands_of_wrong_guesses(office: Office) -> None:
    client_id, _ = office.credentials["ada"]
    guesses = [
        office.ask(grant_type="client_credentials", client_id=client_id, client_secret=f"{place:064x}")
        for place in range(2_000)
    ]
    answers = []
    for at in range(0, len(guesses), 100):
        answers += await asyncio.gather(*guesses[at : at + 100])
    assert {answer.status for answer in answers} == {401}
    assert (await (await office.login("ada")).get(NAMESPACES)).status == 200


async def test_chosen_secrets_are_guessed_at_one_at_a_time_and_then_refused(office: Office) -> None:
    client_id, _ = office.credentials["ada"]
    answers = await asyncio.gather(
        *(
            office.ask(grant_type="client_credentials", client_id=client_id, client_secret=f"guess{n}")
            for n in range(60)
        )
    )
    assert {answer.status for answer in answers} == {401, 429}
    assert (await (await office.login("ada")).get(NAMESPACES)).status == 200


LARGE: Sequence[bytes] = (
    b"a" * (8 << 20),
    b"&".join(b"a%d=1" % place for place in range(100_000)),
    b"grant_type=client_credentials&scope=" + b"PRINCIPAL_ROLE:a+" * 60_000,
    b"grant_type=client_credentials&client_id=" + b"x" * 900_000 + b"&client_secret=y",
    b"grant_type=client_credentials&client_id=x&client_secret=" + b"y" * 900_000,
    b"%" * 100_000,
    b"&" * 900_000,
    b"=" * 900_000,
)


@pytest.mark.parametrize("body", LARGE, ids=range(len(LARGE)))
async def test_a_large_form_is_refused(office: Office, body: bytes) -> None:
    answer = await Client(office.app.app).send("POST", "/v1/oauth/tokens", body, FORM)
    assert answer.status in (400, 401, 413), answer.status
    assert len(answer.body) < 1_000


@pytest.mark.parametrize(
    "scope", [" ".join(f"PRINCIPAL_ROLE:r{n}" for n in range(count)) for count in (100, 1_000, 5_000)]
)
async def test_a_scope_of_many_roles_gives_no_more_than_there_is(office: Office, scope: str) -> None:
    client_id, secret = office.credentials["eve"]
    form = {"client_id": client_id, "client_secret": secret, "scope": scope}
    answer = await office.ask({}, grant_type="client_credentials", **form)
    assert answer.status in (200, 400, 413), answer.body
    if answer.status == 200:
        assert (await office.bearing(str(answer.json["access_token"])).get(NAMESPACES)).status in (401, 404, 431)
