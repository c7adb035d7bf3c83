"""Tokens of Entra ID: fetched once, kept while they are valid, and an error when there are none."""

import asyncio
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import azure.identity
import pytest
from aiohttp import web
from azure.core.credentials import AccessToken
from azure.core.exceptions import ClientAuthenticationError, ServiceRequestError

from storage_backends import ABSENT, Applied, StoreDenied, StoreUnavailable
from storage_backends.azure.config import AzureConfig, ClientKind, ClientSecret, DefaultChain
from storage_backends.azure.credentials import REFRESH_MS, SCOPE, EntraTokens
from storage_backends.azure.store import AzureStore
from storage_backends.clock import system_now_ms
from tests.support.certificates import write_certificate
from tests.support.stub_server import Handle, stub_server

START_MS = 1_795_262_400_000
HOUR_MS = 3_600_000


@dataclass
class Entra:
    """Returns tokens that are valid for an hour, or raises the given error."""

    now_ms: int = START_MS
    made_with: list[tuple[str, ...]] = field(default_factory=list)
    scopes: list[str] = field(default_factory=list)
    failure: Exception | None = None

    def make(self, *arguments: str, **options: str) -> "Entra":
        self.made_with.append((*arguments, *options.values()))
        return self

    def get_token(self, *scopes: str) -> AccessToken:
        if self.failure is not None:
            raise self.failure
        self.scopes += scopes
        return AccessToken(f"token {len(self.scopes)}", (self.now_ms + HOUR_MS) // 1_000)


@pytest.fixture
def entra(monkeypatch: pytest.MonkeyPatch) -> Entra:
    entra = Entra()
    for name in ("ClientSecretCredential", "DefaultAzureCredential"):
        monkeypatch.setattr(azure.identity, name, entra.make)
    return entra


def tokens(entra: Entra) -> EntraTokens:
    return EntraTokens(ClientSecret("tenant", "client", "secret", "authority"), lambda: entra.now_ms)


@asynccontextmanager
async def azure_over_tls(answer: Handle, folder: Path, client: ClientKind) -> AsyncIterator[AzureStore]:
    """A store with tokens of Entra ID, at a server whose responses the function makes."""
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    write_certificate(certificate, key, "127.0.0.1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    async with stub_server(answer, context) as server:
        identity = ClientSecret("tenant", "client", "secret")
        config = AzureConfig("account", identity, server.uri, client, ca_bundle=str(certificate))
        store = AzureStore("container", config=config)
        try:
            yield store
        finally:
            await store.close()


async def test_many_requests_ask_once(entra: Entra) -> None:
    source = tokens(entra)

    held = await asyncio.gather(*(source.current() for _ in range(5)))

    assert {each.token for each in held} == {"token 1"}
    assert entra.scopes == [SCOPE]
    assert entra.made_with == [("tenant", "client", "secret", "authority")]
    assert "token 1" not in f"{held[0]}"


async def test_a_token_is_renewed_before_it_expires(entra: Entra) -> None:
    source = tokens(entra)
    await source.current()
    entra.now_ms += HOUR_MS - REFRESH_MS
    assert (await source.current()).token == "token 1"
    entra.now_ms += 1

    assert (await source.current()).token == "token 2"


@pytest.mark.parametrize("failure", [ClientAuthenticationError("no"), ServiceRequestError("no")])
async def test_a_token_that_is_still_good_outlives_a_failure(entra: Entra, failure: Exception) -> None:
    source = tokens(entra)
    await source.current()
    entra.now_ms, entra.failure = entra.now_ms + HOUR_MS - 1, failure
    assert (await source.current()).token == "token 1"
    entra.now_ms += 1

    with pytest.raises((StoreDenied, StoreUnavailable)):
        await source.current()


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (ClientAuthenticationError("no such secret"), StoreDenied),
        (ValueError("no such tenant"), StoreDenied),
        (ServiceRequestError("no route"), StoreUnavailable),
    ],
)
async def test_a_missing_token_is_reported(entra: Entra, failure: Exception, error: type[Exception]) -> None:
    entra.failure = failure

    with pytest.raises(error, match=str(failure)):
        await EntraTokens(DefaultChain(), lambda: START_MS).current()


async def test_without_azure_identity_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "azure.identity", None)

    with pytest.raises(StoreDenied, match="extra 'azure' of arco-catalog"):
        await EntraTokens(DefaultChain(), lambda: START_MS).current()


async def test_a_real_credential_refuses_a_tenant_that_cannot_be() -> None:
    with pytest.raises(StoreDenied, match="tenant"):
        await EntraTokens(ClientSecret("a tenant/", "client", "secret"), lambda: START_MS).current()


async def test_the_parts_of_a_batch_are_sent_again_with_the_renewed_token(entra: Entra, tmp_path: Path) -> None:
    entra.now_ms = system_now_ms()
    sent: list[bytes] = []

    async def answer(request: web.BaseRequest) -> web.Response:
        sent.append(await request.read())
        refused = {"x-ms-error-code": "InvalidAuthenticationInfo"}
        return web.Response(status=401 if len(sent) == 1 else 403, headers=refused)

    async with azure_over_tls(answer, tmp_path, ClientKind.WIRE) as store:
        deleted = await store.delete_many(["a", "b"])

    assert {*deleted.left} == {"a", "b"}
    assert [body.count(b"Bearer token 1") for body in sent] == [2, 0]
    assert [body.count(b"Bearer token 2") for body in sent] == [0, 2]


@pytest.mark.parametrize("client", ClientKind)
async def test_a_token_that_the_store_refuses_is_renewed_once_and_the_request_sent_again(
    entra: Entra, client: ClientKind, tmp_path: Path
) -> None:
    entra.now_ms = system_now_ms()
    good, sent = "token 2", []
    report = {
        "WWW-Authenticate": "Bearer authorization_uri=https://login.example/tenant/oauth2/authorize "
        "resource_id=https://storage.azure.com",
        "x-ms-error-code": "InvalidAuthenticationInfo",
    }

    async def answer(request: web.BaseRequest) -> web.Response:
        assert await request.read() == b"body"
        sent.append(request.headers["Authorization"])
        if sent[-1] == f"Bearer {good}":
            return web.Response(status=201, headers={"ETag": '"1"'})
        return web.Response(status=401, headers=report)

    async with azure_over_tls(answer, tmp_path, client) as store:
        outcome = await store.put("key", b"body", ABSENT)
        good = "none"
        with pytest.raises(StoreDenied, match="InvalidAuthenticationInfo"):
            await store.put("key", b"body", ABSENT)

    assert isinstance(outcome, Applied)
    assert sent[:3] == ["Bearer token 1", "Bearer token 2", "Bearer token 2"]
    assert len(sent) == 4
