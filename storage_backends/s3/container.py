"""Gets temporary AWS keys from the container credentials endpoint of ECS, EKS and Lambda SnapStart.

Sources: AWS SDKs and tools reference, "Container credential provider"; ECS developer guide, "Task IAM role".
"""

import asyncio
import json
from collections.abc import Callable
from http import HTTPStatus
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from storage_backends.base import StoreDenied, StoreError, StoreUnavailable
from storage_backends.lazy_dataclass import dataclass
from storage_backends.s3.config import ContainerEndpoint
from storage_backends.s3.signature import Credentials
from storage_backends.wire.dates import iso_date_ms
from storage_backends.wire.endpoint import target_of
from storage_backends.wire.http1 import AnswerLost, NeverSent, Response, request_head
from storage_backends.wire.pool import Pool, Timeouts, tls_context

REFRESH_MS = 15 * 60_000
"""Keys are renewed when they expire within this time; the endpoint has newer ones by then."""
TIMEOUTS = Timeouts(connect_s=2.0, idle_s=2.0, exchange_s=5.0)
MAX_ANSWER_BYTES = 64 * 1024

_NO_KEYS = "no AWS credentials: the container credentials endpoint returned no keys"
_PLAIN_HOSTS = ("localhost", "169.254.170.2", "169.254.170.23", "fd00:ec2::23")


@dataclass(frozen=True, slots=True)
class _ExpiringKeys:
    """Temporary AWS keys, and the time at which they expire in milliseconds since 1970."""

    keys: Credentials
    until_ms: int


class ContainerCredentials:
    """A source of temporary AWS keys from a container's endpoint, which are renewed before they expire. If a renewal
    fails, the old keys are used as long as they are valid."""

    def __init__(self, config: ContainerEndpoint, now_ms: Callable[[], int]) -> None:
        self._config = config
        self._now_ms = now_ms
        self._held: _ExpiringKeys | None = None
        self._asking = asyncio.Lock()

    async def current(self) -> Credentials:
        """Returns access keys that have not expired, from the container's endpoint. Raises `StoreUnavailable` if the
        endpoint does not respond, or with status 429 or from 500 on, and another `StoreError` if it can't be called or
        responds without keys; while the old keys are valid, returns these instead."""
        if self._held is None or self._left_ms(self._held) < REFRESH_MS:
            async with self._asking:  # one task renews; the others use the keys
                if self._held is None or self._left_ms(self._held) < REFRESH_MS:
                    self._held = await self._renewed()
        return self._held.keys

    async def _renewed(self) -> _ExpiringKeys:
        """Returns new access keys from the container's endpoint, or the old ones if that fails while they are valid;
        otherwise raises the `StoreError`. Does not keep the keys."""
        try:
            return _read(await self._ask())
        except StoreError:
            if self._held is None or self._left_ms(self._held) <= 0:
                raise
            return self._held

    def _left_ms(self, held: _ExpiringKeys) -> int:
        """Returns for how many milliseconds access keys are still valid; 0 or less once they have expired."""
        return held.until_ms - self._now_ms()

    async def _ask(self) -> Response:
        """Requests access keys from the container's endpoint over a connection of its own, and returns the response,
        whatever the status. Raises `StoreUnavailable` if there is none, and another `StoreError` for an address that is
        not allowed, a token file that can't be read, or a token that is not printable ASCII."""
        parts, port = address_of(self._config.url)
        headers = {"host": parts.netloc, "accept": "application/json", "user-agent": "arco-catalog"}
        if token := await self._token():
            headers["authorization"] = token
        target = target_of(parts)
        tls = await asyncio.to_thread(tls_context, None) if parts.scheme == "https" else None
        pool = Pool(parts.hostname or "", port, tls, 1, TIMEOUTS, self._now_ms, MAX_ANSWER_BYTES)
        try:
            return await pool.send("GET", request_head("GET", target, headers, 0), b"")
        except (NeverSent, AnswerLost) as error:
            raise StoreUnavailable(
                f"no AWS credentials: the container credentials endpoint gave no whole answer: {error}"
            ) from error
        finally:
            await pool.close()

    async def _token(self) -> str:
        """Returns the token for requests to the container's endpoint: that in the token file, which is rotated, or else
        the configured one; empty for none. Raises `StoreDenied` for a file that can't be read."""
        file = self._config.token_file
        if file is None:
            return self._config.token
        try:
            return await asyncio.to_thread(Path(file).read_text)
        except (OSError, UnicodeDecodeError) as error:
            raise StoreDenied(
                f"no AWS credentials: the file of AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE can't be read: {error}"
            ) from error


def address_of(url: str) -> tuple[SplitResult, int]:
    """Returns the parts and the port of the URL from which a container gets its AWS credentials. Keys and token are not
    encrypted by the protocol, so plain HTTP is accepted only to this machine and to the fixed addresses of ECS and EKS.
    Raises `StoreDenied` for any other URL."""
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError as error:
        raise StoreDenied(
            f"no AWS credentials: the container credentials endpoint {url!r} is not a valid URL: {error}"
        ) from error
    safe = parts.scheme == "https" or (parts.scheme == "http" and _is_near(parts.hostname or ""))
    if not safe or not parts.hostname or "@" in parts.netloc:
        raise StoreDenied(
            f"no AWS credentials: the container credentials endpoint {url!r} must be https, or http to this machine "
            "or to a fixed address of ECS or EKS, with a host and no user"
        )
    return parts, port


def _is_near(host: str) -> bool:
    """Whether a host may be called without TLS: it is this machine, or the endpoint of a container platform."""
    try:
        return host in _PLAIN_HOSTS or ip_address(host).is_loopback
    except ValueError:
        return False


def _read(response: Response) -> _ExpiringKeys:
    """Returns the AWS access keys in the response of a container's endpoint, with the time at which they expire. Raises
    `StoreUnavailable` for status 429 and from 500 on, and another `StoreError` for any other response without keys."""
    if response.status >= HTTPStatus.INTERNAL_SERVER_ERROR or response.status == HTTPStatus.TOO_MANY_REQUESTS:
        raise StoreUnavailable(
            f"no AWS credentials: the container credentials endpoint answered status {response.status}, which may pass"
        )
    if response.status != HTTPStatus.OK:
        raise StoreDenied(f"no AWS credentials: the container credentials endpoint answered status {response.status}")
    try:
        match json.loads(response.body):
            case {"AccessKeyId": str(id_), "SecretAccessKey": str(key), "Token": str(token), "Expiration": str(until)}:
                return _ExpiringKeys(Credentials(id_, key, token), iso_date_ms(until))
    except ValueError as error:
        raise StoreDenied(_NO_KEYS) from error
    raise StoreDenied(_NO_KEYS)  # the answer itself may hold a key, so it is not quoted
