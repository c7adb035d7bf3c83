"""The token endpoint, as clients use it and as others would."""

import base64
import json
from collections.abc import Mapping
from urllib.parse import urlencode

import jwt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arco_catalog.authentication.authenticator import AuthenticationResult, RequestCredentials
from arco_catalog.authentication.token_endpoint import (
    ACCESS_TOKEN,
    JWT,
    MAX_ESCAPES,
    MAX_FIELDS,
    TOKEN_EXCHANGE,
    OAuthError,
    TokenAnswer,
    parse_form,
    requested_roles,
)
from arco_catalog.authentication.tokens import ALL_ROLES, TokenClaims
from arco_catalog.planning.access import Identity
from arco_catalog.state.realm import ACT_FOR_OTHERS
from tests.authentication.realm import KEY, OTHER_KEY, Realm, authenticator, endpoint, own_tokens
from tests.support.fake_runtime import FakeRuntime
from tools.support import worst_callers

ID_TOKEN = "urn:ietf:params:oauth:token-type:id_token"


@pytest.fixture
async def realm() -> Realm:
    """A realm with somebody, somebody else, an engine that acts for others, and an administrator."""
    realm = Realm(FakeRuntime(), managers={"root"})
    for name in ("ada", "bob", "root"):
        await realm.add(name)
    await realm.add("trino", {ACT_FOR_OTHERS: "true"})
    return realm


def basic(name: str, secret: str) -> dict[str, str]:
    return {"authorization": "Basic " + base64.b64encode(f"{name}:{secret}".encode()).decode()}


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


async def ask(realm: Realm, form: Mapping[str, str], headers: Mapping[str, str] | None = None) -> TokenAnswer:
    return await endpoint(realm).answer(urlencode(form).encode(), headers or {}, realm.name, realm)


def credentials(realm: Realm, name: str, **more: str) -> dict[str, str]:
    client_id = realm.principals[name].client_id
    return {
        "grant_type": "client_credentials",
        "client_id": client_id,
        "client_secret": realm.clear[name],
        "scope": ALL_ROLES,
        **more,
    }


def exchange(subject: str, kind: str = ACCESS_TOKEN, **more: str) -> dict[str, str]:
    return {"grant_type": TOKEN_EXCHANGE, "subject_token": subject, "subject_token_type": kind, **more}


def token_in(answer: TokenAnswer) -> str:
    assert answer.status == 200, answer.body
    assert answer.body["token_type"] == "bearer"
    assert answer.body["issued_token_type"] == ACCESS_TOKEN
    assert answer.body["expires_in"] == 3600
    assert answer.headers == {"Cache-Control": "no-store", "Pragma": "no-cache"}
    return str(answer.body["access_token"])


def refusal_in(answer: TokenAnswer) -> str:
    assert answer.status == (401 if answer.body["error"] == "invalid_client" else 400)
    assert ("WWW-Authenticate" in answer.headers) == (answer.status == 401)
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.body.keys() == {"error", "error_description"}
    return str(answer.body["error"])


async def who(realm: Realm, answer: TokenAnswer) -> AuthenticationResult:
    found = await authenticator(realm.runtime).authenticate(RequestCredentials(bearer(token_in(answer))))
    assert found is not None
    return found


async def test_client_credentials_in_a_form_give_a_token(realm: Realm) -> None:
    """As Spark, Flink, PyIceberg, DuckDB and Polaris's command line send them."""
    answer = await ask(realm, credentials(realm, "ada"))
    ada = realm.principals["ada"]
    identity = Identity(ada.entity, secret=ada.secrets[0].fingerprint)
    assert await who(realm, answer) == AuthenticationResult("r1", identity, "ada")
    assert answer.body["scope"] == ALL_ROLES


async def test_client_credentials_in_a_header_give_a_token(realm: Realm) -> None:
    headers = basic(realm.principals["ada"].client_id, realm.clear["ada"])
    answer = await ask(realm, {"grant_type": "client_credentials", "scope": "PRINCIPAL_ROLE:reader"}, headers)
    assert (await who(realm, answer)).identity.activated == frozenset({"reader"})


@pytest.mark.parametrize("scope", ["", "catalog", "catalog PRINCIPAL_ROLE:ALL", "PRINCIPAL_ROLE:a PRINCIPAL_ROLE:ALL"])
async def test_all_roles_are_given_where_the_scopes_name_no_others(realm: Realm, scope: str) -> None:
    assert (await who(realm, await ask(realm, credentials(realm, "ada", scope=scope)))).identity.activated is None


@pytest.mark.parametrize(
    "scope", ["openid", "PRINCIPAL_ROLE:", "PRINCIPAL_ROLE:a,b", "ALL", "PRINCIPAL_ROLE:ä", "a\tb"]
)
@pytest.mark.parametrize("beside", ["", "PRINCIPAL_ROLE:a ", "PRINCIPAL_ROLE:ALL ", "catalog PRINCIPAL_ROLE:ALL "])
async def test_a_scope_that_is_not_known_is_refused_also_beside_roles(realm: Realm, scope: str, beside: str) -> None:
    assert refusal_in(await ask(realm, credentials(realm, "ada", scope=beside + scope))) == "invalid_scope"


async def test_a_wrong_secret_and_an_unknown_client_are_told_alike(realm: Realm) -> None:
    right, other = credentials(realm, "ada"), credentials(realm, "bob")
    wrong = [
        {**right, "client_secret": other["client_secret"]},
        {**right, "client_id": "f" * 32},
        {**right, "client_id": "x" * 10_000},
        {**right, "client_id": right["client_id"].upper()},
        {**right, "client_secret": right["client_secret"] + " "},
        {**right, "client_secret": realm.principals["ada"].secrets[0].digest},
        {name: value for name, value in right.items() if name != "client_id"},
    ]
    answers = [await ask(realm, form) for form in wrong]
    assert {refusal_in(answer) for answer in answers} == {"invalid_client"}
    assert len({json.dumps(answer.body) for answer in answers}) == 1


async def test_the_last_two_secrets_give_tokens(realm: Realm) -> None:
    first = credentials(realm, "ada")
    await realm.rotate("ada")
    second = credentials(realm, "ada")
    assert [(await ask(realm, form)).status for form in (first, second)] == [200, 200]
    await realm.rotate("ada")
    assert [(await ask(realm, form)).status for form in (first, second)] == [401, 200]


@pytest.mark.parametrize(
    ("form", "error"),
    [
        ({}, "invalid_request"),
        ({"grant_type": "password", "username": "a", "password": "b"}, "unsupported_grant_type"),
        ({"grant_type": "authorization_code"}, "unsupported_grant_type"),
        ({"grant_type": "client_credentials"}, "invalid_client"),
        ({"grant_type": "client_credentials", "client_id": "a"}, "invalid_client"),
        ({"grant_type": TOKEN_EXCHANGE}, "invalid_request"),
        ({"grant_type": TOKEN_EXCHANGE, "subject_token": "x"}, "invalid_request"),
        (exchange("x", "urn:ietf:params:oauth:token-type:saml2"), "invalid_request"),
        (exchange("x", ID_TOKEN), "invalid_request"),
        (exchange("x"), "invalid_grant"),
        (exchange("x", requested_token_type="urn:ietf:params:oauth:token-type:refresh_token"), "invalid_request"),
    ],
)
async def test_what_is_not_offered_is_refused_in_oauths_words(realm: Realm, form: dict[str, str], error: str) -> None:
    assert refusal_in(await ask(realm, form)) == error


@pytest.mark.parametrize("header", ["Basic", "Basic !", "Basic eA==", "Basic /w==", "Basic é", "basic \0"])
async def test_a_malformed_header_is_refused(realm: Realm, header: str) -> None:
    answer = await ask(realm, credentials(realm, "ada"), {"authorization": header})
    assert refusal_in(answer) == "invalid_request"


async def test_two_different_clients_in_one_request_are_refused(realm: Realm) -> None:
    ada = basic(realm.principals["ada"].client_id, realm.clear["ada"])
    assert refusal_in(await ask(realm, credentials(realm, "bob"), ada)) == "invalid_request"
    assert (await who(realm, await ask(realm, credentials(realm, "ada"), ada))).name == "ada"


MALFORMED = [
    b"a=1&a=2",
    b"\xff",
    b"grant_type=%FF",
    b"&".join(b"f%d=1" % n for n in range(40)),
    b"client_secret=" + b"%" * (MAX_ESCAPES + 1),
    b"client_secret=" + b"%41" * (MAX_ESCAPES + 1),
]


@pytest.mark.parametrize("body", MALFORMED)
def test_a_malformed_form_is_refused(body: bytes) -> None:
    assert MAX_FIELDS < 40
    with pytest.raises(OAuthError, match="invalid_request"):
        parse_form(body)


@given(st.dictionaries(st.text(min_size=1, max_size=8), st.text(min_size=1, max_size=8), max_size=8))
def test_a_form_is_read_as_it_was_written(fields: dict[str, str]) -> None:
    assert parse_form(urlencode(fields, errors="strict").encode()) == fields


async def test_a_live_token_is_exchanged_for_a_fresh_one_of_the_same_rights(realm: Realm) -> None:
    """As Java refreshes: the token that it has is the subject, and the bearer."""
    token = token_in(await ask(realm, credentials(realm, "ada", scope="PRINCIPAL_ROLE:a PRINCIPAL_ROLE:b")))
    realm.runtime.ms += 3_000_000
    for scope in ("catalog", "", "PRINCIPAL_ROLE:a PRINCIPAL_ROLE:b"):
        answer = await ask(realm, exchange(token, scope=scope), bearer(token))
        assert (await who(realm, answer)).identity.activated == frozenset({"a", "b"})
    fresh = token_in(answer)
    realm.runtime.ms += 3_000_000
    assert refusal_in(await ask(realm, exchange(token), bearer(token))) == "invalid_grant"
    assert (await ask(realm, exchange(fresh), bearer(fresh))).status == 200


async def test_an_expired_subject_beside_client_credentials_is_ignored(realm: Realm) -> None:
    """As Java refreshes an expired token; and a token of somebody else's changes nothing either."""
    headers = basic(realm.principals["ada"].client_id, realm.clear["ada"])
    token = token_in(await ask(realm, credentials(realm, "bob")))
    realm.runtime.ms += 36_000_000
    assert (await who(realm, await ask(realm, exchange(token, scope="catalog"), headers))).name == "ada"


@pytest.mark.parametrize("scope", [ALL_ROLES, "PRINCIPAL_ROLE:c", "PRINCIPAL_ROLE:a PRINCIPAL_ROLE:c"])
async def test_an_exchange_gives_no_role_that_the_subject_does_not_have(realm: Realm, scope: str) -> None:
    token = token_in(await ask(realm, credentials(realm, "ada", scope="PRINCIPAL_ROLE:a PRINCIPAL_ROLE:b")))
    assert refusal_in(await ask(realm, exchange(token, scope=scope), bearer(token))) == "invalid_scope"


ROLES = st.none() | st.frozensets(st.sampled_from("abcd"), min_size=1)


@given(ROLES, st.lists(ROLES, max_size=5))
def test_a_chain_of_exchanges_only_ever_loses_roles(
    granted: frozenset[str] | None, asked: list[frozenset[str] | None]
) -> None:
    for each in asked:
        scope = ALL_ROLES if each is None else " ".join(f"PRINCIPAL_ROLE:{name}" for name in each)
        try:
            got = requested_roles(scope, granted)
        except OAuthError:
            continue
        assert granted is None or (got is not None and got <= granted)
        granted = got


async def test_a_token_can_be_exchanged_only_while_its_secret_is_valid(realm: Realm) -> None:
    """Whoever took a token can't keep it alive beyond a rotation."""
    token = token_in(await ask(realm, credentials(realm, "ada")))
    await realm.rotate("ada")
    token = token_in(await ask(realm, exchange(token), bearer(token)))
    await realm.rotate("ada")
    assert refusal_in(await ask(realm, exchange(token), bearer(token))) == "invalid_grant"


async def test_a_token_of_a_principal_that_is_gone_is_not_exchanged(realm: Realm) -> None:
    token = token_in(await ask(realm, credentials(realm, "ada")))
    del realm.principals["ada"]
    await realm.add("ada")
    assert refusal_in(await ask(realm, exchange(token), bearer(token))) == "invalid_grant"


async def test_a_token_of_another_realm_is_not_exchanged(realm: Realm) -> None:
    other = Realm(realm.runtime, name="r2", principals=realm.principals, clear=realm.clear)
    token = token_in(await ask(other, credentials(other, "ada")))
    assert refusal_in(await ask(realm, exchange(token), bearer(token))) == "invalid_grant"
    assert (await ask(other, exchange(token), bearer(token))).status == 200


def unsigned(**claims: object) -> str:
    """A JWT as Trino makes it for its user."""
    return jwt.encode(claims, "", "none")


async def test_an_engine_that_was_registered_acts_for_its_users(realm: Realm) -> None:
    """As Trino does with `iceberg.rest-catalog.session=USER`."""
    engine = token_in(await ask(realm, credentials(realm, "trino")))
    form = exchange(unsigned(sub="ada", iss="481", iat=1), JWT, actor_token=engine, actor_token_type=ACCESS_TOKEN)
    answer = await ask(realm, form, bearer(engine))
    ada, trino = realm.principals["ada"], realm.principals["trino"]
    identity = Identity(ada.entity, secret=trino.secrets[0].fingerprint, actor=trino.entity)
    assert await who(realm, answer) == AuthenticationResult("r1", identity, "ada", trino.entity)

    token = token_in(answer)
    again = await ask(realm, exchange(token), bearer(token))
    assert await who(realm, again) == AuthenticationResult("r1", identity, "ada", trino.entity)


@pytest.mark.parametrize("subject", ["root", "nobody", "trino ", "", None, 7, ["ada"], {"sub": "ada"}])
async def test_an_engine_acts_for_no_administrator_and_for_nobody_unknown(realm: Realm, subject: object) -> None:
    engine = token_in(await ask(realm, credentials(realm, "trino")))
    answer = await ask(realm, exchange(unsigned(sub=subject), JWT), bearer(engine))
    assert refusal_in(answer) == "unauthorized_client"


@pytest.mark.parametrize("who_asks", ["ada", "bob", "root"])
async def test_nobody_else_acts_for_anybody(realm: Realm, who_asks: str) -> None:
    token = token_in(await ask(realm, credentials(realm, who_asks)))
    for subject in ("ada", "bob", "root", "trino"):
        for kind in (JWT, ACCESS_TOKEN):
            answer = await ask(realm, exchange(unsigned(sub=subject), kind), bearer(token))
            assert refusal_in(answer) == "unauthorized_client"
            as_actor = exchange(unsigned(sub=subject), kind, actor_token=token, actor_token_type=ACCESS_TOKEN)
            assert refusal_in(await ask(realm, as_actor)) == "unauthorized_client"


@pytest.mark.parametrize("value", ["false", "True", "1", "yes", ""])
async def test_only_true_registers_an_engine(realm: Realm, value: str) -> None:
    await realm.add("flink", {ACT_FOR_OTHERS: value})
    engine = token_in(await ask(realm, credentials(realm, "flink")))
    assert refusal_in(await ask(realm, exchange(unsigned(sub="ada"), JWT), bearer(engine))) == "unauthorized_client"


async def test_what_an_engine_got_for_a_user_ends_when_either_changes(realm: Realm) -> None:
    engine = token_in(await ask(realm, credentials(realm, "trino")))
    token = token_in(await ask(realm, exchange(unsigned(sub="ada"), JWT), bearer(engine)))
    registered = realm.principals["trino"]

    realm.principals["trino"] = registered.updated(0, properties={})
    assert refusal_in(await ask(realm, exchange(token), bearer(token))) == "unauthorized_client"
    realm.principals["trino"] = registered.with_secrets((), 0)
    assert refusal_in(await ask(realm, exchange(token), bearer(token))) == "invalid_grant"
    realm.principals["trino"] = registered
    realm.managers.add("ada")
    assert refusal_in(await ask(realm, exchange(token), bearer(token))) == "unauthorized_client"
    realm.managers.clear()
    assert (await ask(realm, exchange(token), bearer(token))).status == 200


async def test_whom_an_engine_acts_for_acts_for_nobody(realm: Realm) -> None:
    await realm.add("other-engine", {ACT_FOR_OTHERS: "true"})
    engine = token_in(await ask(realm, credentials(realm, "trino")))
    as_other = token_in(await ask(realm, exchange(unsigned(sub="other-engine"), JWT), bearer(engine)))
    assert refusal_in(await ask(realm, exchange(unsigned(sub="ada"), JWT), bearer(as_other))) == "unauthorized_client"


async def test_an_engines_token_of_another_realm_or_a_dead_one_acts_for_nobody(realm: Realm) -> None:
    elsewhere = Realm(realm.runtime, name="r2")
    await elsewhere.add("trino", {ACT_FOR_OTHERS: "true"})
    foreign = token_in(await ask(elsewhere, credentials(elsewhere, "trino")))
    dead = token_in(await ask(realm, credentials(realm, "trino")))
    realm.runtime.ms += 4_000_000
    for token in (foreign, dead, "x", unsigned(sub="trino")):
        answer = await ask(realm, exchange(unsigned(sub="ada"), JWT), bearer(token))
        assert refusal_in(answer) == "unauthorized_client"


async def test_forged_subjects_are_refused(realm: Realm) -> None:
    ada = realm.principals["ada"]
    engine = token_in(await ask(realm, credentials(realm, "trino")))
    good = token_in(await ask(realm, credentials(realm, "ada")))
    header, claims, _ = good.split(".")
    none = base64.urlsafe_b64encode(b'{"alg":"none"}').decode().rstrip("=")
    forgeries = [
        await own_tokens(realm.runtime, OTHER_KEY).issue(TokenClaims("r1", ada.entity, "ada", "c", None, "f")),
        await own_tokens(realm.runtime, KEY, "elsewhere").issue(TokenClaims("r1", ada.entity, "ada", "c", None, "f")),
        await own_tokens(realm.runtime).issue(TokenClaims("r1", ada.entity, "ada", "c", None, "f")),
        f"{header}.{claims}.",
        f"{header}.{claims}.AAAA",
        f"{none}.{claims}.AAAA",
        f"{none}.{claims}",
        good + "x",
        "x" * 20_000,
        "..",
    ]
    for forgery in forgeries:
        assert refusal_in(await ask(realm, exchange(forgery), bearer(engine))) == "invalid_grant"


async def test_no_answer_quotes_what_it_refuses(realm: Realm) -> None:
    form = credentials(realm, "ada", scope="sc0pe-of-mine")
    forms = [
        form,
        {**form, "client_secret": "s3cret-of-mine"},
        {**form, "grant_type": "gr4nt-of-mine"},
        exchange("t0ken-of-mine", scope="sc0pe-of-mine"),
    ]
    for each in forms:
        answer = await ask(realm, each)
        assert answer.status >= 400
        assert "of-mine" not in json.dumps(answer.body)
        assert realm.clear["ada"] not in json.dumps(answer.body)


@pytest.mark.parametrize("name", worst_callers.FORMS)
async def test_the_worst_forms_get_no_token(realm: Realm, name: str) -> None:
    answer = await endpoint(realm).answer(worst_callers.FORMS[name](), {}, realm.name, realm)
    assert answer.status in (400, 401)
    assert len(str(answer.body)) < 1_000
