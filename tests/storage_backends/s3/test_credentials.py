"""The sources of credentials, in order: the environment, the address that it names, then botocore's chain in a
thread."""

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from aiohttp import web

from storage_backends import Missing, StoreDenied, StoreError, StoreUnavailable
from storage_backends.clock import system_now_ms
from storage_backends.s3.config import ContainerEndpoint, DefaultChain, S3Config
from storage_backends.s3.container import ContainerCredentials, address_of
from storage_backends.s3.credentials import BotocoreCredentials, CredentialSource, credentials_of, region_of
from storage_backends.s3.signature import Credentials
from storage_backends.s3.store import S3Store
from tests.storage_backends.s3.scripted_s3 import ScriptedS3, scripted_s3
from tests.support.fake_runtime import FakeRuntime
from tests.support.stub_server import stub_server
from tools.support.environment import PROJECT
from tools.support.s3_servers import S3Server

KEYS = {"AWS_ACCESS_KEY_ID": "access", "AWS_SECRET_ACCESS_KEY": "secret"}
MINUTE_MS = 60_000

OpenBucket = Callable[[], S3Store]


@pytest.fixture
async def s3(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ScriptedS3]:
    """A server to which the environment leads, with no keys and no region in it."""
    async with scripted_s3([]) as server:
        for name, value in S3Server(server.endpoint).environment.items():
            monkeypatch.setenv(name, value)
        for name in (*KEYS, "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION"):
            monkeypatch.delenv(name, raising=False)
        yield server


@pytest.fixture
async def open_bucket(s3: ScriptedS3) -> AsyncIterator[OpenBucket]:
    """Opens a bucket with the environment of that time."""
    async with AsyncExitStack() as stack:

        def opened() -> S3Store:
            store = S3Store("bucket", config=S3Config.from_environment(os.environ))
            stack.push_async_callback(store.close)
            return store

        yield opened


def source_in(environment: Mapping[str, str]) -> CredentialSource:
    return credentials_of(S3Config.from_environment(environment).credentials)


async def test_the_environments_keys_come_first() -> None:
    source = source_in({**KEYS, "AWS_SESSION_TOKEN": "token", "AWS_PROFILE": "other"})
    assert await source.current() == Credentials("access", "secret", "token")


@pytest.mark.parametrize("name", KEYS)
def test_half_a_pair_of_keys_is_a_denial(name: str) -> None:
    with pytest.raises(StoreDenied, match="only one of AWS_ACCESS_KEY_ID"):
        source_in({name: "half"})


async def test_a_sessions_token_is_sent_and_signed(
    s3: ScriptedS3, open_bucket: OpenBucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**KEYS, "AWS_SESSION_TOKEN": "token", "AWS_REGION": "eu-west-3"}.items():
        monkeypatch.setenv(name, value)
    await open_bucket().get("key")

    [request] = s3.requests
    assert request.headers["x-amz-security-token"] == "token"
    assert (
        "/eu-west-3/s3/aws4_request, SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token"
        in (request.headers["authorization"])
    )


async def test_a_profile_gives_what_the_environment_does_not(
    s3: ScriptedS3, open_bucket: OpenBucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config").write_text("[profile ours]\nregion = eu-south-2\n")
    (tmp_path / "credentials").write_text("[ours]\naws_access_key_id = mine\naws_secret_access_key = hush\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_PROFILE", "ours")

    assert isinstance(await open_bucket().get("key"), Missing)

    [request] = s3.requests
    assert "Credential=mine/" in request.headers["authorization"]
    assert "/eu-south-2/s3/" in request.headers["authorization"]


async def test_each_store_may_have_a_profile_of_its_own(
    s3: ScriptedS3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config").write_text("[profile ours]\nregion = eu-south-2\n[profile theirs]\nregion = us-west-1\n")
    keys = "[{0}]\naws_access_key_id = key-of-{0}\naws_secret_access_key = hush\n"
    (tmp_path / "credentials").write_text(keys.format("ours") + keys.format("theirs"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))

    for profile in ("ours", "theirs"):
        config = S3Config(credentials=DefaultChain(profile), endpoint_url=s3.endpoint)
        store = S3Store("bucket", config=config)
        await store.get("key")
        await store.close()

    signed = [request.headers["authorization"] for request in s3.requests]
    assert ["Credential=key-of-ours/" in signed[0], "/eu-south-2/s3/" in signed[0]] == [True, True]
    assert ["Credential=key-of-theirs/" in signed[1], "/us-west-1/s3/" in signed[1]] == [True, True]


@pytest.mark.parametrize("carrier", ["wire", "sdk"])
async def test_each_environment_has_profiles_and_files_of_its_own(
    s3: ScriptedS3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, carrier: str
) -> None:
    """Two stores of one process, whose own variables lead nowhere."""
    monkeypatch.setenv("AWS_PROFILE", "missing")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "missing"))
    for name, region in (("ours", "eu-south-2"), ("theirs", "us-west-1")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config").write_text(f"[profile same]\nregion = {region}\n")
        keys = f"[same]\naws_access_key_id = key-of-{name}\naws_secret_access_key = hush\n"
        (tmp_path / name / "credentials").write_text(keys)
        environment = {
            "AWS_PROFILE": "same",
            "AWS_CONFIG_FILE": str(tmp_path / name / "config"),
            "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / name / "credentials"),
            "AWS_ENDPOINT_URL_S3": s3.endpoint,
            "ARCO_S3_CLIENT": carrier,
        }
        store = S3Store("bucket", config=S3Config.from_environment(environment))
        await store.get("key")
        await store.close()

    first, second = (request.headers["authorization"] for request in s3.requests)
    assert ["Credential=key-of-ours/" in first, "/eu-south-2/s3/" in first] == [True, True]
    assert ["Credential=key-of-theirs/" in second, "/us-west-1/s3/" in second] == [True, True]


def test_a_web_identity_of_this_process_is_not_hidden_by_a_profile() -> None:
    both = {"AWS_WEB_IDENTITY_TOKEN_FILE": "/token", "AWS_PROFILE": "other", "AWS_CONFIG_FILE": "/config"}
    assert S3Config.from_environment(both).credentials == DefaultChain(None, "/config")


async def test_a_region_is_needed(s3: ScriptedS3, open_bucket: OpenBucket, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(StoreError, match="AWS_REGION"):
        await open_bucket().get("key")
    assert s3.requests == []


async def test_the_functions_region_is_before_the_default_one() -> None:
    both = {"AWS_REGION": "first", "AWS_DEFAULT_REGION": "second"}
    assert await region_of(S3Config.from_environment(both)) == "first"
    assert await region_of(S3Config.from_environment({"AWS_DEFAULT_REGION": "second"})) == "second"


async def test_no_credentials_anywhere_is_a_denial(
    s3: ScriptedS3, open_bucket: OpenBucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    with pytest.raises(StoreDenied, match="no AWS credentials"):
        await open_bucket().get("key")
    assert s3.requests == []


async def test_without_botocore_the_environment_must_have_all(
    s3: ScriptedS3, open_bucket: OpenBucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "botocore.session", None)
    with pytest.raises(StoreError, match=r"botocore.*is not installed"):
        await open_bucket().get("key")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    with pytest.raises(StoreDenied, match=r"AWS_ACCESS_KEY_ID is not set, and botocore.*is not installed"):
        await open_bucket().get("key")
    assert s3.requests == []


class Container:
    """Hands out keys as a container's agent does: numbered, and good for `good_for`."""

    def __init__(self) -> None:
        self.handed_out = 0
        self.good_for = timedelta(hours=2)
        self.status = 200
        self.body: str | None = None
        self.tokens: list[str] = []

    async def handle(self, request: web.BaseRequest) -> web.Response:
        self.handed_out += 1
        self.tokens.append(request.headers.get("Authorization", ""))
        if self.body is not None:
            return web.Response(status=self.status, text=self.body)
        expiration = (datetime.now(UTC) + self.good_for).strftime("%Y-%m-%dT%H:%M:%SZ")
        keys = {"AccessKeyId": f"key-{self.handed_out}", "SecretAccessKey": "secret", "Token": "token"}
        return web.Response(status=self.status, text=json.dumps({**keys, "Expiration": expiration}))


@pytest.fixture
async def container(s3: ScriptedS3, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Container]:
    """Serves on the event loop of the test: a caller that blocks the loop would wait for ever."""
    container = Container()
    async with stub_server(container.handle) as server:
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{server.uri}/")
        yield container


async def test_keys_are_fetched_once_while_they_are_valid(container: Container) -> None:
    source = BotocoreCredentials(DefaultChain())
    found = await asyncio.gather(*(source.current() for _ in range(10)))

    assert {keys.access_key for keys in found} == {"key-1"}
    assert container.handed_out == 1


async def test_keys_are_fetched_again_before_they_expire(container: Container) -> None:
    source = BotocoreCredentials(DefaultChain())
    container.good_for = timedelta(minutes=9)
    short = await source.current()
    container.good_for = timedelta(hours=2)
    long = await source.current()

    assert long != short
    assert await source.current() == long
    assert long.access_key == f"key-{container.handed_out}"


async def test_an_answer_without_keys_is_a_denial_and_fetched_again(container: Container) -> None:
    source = BotocoreCredentials(DefaultChain())
    container.status = 404
    with pytest.raises(StoreDenied, match="no AWS credentials"):
        await source.current()
    container.status = 200
    assert (await source.current()).token == "token"


async def test_a_provider_that_cannot_be_connected_to_is_unavailable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text("token")
    for name, value in {
        "AWS_WEB_IDENTITY_TOKEN_FILE": f"{tmp_path}/token",
        "AWS_ROLE_ARN": "arn:aws:iam::123456789012:role/catalog",
        "AWS_ENDPOINT_URL_STS": "http://127.0.0.1:1",
        "AWS_REGION": "eu-west-1",
        "AWS_MAX_ATTEMPTS": "1",
    }.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(StoreUnavailable, match="their provider does not answer"):
        await BotocoreCredentials(DefaultChain()).current()


@pytest.fixture
def clock() -> FakeRuntime:
    """Begins with the machine's time, which the container goes by."""
    made = FakeRuntime()
    made.ms = system_now_ms()
    return made


@pytest.fixture
def agent(container: Container, clock: FakeRuntime) -> ContainerCredentials:
    """Fetches the keys of the container without botocore."""
    return ContainerCredentials(address_in(os.environ), clock.now_ms)


def address_in(environment: Mapping[str, str]) -> ContainerEndpoint:
    """The one that the environment names."""
    found = S3Config.from_environment(environment).credentials
    assert isinstance(found, ContainerEndpoint)
    return found


async def test_a_function_without_keys_calls_its_endpoint_and_no_sdk(
    container: Container, s3: ScriptedS3, open_bucket: OpenBucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "botocore.session", None)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "permit")

    store = open_bucket()
    await asyncio.gather(*(store.get("key") for _ in range(10)))

    assert container.tokens == ["permit"]
    assert len(s3.requests) == 10
    assert all("Credential=key-1/" in request.headers["authorization"] for request in s3.requests)
    assert {request.headers["x-amz-security-token"] for request in s3.requests} == {"token"}


@pytest.mark.parametrize("name", ["AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE"])
async def test_sources_before_containers_in_botocore_stay_before_them(name: str) -> None:
    address = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://localhost/keys"}
    assert isinstance(source_in(address), ContainerCredentials)
    assert isinstance(source_in({**address, name: "x"}), BotocoreCredentials)


async def test_an_agents_keys_are_renewed_a_quarter_of_an_hour_before_they_expire(
    container: Container, agent: ContainerCredentials, clock: FakeRuntime
) -> None:
    assert (await agent.current()).access_key == "key-1"
    clock.ms += 104 * MINUTE_MS
    assert (await agent.current()).access_key == "key-1"
    clock.ms += 2 * MINUTE_MS
    assert (await agent.current()).access_key == "key-2"


@pytest.mark.parametrize("status", [500, 429, 404])
async def test_keys_that_cannot_be_renewed_serve_until_they_expire(
    container: Container, agent: ContainerCredentials, clock: FakeRuntime, status: int
) -> None:
    await agent.current()
    container.status, container.body = status, "no"
    clock.ms += 119 * MINUTE_MS
    assert (await agent.current()).access_key == "key-1"
    clock.ms += 2 * MINUTE_MS
    with pytest.raises(StoreDenied if status == 404 else StoreUnavailable):
        await agent.current()
    container.status, container.body = 200, None
    container.good_for = timedelta(hours=4)
    assert (await agent.current()).access_key == f"key-{container.handed_out}"


@pytest.mark.parametrize(
    "body",
    [
        "no JSON",
        "[]",
        '{"AccessKeyId": "hush"}',
        '{"AccessKeyId": "hush", "SecretAccessKey": "hush", "Token": "hush", "Expiration": "soon"}',
        '{"AccessKeyId": "hush", "SecretAccessKey": "hush", "Token": "hush", "Expiration": 1}',
    ],
)
async def test_an_answer_without_keys_is_a_denial_that_does_not_show_it(
    container: Container, agent: ContainerCredentials, body: str
) -> None:
    container.body = body
    with pytest.raises(StoreDenied, match="returned no keys") as denial:
        await agent.current()
    assert "hush" not in str(denial.value)


async def test_an_address_without_a_listener_is_unavailable() -> None:
    with socket.socket() as deaf:  # bound, and it does not listen
        deaf.bind(("127.0.0.1", 0))
        address = ContainerEndpoint(f"http://127.0.0.1:{deaf.getsockname()[1]}/")
        with pytest.raises(StoreUnavailable, match="gave no whole answer"):
            await ContainerCredentials(address, FakeRuntime().now_ms).current()


async def test_a_token_in_a_file_is_read_each_time_and_before_the_other(
    container: Container, tmp_path: Path, clock: FakeRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "token"
    monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "other")
    monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", str(file))
    agent = ContainerCredentials(address_in(os.environ), clock.now_ms)
    with pytest.raises(StoreDenied, match="TOKEN_FILE"):
        await agent.current()
    container.good_for = timedelta(minutes=1)
    for token in ("first", "second"):
        file.write_text(token)
        await agent.current()
    assert container.tokens == ["first", "second"]


async def test_a_token_that_would_be_another_header_is_not_sent(container: Container, clock: FakeRuntime) -> None:
    agent = ContainerCredentials(replace(address_in(os.environ), token="permit\r\nx-evil: 1"), clock.now_ms)
    with pytest.raises(StoreError, match="printable") as refusal:
        await agent.current()
    assert container.handed_out == 0
    assert "permit" not in str(refusal.value)


@pytest.mark.parametrize(
    "uri",
    [
        "http://example.com/keys",
        "http://169.254.169.254/keys",
        "http://127.0.0.1.example.com/",
        "http://user@localhost/",
        "ftp://localhost/",
        "http:///keys",
        "http://localhost:none/",
        "http://[localhost/",
        "keys",
    ],
)
def test_keys_are_fetched_over_tls_or_on_this_machine_only(uri: str) -> None:
    with pytest.raises(StoreDenied, match="no AWS credentials"):
        address_of(uri)


@pytest.mark.parametrize(
    ("uri", "host", "port"),
    [
        ("http://localhost/keys", "localhost", 80),
        ("http://127.0.0.2:8080/keys", "127.0.0.2", 8080),
        ("http://[::1]/keys", "::1", 80),
        ("http://169.254.170.23/v1/credentials", "169.254.170.23", 80),
        ("http://[fd00:ec2::23]/v1/credentials", "fd00:ec2::23", 80),
        ("https://example.com/keys", "example.com", 443),
    ],
)
def test_allowed_addresses(uri: str, host: str, port: int) -> None:
    parts, found = address_of(uri)
    assert (parts.hostname, found) == (host, port)


def test_a_relative_address_is_that_of_ecs_and_comes_first() -> None:
    both = {
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://localhost/keys",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/v2/credentials?id=1",
    }
    parts, port = address_of(address_in(both).url)
    assert (parts.geturl(), port) == ("http://169.254.170.2/v2/credentials?id=1", 80)


def test_a_cold_start_loads_no_sdk_and_nothing_heavy(s3_bucket: str) -> None:
    code = f"""
import asyncio, os, sys
from storage_backends import ABSENT
from storage_backends.open import open_store
async def main():
    store = open_store("s3://{s3_bucket}", os.environ)
    heavy = {{"aiobotocore", "aiohttp", "boto3", "botocore", "email", "http.client", "urllib.request", "xml"}}
    await store.put("key", b"", ABSENT)
    await store.get("key")
    await store.get("another")
    assert not heavy & set(sys.modules), sorted(heavy & set(sys.modules))
    await store.list("")
    await store.close()
    assert "botocore" not in sys.modules
asyncio.run(main())
"""
    subprocess.run([sys.executable, "-c", code], cwd=PROJECT, check=True, timeout=30)


def test_the_error_of_a_missing_parser_names_the_extra() -> None:
    code = (
        "import sys; sys.modules['httptools'] = None\n"
        "from storage_backends.open import open_store\n"
        "try: open_store('s3://bucket', {})\n"
        "except ValueError as error: print(error)"
    )
    command = [sys.executable, "-c", code]
    printed = subprocess.run(command, cwd=PROJECT, check=True, timeout=30, capture_output=True, text=True)
    assert "httptools is not installed: install the extra 's3'" in printed.stdout
