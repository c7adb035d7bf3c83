"""Tokens of other issuers: what is taken of them, and that no forgery is."""

import base64
import hashlib
import hmac
import json
import logging
from collections.abc import Iterator
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from arco_catalog.authentication.authenticator import AuthenticationResult, RequestCredentials
from arco_catalog.authentication.claims import MAX_TOKEN
from arco_catalog.authentication.jwks import RETRY_MS, STALE_MS
from arco_catalog.authentication.oidc import OidcAuthenticator
from arco_catalog.iceberg.errors import NotAuthorized, Unavailable
from arco_catalog.planning.access import Identity
from tests.authentication.issuer import AUDIENCE, URL, MemoryIssuer, private_key, public_jwk, trusting
from tests.support.fake_runtime import FakeRuntime


@pytest.fixture
def issuer() -> MemoryIssuer:
    return MemoryIssuer(FakeRuntime())


async def who(authenticator: OidcAuthenticator, token: str) -> AuthenticationResult | None:
    return await authenticator.authenticate(RequestCredentials({"authorization": f"Bearer {token}"}))


async def test_a_token_of_an_issuer_is_its_subjects_in_the_issuers_realm(issuer: MemoryIssuer) -> None:
    found = await who(trusting([issuer]), issuer.token(aud=["other", AUDIENCE]))
    assert found == AuthenticationResult("r1", Identity(f"{URL} ada", None, issued=True), "ada")


@pytest.mark.parametrize("algorithm", ["RS256", "RS512", "PS256", "PS384", "ES256", "ES384", "ES512", "EdDSA"])
async def test_every_algorithm_that_is_configured_is_taken(issuer: MemoryIssuer, algorithm: str) -> None:
    issuer.add("k2", algorithm)
    token = issuer.token("k2")
    assert await who(trusting([issuer], algorithms=[algorithm]), token) is not None
    with pytest.raises(NotAuthorized, match="an algorithm that is not allowed"):
        await who(trusting([issuer], algorithms=["RS384"]), token)


@pytest.mark.parametrize("kind", ["JWT", "jwt", "at+jwt", "application/at+jwt", None])
async def test_tokens_of_the_kinds_that_are_for_us_are_taken(issuer: MemoryIssuer, kind: str | None) -> None:
    assert await who(trusting([issuer]), issuer.token(headers={"typ": kind})) is not None


@pytest.mark.parametrize(
    ("claim", "value", "expected"),
    [
        ("roles", ["a", "b"], {"a", "b"}),
        ("roles", "a b", {"a", "b"}),
        ("roles", [], set()),
        ("roles", None, set()),
        ("realm_access.roles", ["a"], {"a"}),
        ("https://claims.example.org/roles", ["a.b:c-d_e"], {"a.b:c-d_e"}),
        ("groups", ["Data Engineers", "/lake/ä,b"], {"Data Engineers", "/lake/ä,b"}),
        ("groups", ["a", "", "x" * 257, "b\n", "\u2028"], {"a"}),
    ],
)
async def test_roles_are_those_of_the_claim_that_is_configured(
    issuer: MemoryIssuer, claim: str, value: object, expected: set[str]
) -> None:
    claims = {"realm_access": {"roles": value}} if claim == "realm_access.roles" else {claim: value}
    found = await who(trusting([issuer], roles_claim=claim), issuer.token(**claims))
    assert found is not None
    assert found.identity.activated == frozenset(expected)


@pytest.mark.parametrize("value", [[7], [None], ["a", ["b"]], {"a": 1}, 7, True, "a,b", "ä", "x" * 257])
async def test_roles_in_no_form_that_a_claim_may_have_are_refused(issuer: MemoryIssuer, value: object) -> None:
    with pytest.raises(NotAuthorized, match="role"):
        await who(trusting([issuer], roles_claim="roles"), issuer.token(roles=value))


async def test_another_claim_may_name_the_principal(issuer: MemoryIssuer) -> None:
    found = await who(trusting([issuer], principal_claim="email"), issuer.token(email="ada@example.org"))
    assert found is not None
    assert found.identity.principal == f"{URL} ada@example.org"


async def test_two_issuers_subjects_of_one_name_are_two(issuer: MemoryIssuer) -> None:
    other = MemoryIssuer(issuer.runtime, "https://other.example.org")
    both = trusting([issuer, other])
    found = [await who(both, each.token()) for each in (issuer, other)]
    assert [each.identity.principal for each in found if each] == [f"{URL} ada", "https://other.example.org ada"]


async def test_one_issuer_cannot_speak_for_another(issuer: MemoryIssuer) -> None:
    other = MemoryIssuer(issuer.runtime, "https://other.example.org")
    other.keys = {"k1": ("RS256", private_key("RS256", 7))}
    both = trusting([issuer, other])
    for claims in ({"iss": issuer.url}, {"iss": issuer.url, "aud": [AUDIENCE]}):
        with pytest.raises(NotAuthorized):
            await who(both, other.token(**claims))


async def test_a_token_is_verified_once_and_remembered_until_it_expires(issuer: MemoryIssuer) -> None:
    authenticator, token = trusting([issuer]), issuer.token()
    first = await who(authenticator, token)
    issuer.keys.clear()
    issuer.down = True
    issuer.runtime.ms += 3_600_000
    assert await who(authenticator, token) is first
    issuer.runtime.ms += 60_000
    with pytest.raises(NotAuthorized, match="expired"):
        await who(authenticator, token)
    await authenticator.close()


async def test_a_verified_token_is_refused_once_the_keys_of_its_issuer_are_too_old(issuer: MemoryIssuer) -> None:
    authenticator, token = trusting([issuer]), issuer.token(exp=issuer.runtime.ms // 1000 + 3 * 86_400)
    first = await who(authenticator, token)
    issuer.down = True
    issuer.runtime.ms += STALE_MS - 1
    assert await who(authenticator, token) is first
    issuer.runtime.ms += RETRY_MS
    with pytest.raises(Unavailable):
        await who(authenticator, token)
    issuer.down = False
    issuer.runtime.ms += RETRY_MS
    assert await who(authenticator, token) == first
    await authenticator.close()


async def test_a_token_is_forgotten_when_its_key_is_withdrawn(issuer: MemoryIssuer) -> None:
    authenticator, token = trusting([issuer]), issuer.token()
    assert await who(authenticator, token) is not None
    issuer.add("k2", number=2)
    del issuer.keys["k1"]
    issuer.runtime.ms += 5_000
    assert await who(authenticator, issuer.token("k2")) is not None
    with pytest.raises(NotAuthorized, match="a key that its issuer does not have"):
        await who(authenticator, token)


# Forgeries. Each is made of a token that is good.


def segment(document: object) -> str:
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    return base64.urlsafe_b64encode(body).decode().rstrip("=")


def by_hmac(issuer: MemoryIssuer, secret: bytes, algorithm: str, header: dict[str, Any]) -> str:
    signed = f"{segment({**header, 'alg': algorithm})}.{segment(issuer.claims())}"
    digest = {"HS256": hashlib.sha256, "HS384": hashlib.sha384, "HS512": hashlib.sha512}[algorithm]
    return f"{signed}.{segment(hmac.new(secret, signed.encode(), digest).digest())}"


def forgeries(issuer: MemoryIssuer) -> Iterator[tuple[str, str]]:
    """Tokens that claim to be the issuer's, and may not be taken."""
    key = issuer.keys["k1"][1]
    stranger = private_key("RS256", 99)
    good = issuer.token()
    header, payload, signature = good.split(".")
    kid = {"kid": "k1", "typ": "JWT"}

    public = key.public_key()
    secrets = {
        "PEM": public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        "PEM without its end": public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).rstrip(),
        "DER": public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
        "PKCS1": public.public_bytes(Encoding.PEM, PublicFormat.PKCS1) if hasattr(public, "encrypt") else b"",
        "JWK": json.dumps(public_jwk(key, "k1")).encode(),
        "modulus": str(public_jwk(key, "k1")["n"]).encode(),
        "nothing": b"",
        "the key's name": b"k1",
    }
    for name, secret in secrets.items():
        for algorithm in ("HS256", "HS384", "HS512"):
            yield f"{algorithm} by the {name}", by_hmac(issuer, secret, algorithm, kid)

    for name in (
        "none",
        "None",
        "NONE",
        "nOnE",
        "",
        " none",
        "none\0",
        "RS256 ",
        "rs256",
        "RS1",
        "HS256",
        "dir",
        "RSA1_5",
    ):
        for end in (signature, "AA"):
            yield f"alg {name!r} with {len(end)}", f"{segment({**kid, 'alg': name})}.{payload}.{end}"
    for odd in (None, 0, True, ["RS256"], {"alg": "RS256"}):
        yield f"alg {odd!r}", f"{segment({**kid, 'alg': odd})}.{payload}.{signature}"
    yield "no alg", f"{segment(kid)}.{payload}.{signature}"
    for other in ("ES256", "PS256", "RS384", "RS512", "EdDSA", "ES384"):
        yield f"the signature of RS256 as {other}", f"{segment({**kid, 'alg': other})}.{payload}.{signature}"

    names: list[object] = [
        "", "k2", "K1", "k1 ", "k1\0", "k1'--", "../../../../dev/null", "/dev/null", "file:///etc/passwd", "x" * 257,
        "'; DROP TABLE keys;--", "${jndi:ldap://localhost/a}", "http://localhost/jwks", "k1\n", "%6b1", "*", "null",
        None, 0, 1, True, ["k1"], {"kid": "k1"}, "é",
    ]  # fmt: skip
    for named in names:
        yield f"kid {named!r}", f"{segment({'alg': 'RS256', 'typ': 'JWT', 'kid': named})}.{payload}.{signature}"
    yield "no kid", jwt.encode(issuer.claims(), key, "RS256")

    own = public_jwk(stranger, "k1")
    headers: list[dict[str, Any]] = [
        {"jwk": own},
        {"jku": "https://evil.example.org/keys"},
        {"x5u": "https://evil.example.org/cert"},
        {"jku": f"{URL}@evil.example.org/keys"},
        {"x5c": ["AAAA"]},
        {"x5t": "AAAA"},
        {"jwk": own, "kid": "k9"},
        {"iss": URL},
        {"cty": "JWT"},
        {"zip": "DEF"},
    ]
    for extra in headers:
        yield (
            f"a stranger's signature with {[*extra]}",
            jwt.encode(issuer.claims(), stranger, "RS256", headers={**kid, **extra}),
        )
    critical: list[dict[str, Any]] = [{"crit": ["exp"]}, {"crit": []}, {"crit": ["b64"], "b64": False}, {"crit": "b64"}]
    for extra in critical:
        yield f"critical {extra}", jwt_with(issuer, header_more=extra)
    for kind in ("logout+jwt", "dpop+jwt", "secevent+jwt", "JWE", "", 7, "id_token"):
        yield f"typ {kind!r}", jwt_with(issuer, header_more={"typ": kind})

    values: dict[str, list[object]] = {
        "aud": ["", "other", "ARCO", "arco ", ["other"], [], {}, 7, None, [["arco"]], [7], "arco,other", True],
        "exp": [0, -1, 1, "soon", "9999999999", True, [9999999999], None, {}, 1e99, -1e99],
        "nbf": [1e12, 9_999_999_999, "now", True, [], -5],
        "iat": [9_999_999_999, "now", True, {}, -5],
        "sub": ["", None, 7, ["ada"], {"id": "ada"}, "x" * 1025, "a\nb", "a\0", "\u2028", True],
    }
    for claim, wrong in values.items():
        for value in wrong:
            yield f"{claim}={value!r}"[:60], signed_with(issuer, {**issuer.claims(), claim: value})
    now = issuer.runtime.ms // 1000
    yield "expired a minute and a second ago", issuer.token(exp=now - 61)
    yield "valid in a minute and a second", issuer.token(nbf=now + 61)

    yield "another's signature", jwt.encode(issuer.claims(), stranger, "RS256", headers=kid)
    yield "no signature", f"{header}.{payload}.AA"
    yield "a signature cut short", good[:-20]
    yield "a longer signature", good + "AAAA"
    for place in range(0, len(signature) - 1, 16):
        changed = "A" if signature[place] != "A" else "B"
        yield (
            f"signature changed at {place}",
            f"{header}.{payload}.{signature[:place]}{changed}{signature[place + 1 :]}",
        )
    for claims in (
        {"sub": "root"},
        {"aud": AUDIENCE, "scope": "x"},
        {"exp": 9_999_999_999},
        {"roles": ["service_admin"]},
    ):
        yield f"claims changed to {claims}", f"{header}.{segment(issuer.claims(**claims))}.{signature}"
    yield "claims with blanks", f"{header}.{segment(json.dumps(issuer.claims(), indent=1).encode())}.{signature}"
    twice = json.dumps(issuer.claims())[:-1].encode() + b', "sub": "root"}'
    yield "twice the claim", f"{header}.{segment(twice)}.{signature}"


def jwt_with(issuer: MemoryIssuer, header_more: dict[str, Any]) -> str:
    return signed_with(issuer, issuer.claims(), header_more)


def signed_with(issuer: MemoryIssuer, claims: dict[str, Any], header: dict[str, Any] | None = None) -> str:
    """A token whose signature holds, with a header and claims that no library would write."""
    key = issuer.keys["k1"][1]
    assert isinstance(key, RSAPrivateKey)
    signed = f"{segment({'alg': 'RS256', 'kid': 'k1', **(header or {})})}.{segment(claims)}"
    return f"{signed}.{segment(key.sign(signed.encode(), PKCS1v15(), SHA256()))}"


FORGERIES = dict(forgeries(MemoryIssuer(FakeRuntime())))


def test_there_are_forgeries_by_the_hundred() -> None:
    assert len(FORGERIES) > 170


@pytest.mark.parametrize("forgery", FORGERIES)
async def test_a_forgery_is_refused_and_quoted_nowhere(forgery: str, caplog: pytest.LogCaptureFixture) -> None:
    issuer, token = MemoryIssuer(FakeRuntime()), FORGERIES[forgery]
    authenticator = trusting([issuer], algorithms=["RS256", "RS384", "PS256", "ES256", "EdDSA"], roles_claim="roles")
    with caplog.at_level(logging.DEBUG), pytest.raises(NotAuthorized) as refused:
        await who(authenticator, token)
    for part in filter(lambda part: len(part) > 8, token.split(".")):
        assert part not in str(refused.value)
        assert part not in caplog.text
    assert set(issuer.asked) <= {f"{URL}/.well-known/openid-configuration", f"{URL}/keys"}


def foreign(issuer: MemoryIssuer) -> Iterator[tuple[str, str]]:
    """What does not claim to be the issuer's, or is no token at all."""
    for other in (
        f"{URL}/", URL.upper(), f"{URL} ", f" {URL}", "https://id.example.org", "id.example.org/pool", "", "arco",
        "https://id.example.org/pool%2f", "https://id.example.org:443/pool", "http://id.example.org/pool", f"{URL}\0",
        "https://evil.example.org/pool", f"{URL}?x", f"{URL}#x", 7, [URL], {"iss": URL},
    ):  # fmt: skip
        document = issuer.claims(iss=other)
        signed = f"{segment({'alg': 'RS256', 'kid': 'k1'})}.{segment(document)}"
        yield f"iss {other!r}", f"{signed}.AAAA"
    good = issuer.token()
    header, payload, signature = good.split(".")
    yield "no issuer", f"{header}.{segment({'sub': 'ada'})}.{signature}"
    yield "an encrypted token", f"{header}.AA.AA.{payload}.{signature}"
    yield "four parts", f"{good}.AA"
    yield "two parts", f"{header}.{payload}"
    yield "no signature", f"{header}.{payload}."
    yield "no claims", f"{header}..{signature}"
    yield "no header", f".{payload}.{signature}"
    yield "dots", ".."
    yield "many dots", "." * 9000
    yield "huge", issuer.token(more="x" * MAX_TOKEN)
    yield "a huge header", issuer.token(headers={"more": "x" * 2000})
    yield "nested claims", f"{header}.{segment(b'[' * 9000)}.{signature}"
    yield "nested header", f"{segment(b'{' + b'{' * 700)}.{payload}.{signature}"
    yield "a token in a token", f"{header}.{segment(good)}.{signature}"
    yield "a list as claims", f"{header}.{segment([issuer.claims()])}.{signature}"
    yield "a list as header", f"{segment([{'alg': 'RS256'}])}.{payload}.{signature}"
    yield "no JSON", f"{header}.{segment(b'sub=ada')}.{signature}"
    for name, claims in {
        "NaN": f'{{"iss": "{URL}", "exp": NaN}}'.encode(),
        "a lone surrogate": b'{"iss": "\\ud800"}',
        "no UTF-8": b'{"iss": "\xff"}',
    }.items():
        yield name, f"{header}.{segment(claims)}.{signature}"
    yield "standard base64", f"{header}.{payload}.{'+/' * 128}"
    yield "padded", f"{good}="
    yield "blanks within", f"{header}. {payload}.{signature}"
    yield "a JSON serialisation", json.dumps({"payload": payload, "protected": header, "signature": signature})


FOREIGN = dict(foreign(MemoryIssuer(FakeRuntime())))


@pytest.mark.parametrize("token", FOREIGN)
async def test_what_is_no_token_of_the_issuer_is_left_to_others_and_costs_no_request(token: str) -> None:
    issuer = MemoryIssuer(FakeRuntime())
    authenticator = trusting([issuer])
    assert await who(authenticator, FOREIGN[token]) is None
    assert issuer.asked == []


async def test_a_nested_header_of_the_issuers_is_refused(issuer: MemoryIssuer) -> None:
    nested = b'{"alg":"RS256","kid":"k1","a":' + b"[" * 350 + b"]" * 350 + b"}"
    token = f"{segment(nested)}.{segment(issuer.claims())}.AAAA"
    with pytest.raises(NotAuthorized):
        await who(trusting([issuer]), token)
