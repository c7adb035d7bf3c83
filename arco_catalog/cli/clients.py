"""The clients with which a store can be reached: this project's HTTP client (`wire`), and the vendor's SDK."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec

from arco_catalog.config.variables import AZURE_CLIENT, GCS_CLIENT, S3_CLIENT
from storage_backends import ObjectStore, StoreError
from storage_backends.open import open_store
from storage_backends.url import StoreUrl


@dataclass(frozen=True, slots=True)
class StoreClient:
    """A client of a store: the variables that select it, and the `module` that it needs, which `extra` installs."""

    name: str
    variables: Mapping[str, str]
    module: str | None = None
    extra: str = ""

    def missing(self) -> str | None:
        """Returns the reason why the client can't be used, or None if the module that it needs is installed, or if it
        needs none."""
        if self.module is None or is_installed(self.module):
            return None
        return f"{self.module} is not installed: install the extra '{self.extra}' of arco-catalog"

    def open(self, url: str, environment: Mapping[str, str]) -> ObjectStore:
        """Opens the store through this client: its variables override the environment. Raises `ValueError` if the URL
        does not name a store, a variable is invalid, or the package that the store needs is not installed."""
        return open_store(url, {**environment, **self.variables})


_AZURE = (AZURE_CLIENT.name, "azure.storage.blob", "azure")
_SDKS = {
    "s3": (S3_CLIENT.name, "aiobotocore", "s3-sdk"),
    "gs": (GCS_CLIENT.name, "google.cloud.storage", "gcs"),
    "az": _AZURE,
    "abfs": _AZURE,
    "abfss": _AZURE,
}
"""By the scheme of a URL: the variable that chooses the client, the vendor's SDK, and the extra that brings it."""
DIRECT = StoreClient("direct", {})
"""The client of stores without a network: local files and memory."""


def clients_of(url: str) -> tuple[StoreClient, ...]:
    """Returns all clients for the store of a URL, installed or not: this project's HTTP client and the vendor's SDK of
    a cloud, and one direct client for any other store."""
    known = _SDKS.get(url.partition(":")[0])
    if known is None:
        return (DIRECT,)
    variable, module, extra = known
    return StoreClient("wire", {variable: "wire"}), StoreClient("sdk", {variable: "sdk"}, module, extra)


def is_installed(module: str) -> bool:
    """Whether a module can be imported. Imports only the packages that contain it."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def needs_sdk(url: str, environment: Mapping[str, str]) -> str | None:
    """Returns the reason why this project's HTTP client refuses an S3 store, so that only the SDK can reach it. Returns
    None if the client does not refuse it, for stores other than S3, and if a missing package or the lack of a valid
    endpoint prevents the check: the first use of the store reports these. Raises `ValueError` for a URL that names no
    store, and for an unknown client in ARCO_S3_CLIENT."""
    parsed = StoreUrl.parse(url)
    if parsed.scheme != "s3":
        return None
    try:
        from storage_backends.s3.carrier import wire_refuses
        from storage_backends.s3.config import S3Config
        from storage_backends.s3.endpoint import endpoint_of
    except ModuleNotFoundError:
        return None  # opening the store reports the missing package

    config = S3Config.from_environment(environment)
    try:
        endpoint = endpoint_of("bucket", config.region or "us-east-1", config)
    except StoreError:
        return None  # the first call reports the error
    proxy = config.proxies.proxy_for(tls=endpoint.tls, host=endpoint.host, port=endpoint.port)
    return wire_refuses(parsed.host, proxy)
