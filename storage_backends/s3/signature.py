"""AWS Signature Version 4, for S3 and a few other services: a pure function from a request to its signed headers.

Source: S3 API reference, "Signature Calculations for the Authorization Header: Transferring Payload in a Single Chunk".
The body is always hashed and signed, over TLS too, unless the caller gives another hash.
"""

from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import field
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha256
from hmac import digest
from urllib.parse import quote

from storage_backends.lazy_dataclass import dataclass

_ALGORITHM = "AWS4-HMAC-SHA256"
_NOTHING = sha256(b"").digest()


@dataclass(frozen=True, slots=True)
class Credentials:
    """An AWS access key and its secret, with a token if they belong to a session."""

    access_key: str
    secret_key: str = field(repr=False)
    token: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Scope:
    """The AWS region and service for which a request is signed."""

    region: str
    service: str = "s3"


@lru_cache(maxsize=4_096)  # no key is longer than 1,024 bytes
def path_of(key: str) -> str:
    """Returns the path of a key, escaped as it is both sent and signed: S3 neither normalises it nor escapes it
    twice."""
    return quote(key, safe="/-_.~")


def query_of(parameters: Iterable[tuple[str, str]]) -> str:
    """Returns a query string in the order and with the escapes in which it is signed and sent."""
    pairs = sorted((quote(name, safe="-_.~"), quote(value, safe="-_.~")) for name, value in parameters)
    return "&".join(f"{name}={value}" for name, value in pairs)


def signed(
    credentials: Credentials,
    scope: Scope,
    stamp: str,
    method: str,
    path: str,
    query: str,
    headers: Mapping[str, str],
    body: bytes,
    *,
    checksum: bool = False,
    body_hash: str | None = None,
) -> dict[str, str]:
    """Returns `headers` (lower-case names, `host` among them) with date, hash, token and `authorization` added.

    Every header given is signed, so a proxy that drops a condition makes the request invalid. `stamp` is
    the time as `YYYYMMDDTHHMMSSZ`; `path` and `query` are as `path_of` and `query_of` write them. `checksum` gives the
    hash again as the checksum that a bucket with Object Lock demands (S3 user guide, "Checking object integrity").
    `body_hash` is signed in place of the hash of `body`, for who signs what another sends.
    """
    body_digest = sha256(body).digest() if body else _NOTHING
    body_hash = body_hash or body_digest.hex()
    sent = {**headers, "x-amz-content-sha256": body_hash, "x-amz-date": stamp}
    if checksum:
        sent["x-amz-checksum-sha256"] = b64encode(body_digest).decode()
    if credentials.token:
        sent["x-amz-security-token"] = credentials.token
    names = sorted(sent)
    signed_names = ";".join(names)
    lines = "".join(f"{name}:{' '.join(sent[name].split())}\n" for name in names)
    canonical = f"{method}\n{path}\n{query}\n{lines}\n{signed_names}\n{body_hash}"
    day = stamp[:8]
    within = f"{day}/{scope.region}/{scope.service}/aws4_request"
    to_sign = f"{_ALGORITHM}\n{stamp}\n{within}\n{sha256(canonical.encode()).hexdigest()}"
    key = _signing_key(credentials.secret_key, day, scope.region, scope.service)
    signature = digest(key, to_sign.encode(), "sha256").hex()
    credential = f"{credentials.access_key}/{within}"
    sent["authorization"] = f"{_ALGORITHM} Credential={credential}, SignedHeaders={signed_names}, Signature={signature}"
    return sent


def signing_stamp(now_ms: int) -> str:
    """Returns a time in milliseconds since 1970 as signatures have it: `YYYYMMDDTHHMMSSZ`."""
    return _stamp(now_ms // 1_000)


@lru_cache(maxsize=4)  # many requests are signed within a second
def _stamp(seconds: int) -> str:
    """Returns a time in seconds since 1970 as Signature Version 4 has it (`YYYYMMDDTHHMMSSZ`)."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y%m%dT%H%M%SZ")


@lru_cache(maxsize=8)
def _signing_key(secret: str, day: str, region: str, service: str) -> bytes:
    """Returns the key with which requests of a day to a service in a region are signed."""
    key = f"AWS4{secret}".encode()
    for part in (day, region, service, "aws4_request"):
        key = digest(key, part.encode(), "sha256")
    return key
