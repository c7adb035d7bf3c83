"""Tokens that we sign: what is taken, and that nothing else is."""

import base64
import json
import logging
from collections.abc import Mapping
from dataclasses import replace

import jwt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arco_catalog.authentication.authenticator import AuthenticationResult, RequestCredentials
from arco_catalog.authentication.claims import MAX_TOKEN, SKEW_S
from arco_catalog.authentication.keys import KeySource, from_text, parse_keys
from arco_catalog.authentication.token_cache import TokenCache
from arco_catalog.authentication.tokens import (
    ALL_ROLES,
    LIFETIME_S,
    InternalAuthenticator,
    OwnTokens,
    TokenClaims,
    roles_of_scope,
    scope_of,
)
from arco_catalog.http.errors import error_response
from arco_catalog.iceberg.errors import NotAuthorized, Unavailable
from arco_catalog.planning.access import Identity
from arco_catalog.state.key_settings import Dialect
from tests.authentication.issuer import MemoryIssuer, trusting
from tests.authentication.realm import KEY, OTHER_KEY, authenticator, own_tokens
from tests.support.fake_runtime import FakeRuntime

SAYS = TokenClaims("r1", "01PRINCIPAL", "ada", "c1", None, "f1")


def bearing(token: str) -> RequestCredentials:
    return RequestCredentials({"authorization": f"Bearer {token}"})


async def test_a_token_says_whose_it_is_in_which_realm_and_which_roles_it_activates() -> None:
    runtime = FakeRuntime()
    tokens = own_tokens(runtime)
    some = TokenClaims("r2", "01OTHER", "bob", "c2", frozenset({"reader", "a.b:c"}), "f2", "01ACTOR")
    check = authenticator(runtime, tokens)

    assert await check.authenticate(bearing(await tokens.issue(SAYS))) == AuthenticationResult(
        "r1", Identity("01PRINCIPAL", secret="f1"), "ada"
    )
    assert await check.authenticate(bearing(await tokens.issue(some))) == AuthenticationResult(
        "r2", Identity("01OTHER", frozenset({"reader", "a.b:c"}), secret="f2", actor="01ACTOR"), "bob", "01ACTOR"
    )


async def test_the_claims_of_a_token_are_as_documented() -> None:
    runtime = FakeRuntime()
    token = await own_tokens(runtime).issue(SAYS)
    now = runtime.ms // 1000

    assert jwt.get_unverified_header(token) == {"alg": "HS256", "typ": "at+jwt", "kid": parse_keys(KEY).newest.id}
    assert jwt.decode(token, options={"verify_signature": False}) == {
        "iss": "arco",
        "aud": "arco-catalog",
        "sub": "01PRINCIPAL",
        "name": "ada",
        "client_id": "c1",
        "realm": "r1",
        "scope": "PRINCIPAL_ROLE:ALL",
        "cred": "f1",
        "iat": now,
        "exp": now + LIFETIME_S,
        "jti": "00000000-0000-4000-8000-000000000001",
    }


async def test_a_token_is_taken_until_it_expires_and_a_minute_longer() -> None:
    runtime = FakeRuntime()
    tokens = own_tokens(runtime)
    remembering, token = authenticator(runtime, tokens), await tokens.issue(SAYS)
    for ms, taken in ((0, True), ((LIFETIME_S + SKEW_S) * 1000 - 1, True), (1, False)):
        runtime.ms += ms
        for check in (remembering, authenticator(runtime, tokens)):
            if taken:
                assert await check.authenticate(bearing(token)) is not None
            else:
                with pytest.raises(NotAuthorized, match="expired"):
                    await check.authenticate(bearing(token))


async def test_a_token_from_a_clock_a_minute_ahead_is_taken_and_no_further() -> None:
    runtime, ahead = FakeRuntime(), FakeRuntime()
    for seconds, taken in ((SKEW_S, True), (SKEW_S + 1, False)):
        ahead.ms = runtime.ms + seconds * 1000
        token = await own_tokens(ahead).issue(SAYS)
        if taken:
            assert await authenticator(runtime).authenticate(bearing(token)) is not None
        else:
            with pytest.raises(NotAuthorized, match="not valid yet"):
                await authenticator(runtime).authenticate(bearing(token))


async def test_a_key_is_replaced_without_a_gap() -> None:
    runtime = FakeRuntime()
    old, both, new_first, new = (
        own_tokens(runtime, keys) for keys in (KEY, f"{KEY},{OTHER_KEY}", f"{OTHER_KEY},{KEY}", OTHER_KEY)
    )
    by_old, by_new = await both.issue(SAYS), await new_first.issue(SAYS)
    for tokens, takes in ((old, [True, False]), (both, [True] * 2), (new_first, [True] * 2), (new, [False, True])):
        for token, taken in zip((by_old, by_new), takes, strict=True):
            if taken:
                assert await tokens.verify(token) is not None
            else:
                with pytest.raises(NotAuthorized, match="a key that this server does not have"):
                    await tokens.verify(token)


async def test_a_remembered_token_ends_with_its_key() -> None:
    runtime = FakeRuntime()
    held = [f"{KEY},{OTHER_KEY}"]

    async def read() -> bytes:
        return held[0].encode()

    tokens = OwnTokens(KeySource(read, runtime.now_ms), runtime)
    check, token = authenticator(runtime, tokens), await tokens.issue(SAYS)
    assert await check.authenticate(bearing(token)) is not None
    held[0] = OTHER_KEY
    runtime.ms += 16 * 60_000
    with pytest.raises(NotAuthorized, match="a key that this server does not have"):
        await check.authenticate(bearing(token))


def segment(document: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(document).encode()).decode().rstrip("=")


def forged(header: Mapping[str, object], claims: Mapping[str, object], key: str, algorithm: str = "HS256") -> str:
    return jwt.encode(dict(claims), key, algorithm, headers=dict(header))


KID = parse_keys(KEY).newest.id
NOW = FakeRuntime().ms // 1000
GOOD: dict[str, object] = {
    "iss": "arco",
    "aud": "arco-catalog",
    "sub": "01P",
    "name": "ada",
    "client_id": "c",
    "realm": "r1",
    "scope": ALL_ROLES,
    "cred": "f",
    "iat": NOW,
    "exp": NOW + 3600,
    "jti": "j",
}
HEADER: dict[str, object] = {"typ": "at+jwt", "kid": KID}


async def test_the_token_that_the_forgeries_are_made_of_is_good() -> None:
    assert await authenticator(FakeRuntime()).authenticate(bearing(forged(HEADER, GOOD, KEY))) is not None


FORGERIES = {
    "another key": forged(HEADER, GOOD, OTHER_KEY),
    "another key of a key's name": forged({**HEADER, "kid": parse_keys(OTHER_KEY).newest.id}, GOOD, OTHER_KEY),
    "no key's name": forged({"typ": "at+jwt"}, GOOD, KEY),
    "a path as key's name": forged({**HEADER, "kid": "../../dev/null"}, GOOD, KEY),
    "a list as key's name": f"{segment({**HEADER, 'alg': 'HS256', 'kid': [KID]})}.{segment(GOOD)}.AA",
    "another type": forged({**HEADER, "typ": "JWT"}, GOOD, KEY),
    "a critical extension": forged({**HEADER, "crit": ["b64"], "b64": True}, GOOD, KEY),
    "HS384": forged(HEADER, GOOD, KEY + KEY, "HS384"),
    "HS512": forged(HEADER, GOOD, KEY + KEY, "HS512"),
    "alg none with a signature": f"{segment({**HEADER, 'alg': 'none'})}.{segment(GOOD)}.AA",
    "alg None": f"{segment({**HEADER, 'alg': 'None'})}.{segment(GOOD)}.AA",
    "alg null": f"{segment({**HEADER, 'alg': None})}.{segment(GOOD)}.AA",
    "no alg": f"{segment(HEADER)}.{segment(GOOD)}.AA",
    "no iat": forged(HEADER, {name: value for name, value in GOOD.items() if name != "iat"}, KEY),
    **{
        f"{name}={value!r}": forged(HEADER, {**GOOD, name: value}, KEY)
        for name, values in {
            "aud": ("", "other", ["other"], [], None, 7, {"arco-catalog": 1}),
            "sub": ("", None, "x" * 2000, "a\nb"),
            "realm": ("", None, ["r1"], 7),
            "scope": ("", None, "PRINCIPAL_ROLE:", "openid", "PRINCIPAL_ROLE:a b", "PRINCIPAL_ROLE:ä", ["x"]),
            "exp": (NOW - 61, 0, -1, None, "soon", True, 1e300),
            "iat": (NOW + 61, "now", True, -5),
            "nbf": (NOW + 61, "now", False, -5),
            "name": ("", None, 7),
            "client_id": ("", None),
            "cred": ("", None, 1),
            "act": ({}, {"sub": ""}, {"sub": 7}),
        }.items()
        for value in values
    },
}


@pytest.mark.parametrize("forgery", FORGERIES)
async def test_a_forgery_is_refused(forgery: str) -> None:
    with pytest.raises(NotAuthorized):
        await authenticator(FakeRuntime()).authenticate(bearing(FORGERIES[forgery]))


UNKNOWN = {
    "nothing": "x",
    "dots": "..",
    "no signature": f"{segment({**HEADER, 'alg': 'none'})}.{segment(GOOD)}.",
    "four parts": f"{forged(HEADER, GOOD, KEY)}.AA",
    "another issuer": forged(HEADER, {**GOOD, "iss": "https://id.example.org"}, KEY),
    "an issuer in another case": forged(HEADER, {**GOOD, "iss": "Arco"}, KEY),
    "a list of issuers": f"{segment({**HEADER, 'alg': 'HS256'})}.{segment({**GOOD, 'iss': ['arco']})}.AA",
    "claims that are a list": f"{segment({**HEADER, 'alg': 'HS256'})}.{segment([GOOD])}.AA",
    "nested too deep": f"{segment({'alg': 'HS256'})}.{base64.urlsafe_b64encode(b'[' * 9000).decode().rstrip('=')}.AA",
    "endless": forged(HEADER, {**GOOD, "more": "x" * MAX_TOKEN}, KEY),
    "an endless header": forged({**HEADER, "more": "x" * 4096}, GOOD, KEY),
    "blanks": f" {forged(HEADER, GOOD, KEY)} x",
    "padding": forged(HEADER, GOOD, KEY) + "=",
    "standard base64": forged(HEADER, GOOD, KEY)[:-2] + "+/",
    "not ASCII": "é.é.é",
}


@pytest.mark.parametrize("token", UNKNOWN)
async def test_what_does_not_claim_to_be_ours_is_left_to_others(token: str) -> None:
    assert await authenticator(FakeRuntime()).authenticate(bearing(UNKNOWN[token])) is None


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Basic eDp5", "Token x", "bearer"])
async def test_without_a_bearer_token_nothing_is_presented(header: str) -> None:
    assert await authenticator(FakeRuntime()).authenticate(RequestCredentials({"authorization": header})) is None


async def test_changing_any_part_of_a_token_makes_it_worthless() -> None:
    runtime = FakeRuntime()
    token = await own_tokens(runtime).issue(SAYS)
    check = authenticator(runtime)
    for place in range(len(token)):
        changed = f"{token[:place]}{'A' if token[place] != 'A' else 'B'}{token[place + 1 :]}"
        try:
            found = await check.authenticate(bearing(changed))
        except (NotAuthorized, Unavailable):
            continue
        assert found is None or place == len(token) - 1  # the last character has bits that mean nothing


async def test_a_token_of_another_deployment_with_the_same_key_is_refused() -> None:
    runtime = FakeRuntime()
    token = await own_tokens(runtime, audience="staging").issue(SAYS)
    with pytest.raises(NotAuthorized):
        await authenticator(runtime).authenticate(bearing(token))


async def test_a_token_is_in_no_log_and_no_error(caplog: pytest.LogCaptureFixture) -> None:
    for token in FORGERIES.values():
        with caplog.at_level(logging.DEBUG), pytest.raises(NotAuthorized) as refused:
            await authenticator(FakeRuntime()).authenticate(bearing(token))
        answer = error_response(refused.value, commits=True, dialect=Dialect.ICEBERG)
        assert answer.status == 401
        assert answer.headers["WWW-Authenticate"] == "Bearer"
        for part in filter(lambda part: len(part) > 8, token.split(".")):
            assert part not in str(refused.value)
            assert part not in answer.body.decode()
    assert not [record for record in caplog.records if "eyJ" in record.getMessage()]


async def test_without_a_key_a_token_is_neither_taken_nor_refused() -> None:
    runtime = FakeRuntime()
    token = await own_tokens(runtime).issue(SAYS)
    check = InternalAuthenticator(OwnTokens(KeySource(from_text("short"), runtime.now_ms), runtime), runtime.now_ms)
    with pytest.raises(Unavailable):
        await check.authenticate(bearing(token))


NAMES = st.frozensets(st.from_regex(r"\A[A-Za-z0-9_.:-]{1,12}\Z").filter(lambda name: name != "ALL"), min_size=1)


@given(st.none() | NAMES)
def test_a_scope_names_the_roles_that_it_was_made_of(roles: frozenset[str] | None) -> None:
    assert roles_of_scope(scope_of(roles)) == roles


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 20), st.integers(0, 10)), max_size=60))
def test_what_is_remembered_is_what_was_put_last_and_has_not_expired(steps: list[tuple[str, int, int]]) -> None:
    now, model, remembered = 0, dict[str, tuple[int, int]](), TokenCache[int](lambda: now, max_tokens=3)
    for number, (token, lasts, passes) in enumerate(steps):
        now += passes
        known = remembered.get(token)
        assert known is None or (known, True) == (model[token][0], model[token][1] > now)
        remembered.put(token, number, now + lasts)
        model[token] = (number, now + lasts)
        assert remembered.get(token) == (number if lasts else None)
        assert len(remembered) <= 3
    remembered.clear()
    assert [remembered.get(token) for token in "abcdef"] == [None] * 6


def test_results_with_many_names_are_dropped_before_they_fill_the_memory() -> None:
    cache = TokenCache[str](lambda: 0, max_tokens=100, max_names=1_000)
    for number in range(50):
        cache.put(f"large {number}", "x", 1, names=300)
    assert [number for number in range(50) if cache.get(f"large {number}")] == [47, 48, 49]
    for _ in range(5):
        cache.put("large 49", "x", 1, names=300)
    assert len(cache) == 3
    for number in range(90):
        cache.put(f"small {number}", "x", 1, names=1)
    assert len(cache) == 93
    cache.put("larger than all", "x", 1, names=1_001)
    assert len(cache) == 0
    cache.put("small", "x", 1, names=1_000)
    assert cache.get("small") == "x"


async def test_the_roles_and_scopes_of_each_verified_token_count_as_names(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[int] = []

    def put(cache: TokenCache[object], token: str, value: object, until_ms: int, names: int) -> None:
        counted.append(names)

    monkeypatch.setattr(TokenCache, "put", put)
    issuer = MemoryIssuer(FakeRuntime())
    own = own_tokens(issuer.runtime)
    await trusting([issuer], roles_claim="roles").authenticate(bearing(issuer.token(roles=["a", "b"], scope="x y z")))
    for roles in (None, frozenset({"a", "b", "c"})):
        token = await own.issue(replace(SAYS, roles=roles, executes_tasks=True))
        await authenticator(issuer.runtime, own).authenticate(bearing(token))
    assert counted == [5, 1, 4]
