"""AWS credentials and region as a configuration has them: keys, the container credentials endpoint that it names, or
botocore's chain (profiles, SSO, roles, instances). Imports botocore only for that chain, and for a region that no
variable names.

botocore blocks, so it is only called in a thread.
"""

import asyncio
from typing import Any, Protocol

from storage_backends.base import StoreDenied, StoreError, StoreUnavailable
from storage_backends.clock import system_now_ms
from storage_backends.s3.config import ContainerEndpoint, CredentialsConfig, DefaultChain, S3Config
from storage_backends.s3.signature import Credentials

_WITHOUT_BOTOCORE = (
    "and botocore, which would look in profiles, roles and instance metadata, is not installed: "
    "install the extra 's3' of arco-catalog"
)


class CredentialSource(Protocol):
    """The interface of sources of AWS credentials: of temporary ones that are renewed in time, or of configured ones,
    which stay as they are."""

    async def current(self) -> Credentials:
        """Returns AWS credentials: renewed ones have not expired, configured ones may have. Raises `StoreUnavailable`
        for a transient failure, another `StoreError`, mostly `StoreDenied`, if there are none."""
        ...


def credentials_of(config: CredentialsConfig) -> CredentialSource:
    """Returns the source of the configured AWS credentials. Raises `StoreDenied` if a configured pair of keys is not
    complete."""
    match config:
        case Credentials():
            if not config.access_key or not config.secret_key:
                raise StoreDenied(
                    "no AWS credentials: only one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY is set: set both, "
                    "or neither"
                )
            return FixedCredentials(config)
        case ContainerEndpoint():
            from storage_backends.s3.container import ContainerCredentials  # not for functions that were given keys

            return ContainerCredentials(config, system_now_ms)
        case DefaultChain():
            return BotocoreCredentials(config)


async def region_of(config: S3Config) -> str:
    """Returns the region that was configured, or else the one in the profile that botocore reads. Raises `StoreError`
    if there is none, or without botocore."""
    if config.region:
        return config.region
    chain = config.credentials if isinstance(config.credentials, DefaultChain) else DefaultChain()
    return await asyncio.to_thread(_region_of_profile, chain)


class FixedCredentials:
    """A source of AWS credentials that always returns the configured ones."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials

    async def current(self) -> Credentials:
        """Returns the configured credentials, without a call of any service."""
        return self._credentials


class BotocoreCredentials:
    """A source of AWS credentials by botocore's chain, which renews them a quarter of an hour before they expire, as
    botocore does."""

    def __init__(self, chain: DefaultChain) -> None:
        self._chain = chain
        self._found: Any = None
        self._good: Credentials | None = None
        self._asking = asyncio.Lock()

    async def current(self) -> Credentials:
        """Returns the keys of botocore's chain, renewed if they expire soon, by one task at a time; the old ones if
        botocore fails to renew them while they are valid for 10 minutes more. Raises `StoreUnavailable` if a service
        such as STS does not respond, and `StoreDenied` if botocore is missing or gets none, also where the instance
        metadata does not respond."""
        if self._good is not None and not self._expires_soon():
            return self._good
        async with self._asking:  # one task renews; the others use the credentials
            if self._good is None or self._expires_soon():
                self._good = await asyncio.to_thread(self._ask)
            return self._good

    def _expires_soon(self) -> bool:
        """Whether botocore would renew the credentials now."""
        refresh_needed = getattr(self._found, "refresh_needed", None)  # keys in a file never expire
        return refresh_needed is not None and bool(refresh_needed())

    def _ask(self) -> Credentials:
        """Returns the keys that botocore's chain has, renewed if they expire soon. Blocks. Raises `StoreUnavailable` if
        a service such as STS does not respond, and `StoreDenied` without botocore, for another `BotoCoreError` or
        `ClientError`, and without credentials, also where the instance metadata does not respond."""
        try:
            from botocore.exceptions import (  # type: ignore[import-untyped]
                BotoCoreError,
                ClientError,
                HTTPClientError,
            )
            from botocore.exceptions import ConnectionError as NoConnection

            session = _session(self._chain)
        except ModuleNotFoundError as error:
            raise StoreDenied(f"no AWS credentials: AWS_ACCESS_KEY_ID is not set, {_WITHOUT_BOTOCORE}") from error
        try:
            self._found = self._found or session.get_credentials()
            if self._found is None:
                raise StoreDenied(
                    "no AWS credentials: AWS_ACCESS_KEY_ID is not set, and botocore found none in profiles, of "
                    "roles, or in the instance metadata, which it may only have failed to reach now"
                )
            keys = self._found.get_frozen_credentials()
        except (HTTPClientError, NoConnection) as error:
            raise StoreUnavailable(f"no AWS credentials: their provider does not answer: {error}") from error
        except (BotoCoreError, ClientError) as error:
            raise StoreDenied(f"no AWS credentials: botocore got none, for good or for now: {error}") from error
        return Credentials(keys.access_key, keys.secret_key, keys.token)


def _session(chain: DefaultChain) -> Any:
    """Returns a session of botocore's that reads the profile and the files of a chain. Raises `ModuleNotFoundError`
    without botocore."""
    from botocore.session import Session  # type: ignore[import-untyped]

    session = Session(profile=chain.profile)
    for name, file in (("config_file", chain.config_file), ("credentials_file", chain.credentials_file)):
        if file is not None:
            session.set_config_variable(name, file)
    return session


def _region_of_profile(chain: DefaultChain) -> str:
    """Returns the region that the profile of a chain names. Blocks. Raises `StoreError` if it names none or can't be
    read, or without botocore."""
    no_region = "no S3 client can be made: neither AWS_REGION nor AWS_DEFAULT_REGION is set"
    try:
        from botocore.exceptions import BotoCoreError

        session = _session(chain)
    except ModuleNotFoundError as error:
        raise StoreError(f"{no_region}, {_WITHOUT_BOTOCORE}") from error
    try:
        region = session.get_config_variable("region")
    except BotoCoreError as error:
        raise StoreError(f"{no_region}: {error}") from error
    if not region:
        raise StoreError(f"{no_region}, nor does a profile name one")
    return str(region)
