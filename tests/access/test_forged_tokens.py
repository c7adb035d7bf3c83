"""Attempts to manage a realm by forged and foreign tokens, by tokens in other places, and by tokens of the identity
provider of another realm."""

from collections import Counter
from collections.abc import Sequence
from itertools import product

import pytest

from arco_catalog.authentication.authentication import Authentication
from arco_catalog.authentication.oidc import OidcAuthenticator
from arco_catalog.http.app import create_app
from arco_catalog.http.options import HttpOptions
from arco_catalog.http.realms import RealmService
from arco_catalog.iceberg.json import JsonObject
from tests.access.lake import NAMESPACES
from tests.authentication.issuer import MemoryIssuer, private_key
from tests.authentication.test_oidc import FOREIGN, FORGERIES
from tests.support.fake_runtime import FakeRuntime
from tests.support.realm_service import MANAGEMENT, RealmApp
from tools.support.asgi_client import Client, scope_of

PRINCIPALS = f"{MANAGEMENT}/principals"
TARGETS = ("/v1/config?warehouse=lake", NAMESPACES, PRINCIPALS)
ALGORITHMS = ("RS256", "RS384", "PS256", "ES256", "EdDSA")


class TwoCompanies:
    """The realms `a` and `b`, each with an identity provider of its own, whose users `ada` manage their realms."""

    async def open(self) -> "TwoCompanies":
        self.clock = FakeRuntime()
        self.app = RealmApp(names=("a", "b"), clock=self.clock)
        await self.app.start()
        await self.app.catalog("lake", base=self.app.base("lake", "a"))
        self.issuers = {
            "a": MemoryIssuer(self.clock),
            "b": MemoryIssuer(self.clock, "https://other.example.org", {"k1": ("RS256", private_key("RS256", 7))}),
        }
        for realm, issuer in self.issuers.items():
            root = self.app.client("root", realm)
            new: JsonObject = {"name": "ada", "properties": {"arco.subject": f"{issuer.url} ada"}}
            await self.app.ok("POST", "principals", {"principal": new}, client=root)
            role: JsonObject = {"principalRole": {"name": "service_admin"}}
            await self.app.ok("PUT", "principals/ada/principal-roles", role, client=root)
        settings = [
            (issuer.settings(realm=realm, algorithms=ALGORITHMS), issuer.source())
            for realm, issuer in self.issuers.items()
        ]
        authentication = Authentication([OidcAuthenticator(settings, self.clock.now_ms)])
        realms = RealmService(self.app.realms(), "a", self.app.secrets, self.app.entropy, authentication)
        self.served = Client(create_app({}, HttpOptions(), None, realms))
        return self

    async def statuses(self, **headers: str) -> Sequence[int]:
        """The answers of the routes to a request with these headers."""
        return [(await self.served.get(target, **headers)).status for target in TARGETS]


@pytest.fixture
async def companies() -> TwoCompanies:
    return await TwoCompanies().open()


async def test_a_sound_token_manages_its_realm(companies: TwoCompanies) -> None:
    token = companies.issuers["a"].token()

    assert await companies.statuses(authorization=f"Bearer {token}") == [200, 200, 200]
    assert await companies.statuses(authorization=f"bearer  {token} ") == [200, 200, 200]


async def test_no_forged_or_foreign_token_gets_another_answer_than_401(companies: TwoCompanies) -> None:
    tried = Counter[int]()
    for name, token in {**FORGERIES, **FOREIGN}.items():
        for polaris_realm in ({}, {"polaris_realm": "a"}):
            statuses = await companies.statuses(authorization=f"Bearer {token}", **polaris_realm)
            assert set(statuses) == {401}, name
            tried.update(statuses)
    assert tried.total() > 1_200
    sound = companies.issuers["a"].token()
    assert await companies.statuses(authorization=f"Bearer {sound}") == [200, 200, 200]


async def test_a_sound_token_in_another_place_counts_for_nothing(companies: TwoCompanies) -> None:
    token = companies.issuers["a"].token()
    schemes = ("Basic", "DPoP", "Token", "JWT", "MAC", "Negotiate", "Bearer,", "Bearer:", "Bearer=", "BearerX", "")
    names = (
        *("proxy-authorization", "x-authorization", "x-forwarded-authorization", "x-original-authorization"),
        *("x-access-token", "x-auth-token", "x-id-token", "x-amzn-oidc-data", "x-amzn-oidc-accesstoken", "cookie"),
        *("x-ms-token-aad-access-token", "x-goog-iap-jwt-assertion", "cf-access-jwt-assertion", "access-token"),
        *("x-forwarded-access-token", "token", "sec-websocket-protocol", "authentication", "www-authenticate"),
    )
    for scheme in schemes:
        assert set(await companies.statuses(authorization=f"{scheme} {token}")) == {401}, scheme
    for name, value in product(names, (token, f"Bearer {token}", f"access_token={token}")):
        assert set(await companies.statuses(**{name: value})) == {401}, name
    for target in TARGETS:
        joint = "&" if "?" in target else "?"
        assert (await companies.served.get(f"{target}{joint}access_token={token}")).status == 401


async def test_two_tokens_in_one_request_are_none(companies: TwoCompanies) -> None:
    own, other = companies.issuers["a"].token(), companies.issuers["b"].token()
    for first, second in ((own, other), (own, own), (own, "x"), ("x", own)):
        for target in TARGETS:
            sent = [(b"authorization", f"Bearer {each}".encode()) for each in (first, second)]
            bare = scope_of("GET", target, {})
            scope = {**bare, "headers": [*bare["headers"], *sent]}
            answer = await companies.served.exchange(scope, [{"type": "http.request", "body": b"", "more_body": False}])
            assert answer.status == 401
        for joint in (" ", ",", ", ", ";", "\t", ".", "\n"):
            assert set(await companies.statuses(authorization=f"Bearer {first}{joint}{second}")) == {401}


async def test_the_provider_of_one_realm_names_no_principal_of_another(companies: TwoCompanies) -> None:
    own, other = companies.issuers["a"], companies.issuers["b"]
    tokens = {
        "of the other realm": other.token(),
        "of the other realm, for both": other.token(aud=["arco", "arco-too"]),
        "of the other realm with a realm in it": other.token(realm="a", iss_realm="a"),
    }
    for name, token in tokens.items():
        assert set(await companies.statuses(authorization=f"Bearer {token}", polaris_realm="a")) == {401}, name
        there = await companies.served.get(PRINCIPALS, authorization=f"Bearer {token}", polaris_realm="b")
        assert [each["name"] for each in there.json["principals"]] == ["ada", "root"]  # type: ignore[index, union-attr, call-overload]
    stolen = {"key of b for a": other.token(iss=own.url), "name of b": own.token(iss=other.url)}
    for name, token in stolen.items():
        assert set(await companies.statuses(authorization=f"Bearer {token}")) == {401}, name


async def test_a_token_that_is_sent_again_counts_until_it_expires_and_no_longer(companies: TwoCompanies) -> None:
    token = companies.issuers["a"].token()
    for later_s in (0, 3_599, 59):
        companies.clock.ms += later_s * 1_000
        assert await companies.statuses(authorization=f"Bearer {token}") == [200, 200, 200]
    companies.clock.ms += 2_000
    assert set(await companies.statuses(authorization=f"Bearer {token}")) == {401}
    companies.clock.ms -= 3_660_000 + 61_000
    assert set(await companies.statuses(authorization=f"Bearer {token}")) == {401}  # it is not valid yet
