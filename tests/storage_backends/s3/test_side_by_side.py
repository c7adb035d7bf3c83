"""Stores of one process that are configured differently: each keeps to its own endpoint, keys and region."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest

from storage_backends import ABSENT, Applied, Found, StoreDenied
from storage_backends.open import opener_in
from storage_backends.s3.config import DefaultChain, S3Config
from storage_backends.s3.signature import Credentials
from storage_backends.s3.store import S3Store
from tests.storage_backends.s3.scripted_s3 import ScriptedS3, scripted_s3
from tools.support.s3_servers import S3Server, versitygw


@pytest.fixture
async def servers(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[ScriptedS3, ScriptedS3]]:
    """Two, and an environment that leads to neither."""
    for name, value in S3Server("http://127.0.0.1:9", "wrong", "wrong").environment.items():
        monkeypatch.setenv(name, value)
    async with scripted_s3([]) as one, scripted_s3([]) as other:
        yield one, other


async def test_two_stores_keep_to_their_own_endpoints_keys_and_regions(
    servers: tuple[ScriptedS3, ScriptedS3],
) -> None:
    configs = [
        S3Config("eu-west-3", Credentials("first", "hush"), servers[0].endpoint),
        S3Config("us-east-2", Credentials("second", "hush", "a-session"), servers[1].endpoint),
    ]
    async with AsyncExitStack() as stack:
        stores = [S3Store("bucket", config=config) for config in configs]
        for store in stores:
            stack.push_async_callback(store.close)
        bodies = (b"of the first", b"of the second")

        written = await asyncio.gather(
            *(store.put("key", body, ABSENT) for store, body in zip(stores, bodies, strict=True))
        )
        read = await asyncio.gather(*(store.get("key") for store in stores))

    assert all(isinstance(outcome, Applied) for outcome in written)
    assert [found.body for found in read if isinstance(found, Found)] == [*bodies]
    for server, access, region, token in zip(
        servers, ("first", "second"), ("eu-west-3", "us-east-2"), (None, "a-session"), strict=True
    ):
        assert [request.method for request in server.requests] == ["PUT", "GET"]
        for request in server.requests:
            assert f"Credential={access}/" in request.headers["authorization"]
            assert f"/{region}/s3/aws4_request" in request.headers["authorization"]
            assert request.headers.get("x-amz-security-token") == token


async def test_what_opens_stores_opens_them_by_the_environment_that_it_was_made_with(
    servers: tuple[ScriptedS3, ScriptedS3],
) -> None:
    for server in servers:
        store = opener_in(S3Server(server.endpoint).environment)("s3://bucket")
        await store.put("key", b"body", ABSENT)
        await store.close()

    assert [[*server.objects] for server in servers] == [["/bucket/key"]] * 2


@pytest.mark.needs("go")
async def test_servers_that_check_signatures_take_a_stores_own_keys_and_no_others() -> None:
    with versitygw() as one, versitygw() as other:
        for server in (one, other):
            server.make_bucket("bucket")
        configs = (
            one.config,
            replace(other.config, connect_timeout_s=60.0, max_connections=1),
            replace(one.config, credentials=Credentials(one.access_key, "of another server")),
        )
        stores = [S3Store("bucket", config=config) for config in configs]

        written = await asyncio.gather(*(store.put("key", b"%d" % at, ABSENT) for at, store in enumerate(stores[:2])))
        with pytest.raises(StoreDenied):
            await stores[2].get("key")
        found = [await store.get("key") for store in stores[:2]]
        for store in stores:
            await store.close()

    assert all(isinstance(outcome, Applied) for outcome in written)
    assert [each.body for each in found if isinstance(each, Found)] == [b"0", b"1"]


def test_a_configuration_that_is_shown_shows_no_secret() -> None:
    environment = {
        "AWS_ACCESS_KEY_ID": "shown",
        "AWS_SECRET_ACCESS_KEY": "hush-key",
        "AWS_SESSION_TOKEN": "hush-token",
    }
    address = {
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://localhost/",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN": "hush-permit",
    }

    shown = f"{S3Config.from_environment(environment)} {S3Config.from_environment(address)}"

    assert "shown" in shown
    assert "http://localhost/" in shown
    assert "hush" not in shown


def test_an_empty_environment_is_amazons_s3_by_botocores_chain() -> None:
    assert S3Config.from_environment({}) == S3Config(region=None, credentials=DefaultChain(), endpoint_url=None)
