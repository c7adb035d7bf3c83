"""The contract on Azurite, over our own connections and with the SDK, by key, by shared access signature, and over
both transports at once."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from storage_backends import (
    ABSENT,
    Applied,
    Found,
    InvalidKey,
    ObjectStore,
    PreconditionFailed,
    StoreDenied,
    StoreError,
)
from storage_backends.azure.config import DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY, ClientKind, SasToken, SharedKey
from storage_backends.azure.store import AzureStore
from storage_backends.probe import honours_conditions
from tests.storage_backends.contract import ODD_KEYS, SHORT_PAGE, EveryVersionIsNew, StoreContract, applied, found
from tools.support.azurite import AzuriteServer

pytestmark = pytest.mark.needs("node", "npm")

_containers = itertools.count(1)


def new_container(azurite_server: AzuriteServer) -> str:
    name = f"container-{next(_containers)}"
    azurite_server.make_container(name)
    return name


class AzureContract(StoreContract, EveryVersionIsNew):
    """The contract, except that Azure takes a backslash for a slash."""

    @pytest.mark.parametrize("key", [key for key in ODD_KEYS if "\\" not in key])
    async def test_odd_keys_are_keys(self, store: ObjectStore, key: str) -> None:
        await super().test_odd_keys_are_keys(store, key)

    async def test_a_backslash_is_refused_before_it_becomes_a_slash(self, store: ObjectStore) -> None:
        with pytest.raises(InvalidKey, match="backslash"):
            await store.put("back\\slash", b"body", ABSENT)


class TestAzureStore(AzureContract):
    @pytest.fixture
    async def store(self, azurite_server: AzuriteServer) -> AsyncIterator[AzureStore]:
        store = AzureStore(new_container(azurite_server), config=azurite_server.config)
        yield store
        await store.close()


class TestAzureStoreWithTheSdk(AzureContract):
    @pytest.fixture
    async def store(self, azurite_server: AzuriteServer) -> AsyncIterator[AzureStore]:
        config = replace(azurite_server.config, client=ClientKind.SDK)
        store = AzureStore(new_container(azurite_server), "some/prefix", config=config)
        store.page_size = SHORT_PAGE
        yield store
        await store.close()


def sas_of(container: str, permissions: str) -> SasToken:
    """A signature for a container, made by the SDK."""
    from azure.storage.blob import generate_container_sas

    expiry = datetime.now(UTC) + timedelta(hours=1)
    token = generate_container_sas(
        DEVELOPMENT_ACCOUNT, container, account_key=DEVELOPMENT_KEY, permission=permissions, expiry=expiry
    )
    return SasToken(token)


@pytest.mark.parametrize("client", ClientKind)
async def test_a_shared_access_signature_gives_its_rights_and_no_others(
    azurite_server: AzuriteServer, client: ClientKind
) -> None:
    container = new_container(azurite_server)
    reader, writer = (
        AzureStore(
            container, config=replace(azurite_server.config, credentials=sas_of(container, rights), client=client)
        )
        for rights in ("rl", "racwdl")
    )
    try:
        assert await honours_conditions(writer, "nonce")
        version = applied(await writer.put("a key", b"body", ABSENT))
        assert (await found(reader, "a key")).version == version
        assert [entry.key for entry in (await reader.list("")).entries] == ["a key"]
        with pytest.raises(StoreDenied):
            await reader.put("another", b"body", ABSENT)
    finally:
        await asyncio.gather(reader.close(), writer.close())


@pytest.mark.parametrize("client", ClientKind)
async def test_a_wrong_key_is_denied(azurite_server: AzuriteServer, client: ClientKind) -> None:
    container = new_container(azurite_server)
    wrong = SharedKey("d3Jvbmc=")
    store = AzureStore(container, config=replace(azurite_server.config, credentials=wrong, client=client))
    try:
        with pytest.raises(StoreDenied):
            await store.put("key", b"body", ABSENT)
    finally:
        await store.close()


@pytest.mark.parametrize("client", ClientKind)
async def test_a_container_that_is_not_there_is_named(azurite_server: AzuriteServer, client: ClientKind) -> None:
    store = AzureStore("nowhere", config=replace(azurite_server.config, client=client))
    try:
        for call in (store.get("key"), store.put("key", b"", ABSENT), store.list(""), store.delete("key")):
            with pytest.raises(StoreError, match="container 'nowhere' does not exist"):
                await call
    finally:
        await store.close()


async def test_both_transports_see_the_same_objects_and_versions(azurite_server: AzuriteServer) -> None:
    container = new_container(azurite_server)
    wire, sdk = (AzureStore(container, config=replace(azurite_server.config, client=kind)) for kind in ClientKind)
    try:
        outcome = await wire.put("odd/ü+%2F key", b"body", ABSENT)
        assert isinstance(outcome, Applied)
        assert isinstance(await sdk.put("odd/ü+%2F key", b"other", ABSENT), PreconditionFailed)
        read = await sdk.get("odd/ü+%2F key")
        assert isinstance(read, Found)
        assert (read.version, read.body) == (outcome.version, b"body")
        assert (await wire.list("odd/")).entries == (await sdk.list("odd/")).entries
    finally:
        await asyncio.gather(wire.close(), sdk.close())
