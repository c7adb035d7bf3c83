"""TLS: whom the store trusts."""

import ipaddress
import ssl
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from storage_backends import ABSENT, Applied, Found, StoreError, StoreUnavailable
from storage_backends.s3.store import S3Store
from tests.storage_backends.s3.scripted_s3 import ScriptedS3, scripted_s3
from tools.support.s3_servers import S3Server


def write_certificate(certificate_file: Path, key_file: Path, address: str) -> None:
    """One that vouches for itself and for nothing but this address."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a test's own")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )


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
    """Whom the store trusts."""
    return str(tmp_path / "certificate.pem")


@pytest.fixture
async def store(s3: ScriptedS3, bundle: str | None) -> AsyncIterator[S3Store]:
    config = replace(S3Server(s3.endpoint).config, ca_bundle=bundle)
    store = S3Store("bucket", config=config, sleep=no_pause)
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
async def test_a_server_that_nobody_vouches_for_is_told_nothing(s3: ScriptedS3, store: S3Store) -> None:
    with pytest.raises(StoreUnavailable, match="self-signed"):
        await store.put("key", b"body", ABSENT)
    assert s3.requests == []


@pytest.mark.parametrize("address", ["127.0.0.2"])
async def test_a_certificate_of_another_address_is_not_enough(s3: ScriptedS3, store: S3Store) -> None:
    with pytest.raises(StoreUnavailable, match=r"127\.0\.0\.1"):
        await store.put("key", b"body", ABSENT)
    assert s3.requests == []


@pytest.mark.parametrize("bundle", ["/nowhere/bundle.pem"])
async def test_a_bundle_that_is_not_there_is_told(s3: ScriptedS3, store: S3Store) -> None:
    with pytest.raises(StoreError, match=r"AWS_CA_BUNDLE '/nowhere/bundle\.pem'"):
        await store.get("key")
    assert s3.requests == []
