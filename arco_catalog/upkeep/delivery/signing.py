"""Signs requests to webhooks, by the scheme of Standard Webhooks 1.0 (https://www.standardwebhooks.com): symmetric
signatures, so that a receiver can verify them with a library of that scheme."""

import binascii
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from hmac import digest

PREFIX = "whsec_"
SECRET_BYTES = 32
MIN_BYTES, MAX_BYTES = 24, 64
"""The least and the largest number of bytes of a secret that the scheme permits."""
_INVALID = (
    f"the secret of the subscription is not {PREFIX!r} and the base64 of {MIN_BYTES} to {MAX_BYTES} bytes: "
    "remove the subscription, and make another one"
)


def new_secret(entropy: Callable[[int], bytes]) -> str:
    """Returns a fresh secret, in the form in which libraries take it. `entropy` returns a number of random bytes."""
    return PREFIX + b64encode(entropy(SECRET_BYTES)).decode()


def key_of(secret: str) -> bytes:
    """Returns the bytes of the key in the secret of a webhook. Raises `ValueError` for a text without the prefix, that
    is no base64, or with a key that is too short or too long."""
    try:
        key = b64decode(secret.removeprefix(PREFIX), validate=True)
    except binascii.Error as error:
        raise ValueError(_INVALID) from error
    if not secret.startswith(PREFIX) or not MIN_BYTES <= len(key) <= MAX_BYTES:
        raise ValueError(_INVALID)
    return key


def signed_headers(secret: str, message: str, at_s: int, body: bytes) -> Mapping[str, str]:
    """Returns the headers of a request with this body: the id of the `message`, the time of the attempt in seconds
    since 1970, and the signature of both and of the body. Raises `ValueError` for an invalid secret."""
    signature = b64encode(digest(key_of(secret), b"%s.%d.%s" % (message.encode(), at_s, body), "sha256")).decode()
    return {"webhook-id": message, "webhook-timestamp": str(at_s), "webhook-signature": f"v1,{signature}"}
