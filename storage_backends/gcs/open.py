"""Opens the bucket, or the prefix of one, that a URL names."""

from storage_backends.base import ObjectStore
from storage_backends.gcs.config import GcsConfig
from storage_backends.gcs.store import GcsStore
from storage_backends.url import StoreUrl
from storage_backends.validation import is_key


def open_url(url: StoreUrl, config: GcsConfig) -> ObjectStore:
    """`gs://bucket/prefix`. Raises `ValueError` without a bucket, or for a prefix that no key can have."""
    if not url.host:
        raise ValueError(f"a GCS URL must name a bucket: {url.text!r}")
    prefix = url.path.strip("/")
    if prefix and not is_key(prefix):
        raise ValueError(
            f"the prefix of a GCS URL must not have an empty, '.' or '..' segment or a control character: {url.text!r}"
        )
    return GcsStore(url.host, prefix, config=config)
