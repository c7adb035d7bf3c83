"""Limits of a catalog's storage configuration: callers who may make catalogs must not choose the hosts to which the
server sends signed requests, nor, where the operator restricts them, the identities that it assumes. Pure.

Sources: AWS general reference, "AWS Security Token Service endpoints", "Amazon S3 endpoints".
"""

import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from urllib.parse import urlsplit

from arco_catalog.config.variables import VENDING_ENDPOINTS, VENDING_IDENTITIES
from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.vending.storage_config import DEFAULT_REGION, AwsStorage, GcpStorage, StorageConfig
from storage_backends.lazy_dataclass import dataclass
from storage_backends.s3.endpoint import domain_of

ANY = ("*",)

_OWN_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL_STS", "AWS_ENDPOINT_URL")
_AMAZON_REGION = re.compile(r"[a-z]+(-[a-z]+)+-[0-9]+")  # any other could make a host of Amazon's that is a customer's
_AUTHORITY = re.compile(r"(\[[^\[\]@]+\]|[^\[\]@:]+)(:[0-9]*)?")  # else readers differ in what the host is
_AMAZON_SERVICES = ("sts", "sts-fips", "s3", "s3.dualstack", "s3-fips", "s3-fips.dualstack")


@dataclass(frozen=True, slots=True)
class StoragePolicy:
    """What the operator lets storage configurations of catalogs make the server do: `endpoints` are URLs of S3 or STS
    that may be named besides Amazon's own for the region; `identities` are patterns of the role ARNs and service
    accounts that the server may assume."""

    endpoints: frozenset[str] = frozenset()
    identities: tuple[str, ...] = ANY

    @classmethod
    def of(cls, endpoints: Iterable[str], identities: Iterable[str] = ANY) -> "StoragePolicy":
        """Returns the policy with these endpoints and patterns of identities; without patterns, all identities are
        allowed. Raises `ValueError` for an endpoint that is no URL."""
        return cls(frozenset(map(_normal, endpoints)), tuple(identities) or ANY)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "StoragePolicy":
        """Returns the policy with the endpoints and identities that the operator lists (all identities if none is
        listed), and the endpoints of the server's own store. Raises `ValueError` for an endpoint that is no URL, which
        names all variables that have endpoints."""
        own = [url for name in _OWN_ENDPOINTS if (url := environment.get(name))]
        try:
            return cls.of([*own, *VENDING_ENDPOINTS.read(environment)], VENDING_IDENTITIES.read(environment))
        except ValueError as error:
            raise ValueError(
                f"one of {', '.join(_OWN_ENDPOINTS)} and {VENDING_ENDPOINTS.name} is invalid: {error}"
            ) from error

    def check(self, config: StorageConfig) -> None:
        """Raises `BadRequest` unless the operator allows the endpoints and the identity of a storage configuration.
        Those of Azure and of local files are always allowed."""
        match config:
            case AwsStorage():
                self._check_endpoints(config)
                self._check_identity("roleArn", config.role_arn)
            case GcpStorage():
                self._check_identity("gcsServiceAccount", config.service_account)

    def check_use(self, config: StorageConfig) -> None:
        """Raises `BadRequest` for a storage configuration by which no requests may be sent: one that `check` refuses,
        and one that has a role in a region which is none of Amazon's, but no endpoint. A catalog may have such a
        configuration, as in Polaris."""
        self.check(config)
        if not isinstance(config, AwsStorage) or config.role_arn is None:
            return
        region = config.region or DEFAULT_REGION
        if not _amazons(region) and not (config.endpoint or config.endpoint_internal or config.sts_endpoint):
            raise BadRequest(
                f"the catalog's storageConfigInfo has a role in region {region}, which is none of Amazon's, and no "
                "endpoint: tables load without credentials, and no request is signed, until the region is corrected, "
                "or endpoint or stsEndpoint set in it"
            )

    def _check_endpoints(self, config: AwsStorage) -> None:
        """Raises `BadRequest` if a storage configuration names an endpoint that is neither in `endpoints` (which has
        the ones of the server's own store, too) nor Amazon's own in the configured region."""
        named = {
            "endpoint": config.endpoint,
            "endpointInternal": config.endpoint_internal,
            "stsEndpoint": config.sts_endpoint,
        }
        region = config.region or DEFAULT_REGION
        amazons = _amazons(region)
        for name, url in named.items():
            if url and not _is_one_of(url, self.endpoints | amazons):
                raise BadRequest(
                    f"storageConfigInfo: {name} {url} is not allowed (tables of a catalog that has it already load "
                    "without credentials): this server uses the endpoint of its own store and Amazon's own in the "
                    f"region; the operator allows others by {VENDING_ENDPOINTS.name}"
                )

    def _check_identity(self, name: str, identity: str | None) -> None:
        """Raises `BadRequest` for a role or account in the field `name` of a storage configuration that matches none of
        the operator's patterns. None, and an empty text, are allowed."""
        if identity and not any(fnmatchcase(identity, pattern) for pattern in self.identities):
            raise BadRequest(
                f"storageConfigInfo: {name} {identity} is not allowed (tables of a catalog that has it already load "
                "without credentials): the operator lists the identities that this server may assume in "
                f"{VENDING_IDENTITIES.name}"
            )


def _amazons(region: str) -> frozenset[str]:
    """Returns the normal URLs of Amazon's own endpoints of S3 and STS in a region; none if the region does not have the
    form of Amazon's, such as `eu-west-1`."""
    if not _AMAZON_REGION.fullmatch(region):
        return frozenset()
    names = [f"{service}.{region}" for service in _AMAZON_SERVICES] + (["s3"] if region == DEFAULT_REGION else [])
    return frozenset(_normal(f"https://{name}.{domain_of(region)}") for name in names)


def _is_one_of(url: str, endpoints: frozenset[str]) -> bool:
    """Whether the normal form of a URL is one of these endpoints. An invalid URL is none."""
    try:
        return _normal(url) in endpoints
    except ValueError:
        return False


def _normal(url: str) -> str:
    """Returns the normal form of a URL's scheme, host, port and path, without slashes at the end, by which URLs are
    compared. Raises `ValueError` unless it is a URL of http or https without a user."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or not _AUTHORITY.fullmatch(parts.netloc):
        raise ValueError(f"expected http(s)://host[:port][/path], got {url!r}")
    port = (443 if parts.scheme == "https" else 80) if parts.port is None else parts.port
    return f"{parts.scheme}://{parts.hostname.lower()}:{port}{parts.path.rstrip('/')}"
