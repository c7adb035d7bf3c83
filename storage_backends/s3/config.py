"""Configuration of a bucket of S3: endpoint, credentials and timeouts, made by hand or from the usual `AWS_*`
variables.

Source of the variables: AWS SDKs and tools reference, "Environment variables list".
"""

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from storage_backends.lazy_dataclass import dataclass
from storage_backends.s3.signature import Credentials
from storage_backends.wire.proxies import NO_PROXIES, Proxies
from storage_backends.wire.settings import ConnectionSettings

_BEFORE_CONTAINERS = ("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE")
_ECS = "http://169.254.170.2"


class Addressing(StrEnum):
    """Where a request to S3 names the bucket: in the host's name (`VIRTUAL`) or in the path (`PATH`). `AUTO` is the
    path for a configured endpoint; for Amazon's it is the host, unless Amazon's certificates do not cover the bucket's
    name, as one with a dot."""

    AUTO = "auto"
    PATH = "path"
    VIRTUAL = "virtual"


class Carrier(StrEnum):
    """How requests to S3 are sent: over connections of our own (`WIRE`), or by the vendor's SDK. `AUTO` is the SDK
    where our own connections can't serve the bucket."""

    AUTO = "auto"
    WIRE = "wire"
    SDK = "sdk"


@dataclass(frozen=True, slots=True)
class ContainerEndpoint:
    """Credentials for S3: an address that returns temporary keys (ECS, EKS, Lambda with SnapStart), and the token that
    it requires. The file `token_file` has priority over `token`, and is read for each request to that address, since
    the token in it is rotated."""

    url: str
    token: str = field(default="", repr=False)
    token_file: str | None = None


@dataclass(frozen=True, slots=True)
class DefaultChain:
    """Credentials for S3 by botocore's own search: profiles, SSO, roles, instances. botocore reads these two files for
    this profile; None stands for those that this process's variables name. Other variables, of web identity and
    instances, are always this process's, since botocore reads them itself."""

    profile: str | None = None
    config_file: str | None = None
    credentials_file: str | None = None


CredentialsConfig = Credentials | ContainerEndpoint | DefaultChain


@dataclass(frozen=True, slots=True)
class S3Config(ConnectionSettings):
    """The settings of one store on S3. Stores with different settings can exist in one process.

    `region` None is that of botocore's profile. An `endpoint_url` replaces Amazon's endpoint; the first call fails if
    it is combined with `fips` or `dualstack`, which select another of Amazon's.

    `encryption` (`AES256`, `aws:kms`, `aws:kms:dsse`) and `kms_key_id` are requested with each write; None leaves it to
    the bucket. `bucket_owner` is the account that must own the bucket. `requester_pays` accepts that the requester
    pays. `checksum` sends the SHA-256 of each object, which buckets with Object Lock demand.
    """

    region: str | None = None
    credentials: CredentialsConfig = DefaultChain()
    endpoint_url: str | None = None
    addressing: Addressing = Addressing.AUTO
    fips: bool = False
    dualstack: bool = False
    carrier: Carrier = Carrier.AUTO
    proxies: Proxies = NO_PROXIES
    encryption: str | None = None
    kms_key_id: str | None = None
    bucket_owner: str | None = None
    requester_pays: bool = False
    checksum: bool = True

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "S3Config":
        """Reads the usual variables, and those named `ARCO_S3_*`. Raises `ValueError` for an unknown `ARCO_S3_CLIENT`;
        nothing else is checked yet: the first call reports other errors."""
        return cls(
            region=environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or None,
            credentials=_credentials(environment),
            endpoint_url=environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL") or None,
            fips=_is_on(environment, "AWS_USE_FIPS_ENDPOINT"),
            dualstack=_is_on(environment, "AWS_USE_DUALSTACK_ENDPOINT"),
            ca_bundle=environment.get("AWS_CA_BUNDLE") or None,
            carrier=_carrier(environment),
            proxies=Proxies.from_environment(environment),
            encryption=environment.get("ARCO_S3_ENCRYPTION") or None,
            kms_key_id=environment.get("ARCO_S3_KMS_KEY_ID") or None,
            bucket_owner=environment.get("ARCO_S3_BUCKET_OWNER") or None,
            requester_pays=_is_on(environment, "ARCO_S3_REQUESTER_PAYS"),
            checksum=environment.get("AWS_REQUEST_CHECKSUM_CALCULATION", "").strip().lower() != "when_required",
        )

    def request_headers(self) -> dict[str, str]:
        """Returns the headers of every request: the account that must own the bucket, and the consent of a requester to
        pay; empty if neither is configured."""
        owner = {"x-amz-expected-bucket-owner": self.bucket_owner} if self.bucket_owner else {}
        return {**owner, **({"x-amz-request-payer": "requester"} if self.requester_pays else {})}

    def object_headers(self) -> dict[str, str]:
        """Returns the headers for the write of an object, by which the store encrypts it; empty if none is configured.
        A key without a kind of encryption stands for `aws:kms`."""
        encryption = self.encryption or ("aws:kms" if self.kms_key_id else None)
        named = {"x-amz-server-side-encryption": encryption} if encryption else {}
        key = {"x-amz-server-side-encryption-aws-kms-key-id": self.kms_key_id} if self.kms_key_id else {}
        return {**named, **key}


def _credentials(environment: Mapping[str, str]) -> CredentialsConfig:
    """Returns where the AWS credentials come from, by the environment variables: access keys first, even if only one of
    the pair is set; then a container's credentials endpoint, unless a variable names a source that botocore tries
    before it; else botocore's chain."""
    access, secret = (environment.get(f"AWS_{name}", "").strip() for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY"))
    if access or secret:
        return Credentials(access, secret, environment.get("AWS_SESSION_TOKEN", "").strip() or None)
    relative = environment.get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")
    url = f"{_ECS}{relative}" if relative else environment.get("AWS_CONTAINER_CREDENTIALS_FULL_URI")
    if not url or any(environment.get(name) for name in _BEFORE_CONTAINERS):
        return _chain(environment)
    return ContainerEndpoint(
        url,
        environment.get("AWS_CONTAINER_AUTHORIZATION_TOKEN", ""),
        environment.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE") or None,
    )


def _chain(environment: Mapping[str, str]) -> DefaultChain:
    """Returns the settings of botocore's chain by the environment variables. They have no profile if there is a web
    identity, which belongs to the process and which botocore would ignore."""
    profile = environment.get("AWS_DEFAULT_PROFILE") or environment.get("AWS_PROFILE") or None
    return DefaultChain(
        None if environment.get("AWS_WEB_IDENTITY_TOKEN_FILE") else profile,
        environment.get("AWS_CONFIG_FILE") or None,
        environment.get("AWS_SHARED_CREDENTIALS_FILE") or None,
    )


def _carrier(environment: Mapping[str, str]) -> Carrier:
    """Returns the client that ARCO_S3_CLIENT names, `AUTO` if it is not set. Raises `ValueError` for any other value of
    the variable."""
    text = environment.get("ARCO_S3_CLIENT", "").strip().lower()
    try:
        return Carrier(text or Carrier.AUTO)
    except ValueError:
        raise ValueError(f"ARCO_S3_CLIENT: expected {', '.join(Carrier)}, got {text!r}") from None


def _is_on(environment: Mapping[str, str], name: str) -> bool:
    """Whether a variable is `true`, in any case; every other text counts as false."""
    return environment.get(name, "").strip().lower() == "true"
