"""Configuration of a bucket of Google Cloud Storage: endpoint, credentials and timeouts, made by hand or from the usual
variables.

Sources of the variables: "Environment variables" of google-auth and of google-cloud-storage; Terraform's Google
provider, for the access token.
"""

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from storage_backends.lazy_dataclass import dataclass
from storage_backends.wire.settings import ConnectionSettings

UNIVERSE = "googleapis.com"


class GcsClient(StrEnum):
    """Which client sends requests to GCS: `WIRE`, connections of our own, or `SDK`, google-cloud-storage."""

    WIRE = "wire"
    SDK = "sdk"


@dataclass(frozen=True, slots=True)
class Anonymous:
    """No credentials for Google Cloud Storage: for emulators and for buckets that everyone may read."""


@dataclass(frozen=True, slots=True)
class AccessToken:
    """Credentials for Google Cloud Storage: an OAuth 2.0 access token, which is not renewed."""

    token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class CredentialsFile:
    """Credentials for Google Cloud Storage: the path of a JSON file that has a service account's key, an authorized
    user, or an external account."""

    path: str


@dataclass(frozen=True, slots=True)
class CredentialsJson:
    """Credentials for Google Cloud Storage: the JSON text of a service account's key, an authorized user, or an
    external account, as a credentials file has it."""

    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class MetadataServer:
    """Credentials for Google Cloud Storage: the service account of the machine, by the machine's metadata server."""


@dataclass(frozen=True, slots=True)
class ApplicationDefault:
    """Credentials for Google Cloud Storage by google-auth's own search (ADC): a variable, gcloud's file, the metadata
    server. They are those of this process, since google-auth reads environment variables and files itself; all other
    settings may differ between stores."""


CredentialsConfig = Anonymous | AccessToken | CredentialsFile | CredentialsJson | MetadataServer | ApplicationDefault


@dataclass(frozen=True, slots=True)
class GcsConfig(ConnectionSettings):
    """The settings of one store on Google Cloud Storage. Stores with different settings can exist in one process.

    An `endpoint` replaces Google's. `project` is for the SDK and for the settings of engines: requests over our own
    connections do not have it. `user_project` is billed for each request, as buckets demand for which the requester
    pays.
    """

    credentials: CredentialsConfig = ApplicationDefault()
    endpoint: str = f"https://storage.{UNIVERSE}"
    project: str | None = None
    user_project: str | None = None
    client: GcsClient = GcsClient.WIRE

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "GcsConfig":
        """Reads the configuration from the usual environment variables. With `STORAGE_EMULATOR_HOST`, requests go to
        that emulator without credentials. Raises `ValueError` for an unknown ARCO_GCS_CLIENT; other errors are raised
        by the first call of a store."""
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
    """Returns the credentials that the environment variables have: an access token, or else a credentials file, or else
    google-auth's own search."""
    if token := environment.get("GOOGLE_OAUTH_ACCESS_TOKEN", "").strip():
        return AccessToken(token)
    if path := environment.get("GOOGLE_APPLICATION_CREDENTIALS"):
        return CredentialsFile(path)
    return ApplicationDefault()


def _with_scheme(host: str) -> str:
    """Returns the address of the emulator as a URL: some clients write it without a scheme, which then is http."""
    return host if "://" in host else f"http://{host}"


def _client(name: str) -> GcsClient:
    """Returns the client that the value `name` of ARCO_GCS_CLIENT stands for. Raises `ValueError` for any other
    value."""
    try:
        return GcsClient(name)
    except ValueError as error:
        raise ValueError(f"ARCO_GCS_CLIENT: expected {' or '.join(GcsClient)}, got {name!r}") from error
