"""Opens the Azure container, or the prefix of one, that a URL names."""

from storage_backends.azure.config import AzureConfig
from storage_backends.azure.endpoint import place_of
from storage_backends.azure.store import AzureStore
from storage_backends.base import ObjectStore
from storage_backends.url import StoreUrl


def open_url(url: StoreUrl, config: AzureConfig) -> ObjectStore:
    """Opens the store at `abfss://container@account.dfs.core.windows.net/prefix`, `abfs:` likewise, or
    `az://container/prefix`: all by the blob endpoint. Raises `ValueError` without a container or without an account
    that may be used, or for a prefix that no key can have."""
    place, prefix = place_of(url, config), url.prefix("an Azure URL")
    if "\\" in prefix:
        raise ValueError(f"the prefix of an Azure URL must not contain a backslash, taken for a slash: {url.text!r}")
    return AzureStore(place.container, prefix, config=place.config)
