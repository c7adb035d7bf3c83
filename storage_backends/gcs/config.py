"""Configuration of a bucket: endpoint, credentials and timeouts, made by hand or from the usual variables.

Sources of the variables: "Environment variables" of google-auth and of google-cloud-storage; Terraform's Google
provider, for the access token.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from storage_backends.wire.settings import ConnectionSettings

UNIVERSE = "googleapis.com"


class GcsClient(StrEnum):
    """What carries requests: connections of our own, or google-cloud-storage."""

    WIRE = "wire"
    SDK = "sdk"


@dataclass(frozen=True, slots=True)
class Anonymous:
    """No credentials: emulators, and buckets that anybody may read."""


@dataclass(frozen=True, slots=True)
class AccessToken:
    """An OAuth 2.0 token. Nothing renews it."""

    token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class CredentialsFile:
    """A file of credentials: a service account's key, an authorized user, or an external account."""

    path: str


@dataclass(frozen=True, slots=True)
class CredentialsJson:
    """The text of such a file."""

    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class MetadataServer:
    """The service account of the machine, by its metadata server."""


@dataclass(frozen=True, slots=True)
class ApplicationDefault:
    """google-auth's own search (ADC): the variable, gcloud's file, the metadata server. Unlike all else here it is this
    process's, since google-auth reads variables and files itself."""


CredentialsConfig = Anonymous | AccessToken | CredentialsFile | CredentialsJson | MetadataServer | ApplicationDefault


@dataclass(frozen=True, slots=True)
class GcsConfig(ConnectionSettings):
    """How one store reaches GCS. Stores that are configured differently live side by side in one process.

    An `endpoint` replaces Google's. `user_project` is billed for each request, as buckets whose requester pays demand.
    """

    credentials: CredentialsConfig = ApplicationDefault()
    endpoint: str = f"https://storage.{UNIVERSE}"
    project: str | None = None
    user_project: str | None = None
    client: GcsClient = GcsClient.WIRE

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "GcsConfig":
        """Returns the configuration that the usual variables have. Raises `ValueError` for an unknown ARCO_GCS_CLIENT;
        the first call reports other errors."""
        emulator = environment.get("STORAGE_EMULATOR_HOST", "").strip()
        universe = environment.get("GOOGLE_CLOUD_UNIVERSE_DOMAIN") or UNIVERSE
        return cls(
            credentials=Anonymous() if emulator else _credentials(environment),
            endpoint=_with_scheme(emulator) if emulator else f"https://storage.{universe}",
            project=environment.get("GOOGLE_CLOUD_PROJECT") or None,
            user_project=environment.get("GOOGLE_CLOUD_QUOTA_PROJECT") or None,
            client=_client(environment.get("ARCO_GCS_CLIENT") or GcsClient.WIRE),
            ca_bundle=environment.get("REQUESTS_CA_BUNDLE") or None,
        )


def _credentials(environment: Mapping[str, str]) -> CredentialsConfig:
    if token := environment.get("GOOGLE_OAUTH_ACCESS_TOKEN", "").strip():
        return AccessToken(token)
    if path := environment.get("GOOGLE_APPLICATION_CREDENTIALS"):
        return CredentialsFile(path)
    return ApplicationDefault()


def _with_scheme(host: str) -> str:
    """Some clients write the emulator's address with a scheme, some without."""
    return host if "://" in host else f"http://{host}"


def _client(name: str) -> GcsClient:
    try:
        return GcsClient(name)
    except ValueError as error:
        raise ValueError(f"ARCO_GCS_CLIENT: expected {' or '.join(GcsClient)}, got {name!r}") from error
