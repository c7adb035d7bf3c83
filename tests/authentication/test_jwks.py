"""An issuer's keys: asked for seldom, in the background, and never by somebody else's choice."""

import asyncio
import json
import logging
from typing import Any

import pytest

from arco_catalog.authentication.authenticator import RequestCredentials
from arco_catalog.authentication.jwks import (
    BACKGROUND_RETRY_MS,
    MAX_CANDIDATES,
    MAX_KEYS,
    MAX_KEYS_BYTES,
    REFRESH_MS,
    RETRY_MS,
    STALE_MS,
    PublicKey,
    discovered_uri,
    parse_keys,
)
from arco_catalog.iceberg.errors import NotAuthorized, Unavailable
from arco_catalog.iceberg.json import dumps
from storage_backends import StoreDenied
from tests.authentication.issuer import URL, MemoryIssuer, private_key, public_jwk, trusting
from tests.support.fake_runtime import FakeRuntime
from tools.support import worst_callers

TWO_DOCUMENTS = 2
"""What one look costs: the discovery document and the keys."""


@pytest.fixture
def issuer() -> MemoryIssuer:
    return MemoryIssuer(FakeRuntime())


async def background() -> None:
    """Lets tasks run that wait for nothing."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_nothing_is_asked_before_a_token_is_presented_and_then_once(issuer: MemoryIssuer) -> None:
    keys = issuer.source()
    assert issuer.asked == []
    found = await asyncio.gather(*(keys.find_all("k1", "RS256") for _ in range(50)))
    assert len({key.id for keys in found for key in keys}) == 1
    assert issuer.asked == [f"{URL}/.well-known/openid-configuration", f"{URL}/keys"]


async def test_old_keys_are_renewed_in_the_background_while_they_serve_on(issuer: MemoryIssuer) -> None:
    keys = issuer.source()
    await keys.find_all("k1", "RS256")
    issuer.runtime.ms += REFRESH_MS - 1
    await keys.find_all("k1", "RS256")
    await background()
    assert len(issuer.asked) == TWO_DOCUMENTS

    issuer.runtime.ms += 1
    issuer.add("k2", number=2)
    assert await keys.find_all("k1", "RS256")
    await background()
    assert len(issuer.asked) == 2 * TWO_DOCUMENTS
    assert await keys.find_all("k2", "RS256")
    assert len(issuer.asked) == 2 * TWO_DOCUMENTS


async def test_remembered_tokens_keep_the_keys_young(issuer: MemoryIssuer) -> None:
    authenticator = trusting([issuer])
    presented = RequestCredentials({"authorization": f"Bearer {issuer.token()}"})
    await authenticator.authenticate(presented)
    issuer.runtime.ms += REFRESH_MS
    await authenticator.authenticate(presented)
    await background()
    assert len(issuer.asked) == 2 * TWO_DOCUMENTS
    await authenticator.close()


async def test_a_new_key_is_asked_for_once_however_many_tokens_name_it(issuer: MemoryIssuer) -> None:
    keys = issuer.source()
    await keys.find_all("k1", "RS256")
    issuer.runtime.ms += RETRY_MS
    issuer.add("k2", number=2)
    found = await asyncio.gather(*(keys.find_all("k2", "RS256") for _ in range(50)))
    assert all(found)
    assert len(issuer.asked) == 2 * TWO_DOCUMENTS


async def test_strangers_cannot_make_us_ask_as_often_as_they_like(issuer: MemoryIssuer) -> None:
    keys = issuer.source()
    for number in range(500):
        assert not await keys.find_all(f"unknown-{number}", "RS256")
        issuer.runtime.ms += RETRY_MS // 100
    assert len(issuer.asked) <= 6 * TWO_DOCUMENTS


async def test_old_keys_serve_on_while_the_issuer_is_down_but_not_for_ever(
    issuer: MemoryIssuer, caplog: pytest.LogCaptureFixture
) -> None:
    keys = issuer.source()
    await keys.find_all("k1", "RS256")
    issuer.down = True
    step = BACKGROUND_RETRY_MS // 2
    with caplog.at_level(logging.WARNING):
        for _ in range(200):
            issuer.runtime.ms += step
            assert await keys.find_all("k1", "RS256")
            await background()
    tries = 200 - REFRESH_MS // step
    assert tries // 2 <= len(issuer.asked) - TWO_DOCUMENTS <= tries // 2 + 1
    assert "nobody answers" in caplog.text

    issuer.runtime.ms += STALE_MS
    for _ in range(50):
        with pytest.raises(Unavailable):
            await keys.find_all("k1", "RS256")
    issuer.down = False
    issuer.runtime.ms += RETRY_MS
    assert await keys.find_all("k1", "RS256")


async def test_an_unknown_key_while_the_issuer_is_down_may_be_good(issuer: MemoryIssuer) -> None:
    keys = issuer.source()
    await keys.find_all("k1", "RS256")
    issuer.down = True
    issuer.runtime.ms += RETRY_MS
    for _ in range(2):
        with pytest.raises(Unavailable):
            await keys.find_all("k2", "RS256")
        assert await keys.find_all("k1", "RS256")
    issuer.down = False
    issuer.runtime.ms += RETRY_MS
    for _ in range(2):
        assert await keys.find_all("k2", "RS256") == []


async def test_an_issuer_that_was_never_reached_is_tried_now_and_then(issuer: MemoryIssuer) -> None:
    issuer.down = True
    keys = issuer.source()
    for _ in range(100):
        with pytest.raises(Unavailable, match="are not available: try again later"):
            await keys.find_all("k1", "RS256")
        issuer.runtime.ms += RETRY_MS // 10
    assert len(issuer.asked) == 10
    issuer.down = False
    issuer.runtime.ms += RETRY_MS
    assert await keys.find_all("k1", "RS256")


async def test_a_clock_that_is_set_back_stops_nothing(issuer: MemoryIssuer) -> None:
    keys = issuer.source()
    await keys.find_all("k1", "RS256")
    issuer.runtime.ms -= 7_200_000
    assert await keys.find_all("k1", "RS256")
    await background()
    issuer.add("k2", number=2)
    issuer.runtime.ms += RETRY_MS
    assert await keys.find_all("k2", "RS256")


async def test_a_request_that_gives_up_does_not_end_what_others_wait_for(issuer: MemoryIssuer) -> None:
    keys = issuer.source()
    first, second = (asyncio.create_task(keys.find_all("k1", "RS256")) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    assert await second is not None
    assert len(issuer.asked) == TWO_DOCUMENTS


async def test_closing_ends_what_is_under_way() -> None:
    issuer = MemoryIssuer(FakeRuntime())
    never = asyncio.Event()

    async def get(url: str, max_bytes: int) -> bytes:
        await never.wait()
        return b""

    issuer.get = get  # type: ignore[method-assign]
    keys = issuer.source()
    waiting = asyncio.create_task(keys.find_all("k1", "RS256"))
    await background()
    await keys.close()
    with pytest.raises(asyncio.CancelledError):
        await waiting


@pytest.mark.parametrize(
    "discovery",
    [
        {},
        {"issuer": URL},
        {"issuer": f"{URL}/", "jwks_uri": f"{URL}/keys"},
        {"issuer": "https://evil.example.org", "jwks_uri": f"{URL}/keys"},
        {"issuer": URL, "jwks_uri": "http://id.example.org/keys"},
        {"issuer": URL, "jwks_uri": "http://127.0.0.1/keys"},
        {"issuer": URL, "jwks_uri": "file:///etc/passwd"},
        {"issuer": URL, "jwks_uri": "https://user:password@id.example.org/keys"},
        {"issuer": URL, "jwks_uri": "https://id.example.org/keys#k"},
        {"issuer": URL, "jwks_uri": "https://id.example.org/ke ys"},
        {"issuer": URL, "jwks_uri": "https:///keys"},
        {"issuer": URL, "jwks_uri": "https://id.example.org:x/keys"},
        {"issuer": URL, "jwks_uri": ["https://id.example.org/keys"]},
        {"issuer": URL, "jwks_uri": "https://id.example.org/keys\r\nx: y"},
    ],
)
async def test_a_discovery_document_that_leads_astray_is_not_followed(
    issuer: MemoryIssuer, discovery: dict[str, Any]
) -> None:
    with pytest.raises((ValueError, StoreDenied)):
        discovered_uri(dumps(discovery), URL)
    issuer.discovery = {"x": 1, **discovery}
    with pytest.raises(Unavailable):
        await issuer.source().find_all("k1", "RS256")
    assert issuer.asked == [f"{URL}/.well-known/openid-configuration"]


def unusable() -> list[dict[str, Any]]:
    rsa, ec = private_key("RS256", 0), private_key("ES256", 0)
    good = public_jwk(rsa, "k1")
    return [
        {},
        {**good, "use": "enc"},
        {**good, "key_ops": ["encrypt"]},
        {**good, "key_ops": "verify"},
        {**good, "kid": None},
        {**good, "kid": 7},
        {**good, "kty": "oct", "k": "c2VjcmV0"},
        {**good, "kty": "none"},
        {**good, "kty": ["RSA"]} | {"kty": None},
        {**good, "n": "AQAB"},
        {**good, "n": None},
        {**good, "e": None},
        {**good, "e": "é"},
        {**good, "e": "AAAA"},
        {**good, "n": "AAAA" * 100},
        {**good, "d": "AQAB"},
        public_jwk(private_key("weak", 0), "k1"),
        {**public_jwk(ec, "k1"), "use": "enc"},
    ]


@pytest.mark.parametrize("jwk", unusable(), ids=lambda jwk: ",".join(f"{k}={str(v)[:8]}" for k, v in jwk.items()))
def test_a_key_that_is_not_for_verifying_is_not_taken(jwk: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="no usable public key for signatures"):
        parse_keys(json.dumps({"keys": [jwk]}).encode())
    good = public_jwk(private_key("RS256", 0), "k2")
    assert [key.id for key in parse_keys(json.dumps({"keys": [jwk, good, 7, None]}).encode())] == ["k2"]


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"keys": {}}', b'{"keys": []}', b"<html>", b"[" * 5000])
def test_what_is_no_set_of_keys_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_keys(body)


def test_endless_sets_of_keys_are_refused() -> None:
    good = public_jwk(private_key("RS256", 0), "k")
    assert len(parse_keys(json.dumps({"keys": [good] * MAX_KEYS}).encode())) == MAX_KEYS
    with pytest.raises(ValueError, match="at most"):
        parse_keys(json.dumps({"keys": [good] * (MAX_KEYS + 1)}).encode())


@pytest.mark.parametrize(
    ("of", "more", "takes"),
    [
        ("RS256", {}, {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}),
        ("RS256", {"alg": "RS256"}, {"RS256"}),
        ("ES256", {}, {"ES256"}),
        ("ES384", {}, {"ES384"}),
        ("ES512", {}, {"ES512"}),
        ("EdDSA", {}, {"EdDSA"}),
        ("Ed448", {}, {"EdDSA"}),
        ("RS256", {"alg": "HS256"}, set()),
        ("ES256", {"alg": "RS256"}, set()),
    ],
)
def test_a_key_takes_only_the_algorithms_that_it_is_for(of: str, more: dict[str, Any], takes: set[str]) -> None:
    key = PublicKey("k", public_jwk(private_key(of, 0), "k", **more))
    every = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
    assert {algorithm for algorithm in every if key.takes(algorithm)} == takes


async def test_two_keys_of_one_name_are_told_apart_by_their_algorithms(issuer: MemoryIssuer) -> None:
    keys = [public_jwk(private_key(of, 0), "k1") for of in ("ES256", "RS256")]
    issuer.key_set = json.dumps({"keys": keys}).encode()
    source = issuer.source()
    found = [await source.find_all("k1", algorithm) for algorithm in ("ES256", "RS256", "EdDSA")]
    assert [[key.jwk["kty"] for key in each] for each in found] == [["EC"], ["RSA"], []]


async def test_each_of_a_few_keys_with_one_name_and_type_verifies(issuer: MemoryIssuer) -> None:
    many = [public_jwk(private_key("RS256", number), "k1") for number in range(MAX_CANDIDATES + 1)]
    issuer.key_set = json.dumps({"keys": many}).encode()

    async def is_accepted(number: int) -> bool:
        issuer.add("k1", "RS256", number)
        try:
            await trusting([issuer]).authenticate(RequestCredentials({"authorization": f"Bearer {issuer.token()}"}))
        except NotAuthorized:
            return False
        return True

    accepted = [await is_accepted(number) for number in range(len(many))]
    assert accepted == [*[True] * MAX_CANDIDATES, False]


async def test_a_malformed_key_makes_tokens_invalid_and_nothing_worse(issuer: MemoryIssuer) -> None:
    point = {**public_jwk(private_key("ES256", 0), "k2"), "x": "AAAA", "y": "AAAA"}
    issuer.key_set = json.dumps({"keys": [point]}).encode()
    issuer.add("k2", "ES256")
    with pytest.raises(NotAuthorized):
        await trusting([issuer]).authenticate(RequestCredentials({"authorization": f"Bearer {issuer.token('k2')}"}))


async def test_a_withdrawn_key_is_counted(issuer: MemoryIssuer) -> None:
    keys = issuer.source()
    await keys.find_all("k1", "RS256")
    issuer.add("k2", number=2)
    issuer.runtime.ms += RETRY_MS
    await keys.find_all("k2", "RS256")
    assert keys.withdrawn == 0
    del issuer.keys["k1"]
    issuer.runtime.ms += RETRY_MS
    assert not await keys.find_all("k3", "RS256")
    assert keys.withdrawn == 1
    assert not await keys.find_all("k1", "RS256")


@pytest.mark.parametrize("name", worst_callers.KEY_SETS)
def test_the_worst_sets_of_keys_are_read_or_refused(name: str) -> None:
    body = worst_callers.KEY_SETS[name]()
    if name == "as many keys as a set may have":
        assert len(body) <= MAX_KEYS_BYTES
        assert len(parse_keys(body)) == MAX_KEYS
    else:
        with pytest.raises(ValueError, match=r"key|depth|recursion|JSON|data|UTF|character"):
            parse_keys(body)
