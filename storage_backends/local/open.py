"""Opens the folder that a `file:` URL names as a store."""

from storage_backends.base import ObjectStore
from storage_backends.local.config import LocalConfig
from storage_backends.local.store import LocalStore
from storage_backends.url import StoreUrl


def open_url(url: StoreUrl, config: LocalConfig) -> ObjectStore:
    """Opens the store at `file:/path` or `file:///path`. Raises `ValueError` for a relative path, or for another
    machine's."""
    if url.host not in ("", "localhost"):
        raise ValueError(f"a file URL must not name a host (write file:/path or file:///path): {url.text!r}")
    if not url.path.startswith("/"):
        raise ValueError(f"a file URL must have an absolute path: {url.text!r}")
    return LocalStore(url.path, config=config)
