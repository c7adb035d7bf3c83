"""Binds the answer of a login to the program that began it (PKCE, RFC 7636)."""

import base64
import hashlib
from collections.abc import Callable, Mapping


def proof_key(entropy: Callable[[int], bytes]) -> tuple[str, Mapping[str, str]]:
    """Returns a new code verifier, and the parameters of a request with its challenge."""
    verifier = url_text(entropy(32))
    challenge = url_text(hashlib.sha256(verifier.encode()).digest())
    return verifier, {"code_challenge": challenge, "code_challenge_method": "S256"}


def url_text(content: bytes) -> str:
    """Returns bytes as base64url without padding."""
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()
