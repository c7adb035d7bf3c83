"""The storage configuration of a catalog: how the files of tables are reached, and which identity opens them. The
management API calls it `storageConfigInfo`.

Source: Polaris management API, `StorageConfigInfo`, `AwsStorageConfigInfo`, `GcpStorageConfigInfo`,
`AzureStorageConfigInfo`, `FileStorageConfigInfo`.
"""

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from arco_catalog.iceberg.errors import BadRequest
from arco_catalog.iceberg.json import JsonObject
from storage_backends.lazy_dataclass import dataclass

DEFAULT_REGION = "us-east-1"

_ROLE = re.compile(r"arn:([a-z0-9-]{1,20}):[a-z0-9-]{1,20}:[^\s]{1,2000}")
_REGION = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_SERVICE_ACCOUNT = re.compile(r"[A-Za-z0-9._%+-]+(@[A-Za-z0-9.-]+)?")  # its email, or its unique id
_ANY = re.compile(".*", re.DOTALL)
_PRINTABLE = re.compile(r"[\x21-\x7e]{1,2048}")


@dataclass(frozen=True, slots=True)
class AwsStorage:
    """The storage configuration of a catalog on S3, or on a store that speaks the same protocol. `endpoint` is the
    clients', `endpoint_internal` the catalog's own. With `path_style` None, clients use their default."""

    role_arn: str | None = None
    external_id: str | None = None
    region: str | None = None
    endpoint: str | None = None
    endpoint_internal: str | None = None
    sts_endpoint: str | None = None
    sts_unavailable: bool = False
    path_style: bool | None = None
    current_kms_key: str | None = None
    allowed_kms_keys: tuple[str, ...] = ()
    kms_unavailable: bool = False

    @property
    def assumes_role(self) -> bool:
        """Whether the catalog has a role, and its store an STS that issues keys of it."""
        return self.role_arn is not None and not self.sts_unavailable

    @property
    def partition(self) -> str:
        """The partition of AWS in the ARN of the role, such as `aws` or `aws-cn`; `aws` without a role, or with a role
        of another store."""
        match = _ROLE.fullmatch(self.role_arn or "")
        return match[1] if match and match[1].startswith("aws") else "aws"

    @property
    def is_amazon(self) -> bool:
        """Whether all configured endpoints are Amazon's; also True if none is configured. Other stores don't read all
        of the policy language."""
        named = (self.endpoint, self.endpoint_internal, self.sts_endpoint)
        hosts = [urlsplit(url).hostname or "" for url in named if url]
        return all(re.search(r"\.(amazonaws\.(com|com\.cn|eu)|api\.aws)$", host) for host in hosts)

    @property
    def client_properties(self) -> Mapping[str, str]:
        """The properties by which every client reaches the store, the ones that are configured, without secrets
        (Iceberg, `S3FileIOProperties` and `AwsClientProperties`; PyIceberg and DuckDB read `s3.region`, too)."""
        named = {
            "client.region": self.region,
            "s3.region": self.region,
            "s3.endpoint": self.endpoint,
            "s3.path-style-access": None if self.path_style is None else str(self.path_style).lower(),
        }
        return {name: value for name, value in named.items() if value}


@dataclass(frozen=True, slots=True)
class GcpStorage:
    """The storage configuration of a catalog on Google Cloud Storage. `service_account` is the account that the catalog
    acts as when it vends; None for its own."""

    service_account: str | None = None


@dataclass(frozen=True, slots=True)
class AzureStorage:
    """The storage configuration of a catalog on Azure Storage. `hierarchical` means that the accounts have a
    hierarchical namespace, which a signature for a directory needs."""

    tenant_id: str
    hierarchical: bool = False


@dataclass(frozen=True, slots=True)
class FileStorage:
    """The storage configuration of a catalog on local files. There is nothing to vend."""


StorageConfig = AwsStorage | GcpStorage | AzureStorage | FileStorage
_DESCRIPTIONS = ("storageName", "userArn", "multiTenantAppName", "consentUrl")
"""The strings of the management API that a catalog keeps and shows, and does not use."""


def parse_storage_config(document: JsonObject) -> StorageConfig:
    """Reads the configuration in a `storageConfigInfo`. Unknown fields are ignored. Raises `BadRequest` for an unknown
    `storageType`, and for a field of that type, or one that all have, with an invalid value, or without a value that
    the type requires."""
    _strings(document, "allowedLocations", "strings")
    for name in _DESCRIPTIONS:
        _text(document, name)
    match document.get("storageType"):
        case "S3":
            return _aws(document)
        case "GCS":
            return GcpStorage(_text(document, "gcsServiceAccount", _SERVICE_ACCOUNT))
        case "AZURE":
            tenant = _text(document, "tenantId")
            if tenant is None:
                raise BadRequest("storageConfigInfo: storageType AZURE requires a tenantId")
            return AzureStorage(tenant, _flag(document, "hierarchical") or False)
        case "FILE":
            return FileStorage()
    raise BadRequest("storageConfigInfo: storageType must be S3, GCS, AZURE or FILE")


def _aws(document: JsonObject) -> AwsStorage:
    """Reads the storage configuration of a catalog on S3 from its JSON; fields that are missing have the defaults of
    `AwsStorage`. Raises `BadRequest` for a field with an invalid value."""
    return AwsStorage(
        role_arn=_text(document, "roleArn"),
        external_id=_text(document, "externalId"),
        region=_text(document, "region", _REGION),
        endpoint=_url(document, "endpoint"),
        endpoint_internal=_url(document, "endpointInternal"),
        sts_endpoint=_url(document, "stsEndpoint"),
        sts_unavailable=_flag(document, "stsUnavailable") or False,
        path_style=_flag(document, "pathStyleAccess"),
        current_kms_key=_text(document, "currentKmsKey"),
        allowed_kms_keys=_strings(document, "allowedKmsKeys", "ARNs", _PRINTABLE),
        kms_unavailable=_flag(document, "kmsUnavailable") or False,
    )


def _strings(document: JsonObject, name: str, kind: str, form: "re.Pattern[str]" = _ANY) -> tuple[str, ...]:
    """Returns the strings of an array in a storage configuration; none without one. Raises `BadRequest`, which names
    their `kind`, for anything else, and unless all match `form`."""
    value = document.get(name)
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(item, str) and form.fullmatch(item) for item in value):
        raise BadRequest(f"storageConfigInfo: {name} must be an array of {kind}")
    return tuple(map(str, value))


def _text(document: JsonObject, name: str, form: "re.Pattern[str]" = _PRINTABLE) -> str | None:
    """Returns a text in a storage configuration; None without one, and for an empty one. Raises `BadRequest` unless the
    text matches `form`."""
    value = document.get(name)
    if value is None or value == "":
        return None
    if not isinstance(value, str) or not form.fullmatch(value):
        raise BadRequest(f"storageConfigInfo: {name} must be a string that matches {form.pattern}")
    return value


def _flag(document: JsonObject, name: str) -> bool | None:
    """Returns the boolean field `name` of a storage configuration; None if it is missing or null. Raises `BadRequest`
    for any other value."""
    value = document.get(name)
    if value is not None and not isinstance(value, bool):
        raise BadRequest(f"storageConfigInfo: {name} must be true or false")
    return value


def _url(document: JsonObject, name: str) -> str | None:
    """Returns a URL in a storage configuration; None without one. Raises `BadRequest` unless it is an http or https URL
    of a host, without user, query and fragment."""
    text = _text(document, name)
    if text is None:
        return None
    try:
        parts = urlsplit(text)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        valid = False
    if not valid or parts.username or parts.query or parts.fragment or "\\" in text:
        raise BadRequest(f"storageConfigInfo: {name} must be http(s)://host[:port][/path]")
    return text
