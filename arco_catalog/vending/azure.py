"""Credentials for Azure Storage: a shared access signature for each folder, signed with a user delegation key.

A signature for a directory needs a hierarchical namespace. In a flat account the narrowest signature is for a
container, which is more than a table, so there is none unless the operator has accepted that.

Sources: Azure Storage REST API, "Get User Delegation Key", "Create a user delegation SAS"; Iceberg, `AzureProperties`,
`VendedAdlsCredentialProvider`.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol
from xml.etree import ElementTree

from arco_catalog.state.locations import Location
from arco_catalog.vending.azure_sas import READ, VERSION, WRITE, DelegationKey, iso_second, user_delegation_sas
from arco_catalog.vending.credential import StorageCredential
from arco_catalog.vending.errors import CredentialsRefused, own_credentials
from arco_catalog.vending.outbound import Outbound
from arco_catalog.vending.scope import Scope
from arco_catalog.vending.storage_config import AzureStorage
from storage_backends.azure.config import AzureConfig
from storage_backends.azure.credentials import BearerToken
from storage_backends.azure.endpoint import ContainerEndpoint, endpoint_of, place_of
from storage_backends.base import StoreError
from storage_backends.url import StoreUrl
from storage_backends.wire.dates import iso_date_ms
from storage_backends.wire.http1 import Response

REFRESH_PROPERTY = "adls.refresh-credentials-endpoint"
SKEW_MS = 5 * 60_000
"""How long before the present time a signature begins to be valid, because clocks differ."""

_KEY_FIELDS = ("SignedOid", "SignedTid", "SignedStart", "SignedExpiry", "SignedService", "SignedVersion", "Value")
_MAX_KEYS = 64


class EntraSource(Protocol):
    """The interface of sources of tokens of Entra ID for the catalog's identity, such as `EntraTokens`."""

    async def current(self) -> BearerToken:
        """Returns a token of the catalog's identity that is valid now. Raises `StoreDenied` if the identity gets none,
        and `StoreUnavailable` if a later call may get one."""
        ...


class AzureIssuer:
    """Issues credentials for Azure Storage: signatures for the accounts that `config` reaches, which expire after
    `lifetime_s`. `container_scope` is the operator's consent to signatures for whole containers in flat accounts; the
    caller has checked that they contain no other data."""

    def __init__(
        self,
        outbound: Outbound,
        tokens: EntraSource,
        now_ms: Callable[[], int],
        lifetime_s: int = 3_600,
        config: AzureConfig | None = None,
        *,
        container_scope: bool = False,
    ) -> None:
        self._outbound = outbound
        self._tokens = tokens
        self._now_ms = now_ms
        self._lifetime_ms = lifetime_s * 1_000
        self._config = config or AzureConfig()
        self._container_scope = container_scope
        self._keys: dict[tuple[str, str], DelegationKey] = {}
        self._asking = asyncio.Lock()

    async def issue(self, config: AzureStorage, scope: Scope, _principal: str) -> tuple[StorageCredential, ...]:
        """Returns one credential, with a signature, for each folder of the scope that names an account of Azure; none
        for flat accounts unless the operator has allowed signatures for whole containers. Raises `Unavailable` if Azure
        does not answer, and `CredentialsRefused` if it refuses, or the catalog has no credentials for Azure, or ones of
        another tenant."""
        if not config.hierarchical and not self._container_scope:
            return ()
        places = [(location, self._endpoint(location)) for location in scope.in_store("abfss")]
        return tuple(
            [
                await self._signature(config, location, endpoint, write=scope.write)
                for location, endpoint in places
                if endpoint is not None
            ]
        )

    def _endpoint(self, location: Location) -> ContainerEndpoint | None:
        """Returns the address of the location's container; None for a location that names no account of Azure."""
        url = f"abfss://{location.authority}/{location.path}"
        try:
            place = place_of(StoreUrl(url, "abfss", location.authority, location.path), self._config)
            return endpoint_of(place.container, place.config)
        except (StoreError, ValueError):
            return None

    async def _signature(
        self, config: AzureStorage, location: Location, endpoint: ContainerEndpoint, *, write: bool
    ) -> StorageCredential:
        """Returns a credential for one location: a signature for the folder, or for the whole container in a flat
        account. Raises `Unavailable` if Azure does not answer, and `CredentialsRefused` if it rejects the
        request, or the catalog has no credentials for Azure, or ones of another tenant."""
        key = await self._key(config, endpoint)
        now_ms = self._now_ms()
        expires_ms = min(now_ms + self._lifetime_ms, key.expires_ms) // 1_000 * 1_000
        container, _, host = location.authority.partition("@")
        token = user_delegation_sas(
            key,
            endpoint.account,
            container,
            location.segments if config.hierarchical else (),
            WRITE if write else READ,
            now_ms - SKEW_MS,
            expires_ms,
        )
        host = host.lower() or endpoint.host
        properties = {
            f"adls.sas-token.{host}": token,
            f"adls.sas-token.{endpoint.account}": token,  # Iceberg before 1.8
            "adls.sas-token": token,  # PyIceberg
            "adls.account-name": endpoint.account,
            f"adls.sas-token-expires-at-ms.{host}": str(expires_ms),
        }
        return StorageCredential(location.uri, properties, expires_ms, REFRESH_PROPERTY)

    async def _key(self, config: AzureStorage, endpoint: ContainerEndpoint) -> DelegationKey:
        """Returns a user delegation key of the account that outlives a new signature: the cached one, or else a new one
        of Azure, which is then cached. Raises `Unavailable` if Azure does not answer, and `CredentialsRefused` if it
        refuses, or the catalog has no credentials for Azure, or ones of another tenant."""
        name = (config.tenant_id, endpoint.origin)
        async with self._asking:  # one task requests the key; the others use it
            held = self._keys.get(name)
            if held is None or held.expires_ms < self._now_ms() + self._lifetime_ms:
                held = await self._ask(config, endpoint)
                if len(self._keys) >= _MAX_KEYS:
                    self._keys.clear()
                self._keys[name] = held
        return held

    async def _ask(self, config: AzureStorage, endpoint: ContainerEndpoint) -> DelegationKey:
        """Gets a user delegation key for an account from Azure. Raises `Unavailable` if Azure does not answer, and
        `CredentialsRefused` if it rejects the request, or the catalog has no credentials for Azure, or ones of another
        tenant than `config`."""
        bearer = await own_credentials(self._tokens.current(), "Azure")
        now_ms = self._now_ms()
        start, expiry = iso_second(now_ms - SKEW_MS), iso_second(now_ms + 2 * self._lifetime_ms)
        body = (
            f'<?xml version="1.0" encoding="utf-8"?><KeyInfo><Start>{start}</Start><Expiry>{expiry}</Expiry></KeyInfo>'
        )
        headers = {
            "authorization": f"Bearer {bearer.token}",
            "x-ms-version": VERSION,
            "content-type": "application/xml",
        }
        base = endpoint.url.rsplit("/", 1)[0]  # of the account: the emulator's has a path
        url = f"{base}/?restype=service&comp=userdelegationkey"
        key = read_key(await self._outbound.send("POST", url, headers, body.encode()), endpoint.account)
        if key.tenant_id.lower() != config.tenant_id.lower():
            raise CredentialsRefused(
                f"the catalog's Azure identity is of another tenant than {config.tenant_id}, the tenantId of the "
                "storage configuration",
                "WrongTenant",
            )
        return key


def read_key(response: Response, account: str) -> DelegationKey:
    """Reads the user delegation key in a response of Azure. Raises `CredentialsRefused` for an error or any other
    response; the message quotes no part of a key."""
    if response.status != 200:
        code = response.headers.get("x-ms-error-code", "")
        raise CredentialsRefused(
            f"Azure refuses a user delegation key for the account {account}: status {response.status} {code}"[:2_000],
            code,
        )
    try:
        root = ElementTree.fromstring(response.body) if b"<!" not in response.body else ElementTree.Element("")
    except (ElementTree.ParseError, ValueError, LookupError):
        root = ElementTree.Element("")
    found = {child.tag: (child.text or "").strip() for child in root}
    if root.tag != "UserDelegationKey" or not all(found.get(name) for name in _KEY_FIELDS):
        raise CredentialsRefused(
            f"Azure answered with something else than a user delegation key for the account {account}", "InvalidAnswer"
        )
    oid, tid, start, expiry, service, version, value = (found[name] for name in _KEY_FIELDS)
    try:
        return DelegationKey(oid, tid, start, expiry, service, version, value, iso_date_ms(expiry))
    except ValueError as error:
        raise CredentialsRefused(
            "Azure's answer states no valid time at which the user delegation key expires", "InvalidAnswer"
        ) from error
