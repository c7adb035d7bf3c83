"""Tokens for every kind of credentials, from endpoints on this machine; fetched by google-auth, ahead of expiry."""

import asyncio
import json
import sys
from base64 import urlsafe_b64decode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from aiohttp import web
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from storage_backends import ABSENT, Applied, Found, Missing, StoreDenied, StoreError, StoreUnavailable
from storage_backends.clock import system_now_ms
from storage_backends.gcs.config import (
    AccessToken,
    Anonymous,
    ApplicationDefault,
    CredentialsConfig,
    CredentialsFile,
    CredentialsJson,
    GcsClient,
    GcsConfig,
    MetadataServer,
)
from storage_backends.gcs.credentials import GoogleTokens, tokens_of
from storage_backends.gcs.store import GcsStore
from tests.storage_backends.gcs.scripted_gcs import ScriptedGcs, playing_gcs
from tests.support.stub_server import stub_server


@dataclass
class TokenEndpoint:
    """Hands out `token-1`, `token-2` and so on, each good for `lifetime_s`, or answers with `status`."""

    lifetime_s: int = 3_600
    status: int = 200
    uri: str = ""
    forms: list[dict[str, str]] = field(default_factory=list)

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        await asyncio.sleep(0)
        form = {name: str(value) for name, value in (await request.post()).items()}
        self.forms.append({**request.query, **form, "path": request.path})
        token = {"access_token": f"token-{len(self.forms)}", "expires_in": self.lifetime_s, "token_type": "Bearer"}
        token |= {"email": "arco@project.iam.gserviceaccount.com", "scopes": []}  # as a metadata server answers
        return web.json_response(token if self.status == 200 else {"error": "scripted"}, status=self.status)


@asynccontextmanager
async def token_endpoint() -> AsyncIterator[TokenEndpoint]:
    """Runs one, to which the tokens of users lead, too: their files do not say where to ask."""
    endpoint = TokenEndpoint()
    async with stub_server(endpoint.handle) as server:
        endpoint.uri = server.uri
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("google.oauth2.credentials._GOOGLE_OAUTH2_TOKEN_ENDPOINT", f"{server.uri}/token")
            yield endpoint


@pytest.fixture(scope="module")
def private_key() -> str:
    key = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
    pem = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return key.private_bytes(*pem).decode()


def service_account(private_key: str, token_uri: str) -> str:
    return json.dumps(
        {
            "type": "service_account",
            "client_email": "arco@project.iam.gserviceaccount.com",
            "private_key": private_key,
            "private_key_id": "1",
            "token_uri": f"{token_uri}/token",
        }
    )


USER = json.dumps({"type": "authorized_user", "client_id": "id", "client_secret": "s", "refresh_token": "refresh"})


def config_for(credentials: CredentialsConfig) -> GcsConfig:
    return GcsConfig(credentials)


async def test_a_service_accounts_key_signs_for_a_token(private_key: str) -> None:
    async with token_endpoint() as endpoint:
        tokens = tokens_of(config_for(CredentialsJson(service_account(private_key, endpoint.uri))))

        assert [await tokens.current(), await tokens.current()] == ["token-1", "token-1"]
        [form] = endpoint.forms
        assert form["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"


async def test_a_token_may_have_another_scope_and_has_an_expiry(private_key: str) -> None:
    async with token_endpoint() as endpoint:
        config = config_for(CredentialsJson(service_account(private_key, endpoint.uri)))
        token = await GoogleTokens(config, ["https://www.googleapis.com/auth/cloud-platform"]).expiring()

        [form] = endpoint.forms
        claims = form["assertion"].split(".")[1]
        assert b"auth/cloud-platform" in urlsafe_b64decode(claims + "=" * (-len(claims) % 4))
    assert token.token == "token-1"
    assert token.token not in repr(token)
    assert token.expires_ms is not None
    assert 0 < token.expires_ms - system_now_ms() <= 3_600_000


async def test_a_users_refresh_token_is_exchanged(tmp_path: Path) -> None:
    async with token_endpoint() as endpoint:
        file = tmp_path / "adc.json"
        file.write_text(USER)
        config = GcsConfig.from_environment({"GOOGLE_APPLICATION_CREDENTIALS": str(file)})

        assert config.credentials == CredentialsFile(str(file))
        assert await tokens_of(config).current() == "token-1"
        [form] = endpoint.forms
        assert (form["grant_type"], form["refresh_token"]) == ("refresh_token", "refresh")


async def test_the_default_chain_reads_the_environment_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with token_endpoint():
        file = tmp_path / "adc.json"
        file.write_text(USER)
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
        monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "project")

        assert await tokens_of(config_for(ApplicationDefault())).current() == "token-1"


async def test_the_machines_account_comes_from_its_metadata_server(monkeypatch: pytest.MonkeyPatch) -> None:
    async with token_endpoint() as endpoint:
        host = endpoint.uri.removeprefix("http://")
        monkeypatch.setattr("google.auth.compute_engine._metadata._GCE_METADATA_HOST", host)
        tokens = tokens_of(config_for(MetadataServer()))

        assert (await tokens.current()).startswith("token-")
        assert "/instance/service-accounts/" in endpoint.forms[-1]["path"]


async def test_many_calls_ask_once(private_key: str) -> None:
    async with token_endpoint() as endpoint:
        tokens = tokens_of(config_for(CredentialsJson(service_account(private_key, endpoint.uri))))

        assert set(await asyncio.gather(*(tokens.current() for _ in range(20)))) == {"token-1"}
        assert len(endpoint.forms) == 1


def set_left(tokens: GoogleTokens, seconds: float) -> None:
    """Moves the expiry of the token, in place of the clock."""
    held = tokens._credentials
    assert held is not None
    held.current.expiry = datetime.now(UTC).replace(tzinfo=None) + timedelta(seconds=seconds)


async def test_a_token_is_renewed_ahead_and_the_old_one_serves_until_it_has_expired() -> None:
    async with token_endpoint() as endpoint:
        tokens = GoogleTokens(config_for(CredentialsJson(USER)))
        assert await tokens.current() == "token-1"

        set_left(tokens, 120)
        assert await tokens.current() == "token-2"

        set_left(tokens, 120)
        endpoint.status = 400
        assert await tokens.current() == "token-2"

        set_left(tokens, -1)
        with pytest.raises(StoreDenied, match="no Google credentials"):
            await tokens.current()

        endpoint.status = 200
        assert (await tokens.current()).startswith("token-")


async def test_an_endpoint_that_does_not_answer_may_answer_later(private_key: str) -> None:
    async with token_endpoint() as endpoint:
        key = CredentialsJson(service_account(private_key, endpoint.uri))
    with pytest.raises(StoreUnavailable, match="does not answer"):
        await tokens_of(config_for(key)).current()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"type": "service_account"}', '{"type": "unknown"}'])
async def test_what_holds_no_credentials_is_a_denial(text: str, tmp_path: Path) -> None:
    file = tmp_path / "key.json"
    file.write_text(text)
    for credentials in (CredentialsJson(text), CredentialsFile(str(file)), CredentialsFile(str(tmp_path / "none"))):
        with pytest.raises(StoreDenied, match="no Google credentials"):
            await tokens_of(config_for(credentials)).current()


async def test_without_google_auth_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("storage_backends.gcs.google_credentials", "storage_backends.gcs.sdk"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setitem(sys.modules, "google.auth.transport.requests", None)
    monkeypatch.setitem(sys.modules, "google.cloud", None)
    for config in (config_for(ApplicationDefault()), GcsConfig(AccessToken("token"), client=GcsClient.SDK)):
        store = GcsStore("bucket", config=config)
        with pytest.raises(StoreError, match=r"install the extra 'gcs' of arco-catalog"):
            await store.get("key")


async def test_a_fixed_token_needs_no_google_auth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "storage_backends.gcs.google_credentials", None)
    assert await tokens_of(config_for(AccessToken("token"))).current() == "token"
    assert await tokens_of(config_for(Anonymous())).current() == ""


@pytest.mark.parametrize("client", list(GcsClient))
async def test_a_users_token_opens_the_store_by_both_transports(client: GcsClient) -> None:
    async with token_endpoint(), playing_gcs([], client) as played:
        assert isinstance(played.server, ScriptedGcs)
        played.server.fake.token = "token-1"
        config = GcsConfig(CredentialsJson(USER), played.server.endpoint, client=client)
        store = GcsStore("bucket", config=config)

        assert isinstance(await store.get("key"), Missing)
        await store.close()


@pytest.mark.parametrize("client", list(GcsClient))
async def test_a_token_that_the_store_refuses_is_renewed_once_and_the_request_sent_again(client: GcsClient) -> None:
    async with token_endpoint() as endpoint, playing_gcs([], client) as played:
        assert isinstance(played.server, ScriptedGcs)
        played.server.fake.token = "token-2"
        store = GcsStore("bucket", config=GcsConfig(CredentialsJson(USER), played.server.endpoint, client=client))

        assert isinstance(await store.put("key", b"body", ABSENT), Applied)
        assert isinstance(await store.get("key"), Found)
        assert played.wire == ["POST", "POST", "GET"]
        played.server.fake.token = "another's"
        with pytest.raises(StoreDenied, match="Invalid Credentials"):
            await store.get("key")
        assert played.wire[3:] == ["GET", "GET"]
        assert len(endpoint.forms) == 3
        await store.close()


@pytest.mark.parametrize("client", list(GcsClient))
async def test_requests_that_are_refused_together_renew_the_token_once(client: GcsClient) -> None:
    async with token_endpoint() as endpoint, playing_gcs([], client) as played:
        assert isinstance(played.server, ScriptedGcs)
        played.server.fake.token = "token-1"
        store = GcsStore("bucket", config=GcsConfig(CredentialsJson(USER), played.server.endpoint, client=client))
        await store.get("key")
        played.server.fake.token = "token-2"

        assert {*map(type, await asyncio.gather(*(store.get("key") for _ in range(5))))} == {Missing}
        assert len(endpoint.forms) == 2
        await store.close()


@pytest.mark.parametrize("client", list(GcsClient))
async def test_without_a_token_nothing_is_sent(client: GcsClient) -> None:
    async with token_endpoint() as endpoint, playing_gcs([], client) as played:
        endpoint.status = 400
        config = GcsConfig(CredentialsJson(USER), played.server.endpoint, client=client)
        store = GcsStore("bucket", config=config)
        with pytest.raises(StoreDenied):
            await store.delete("key")
        await store.close()

        assert played.wire == []


def test_the_environment_is_read_once_into_values() -> None:
    read = GcsConfig.from_environment
    assert read({}) == GcsConfig()
    assert read({}).endpoint == "https://storage.googleapis.com"
    assert read({"GOOGLE_CLOUD_UNIVERSE_DOMAIN": "example.org"}).endpoint == "https://storage.example.org"
    assert read({"STORAGE_EMULATOR_HOST": "localhost:4443"}) == GcsConfig(Anonymous(), "http://localhost:4443")
    assert read({"GOOGLE_OAUTH_ACCESS_TOKEN": " token\n"}).credentials == AccessToken("token")
    assert read({"GOOGLE_CLOUD_PROJECT": "ours", "GOOGLE_CLOUD_QUOTA_PROJECT": "payer"}) == replace(
        GcsConfig(), project="ours", user_project="payer"
    )
    assert read({"ARCO_GCS_CLIENT": "sdk", "REQUESTS_CA_BUNDLE": "/ca"}) == replace(
        GcsConfig(), client=GcsClient.SDK, ca_bundle="/ca"
    )
    with pytest.raises(ValueError, match="ARCO_GCS_CLIENT: expected wire or sdk, got 'grpc'"):
        read({"ARCO_GCS_CLIENT": "grpc"})


def test_no_secret_is_in_what_a_configuration_prints() -> None:
    for credentials in (AccessToken("secret"), CredentialsJson("secret")):
        assert "secret" not in repr(config_for(credentials))
