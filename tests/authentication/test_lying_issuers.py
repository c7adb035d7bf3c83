"""Issuers whose documents are wrong, odd, slow or changing: a sound token alone is accepted."""

import asyncio
import base64
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from hashlib import sha256
from typing import Any

import pytest
from aiohttp import web

from arco_catalog.authentication import jwks
from arco_catalog.authentication.jwks import (
    ALGORITHMS,
    MAX_KEYS_BYTES,
    REFRESH_MS,
    RETRY_MS,
    IssuerKeys,
    over_https,
    parse_keys,
)
from arco_catalog.iceberg.errors import NotAuthorized, Unavailable
from storage_backends.wire.fetch import fetch
from storage_backends.wire.pool import Timeouts
from tests.authentication.issuer import MemoryIssuer, private_key, public_jwk, trusting
from tests.authentication.test_oidc import segment
from tests.authentication.test_real_issuer import who
from tests.support.fake_runtime import FakeRuntime
from tests.support.stub_server import stub_server

ODD: tuple[Any, ...] = (
    *(None, 0, 1, -1, 1.5, True, "", "A", "AAAA", "AQAB", "\u00e9", "=", "+/", "x" * 5_000),
    *([], ["AQAB"], [[]], {}, {"a": 1}, 10**300),
)
FIELDS = ("kty", "kid", "use", "alg", "key_ops", "n", "e", "crv", "x", "y", "d", "x5c", "oth", "k")
DECISIVE = {
    "RS256": {"kty", "kid", "use", "alg", "n", "e"},
    "ES256": {"kty", "kid", "use", "alg", "crv", "x", "y"},
    "EdDSA": {"kty", "kid", "use", "alg", "crv", "x"},
}


async def outcome(issuer: MemoryIssuer, token: str) -> str:
    """What becomes of a token: the name of the refusal, or `accepted`."""
    authenticator = trusting([issuer], algorithms=[*ALGORITHMS])
    try:
        return "foreign" if await who(authenticator, token) is None else "accepted"
    except (NotAuthorized, Unavailable) as refused:
        return type(refused).__name__
    finally:
        await authenticator.close()


@pytest.mark.parametrize("algorithm", DECISIVE)
async def test_a_field_of_a_key_that_is_odd_spoils_no_other_key_and_is_never_overlooked(algorithm: str) -> None:
    outcomes: Counter[str] = Counter()
    for field in FIELDS:
        for value in ODD:
            issuer = MemoryIssuer(FakeRuntime(), keys={"k1": (algorithm, private_key(algorithm, 0))})
            issuer.add("k2", number=3)
            good, sound = public_jwk(private_key(algorithm, 0), "k1"), public_jwk(private_key("RS256", 3), "k2")
            issuer.key_set = json.dumps({"keys": [{**good, field: value}, sound]}).encode()
            found = await outcome(issuer, issuer.token("k1"))
            outcomes[found] += 1
            assert found in ("accepted", "NotAuthorized"), (field, value)
            if field in DECISIVE[algorithm] and found == "accepted":
                assert (field, value) == ("e", good.get("e"))  # the key as it was
            assert await outcome(issuer, issuer.token("k2")) == "accepted", (field, value)
    assert outcomes.total() == len(FIELDS) * len(ODD)
    assert outcomes["NotAuthorized"] > len(ODD) * (len(DECISIVE[algorithm]) - 1)


def number(value: int, size: int) -> str:
    return base64.urlsafe_b64encode(value.to_bytes(size, "big")).decode().rstrip("=")


def odd_number(bits: int) -> int:
    return int.from_bytes(sha256(b"n").digest() * (bits // 256), "big") | 1 << bits - 1 | 1


def padded(message: bytes, size: int) -> bytes:
    """A message as PKCS #1 signs it: the signature for an exponent of 1."""
    digest = bytes.fromhex("3031300d060960864801650304020105000420") + sha256(message).digest()
    return b"\0\1" + b"\xff" * (size - len(digest) - 3) + b"\0" + digest


def cube_root(message: bytes) -> bytes:
    """A forged signature for an exponent of 3, at a verifier that reads no further than the digest."""
    start = padded(message, 256)[:2] + b"\xff" * 8 + padded(message, 256)[-52:]
    wanted, low, high = int.from_bytes(start.ljust(256, b"\0"), "big"), 0, 1 << 700
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if middle**3 < wanted else (low, middle)
    return low.to_bytes(256, "big")


Sign = Callable[[bytes], bytes]
MODULUS = number(odd_number(2_048), 256)
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
POINT = public_jwk(private_key("ES256", 0), "k1")


def unsound() -> Iterator[tuple[str, dict[str, Any], str, Sign]]:
    """Keys, and signatures that a careless verifier would accept for them."""
    for exponent in (0, 1, 2, 4):
        key = {"kty": "RSA", "n": MODULUS, "e": number(exponent, 1)}
        yield f"an exponent of {exponent}", key, "RS256", lambda message: padded(message, 256)
    yield "a cube root", {"kty": "RSA", "n": MODULUS, "e": "Aw"}, "RS256", cube_root
    even = {"kty": "RSA", "n": number(1 << 2_047, 256), "e": "AQAB"}
    yield "a power of two", even, "RS256", lambda message: padded(message, 256)
    for bits, exponent_bits in (
        (2_048, 2_047),
        (3_072, 3_071),
        (2_048, 72),
        (16_392, 17),
        (100_000, 17),
        (1_400_000, 64),
    ):
        key = {
            "kty": "RSA",
            "n": number(odd_number(bits // 256 * 256 + 256), bits // 8 + 64),
            "e": number(1 << exponent_bits | 1, exponent_bits // 8 + 1),
        }
        yield f"{bits} bits to the power of {exponent_bits} bits", key, "RS256", lambda message: b"\1" * 256
    zero = {"kty": "EC", "crv": "P-256", "x": number(0, 32), "y": number(0, 32)}
    yield "no point", zero, "ES256", lambda message: b"\0" * 64
    for name, signature in {
        "zeros": b"\0" * 64,
        "ones": number(1, 32).encode() * 2,
        "the order": ORDER.to_bytes(32, "big") * 2,
        "one and the order": (1).to_bytes(32, "big") + ORDER.to_bytes(32, "big"),
        "DER": bytes.fromhex("3006020100020100"),
        "one byte": b"\0",
        "8 KB": b"\1" * 8_000,
    }.items():
        yield f"a signature of {name}", POINT, "ES256", lambda message, signature=signature: signature  # type: ignore[misc]
    yield "a key of HMAC", {"kty": "oct", "k": "c2VjcmV0"}, "HS256", lambda message: b"\0" * 32
    yield (
        "a key of HMAC for RSA",
        {"kty": "RSA", "n": MODULUS, "e": "AQAB", "k": "AA"},
        "HS256",
        lambda message: b"\0" * 32,
    )
    for curve, size, identity in (("Ed25519", 32, 1), ("Ed25519", 32, 2**255 - 18), ("Ed448", 57, 1)):
        point = identity.to_bytes(size, "little")
        key = {"kty": "OKP", "crv": curve, "x": base64.urlsafe_b64encode(point).decode().rstrip("=")}
        signature = (1).to_bytes(size, "little") + bytes(size)
        yield f"the identity {identity % 256} of {curve}", key, "EdDSA", lambda message, signature=signature: signature  # type: ignore[misc]
    yield "another curve", {**POINT, "crv": "secp256k1"}, "ES256", lambda message: b"\1" * 64
    yield "a curve of another algorithm", {**POINT, "crv": "P-384"}, "ES384", lambda message: b"\1" * 96


UNSOUND = {name: (key, algorithm, sign) for name, key, algorithm, sign in unsound()}


@pytest.mark.parametrize("name", UNSOUND)
async def test_an_unsound_key_or_signature_is_never_accepted(name: str) -> None:
    key, algorithm, sign = UNSOUND[name]
    issuer = MemoryIssuer(FakeRuntime())
    issuer.key_set = json.dumps({"keys": [{**key, "kid": "k1"}, public_jwk(private_key("RS256", 3), "k2")]}).encode()
    signed = f"{segment({'alg': algorithm, 'kid': 'k1', 'typ': 'JWT'})}.{segment(issuer.claims())}"
    token = f"{signed}.{segment(sign(signed.encode()))}"

    assert len(issuer.key_set) <= MAX_KEYS_BYTES
    assert await outcome(issuer, token) == "NotAuthorized"


def test_an_rsa_key_whose_signatures_take_long_to_check_is_left_out() -> None:
    for modulus, exponent, usable in ((256, 3, True), (2_048, 8, True), (2_049, 3, False), (384, 9, False)):
        n, e = (number(int.from_bytes(b"\xff" * size, "big"), size) for size in (modulus, exponent))
        key = {"kid": "k1", "kty": "RSA", "n": n, "e": e}
        body = json.dumps({"keys": [key]}).encode()
        if usable:
            assert len(parse_keys(body)) == 1
        else:
            with pytest.raises(ValueError, match="no usable public key"):
                parse_keys(body)


@pytest.mark.parametrize("keys", [[], [{"kty": "oct", "k": "AA", "kid": "k1"}], [{"kty": "AKP", "kid": "k9"}]], ids=str)
async def test_an_issuer_that_withdraws_all_of_its_keys_ends_its_tokens(keys: list[object]) -> None:
    issuer = MemoryIssuer(FakeRuntime())
    authenticator, token = trusting([issuer]), issuer.token()
    assert await who(authenticator, token) is not None
    issuer.key_set = json.dumps({"keys": keys}).encode()
    issuer.runtime.ms += REFRESH_MS
    unknown = f"{segment({'alg': 'RS256', 'kid': 'k2'})}.{token.partition('.')[2]}"
    for refused in (unknown, token):  # for an unknown key the keys are read at once
        with pytest.raises(Unavailable):
            await who(authenticator, refused)
    issuer.key_set = None
    issuer.runtime.ms += RETRY_MS
    assert await who(authenticator, token) is not None
    await authenticator.close()


@pytest.mark.parametrize(
    "claims",
    [
        {"events": {"http://schemas.openid.net/event/backchannel-logout": {}}, "sid": "s"},
        {"events": None},
        {"cnf": {"jkt": "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"}},
        {"cnf": {"x5t#S256": "bwcK0esc3ACC3DB2Y5_lESsXE8o9ltc05O89jdN-dg2"}},
        {"cnf": {}},
    ],
    ids=str,
)
async def test_a_token_that_is_not_for_every_bearer_is_refused(claims: dict[str, Any]) -> None:
    issuer = MemoryIssuer(FakeRuntime())
    token = issuer.token(**{name: {} if value is None else value for name, value in claims.items()})

    with pytest.raises(NotAuthorized, match=r"The token has the claim '(events|cnf)'"):
        await who(trusting([issuer]), token)


async def test_keys_that_change_with_each_look_are_read_no_more_often_and_each_token_counts_by_the_present_one() -> (
    None
):
    issuer = MemoryIssuer(FakeRuntime())
    authenticator = trusting([issuer])
    tokens = []
    for look in range(50):
        issuer.keys = {"k1": ("RS256", private_key("RS256", look % 2))}
        issuer.runtime.ms += REFRESH_MS
        tokens.append(issuer.token())
        assert await _in_the_end(lambda: who(authenticator, tokens[-1])) is not None
        if look:
            with pytest.raises(NotAuthorized):
                await who(authenticator, tokens[-2])
    assert len(issuer.asked) <= 2 * 51
    await authenticator.close()


async def _in_the_end(work: Callable[[], Awaitable[object]]) -> object:
    """The result, once keys that are read in the background are there."""
    for _ in range(50):
        try:
            return await work()
        except NotAuthorized:
            await asyncio.sleep(0)
    return await work()


Answer = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


async def _redirected(request: web.BaseRequest) -> web.StreamResponse:
    return web.Response(status=302, headers={"Location": "/good"})


async def _slow(request: web.BaseRequest) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(b" ")
        await asyncio.sleep(0.01)


async def _endless(request: web.BaseRequest) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(b" " * 65_536)


async def _claimed(request: web.BaseRequest) -> web.StreamResponse:
    return web.Response(body=b"{}", headers={"Content-Encoding": "gzip"})


async def _partial(request: web.BaseRequest) -> web.StreamResponse:
    return web.Response(status=206, body=_good_keys())


async def _page(request: web.BaseRequest) -> web.StreamResponse:
    return web.Response(text="<html>Sign in</html>", content_type="text/html")


def _good_keys() -> bytes:
    return json.dumps({"keys": [public_jwk(private_key("RS256", 0), "k1")]}).encode()


@pytest.mark.parametrize("which", ["discovery", "keys"])
@pytest.mark.parametrize("answer", [_redirected, _slow, _endless, _claimed, _partial, _page])
async def test_documents_that_do_not_come_as_they_should_are_not_used(
    which: str, answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jwks, "fetch", partial(fetch, timeouts=Timeouts(5.0, 0.3, 0.3)))
    requested: list[str] = []

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        requested.append(request.path)
        here = f"http://{request.host}"
        if request.path == "/.well-known/openid-configuration":
            document = {"issuer": here, "jwks_uri": f"{here}/keys"}
            return await answer(request) if which == "discovery" else web.json_response(document)
        return await answer(request) if request.path == "/keys" else web.Response(body=_good_keys())

    runtime = FakeRuntime()
    async with stub_server(handle) as server:
        get = over_https(runtime.now_ms, plain_loopback=True)
        keys = IssuerKeys(server.uri, get, runtime.now_ms, plain_loopback=True)
        with pytest.raises(Unavailable):
            await keys.find_all("k1", "RS256")

    assert "/good" not in requested
    assert len(requested) == (1 if which == "discovery" else 2)
