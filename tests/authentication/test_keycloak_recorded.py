"""What Keycloak sent when it was recorded (`record_keycloak.py`) is accepted and refused as when it runs."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import jwt
import pytest

from arco_catalog.authentication.jwks import (
    MAX_DISCOVERY_BYTES,
    MAX_KEYS_BYTES,
    REFRESH_MS,
    RETRY_MS,
    IssuerKeys,
    parse_keys,
)
from arco_catalog.authentication.oidc import Issuer, OidcAuthenticator
from arco_catalog.iceberg.errors import NotAuthorized
from arco_catalog.iceberg.json import dumps
from tests.authentication.record_keycloak import RECORDED
from tests.authentication.test_real_issuer import who
from tests.support.fake_runtime import FakeRuntime
from tests.support.keycloak_realm import AUDIENCE, BUILT_IN_ROLES, OTHER_ROLES

RECORDING: dict[str, Any] = json.loads(RECORDED.read_text())
TOKENS: dict[str, str] = RECORDING["tokens"]


class Replay:
    """The realm's documents, with the keys of one of the three times at which they were recorded."""

    def __init__(self) -> None:
        self.runtime = FakeRuntime()
        self.runtime.ms = RECORDING["at_ms"]
        self.time = 0

    async def get(self, url: str, max_bytes: int) -> bytes:
        discovery, issuer = RECORDING["discovery"], RECORDING["issuer"]
        documents = {
            f"{issuer}/.well-known/openid-configuration": (discovery, MAX_DISCOVERY_BYTES),
            discovery["jwks_uri"]: (RECORDING["keys"][self.time], MAX_KEYS_BYTES),
        }
        document, limit = documents[url]
        body = dumps(document)
        assert (max_bytes, len(body) < limit) == (limit, True)
        return body


@pytest.fixture
def replay() -> Replay:
    return Replay()


@pytest.fixture
async def authenticator(replay: Replay) -> AsyncIterator[OidcAuthenticator]:
    keys = IssuerKeys(RECORDING["issuer"], replay.get, replay.runtime.now_ms, plain_loopback=True)
    algorithms = ("RS256", "ES256", "EdDSA")
    issuer = Issuer(RECORDING["issuer"], "r1", (AUDIENCE,), algorithms, "sub", "realm_access.roles")
    made = OidcAuthenticator([(issuer, keys)], replay.runtime.now_ms)
    yield made
    await made.close()


@pytest.mark.parametrize(
    ("token", "user", "roles"),
    [("spark", "service-account-spark", {"writer"}), ("ada", "ada", {"reader", *OTHER_ROLES})],
)
async def test_tokens_of_clients_and_users_are_accepted_with_their_roles(
    authenticator: OidcAuthenticator, token: str, user: str, roles: set[str]
) -> None:
    found = await who(authenticator, TOKENS[token])

    assert found is not None
    assert found.identity.principal == f"{RECORDING['issuer']} {RECORDING['users'][user]}"
    assert found.identity.activated == frozenset(roles | BUILT_IN_ROLES)
    assert "arco-catalog" in found.scopes


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        ("elsewhere", "not for this server"),
        ("audienceless", "lacks a required claim"),
        ("lightweight", "lacks a required claim"),
        ("id", "not for this server"),
        ("refresh", "an algorithm that is not allowed"),
    ],
)
async def test_tokens_for_others_are_refused(authenticator: OidcAuthenticator, token: str, reason: str) -> None:
    with pytest.raises(NotAuthorized, match=reason):
        await who(authenticator, TOKENS[token])


async def test_a_token_of_another_realm_is_left_to_others(authenticator: OidcAuthenticator) -> None:
    assert await who(authenticator, TOKENS["other"]) is None


async def test_a_key_that_is_replaced_counts_while_it_is_published(
    replay: Replay, authenticator: OidcAuthenticator
) -> None:
    old, new = TOKENS["long-lived"], TOKENS["second"]
    first = await who(authenticator, old)
    with pytest.raises(NotAuthorized, match="a key that its issuer does not have"):
        await who(authenticator, new)
    replay.time = 1
    replay.runtime.ms += RETRY_MS
    assert await who(authenticator, new) == first
    assert await who(authenticator, old) == first
    replay.time = 2
    replay.runtime.ms += REFRESH_MS
    for _ in range(20):  # the keys are read in the background
        await who(authenticator, new)
        await asyncio.sleep(0)
    with pytest.raises(NotAuthorized, match="a key that its issuer does not have"):
        await who(authenticator, old)
    assert await who(authenticator, new) == first


@pytest.mark.parametrize(
    ("off_s", "reason"), [(-61, "not valid yet"), (-60, None), (359, None), (360, "expired")], ids=str
)
async def test_clocks_may_be_a_minute_off(
    replay: Replay, authenticator: OidcAuthenticator, off_s: int, reason: str | None
) -> None:
    replay.runtime.ms = (jwt.decode(TOKENS["spark"], options={"verify_signature": False})["iat"] + off_s) * 1_000
    if reason is None:
        assert await who(authenticator, TOKENS["spark"]) is not None
    else:
        with pytest.raises(NotAuthorized, match=reason):
            await who(authenticator, TOKENS["spark"])


def test_keys_for_encryption_are_left_out() -> None:
    published = [parse_keys(dumps(keys)) for keys in RECORDING["keys"]]

    assert [len(keys) for keys in published] == [1, 2, 1]
    assert all(key.jwk["use"] == "sig" for keys in published for key in keys)
    assert any(key["use"] == "enc" for key in RECORDING["keys"][0]["keys"])
