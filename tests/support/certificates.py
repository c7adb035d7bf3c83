"""Certificates of a test's own."""

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID


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
    key_file.write_bytes(_pem(key))


@dataclass(frozen=True)
class Authority:
    """An authority of a test's own, whose certificate is in a file."""

    file: Path
    _key: ec.EllipticCurvePrivateKey
    _name: x509.Name

    @classmethod
    def make(cls, file: Path, name: str) -> "Authority":
        """A new one of this name."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
        certificate = (
            _builder(subject, subject, key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .sign(key, hashes.SHA256())
        )
        file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        return cls(file, key, subject)

    def issue(
        self, folder: Path, name: str, *, address: str | None = None, uri: str | None = None
    ) -> tuple[Path, Path]:
        """A certificate for a client of this name, for a server at this address, or for a URI without a name; and its
        key."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([] if uri is not None else [x509.NameAttribute(NameOID.COMMON_NAME, name)])
        usage = ExtendedKeyUsageOID.CLIENT_AUTH if address is None else ExtendedKeyUsageOID.SERVER_AUTH
        own = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = (
            _builder(subject, self._name, key)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(own, critical=False)
        )
        names: list[x509.GeneralName] = [] if address is None else [x509.IPAddress(ipaddress.ip_address(address))]
        names += [] if uri is None else [x509.UniformResourceIdentifier(uri)]
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=uri is not None)
        certificate = builder.sign(self._key, hashes.SHA256())
        files = folder / f"{name}.crt", folder / f"{name}.key"
        files[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        files[1].write_bytes(_pem(key))
        return files


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number())
    return builder.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
