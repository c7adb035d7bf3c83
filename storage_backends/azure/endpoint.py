"""Computes the address of an Azure container by its URL and configuration: pure functions.

Sources: Azure Storage, "Storage account overview", "Naming and referencing containers, blobs, and metadata", "Use the
Azure Data Lake Storage URI", "Connect to Azurite".
"""

import re
from dataclasses import replace
from urllib.parse import urlsplit

from storage_backends.azure.config import AzureConfig, ClientSecret, DefaultChain
from storage_backends.azure.signature import path_of
from storage_backends.base import StoreError
from storage_backends.lazy_dataclass import dataclass
from storage_backends.url import StoreUrl
from storage_backends.wire.endpoint import Endpoint, parse_endpoint

_ACCOUNT = re.compile(r"[a-z0-9]{3,24}")
_CONTAINER = re.compile(r"(?=.{3,63}\Z)[a-z0-9](-?[a-z0-9])*")
_CLOUDS = "core.windows.net", "core.usgovcloudapi.net", "core.chinacloudapi.cn"
_DFS_HOST = re.compile(rf"({_ACCOUNT.pattern})\.dfs\.({'|'.join(map(re.escape, _CLOUDS))})")
_ZONED_HOST = re.compile(rf"({_ACCOUNT.pattern})\.(z[0-9]+\.dfs\.storage\.azure\.net)")


@dataclass(frozen=True, slots=True)
class Place:
    """The container that the URL of a store names, and the configuration with the account and endpoint in which it
    is."""

    container: str
    config: AzureConfig


@dataclass(frozen=True, slots=True)
class ContainerEndpoint(Endpoint):
    """The address of an Azure container, or of a queue, and the name of the storage account in which it is."""

    account: str

    def path_to(self, key: str) -> str:
        """Returns the encoded path of an object in URLs, or of the container itself if the key is empty."""
        return f"{self.path}/{path_of(key)}" if key else self.path


def place_of(url: StoreUrl, config: AzureConfig) -> Place:
    """Returns the container that a URL names, with its configuration. The URL has
    `container@account.dfs.core.windows.net`, also of another Azure cloud, or only `container`, which is in the
    configured account. Raises `ValueError` for any other name, for only a container if no account is configured, and
    for another account than the configured one, unless its credentials serve both and no endpoint is set."""
    container, at, host = url.host.partition("@")
    if not _CONTAINER.fullmatch(container):
        raise ValueError(
            "an Azure URL must name a container (3 to 63 lower-case letters, digits and single hyphens between them): "
            f"{url.text!r}"
        )
    if not at:
        if config.account is None:
            raise ValueError(f"{url.text!r} names no account: set AZURE_STORAGE_ACCOUNT, or {account_form(container)}")
        return Place(container, config)
    host = host.lower()
    account, blob_host = _account_and_blob_host(host, url.text)
    if config.account not in (None, account):
        shared = isinstance(config.credentials, ClientSecret | DefaultChain) and config.endpoint_url is None
        if not shared:
            raise ValueError(
                f"{url.text!r} is in another account than {config.account!r}, for which the key, the signature or the "
                "endpoint is configured: configure them for the account of the URL"
            )
    return Place(
        container, replace(config, account=account, endpoint_url=config.endpoint_url or f"https://{blob_host}")
    )


def canonical_url(url: StoreUrl, config: AzureConfig) -> str:
    """Returns the URL in the form that engines use: always with the account, and with the path that it has. Raises
    `ValueError` for a URL that names no container, or no account that may be used."""
    place = place_of(url, config)
    _, at, host = url.host.partition("@")
    host = host.lower() if at else f"{place.config.account}.dfs.{_suffix(config)}"
    return f"abfss://{place.container}@{host}{url.text.partition('://')[2].removeprefix(url.host)}"


def account_form(container: str) -> str:
    """Returns the part of an error message that states how to write the URL of a container with an account."""
    return f"write abfss://{container}@ACCOUNT.dfs.core.windows.net/prefix"


def endpoint_of(container: str, config: AzureConfig) -> ContainerEndpoint:
    """Returns the address of `container` in the configured account. Raises `StoreError` for an invalid account or
    endpoint."""
    account = config.account or ""
    if not _ACCOUNT.fullmatch(account):
        raise StoreError(
            f"no Azure client can be made: invalid account name {account!r}: expected 3 to 24 of a-z and 0-9"
        )
    at = parse_endpoint(config.endpoint_url or f"https://{account}.blob.{_CLOUDS[0]}", "Azure")
    return ContainerEndpoint(at.tls, at.host, at.port, at.authority, f"{at.path}/{path_of(container)}", account)


def _account_and_blob_host(host: str, text: str) -> tuple[str, str]:
    """Returns the storage account in a host of the form `ACCOUNT.dfs.core.windows.net` (also of another Azure cloud, or
    with a DNS zone), and the host of that account's blob endpoint. Raises `ValueError` for a host of another form;
    `text` is the URL for the message."""
    if (match := _DFS_HOST.fullmatch(host)) or (match := _ZONED_HOST.fullmatch(host)):
        return match[1], host.replace(".dfs.", ".blob.", 1)
    raise ValueError(
        f"the URL {text!r} names no account of Azure Storage: expected ACCOUNT.dfs.core.windows.net after the @, or "
        "the host of an account in another Azure cloud"
    )


def _suffix(config: AzureConfig) -> str:
    """Returns the domain of the Azure cloud in which the configured endpoint is, such as core.windows.net; that of the
    public cloud for any other endpoint."""
    host = (urlsplit(config.endpoint_url or "").hostname or "").removeprefix(f"{config.account}.blob.")
    return host if host in _CLOUDS else _CLOUDS[0]
