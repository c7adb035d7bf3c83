"""Attempts to get another identity behind a gateway: by headers and tokens that it passes on, by missing identities,
and by names that its callers choose."""

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import pytest

from arco_catalog.authentication.authentication import Authentication
from arco_catalog.authentication.gateway import GatewayAuthenticator
from arco_catalog.http.app import create_app
from arco_catalog.http.asgi import Asgi, Receive, Scope, Send
from arco_catalog.http.functions_adapter import TARGET, FunctionsEndpoint, respond
from arco_catalog.http.options import HttpOptions
from arco_catalog.http.realms import RealmService
from arco_catalog.iceberg.json import JsonObject, dumps
from tests.access.lake import NAMESPACES
from tests.support.realm_service import MANAGEMENT, RealmApp
from tools.support.asgi_client import Client

ACCOUNT = "123456789012"
BOSS = f"arn:aws:sts::{ACCOUNT}:assumed-role/boss"
EVE = f"arn:aws:sts::{ACCOUNT}:assumed-role/eve"
ISSUER = "https://id.example.org/pool"
CONFIG = "/v1/config?warehouse=lake"
PRINCIPALS = f"{MANAGEMENT}/principals"


@dataclass(frozen=True)
class Gateway:
    """A gateway in front of an app, which adds this event to each request."""

    app: Asgi
    event: Any

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.app({**scope, "aws.event": self.event}, receive, send)


def event(api: object, **context: object) -> JsonObject:
    return {"version": "2.0", "requestContext": {"apiId": api, **context}}  # type: ignore[dict-item]


def signed(arn: str) -> dict[str, object]:
    return {"authorizer": {"iam": {"userArn": arn}}}


def with_claims(**claims: str) -> dict[str, object]:
    return {"authorizer": {"jwt": {"claims": {"iss": ISSUER, **claims}}}}


class Company:
    """The realms `a` and `b`. In `a`, a role of AWS, and the owner of a token, manage the realm; `eve` may do
    nothing."""

    async def open(self) -> "Company":
        self.app = RealmApp(names=("a", "b"))
        await self.app.start()
        await self.app.catalog("lake", base=self.app.base("lake", "a"))
        for name, subject in (
            ("boss", f"aws {BOSS}"),
            ("owner", f"{ISSUER} owner"),
            ("eve", f"aws {EVE}"),
            ("evelyn", f"{ISSUER} eve"),
        ):
            new: JsonObject = {"name": name, "properties": {"arco.subject": subject}}
            await self.app.ok("POST", "principals", {"principal": new})
        for name in ("boss", "owner"):
            role: JsonObject = {"principalRole": {"name": "service_admin"}}
            await self.app.ok("PUT", f"principals/{name}/principal-roles", role)
        return self

    def serve(self, roles_claim: str | None = None) -> Asgi:
        apis = {"apia": "a", "apib": "b", "easyauth": "a", "apic": "c"}
        authentication = Authentication([GatewayAuthenticator(apis, roles_claim=roles_claim)])
        realms = self.app.realms()
        return create_app(
            {}, HttpOptions(), None, RealmService(realms, "a", self.app.secrets, self.app.entropy, authentication)
        )

    def behind(self, event: object, roles_claim: str | None = None) -> Client:
        return Client(Gateway(self.serve(roles_claim), event))


@pytest.fixture
async def company() -> Company:
    return await Company().open()


async def test_a_caller_that_the_gateway_verified_may_use_its_grants(company: Company) -> None:
    for context in (signed(f"{BOSS}/job"), with_claims(sub="owner")):
        assert (await company.behind(event("apia", **context)).get(PRINCIPALS)).status == 200
        assert (await company.behind(event("apib", **context)).get(PRINCIPALS)).status == 401
    for context in (signed(f"{EVE}/job"), with_claims(sub="eve")):
        assert (await company.behind(event("apia", **context)).get(PRINCIPALS)).status == 403


async def is_unauthenticated(client: Client, **headers: str) -> bool:
    answers = [await client.get(target, **headers) for target in (CONFIG, NAMESPACES, PRINCIPALS)]
    return {answer.status for answer in answers} == {401}


async def is_eve(client: Client, **headers: str) -> bool:
    answers = [await client.get(target, **headers) for target in (CONFIG, NAMESPACES, PRINCIPALS)]
    return [answer.status for answer in answers] == [404, 404, 403]


CONTEXT = json.dumps(event("apia", **signed(f"{BOSS}/x"))["requestContext"])
NAMES = (
    *("x-amzn-request-context", "x-amzn-lambda-context", "requestcontext", "request-context", "aws.event", "aws-event"),
    *(
        "x-amzn-oidc-data",
        "x-amzn-oidc-identity",
        "x-amzn-oidc-accesstoken",
        "x-apigateway-event",
        "x-apigateway-context",
    ),
    *(
        "x-amz-security-token",
        "x-amzn-iam-user-arn",
        "userarn",
        "x-amz-user-arn",
        "x-amzn-api-id",
        "apiid",
        "arco.caller",
    ),
    *("x-ms-client-principal", "x-ms-client-principal-id", "x-ms-client-principal-name", "x-ms-token-aad-id-token"),
    *("x-zumo-auth", "x-forwarded-user", "x-goog-iap-jwt-assertion", "cf-access-jwt-assertion", "cookie", "forwarded"),
)
VALUES = (
    *(CONTEXT, base64.b64encode(CONTEXT.encode()).decode(), BOSS, f"aws {BOSS}", f"{ISSUER} owner", "owner", "boss"),
    *("root", json.dumps({"claims": {"iss": ISSUER, "sub": "owner"}})),
)


async def test_no_header_replaces_a_missing_identity_of_the_gateway(company: Company) -> None:
    stranger = company.behind(event("apia"))
    eve = company.behind(event("apia", **signed(f"{EVE}/job")))
    no_gateway = Client(company.serve())
    for name, value in product(NAMES, VALUES):
        assert (await stranger.get(PRINCIPALS, **{name: value})).status == 401, (name, value)
        assert (await no_gateway.get(PRINCIPALS, **{name: value})).status == 401, (name, value)
        assert (await eve.get(PRINCIPALS, **{name: value})).status == 403, (name, value)
    assert len(NAMES) * len(VALUES) > 200


APIS: Sequence[object] = (
    *("", "APIA", "apia ", " apia", "apia\n", "apia,apib", "apia/../apib", "a", "b", "c", "apic", "api%61", "EasyAuth"),
    *(None, 0, True, ["apia"], {"apia": "a"}, "\uff41pia", "apia\u200b", "apia\x00", "*"),
)


@pytest.mark.parametrize(
    "context", [signed(f"{BOSS}/x"), with_claims(sub="owner"), {}], ids=["signed", "token", "nothing"]
)
async def test_only_apis_that_are_known_are_believed(company: Company, context: dict[str, object]) -> None:
    for api, header in product(APIS, ("a", "b", "c", "")):
        assert await is_unauthenticated(company.behind(event(api, **context)), polaris_realm=header), (api, header)


def sessions() -> Iterator[str]:
    """Names of sessions, which the caller that assumes a role chooses."""
    others = (BOSS, f"{BOSS}/x", "boss", ":assumed-role/boss", "../boss", "boss/../boss", "x aws " + BOSS)
    for other, left, right in product(
        others, ("", "/", ":", "../", "x", "\n", "%2f", "\x00", ",", "\\"), ("", "/", "\n", " ")
    ):
        yield f"{left}{other}{right}"


async def test_the_name_of_a_session_gives_no_other_identity(company: Company) -> None:
    tries = 0
    for session, form in product(sessions(), ("iam", "identity")):
        arn = f"{EVE}/{session}"
        context = signed(arn) if form == "iam" else {"identity": {"userArn": arn}}
        answer = await company.behind(event("apia", **context)).get(PRINCIPALS)
        assert answer.status in (401, 403), (session, form)
        assert b"clientId" not in answer.body
        tries += 1
    assert tries > 400


async def test_the_claims_of_a_token_give_no_other_identity(company: Company) -> None:
    subjects = (
        *(
            BOSS,
            f"{BOSS}/x",
            f"aws {BOSS}",
            f"{ISSUER} owner",
            "OWNER",
            "owner ",
            " owner",
            "owner\n",
            "owner,eve",
            "[owner]",
        ),
        *("\uff4fwner", "owner\u200b", "own\u0435r", "", "root", "*", "owner\x00", "owner\u00a0", "o" * 1025),
    )
    issuers = (
        ISSUER,
        f"{ISSUER} owner",
        f"{ISSUER}/",
        "aws",
        "",
        f"{ISSUER}\t",
        "https://id.example.org",
        "HTTPS://id.example.org/pool",
    )
    forms = ("jwt", "claims")
    for subject, issuer, form in product(subjects, issuers, forms):
        claims = {"iss": issuer, "sub": subject}
        authorizer = {"jwt": {"claims": claims}} if form == "jwt" else {"claims": claims}
        answer = await company.behind(event("apia", authorizer=authorizer)).get(PRINCIPALS)
        assert answer.status == 401, (subject, issuer, form, answer.body)
    assert len(subjects) * len(issuers) * len(forms) > 250


async def test_roles_that_a_token_names_are_none_that_its_principal_does_not_have(company: Company) -> None:
    for text in (
        "service_admin",
        "[service_admin]",
        "a,service_admin",
        "[a service_admin]",
        "[[service_admin]]",
        "*",
        "ALL",
        "PRINCIPAL_ROLE:ALL",
    ):
        eve = company.behind(event("apia", **with_claims(sub="eve", groups=text)), roles_claim="groups")
        assert (await eve.get(PRINCIPALS)).status in (401, 403), text
    for text in ("", "[]", "Service_admin", "service_admin2", "[a b]", "ALL", "*", "PRINCIPAL_ROLE:ALL"):
        owner = company.behind(event("apia", **with_claims(sub="owner", groups=text)), roles_claim="groups")
        assert (await owner.get(PRINCIPALS)).status in (401, 403), text


# Azure Functions.


@dataclass
class AzureRequest:
    """A request as the platform passes it on."""

    method: str
    headers: Mapping[str, str]

    def get_body(self) -> bytes:
        return b""


async def ask(app: Asgi, endpoint: FunctionsEndpoint, headers: Mapping[str, str]) -> int:
    return (await respond(app, AzureRequest("GET", {TARGET: PRINCIPALS, **headers}), endpoint)).status


def principal(*claims: tuple[str, object], **more: object) -> str:
    """The header of App Service about a caller."""
    listed = [{"typ": name, "val": value} for name, value in claims]
    return base64.b64encode(json.dumps({"auth_typ": "aad", "claims": listed, **more}).encode()).decode()


OWNER = principal(("iss", ISSUER), ("sub", "owner"))


async def test_identities_of_app_service_count_only_with_its_authentication(company: Company) -> None:
    app = company.serve()
    assert await ask(app, FunctionsEndpoint.EASY_AUTH, {"X-MS-CLIENT-PRINCIPAL": OWNER}) == 200
    for spelled in ("x-ms-client-principal", "X-MS-CLIENT-PRINCIPAL", "X-Ms-Client-Principal", "x_ms_client_principal"):
        for more in ({}, {"X-MS-CLIENT-PRINCIPAL-IDP": "aad"}, {"Authorization": "Bearer x"}, {"apiId": "easyauth"}):
            assert await ask(app, FunctionsEndpoint.UNAUTHENTICATED, {spelled: OWNER, **more}) == 401


async def test_other_headers_of_app_service_give_no_identity(company: Company) -> None:
    app, tries = company.serve(), 0
    cut = [OWNER[:end] for end in range(0, len(OWNER) - 4, 2)]
    changed = [f"{OWNER[:at]}!{OWNER[at + 1 :]}" for at in range(0, len(OWNER), 2)]
    documents: list[object] = [
        *({}, [], None, 1, "x", {"claims": None}, {"claims": {}}, {"claims": {"iss": ISSUER, "sub": "owner"}}),
        *({"claims": [["iss", ISSUER], ["sub", "owner"]]}, {"claims": [{"typ": "sub", "val": "owner"}]}),
        {"claims": [{"typ": "iss", "val": ISSUER}, {"typ": "sub", "val": ["owner"]}]},
        {"claims": [{"typ": "iss", "val": ISSUER}, {"typ": "Sub", "val": "owner"}]},
        {"claims": [{"type": "iss", "value": ISSUER}, {"type": "sub", "value": "owner"}]},
        {"userId": "owner", "userDetails": "owner", "identityProvider": "aad"},
        {"claims": [{"typ": "iss", "val": ISSUER}, {"typ": "sub", "val": "owner"}, {"typ": "sub", "val": "eve"}]},
        {"claims": [{"typ": "iss", "val": ISSUER}, {"typ": "iss", "val": ISSUER}, {"typ": "sub", "val": "owner"}]},
    ]
    encoded = [base64.b64encode(dumps(document)).decode() for document in documents]  # type: ignore[arg-type]
    for value in (*cut, *changed, *encoded, f"{OWNER} ", f"Bearer {OWNER}", f"{OWNER},{OWNER}", "é"):
        assert await ask(app, FunctionsEndpoint.EASY_AUTH, {"X-MS-CLIENT-PRINCIPAL": value}) == 401, value
        tries += 1
    assert tries > 100


LONG_NAME = "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/nameidentifier"


async def test_two_different_claims_of_an_object_id_give_no_identity(company: Company) -> None:
    app = company.serve()
    for names in (("sub", LONG_NAME), (LONG_NAME, "sub"), ("sub", "sub"), (LONG_NAME, LONG_NAME)):
        for subjects in (("owner", "eve"), ("eve", "owner")):
            claims = principal(("iss", ISSUER), *zip(names, subjects, strict=True))
            status = await ask(app, FunctionsEndpoint.EASY_AUTH, {"X-MS-CLIENT-PRINCIPAL": claims})
            assert status == 401, (names, subjects)
