"""AWS credentials and region. Looked for in this order: keys in the environment; the container credentials endpoint
that the environment names; botocore's chain (profiles, SSO, roles, instances). Only this module imports botocore, and
only for the last.

botocore blocks, so it is only called in a thread.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Protocol

from storage_backends.base import StoreDenied, StoreError, StoreUnavailable
from storage_backends.clock import system_now_ms
from storage_backends.s3_wire.signature import Credentials

_BEFORE_CONTAINERS = ("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE")
_WITHOUT_BOTOCORE = (
    "and botocore, which would look in profiles, roles and instance metadata, is not installed: "
    "pip install 'arco-catalog[s3]'"
)


class CredentialSource(Protocol):
    """Returns credentials that have not expired."""

    async def current(self) -> Credentials:
        """Raises `StoreDenied` if there are none, `StoreUnavailable` for a transient failure."""
        ...


def credentials_in(environment: Mapping[str, str]) -> CredentialSource:
    """The source that the environment asks for. Raises `StoreDenied` if only one key of the pair is set."""
    access, secret = (environment.get(f"AWS_{name}", "").strip() for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY"))
    if not access and not secret:
        return _elsewhere(environment)
    if not access or not secret:
        raise StoreDenied("only one is set of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY: set both")
    return FixedCredentials(Credentials(access, secret, environment.get("AWS_SESSION_TOKEN", "").strip() or None))


def _elsewhere(environment: Mapping[str, str]) -> CredentialSource:
    named = any(environment.get(f"AWS_CONTAINER_CREDENTIALS_{kind}_URI") for kind in ("RELATIVE", "FULL"))
    if not named or any(environment.get(name) for name in _BEFORE_CONTAINERS):
        return BotocoreCredentials()
    from storage_backends.s3_wire.container import ContainerCredentials  # not for functions that were given keys

    return ContainerCredentials(environment, system_now_ms)


async def region_in(environment: Mapping[str, str]) -> str:
    """The region in the environment, or else in the profile that botocore reads. Raises `StoreError` for none."""
    if region := environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION"):
        return region
    return await asyncio.to_thread(_region_of_profile)


class FixedCredentials:
    """The same ones always."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials

    async def current(self) -> Credentials:
        return self._credentials


class BotocoreCredentials:
    """What botocore's chain finds, asked again a quarter of an hour before it expires, as botocore would."""

    def __init__(self) -> None:
        self._found: Any = None
        self._good: Credentials | None = None
        self._asking = asyncio.Lock()

    async def current(self) -> Credentials:
        if self._good is not None and not self._expires_soon():
            return self._good
        async with self._asking:  # one task asks; the others use its answer
            if self._good is None or self._expires_soon():
                self._good = await asyncio.to_thread(self._ask)
            return self._good

    def _expires_soon(self) -> bool:
        refresh_needed = getattr(self._found, "refresh_needed", None)  # keys in a file never expire
        return refresh_needed is not None and bool(refresh_needed())

    def _ask(self) -> Credentials:
        try:
            from botocore.exceptions import (  # type: ignore[import-untyped]
                BotoCoreError,
                ClientError,
                HTTPClientError,
            )
            from botocore.session import get_session  # type: ignore[import-untyped]
        except ModuleNotFoundError as error:
            raise StoreDenied(f"AWS_ACCESS_KEY_ID is not set, {_WITHOUT_BOTOCORE}") from error
        try:
            self._found = self._found or get_session().get_credentials()
            if self._found is None:
                raise StoreDenied("no AWS credentials: AWS_ACCESS_KEY_ID is not set, and botocore found none")
            keys = self._found.get_frozen_credentials()
        except HTTPClientError as error:
            raise StoreUnavailable(f"the AWS credentials provider does not answer: {error}") from error
        except (BotoCoreError, ClientError) as error:
            raise StoreDenied(f"no AWS credentials: {error}") from error
        return Credentials(keys.access_key, keys.secret_key, keys.token)


def _region_of_profile() -> str:
    missing = "no S3 client can be made: neither AWS_REGION nor AWS_DEFAULT_REGION is set"
    try:
        from botocore.exceptions import BotoCoreError
        from botocore.session import get_session
    except ModuleNotFoundError as error:
        raise StoreError(f"{missing}, {_WITHOUT_BOTOCORE}") from error
    try:
        region = get_session().get_config_variable("region")
    except BotoCoreError as error:
        raise StoreError(f"{missing}: {error}") from error
    if not region:
        raise StoreError(f"{missing}, nor does a profile name one")
    return str(region)
