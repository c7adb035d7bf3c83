"""Opens the GCS bucket, or the prefix of one, that a URL names."""

from storage_backends.base import ObjectStore
from storage_backends.gcs.config import GcsConfig
from storage_backends.gcs.store import GcsStore
from storage_backends.url import StoreUrl


def open_url(url: StoreUrl, config: GcsConfig) -> ObjectStore:
    """Opens the store at `gs://bucket/prefix`. Raises `ValueError` without a bucket, or for a prefix that no key can
    have."""
    if not url.host:
        raise ValueError(f"a GCS URL must name a bucket: {url.text!r}")
    return GcsStore(url.host, url.prefix("a GCS URL"), config=config)
