"""Opens the container, or the prefix of one, that a URL names."""

from storage_backends.azure.config import AzureConfig
from storage_backends.azure.endpoint import place_of
from storage_backends.azure.store import AzureStore
from storage_backends.base import ObjectStore
from storage_backends.url import StoreUrl
from storage_backends.validation import is_key


def open_url(url: StoreUrl, config: AzureConfig) -> ObjectStore:
    """`abfss://container@account.dfs.core.windows.net/prefix`, `abfs:` likewise, or `az://container/prefix`: all by the
    blob endpoint. Raises `ValueError` without a container or an account, or for a prefix that no key can have."""
    place = place_of(url, config)
    prefix = url.path.strip("/")
    if prefix and not is_key(prefix):
        raise ValueError(
            "the prefix of an Azure URL must not have an empty, '.' or '..' segment or a control character: "
            f"{url.text!r}"
        )
    return AzureStore(place.container, prefix, config=place.config)
