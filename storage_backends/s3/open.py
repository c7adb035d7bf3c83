"""Opens the bucket, or the prefix of one, that a URL names."""

from storage_backends.base import ObjectStore
from storage_backends.s3.access_point import canonical_url
from storage_backends.s3.config import S3Config
from storage_backends.s3.store import S3Store
from storage_backends.url import StoreUrl


def open_url(url: StoreUrl, config: S3Config) -> ObjectStore:
    """`s3://bucket/prefix`, or an access point's ARN in the bucket's place. Raises `ValueError` without a bucket, for
    any other ARN, or for a prefix that no key can have."""
    url = canonical_url(url)
    if not url.host:
        raise ValueError(f"an S3 URL must name a bucket: {url.text!r}")
    return S3Store(url.host, url.prefix("an S3 URL"), config=config)
