"""TLS: the authorities that the store trusts."""

import ssl
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from storage_backends import ABSENT, Applied, Found, StoreError, StoreUnavailable
from storage_backends.s3.store import S3Store
from storage_backends.wire.client import Pauses
from tests.storage_backends.s3.scripted_s3 import ScriptedS3, scripted_s3
from tests.support.certificates import write_certificate
from tools.support.s3_servers import S3Server


@pytest.fixture
def address() -> str:
    """What the certificate is good for."""
    return "127.0.0.1"


@pytest.fixture
async def s3(tmp_path: Path, address: str) -> AsyncIterator[ScriptedS3]:
    """A server behind TLS."""
    write_certificate(tmp_path / "certificate.pem", tmp_path / "key.pem", address)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "certificate.pem", tmp_path / "key.pem")
    async with scripted_s3([], tls) as server:
        yield server


async def no_pause(_seconds: float) -> None:
    return


@pytest.fixture
def bundle(tmp_path: Path) -> str | None:
    """The authorities that the store trusts."""
    return str(tmp_path / "certificate.pem")


@pytest.fixture
async def store(s3: ScriptedS3, bundle: str | None) -> AsyncIterator[S3Store]:
    config = replace(S3Server(s3.endpoint).config, ca_bundle=bundle)
    store = S3Store("bucket", config=config, pauses=Pauses(no_pause))
    yield store
    await store.close()


async def test_a_bundle_of_ones_own_is_trusted(s3: ScriptedS3, store: S3Store) -> None:
    body = b"a megabyte" * 100_000
    assert isinstance(await store.put("key", body, ABSENT), Applied)
    found = await store.get("key")

    assert isinstance(found, Found)
    assert found.body == body
    assert len(s3.connections) == 1


@pytest.mark.parametrize("bundle", [None])
async def test_an_untrusted_server_gets_no_request(s3: ScriptedS3, store: S3Store) -> None:
    with pytest.raises(StoreUnavailable, match="self-signed"):
        await store.put("key", b"body", ABSENT)
    assert s3.requests == []


@pytest.mark.parametrize("address", ["127.0.0.2"])
async def test_a_certificate_of_another_address_is_not_enough(s3: ScriptedS3, store: S3Store) -> None:
    with pytest.raises(StoreUnavailable, match=r"127\.0\.0\.1"):
        await store.put("key", b"body", ABSENT)
    assert s3.requests == []


@pytest.mark.parametrize("bundle", ["/nowhere/bundle.pem"])
async def test_a_bundle_that_is_not_there_is_reported(s3: ScriptedS3, store: S3Store) -> None:
    with pytest.raises(StoreError, match=r"CA bundle '/nowhere/bundle\.pem'"):
        await store.get("key")
    assert s3.requests == []
