"""Computes the address of a bucket of S3: a pure function.

Sources: S3 user guide, "Virtual hosting of general purpose buckets", "Making requests over dual-stack endpoints"; AWS
general reference, "Amazon S3 endpoints and quotas". Tested against botocore's own rules.
"""

import re
from dataclasses import replace

from storage_backends.base import StoreError
from storage_backends.s3.config import Addressing, S3Config
from storage_backends.s3.signature import path_of
from storage_backends.wire.endpoint import Endpoint, parse_endpoint

_PARTITIONS = {  # prefixes of regions, and the domains of those that are not Amazon's main one
    "cn-": "amazonaws.com.cn",
    "eusc-": "amazonaws.eu",
    "us-iso-": "c2s.ic.gov",
    "us-isob-": "sc2s.sgov.gov",
    "us-isof-": "csp.hci.ic.gov",
    "eu-isoe-": "cloud.adc-e.uk",
}
_REGION = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_BUCKET = re.compile(r"[A-Za-z0-9._-]{3,255}")  # old buckets may have names that new ones may not
_HOST_LABEL = re.compile(r"[a-z0-9][a-z0-9-]{1,61}[a-z0-9]")  # what the certificate's asterisk stands for


def endpoint_of(bucket: str, region: str, config: S3Config) -> Endpoint:
    """Returns the address of `bucket`. Raises `StoreError` for an invalid or unsupported name, region or endpoint."""
    if not _BUCKET.fullmatch(bucket):
        raise StoreError(
            f"no S3 client can be made: invalid bucket name {bucket!r}: expected 3 to 255 ASCII "
            "letters, digits, dots, hyphens and underscores"
        )
    if not _REGION.fullmatch(region):
        raise StoreError(
            f"no S3 client can be made: invalid region {region!r}: expected lower-case letters and digits, "
            "with hyphens between them"
        )
    if config.endpoint_url:
        if config.fips or config.dualstack:
            raise StoreError(
                "no S3 client can be made: an endpoint of your own cannot be combined with a FIPS or dual-stack "
                "endpoint: unset AWS_ENDPOINT_URL_S3 and AWS_ENDPOINT_URL, or AWS_USE_FIPS_ENDPOINT and "
                "AWS_USE_DUALSTACK_ENDPOINT"
            )
        return _custom(config.endpoint_url, bucket, in_host=_in_host(bucket, config))
    domain = domain_of(region)
    service = f"s3{'-fips' if config.fips else ''}{'.dualstack' if config.dualstack else ''}.{region}.{domain}"
    if _in_host(bucket, config):
        host, path = f"{bucket}.{service}", "/"
    else:
        host, path = service, f"/{path_of(bucket)}/"
    return Endpoint(tls=True, host=host, port=443, authority=host, path=path)


def domain_of(region: str) -> str:
    """Returns the domain of Amazon's services in a region."""
    return next((domain for prefix, domain in _PARTITIONS.items() if region.startswith(prefix)), "amazonaws.com")


def is_directory_bucket(bucket: str) -> bool:
    """Whether the bucket is in one zone (S3 Express), or an access point's alias leads to one: it has sessions, and an
    address, of its own."""
    return bucket.endswith(("--x-s3", "--xa-s3"))


def is_arn(bucket: str) -> bool:
    """Whether the bucket is named by an ARN, as an access point may be."""
    return bucket.startswith("arn:")


def _in_host(bucket: str, config: S3Config) -> bool:
    """Whether the host's name in requests begins with the name of the bucket. Raises `StoreError` if the configuration
    requires that and the bucket's name can't be part of a host's."""
    fits = _HOST_LABEL.fullmatch(bucket) is not None
    match config.addressing:
        case Addressing.PATH:
            return False
        case Addressing.AUTO:
            return fits and not config.endpoint_url
        case Addressing.VIRTUAL if fits:
            return True
    raise StoreError(
        f"no S3 client can be made: {bucket!r} cannot be one label of a host's name: use path addressing, not virtual"
    )


def _custom(url: str, bucket: str, *, in_host: bool) -> Endpoint:
    """Returns the address of a bucket at a configured endpoint, with the bucket before the host's name, or else in the
    path. Raises `StoreError` for an invalid URL."""
    at = parse_endpoint(url, "S3")
    if in_host:
        authority = f"{bucket}.{at.authority}"
        return replace(at, host=f"{bucket}.{at.host}", authority=authority, path=f"{at.path}/")
    return replace(at, path=f"{at.path}/{path_of(bucket)}/")
