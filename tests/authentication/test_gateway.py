"""Only what the gateway itself says of a request counts, and only of a gateway that is known."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arco_catalog.authentication.authentication import Authentication
from arco_catalog.authentication.authenticator import AuthenticationResult, RequestCredentials
from arco_catalog.authentication.gateway import MAX_TEXT, GatewayAuthenticator, flattened, printable
from arco_catalog.iceberg.errors import NotAuthorized
from arco_catalog.planning.access import Identity
from tests.authentication.realm import authenticator, own_tokens
from tests.authentication.test_tokens import SAYS
from tests.support.fake_runtime import FakeRuntime

USER = "arn:aws:iam::123456789012:user/ada"
ROLE = "arn:aws-us-gov:sts::123456789012:assumed-role/spark"
ISSUER = "https://id.example.org/pool"
GATEWAY = GatewayAuthenticator({"api1": "r1", "url2": "r2"}, roles_claim="groups")


def event(api: object = "api1", **context: object) -> dict[str, Any]:
    return {"version": "2.0", "requestContext": {"apiId": api, "http": {"method": "GET"}, **context}}


def iam(arn: object) -> dict[str, object]:
    return {"authorizer": {"iam": {"accessKey": "AKIA", "userArn": arn}}}


def token(**claims: object) -> dict[str, object]:
    return {"authorizer": {"jwt": {"claims": {"iss": ISSUER, "sub": "ada", **claims}, "scopes": None}}}


async def known(event: object, **headers: str) -> AuthenticationResult | None:
    return await GATEWAY.authenticate(RequestCredentials(headers, event))


@pytest.mark.parametrize(
    ("api", "context", "expected"),
    [
        ("api1", iam(USER), AuthenticationResult("r1", Identity(f"aws {USER}", issued=True), USER)),
        ("url2", iam(f"{ROLE}/job-1"), AuthenticationResult("r2", Identity(f"aws {ROLE}", issued=True), ROLE, "job-1")),
        (
            "api1",
            {"identity": {"userArn": f"{ROLE}/x"}},
            AuthenticationResult("r1", Identity(f"aws {ROLE}", issued=True), ROLE, "x"),
        ),
        (
            "api1",
            token(groups="[a b]"),
            AuthenticationResult("r1", Identity(f"{ISSUER} ada", frozenset("ab"), True), "ada"),
        ),
        ("api1", token(), AuthenticationResult("r1", Identity(f"{ISSUER} ada", frozenset(), True), "ada")),
        (
            "url2",
            {"authorizer": {"claims": {"iss": ISSUER, "sub": "ada", "groups": "a,b"}}},
            AuthenticationResult("r2", Identity(f"{ISSUER} ada", frozenset("ab"), True), "ada"),
        ),
    ],
)
async def test_whom_the_gateway_verified_is_known(
    api: str, context: dict[str, object], expected: AuthenticationResult
) -> None:
    assert await known(event(api, **context)) == expected


async def test_another_claim_may_name_the_principal_and_all_roles_are_activated_by_default() -> None:
    gateway = GatewayAuthenticator({"api1": "r1"}, principal_claim="client_id")
    found = await gateway.authenticate(RequestCredentials({}, event(**token(client_id="c9"))))
    assert found == AuthenticationResult("r1", Identity(f"{ISSUER} c9", None, issued=True), "c9")


async def test_without_a_gateway_nobody_is_known_whatever_headers_say() -> None:
    headers = {
        "x-amzn-request-context": "{}",
        "x-amzn-lambda-context": USER,
        "x-amz-security-token": "t",
        "requestcontext": str(event(**iam(USER))),
        "authorization": "AWS4-HMAC-SHA256 Credential=AKIA/20260101/eu-west-1/execute-api/aws4_request",
    }
    assert await GATEWAY.authenticate(RequestCredentials(headers)) is None


@pytest.mark.parametrize("api", [None, "", "api2", "API1", "api1 ", ["api1"], {"api1": 1}, 1])
@pytest.mark.parametrize("context", [iam(USER), token(), {}], ids=["iam", "jwt", "none"])
async def test_another_api_is_not_believed(api: object, context: dict[str, object]) -> None:
    with pytest.raises(NotAuthorized, match="does not trust"):
        await known(event(api, **context), authorization="Bearer x.y.z")


NOBODY: list[dict[str, object]] = [
    {},
    {"authorizer": None},
    {"authorizer": "x"},
    {"authorizer": {}},
    {"authorizer": []},
    {"authorizer": {"lambda": {"userArn": USER, "sub": "ada"}}},
    {"authorizer": {"principalId": "ada"}},
    {"authorizer": {"claims": "sub=ada"}},
    {"identity": {"userArn": None, "caller": None, "sourceIp": "127.0.0.1"}},
    {"identity": {"userArn": 7}},
    {"identity": [USER]},
]


@pytest.mark.parametrize("context", NOBODY, ids=str)
async def test_without_an_authorizers_word_nobody_is_let_in(context: dict[str, object]) -> None:
    with pytest.raises(NotAuthorized, match="passed on no verified caller"):
        await known(event(**context))
    with pytest.raises(NotAuthorized, match="does not trust"):
        await known({"requestContext": None, **context})


@pytest.mark.parametrize(
    "context",
    [
        iam(None),
        iam(""),
        iam(["x"]),
        iam("arn with blanks"),
        iam("arn:aws:iam::1:user/a\nb"),
        {"authorizer": {"iam": {}}},
        {"authorizer": {"jwt": {}}},
        {"authorizer": {"jwt": {"claims": None}}},
        token(sub=None),
        token(sub=""),
        token(sub=7),
        token(sub="x" * 2000),
        token(sub="a\0b"),
        token(iss=None),
        token(iss="id.example.org"),
        token(iss="http://id.example.org"),
        token(iss="https://id.example.org x"),
        token(iss="aws"),
        token(groups="[a b\tc]"),
        token(groups="[[a] b]"),
        token(groups="[a] [b]"),
        token(groups="a;b"),
        token(groups="[ä]"),
        token(groups='["a"]'),
        token(groups="[a, ]"),
        token(cnf="map[jkt:0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I]"),
        token(events="map[http://schemas.openid.net/event/backchannel-logout:map[]]"),
    ],
    ids=str,
)
async def test_whoever_is_verified_and_has_no_proper_name_is_refused(context: dict[str, object]) -> None:
    for headers in ({}, {"authorization": "Bearer x.y.z"}):
        with pytest.raises(NotAuthorized):
            await known(event(**context), **headers)


async def test_roles_that_are_no_text_are_none() -> None:
    found = await known(event(**token(groups=["admin"])))
    assert found is not None
    assert found.identity.activated == frozenset()


NAME = st.from_regex(r"\A[A-Za-z0-9_.:-]{1,20}\Z")


@given(st.frozensets(NAME, max_size=6))
def test_role_names_survive_being_flattened(names: frozenset[str]) -> None:
    assert flattened(f"[{' '.join(names)}]") == names
    assert flattened(",".join(names)) == names


@given(st.text(max_size=400), st.text(max_size=400))
def test_two_names_stay_two_however_they_are_shown(one: str, other: str) -> None:
    shown = [printable(one), printable(other)]
    assert (shown[0] == shown[1]) == (one == other)
    assert all(len(each) <= MAX_TEXT for each in shown)


async def test_a_token_that_a_gateway_let_pass_is_verified_by_others() -> None:
    runtime = FakeRuntime()
    tokens = own_tokens(runtime)
    everyone = Authentication([GATEWAY, authenticator(runtime, tokens)])
    headers = {"authorization": f"Bearer {await tokens.issue(SAYS)}"}

    assert (await everyone.authenticate(RequestCredentials(headers, event()))).name == "ada"
    assert (await everyone.authenticate(RequestCredentials(headers, event("url2", **iam(USER))))).name == USER
    with pytest.raises(NotAuthorized, match="issuer of the token is not trusted"):
        await everyone.authenticate(RequestCredentials({"authorization": "Bearer x.y.z"}, event()))
    with pytest.raises(NotAuthorized, match="no credentials"):
        await everyone.authenticate(RequestCredentials({}))


@pytest.mark.parametrize(("named", "known"), [("r1", True), ("r2", False), ("", False), ("R1", False)])
async def test_a_realm_that_is_named_must_be_that_of_the_token(named: str, known: bool) -> None:
    runtime = FakeRuntime()
    tokens = own_tokens(runtime)
    headers = {"authorization": f"Bearer {await tokens.issue(SAYS)}", "polaris-realm": named}
    presented, everyone = RequestCredentials(headers), Authentication([authenticator(runtime, tokens)])
    if known:
        assert (await everyone.authenticate(presented)).realm == "r1"
    else:
        with pytest.raises(NotAuthorized, match="another realm"):
            await everyone.authenticate(presented)
