"""Configuration of a container in Azure Blob Storage: endpoint, credentials and timeouts, made by hand or from the
usual `AZURE_*` variables.

Sources of the variables: Azure CLI, "Azure Storage environment variables"; azure-identity, "EnvironmentCredential";
Azure Storage, "Configure connection strings".
"""

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from storage_backends.lazy_dataclass import dataclass
from storage_backends.wire.settings import ConnectionSettings

DEVELOPMENT_ACCOUNT = "devstoreaccount1"
DEVELOPMENT_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The published key of every emulator; it opens nothing else."""
_DEVELOPMENT_ENDPOINT = f"http://127.0.0.1:10000/{DEVELOPMENT_ACCOUNT}"


class ClientKind(StrEnum):
    """The client that sends requests to Azure: `WIRE` is connections of our own, `SDK` is Azure's SDK, which can also
    use a proxy."""

    WIRE = "wire"
    SDK = "sdk"


@dataclass(frozen=True, slots=True)
class SharedKey:
    """Credentials for Azure Storage: a key of the storage account, in base64. It allows everything in the account."""

    key: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class SasToken:
    """Credentials for Azure Storage: a shared access signature, which is the query of a URL and has rights of its
    own."""

    token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ClientSecret:
    """Credentials for Azure Storage: an application of Entra ID and the secret of the application. `authority` is the
    host of Entra ID; with None azure-identity takes the `AZURE_AUTHORITY_HOST` of this process, or else the host of the
    public cloud."""

    tenant_id: str
    client_id: str
    secret: str = field(repr=False)
    authority: str | None = None


@dataclass(frozen=True, slots=True)
class DefaultChain:
    """Credentials for Azure Storage by azure-identity's own search: environment variables, workload and managed
    identities, the Azure CLI. They are those of this process, since azure-identity reads environment variables and
    files itself; all other settings may differ between stores."""


CredentialsConfig = SharedKey | SasToken | ClientSecret | DefaultChain


@dataclass(frozen=True, slots=True)
class AzureConfig(ConnectionSettings):
    """The settings of one store on Azure. Stores with different settings can exist in one process.

    An `account` is None if the store's URL is to name it. An `endpoint_url` replaces
    `https://ACCOUNT.blob.core.windows.net`, or the account's host in the cloud that the URL names.
    """

    account: str | None = None
    credentials: CredentialsConfig = DefaultChain()
    endpoint_url: str | None = None
    client: ClientKind = ClientKind.WIRE

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "AzureConfig":
        """Reads the configuration from the usual environment variables. A variable for the account, the endpoint, the
        key or a shared access signature has priority over the connection string. Raises `ValueError` for a connection
        string or a kind of client that can't be read; other errors are raised when a store is opened, or by the first
        call of one."""
        named = _connection(environment.get("AZURE_STORAGE_CONNECTION_STRING", ""))
        kind = environment.get("ARCO_AZURE_CLIENT") or ClientKind.WIRE
        if kind not in [*ClientKind]:
            raise ValueError(f"ARCO_AZURE_CLIENT is {kind!r}: expected {' or '.join(ClientKind)}")
        return cls(
            account=_first(environment, "AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_ACCOUNT_NAME") or named.account,
            credentials=_credentials(environment) or named.credentials or DefaultChain(),
            endpoint_url=_first(environment, "AZURE_STORAGE_ENDPOINT") or named.endpoint_url,
            client=ClientKind(kind),
            ca_bundle=_first(environment, "REQUESTS_CA_BUNDLE"),
        )


@dataclass(frozen=True, slots=True)
class _Connection:
    """The settings in an Azure connection string; None for those that it does not have."""

    account: str | None = None
    credentials: CredentialsConfig | None = None
    endpoint_url: str | None = None


def _credentials(environment: Mapping[str, str]) -> CredentialsConfig | None:
    """Returns the credentials that the environment variables have, without those in the connection string: the
    account's key, or else a shared access signature, or else an application's id, tenant and secret, but these last
    only if no connection string is set; None without any of them."""
    if key := _first(environment, "AZURE_STORAGE_KEY", "AZURE_STORAGE_ACCOUNT_KEY"):
        return SharedKey(key)
    if token := _first(environment, "AZURE_STORAGE_SAS_TOKEN"):
        return SasToken(token.lstrip("?"))
    tenant, client, secret = (_first(environment, f"AZURE_{x}") for x in ("TENANT_ID", "CLIENT_ID", "CLIENT_SECRET"))
    if tenant and client and secret and not environment.get("AZURE_STORAGE_CONNECTION_STRING"):
        return ClientSecret(tenant, client, secret, _first(environment, "AZURE_AUTHORITY_HOST"))
    return None


def _connection(text: str) -> _Connection:
    """Returns the parts of an Azure connection string, and those of the emulator with `UseDevelopmentStorage=true`; if
    the whole text is blank, all parts are None. Raises `ValueError` without quoting the text, since it holds a key."""
    if not text.strip():
        return _Connection()
    pairs = [part.partition("=") for part in text.strip().split(";") if part]
    if not all(separator for _, separator, _ in pairs):
        raise ValueError("AZURE_STORAGE_CONNECTION_STRING is not of the form Name=value;Name=value")
    parts = {name.strip().lower(): value.strip() for name, _, value in pairs}
    if parts.get("usedevelopmentstorage", "").lower() == "true":
        return _Connection(DEVELOPMENT_ACCOUNT, SharedKey(DEVELOPMENT_KEY), _DEVELOPMENT_ENDPOINT)
    account, key, token = (parts.get(name) for name in ("accountname", "accountkey", "sharedaccesssignature"))
    endpoint = parts.get("blobendpoint")
    if endpoint is None and account and "endpointsuffix" in parts:
        scheme = parts.get("defaultendpointsprotocol", "https")
        endpoint = f"{scheme}://{account}.blob.{parts['endpointsuffix']}"
    credentials = SharedKey(key) if key else SasToken(token.lstrip("?")) if token else None
    return _Connection(account, credentials, endpoint)


def _first(environment: Mapping[str, str], *names: str) -> str | None:
    """Returns the value, without blanks around it, of the first of these environment variables that is not blank; None
    if all are."""
    return next((value for name in names if (value := environment.get(name, "").strip())), None)
