"""A real issuer, which changes its keys while tokens come in."""

import asyncio
from collections.abc import AsyncIterator

import jwt
import pytest

from arco_catalog.authentication.authenticator import AuthenticationResult, RequestCredentials
from arco_catalog.authentication.jwks import REFRESH_MS, RETRY_MS
from arco_catalog.authentication.oidc import OidcAuthenticator
from arco_catalog.authentication.setup import load_authentication
from arco_catalog.iceberg.errors import NotAuthorized
from arco_catalog.planning.access import Identity
from arco_catalog.state.runtime import SystemRuntime
from tests.support.oidc_provider import OidcProvider, oidc_provider

pytestmark = pytest.mark.needs("node", "npm")
AUDIENCE = "arco-of-this-test"


class Ahead(SystemRuntime):
    """The machine's clock, which a test may set ahead instead of waiting."""

    def __init__(self) -> None:
        self.ahead_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.ahead_ms

    def clocks(self) -> tuple[int, int]:
        return self.now_ms(), self.boot_ms()


@pytest.fixture
async def provider() -> AsyncIterator[OidcProvider]:
    async with oidc_provider(AUDIENCE) as running:
        yield running


@pytest.fixture
def runtime() -> Ahead:
    return Ahead()


@pytest.fixture
async def authenticator(provider: OidcProvider, runtime: Ahead) -> AsyncIterator[OidcAuthenticator]:
    """As an operator's variables make it."""
    environment = {
        "ARCO_AUTH": "oidc",
        "ARCO_OIDC_ISSUERS": provider.issuer,
        "ARCO_OIDC_AUDIENCES": AUDIENCE,
        "ARCO_OIDC_ROLES_CLAIM": "roles",
        "ARCO_OIDC_LOOPBACK_HTTP": "true",
    }
    chosen = load_authentication(environment, "r1", runtime)
    assert chosen is not None
    assert chosen.oidc is not None
    yield chosen.oidc
    await chosen.close()


async def who(authenticator: OidcAuthenticator, token: str) -> AuthenticationResult | None:
    return await authenticator.authenticate(RequestCredentials({"authorization": f"Bearer {token}"}))


async def test_tokens_of_a_real_issuer_are_taken(provider: OidcProvider, authenticator: OidcAuthenticator) -> None:
    found = await who(authenticator, await provider.token())
    identity = Identity(f"{provider.issuer} ada", frozenset({"reader", "writer"}), issued=True)
    assert found == AuthenticationResult("r1", identity, "ada")


async def test_keys_are_changed_under_load_and_no_request_fails(
    provider: OidcProvider, authenticator: OidcAuthenticator, runtime: Ahead
) -> None:
    signed_by: dict[str, int] = {}
    stop = asyncio.Event()

    async def requests() -> None:
        for _ in range(2_000):
            if stop.is_set():
                return
            token = await provider.token()
            assert await who(authenticator, token) is not None
            key = str(jwt.get_unverified_header(token)["kid"])
            signed_by[key] = signed_by.get(key, 0) + 1

    async def changes() -> None:
        signing = "key-1"
        for kind in ("RS256", "ES256", "RS256"):
            await seen(signing)
            await provider.change_keys(f"publish {kind}")
            runtime.ahead_ms += RETRY_MS
            signing = await provider.change_keys("sign")
        await seen(signing)
        stop.set()

    async def seen(key: str) -> None:
        """Returns when a few requests had tokens by a key."""
        for _ in range(60_000):
            if signed_by.get(key, 0) >= 5:
                return
            await asyncio.sleep(0.01)
        raise AssertionError(f"no tokens by {key}")

    async with asyncio.timeout(900), asyncio.TaskGroup() as tasks:
        for _ in range(4):
            tasks.create_task(requests())
        tasks.create_task(changes())
    assert set(signed_by) == {"key-1", "key-2", "key-3", "key-4"}


async def test_a_key_that_is_replaced_at_once_ends_the_tokens_that_it_signed(
    provider: OidcProvider, authenticator: OidcAuthenticator, runtime: Ahead
) -> None:
    old = await provider.token()
    assert await who(authenticator, old) is not None
    await provider.change_keys("replace ES256")
    runtime.ahead_ms += RETRY_MS
    assert await who(authenticator, await provider.token()) is not None
    with pytest.raises(NotAuthorized, match="a key that its issuer does not have"):
        await who(authenticator, old)


async def test_tokens_are_taken_while_the_issuer_is_down(
    provider: OidcProvider, authenticator: OidcAuthenticator, runtime: Ahead
) -> None:
    seen, unseen = await provider.token(), await provider.token()
    assert await who(authenticator, seen) is not None
    provider.process.kill()
    await provider.process.wait()
    runtime.ahead_ms += REFRESH_MS
    for token in (seen, unseen):
        assert await who(authenticator, token) is not None
