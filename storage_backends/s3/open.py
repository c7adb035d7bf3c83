"""Opens the S3 bucket, or the prefix of one, that a URL names."""

from dataclasses import replace
from typing import TYPE_CHECKING

from storage_backends.base import ObjectStore
from storage_backends.s3.access_point import canonical_url
from storage_backends.s3.config import Carrier, S3Config
from storage_backends.s3.store import S3Store
from storage_backends.url import StoreUrl

if TYPE_CHECKING:  # no request reads versions
    from storage_backends.versions import KeptVersions


def open_url(url: StoreUrl, config: S3Config) -> ObjectStore:
    """Opens the store at `s3://bucket/prefix`, or with an access point's ARN in the bucket's place; sends nothing yet.
    Raises `ValueError` without a bucket, for any other ARN or a multi-Region alias, or for a prefix that no key can
    have."""
    return S3Store(*_place(url), config=config)


def open_versions(url: StoreUrl, config: S3Config) -> "KeptVersions":
    """Opens the reader of all versions, current and previous, that the bucket at this URL keeps of objects, over
    connections of our own. Raises `ValueError` without a bucket, for an ARN, or a multi-Region alias, that is no access
    point in one Region, or for a prefix that no key can have. For the ARN of an access point, a directory bucket or a
    proxy on the way, all of which need the SDK, the first call raises `StoreError`."""
    from storage_backends.s3.versions import S3Versions

    return S3Versions(*_place(url), config=replace(config, carrier=Carrier.WIRE))


def _place(url: StoreUrl) -> tuple[str, str]:
    """Returns the bucket, or the ARN of an access point, and the prefix that a URL names. Raises `ValueError` without a
    bucket, for any other ARN or a multi-Region alias, or for a prefix that no key can have."""
    url = canonical_url(url)
    if not url.host:
        raise ValueError(f"an S3 URL must name a bucket: {url.text!r}")
    return url.host, url.prefix("an S3 URL")
