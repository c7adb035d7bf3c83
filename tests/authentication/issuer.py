"""An issuer of tokens in memory, with keys of every kind."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from arco_catalog.authentication.jwks import MAX_DISCOVERY_BYTES, IssuerKeys
from arco_catalog.authentication.oidc import Issuer, OidcAuthenticator
from arco_catalog.iceberg.json import JsonObject, dumps
from storage_backends import StoreUnavailable
from tests.support.fake_runtime import FakeRuntime

URL = "https://id.example.org/pool"
AUDIENCE = "arco"
Private = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey | ed448.Ed448PrivateKey


@cache
def private_key(algorithm: str, number: int) -> Private:
    """A key for an algorithm, the same each time."""
    match algorithm:
        case "ES256":
            return ec.generate_private_key(ec.SECP256R1())
        case "ES384":
            return ec.generate_private_key(ec.SECP384R1())
        case "ES512":
            return ec.generate_private_key(ec.SECP521R1())
        case "EdDSA":
            return ed25519.Ed25519PrivateKey.generate()
        case "Ed448":
            return ed448.Ed448PrivateKey.generate()
        case "weak":
            return rsa.generate_private_key(65537, 1024)
    return rsa.generate_private_key(65537, 2048)


def public_jwk(key: Private, key_id: str, **more: Any) -> dict[str, Any]:
    """The public half, as key sets have it."""
    public = key.public_key()
    if isinstance(public, rsa.RSAPublicKey):
        jwk = RSAAlgorithm.to_jwk(public, as_dict=True)
    elif isinstance(public, ec.EllipticCurvePublicKey):
        jwk = ECAlgorithm.to_jwk(public, as_dict=True)
    else:
        jwk = OKPAlgorithm.to_jwk(public, as_dict=True)
    return {**jwk, "kid": key_id, "use": "sig", **more}


@dataclass
class MemoryIssuer:
    """What an issuer publishes, and how often it was asked. `down` is whether it does not answer."""

    runtime: FakeRuntime
    url: str = URL
    keys: dict[str, tuple[str, Private]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    down: bool = False
    discovery: JsonObject | None = None
    key_set: bytes | None = None

    def __post_init__(self) -> None:
        if not self.keys:
            self.add("k1")

    def add(self, key_id: str, algorithm: str = "RS256", number: int = 0) -> None:
        self.keys[key_id] = (algorithm, private_key(algorithm, number))

    async def get(self, url: str, max_bytes: int) -> bytes:
        self.asked.append(url)
        if self.down:
            raise StoreUnavailable("nobody answers")
        if max_bytes == MAX_DISCOVERY_BYTES:
            return dumps(self.discovery or {"issuer": self.url, "jwks_uri": f"{self.url}/keys"})
        if self.key_set is not None:
            return self.key_set
        return dumps({"keys": [public_jwk(key, name) for name, (_, key) in self.keys.items()]})

    def claims(self, **more: Any) -> dict[str, Any]:
        """Those of a good token, with these besides or instead; None leaves one out."""
        now = self.runtime.ms // 1000
        good = {"iss": self.url, "aud": AUDIENCE, "sub": "ada", "iat": now, "exp": now + 3600}
        return {name: value for name, value in {**good, **more}.items() if value is not None}

    def token(self, key_id: str = "k1", headers: dict[str, Any] | None = None, **claims: Any) -> str:
        algorithm, key = self.keys[key_id]
        header = {"kid": key_id, **(headers or {})}
        return jwt.encode(self.claims(**claims), key, algorithm, headers=header)

    def source(self) -> IssuerKeys:
        return IssuerKeys(self.url, self.get, self.runtime.now_ms)

    def settings(self, **changed: Any) -> Issuer:
        settings: dict[str, Any] = {
            "url": self.url,
            "realm": "r1",
            "audiences": [AUDIENCE, "arco-too"],
            "algorithms": ["RS256", "ES256", "EdDSA"],
            "principal_claim": "sub",
            "roles_claim": None,
            **changed,
        }
        return Issuer(**settings)


def trusting(issuers: Sequence[MemoryIssuer], **settings: Any) -> OidcAuthenticator:
    """An authenticator that takes tokens of these."""
    pairs = [(issuer.settings(**settings), issuer.source()) for issuer in issuers]
    return OidcAuthenticator(pairs, issuers[0].runtime.now_ms)
