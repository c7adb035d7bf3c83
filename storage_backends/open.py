"""Opens the store that a URL names, importing only what that store needs."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from storage_backends.base import ObjectStore
from storage_backends.lazy_dataclass import dataclass
from storage_backends.url import StoreUrl

if TYPE_CHECKING:  # no request reads versions
    from storage_backends.versions import KeptVersions

StoreOpener = Callable[[str], ObjectStore]
"""Opens the store at a URL, by whatever configuration it was made with."""


@dataclass(frozen=True, slots=True)
class _Backend:
    """One kind of store: the form of its URLs, the function that opens one, and the extra of this package that has the
    libraries for it; None if it needs none."""

    form: str
    open: Callable[[StoreUrl, Mapping[str, str]], ObjectStore]
    extra: str | None = None


def open_store(url: str, environment: Mapping[str, str]) -> ObjectStore:
    """Opens a new store for `file:/path`, `file:///path`, `memory:` (each its own), `s3://bucket/prefix`,
    `gs://bucket/prefix`, `abfss://container@account.dfs.core.windows.net/prefix` (or `abfs:`) or
    `az://container/prefix`, configured by the usual variables of its vendor, as `environment` has them.

    Nothing is read or made yet. Raises `ValueError` for any other URL, for a variable that cannot be parsed, and, with
    the extra to install, if a library that is imported to open it is not installed. The first call reports other
    libraries that are not.
    """
    parsed = StoreUrl.parse(url)
    backend = _BACKENDS.get(parsed.scheme)
    if backend is None:
        if url.startswith("/"):
            raise ValueError(f"unsupported store URL {url!r}: for a folder, write file:{url}")
        raise ValueError(f"unsupported store URL {url!r}: expected {FORMS}")
    with _naming_extra(url, backend.extra):
        return backend.open(parsed, environment)


def open_versions(url: str, environment: Mapping[str, str]) -> "KeptVersions":
    """Opens the reader of all versions, current and previous, that the bucket of an S3 store keeps of objects. Raises
    `ValueError` for any other store, since previous versions in other clouds are restored by those clouds' own tools,
    for a variable that cannot be parsed, and if the extra of this package for S3 is not installed."""
    parsed = StoreUrl.parse(url)
    if parsed.scheme != "s3":
        raise ValueError(f"previous versions of objects can be read from an S3 store only, got {url!r}")
    with _naming_extra(url, _BACKENDS["s3"].extra):
        from storage_backends.s3.config import S3Config
        from storage_backends.s3.open import open_versions as open_s3_versions

        return open_s3_versions(parsed, S3Config.from_environment(environment))


@contextmanager
def _naming_extra(url: str, extra: str | None) -> Iterator[None]:
    """Returns a context that raises `ValueError`, which names the `extra` to install, if the code within imports a
    missing module; without an `extra`, the import error is raised as it is."""
    try:
        yield
    except ModuleNotFoundError as error:
        if extra is None:
            raise
        raise ValueError(
            f"the store {url!r} cannot be opened: {error.name} is not installed: "
            f"install the extra '{extra}' of arco-catalog"
        ) from error


def canonical_url(url: str, environment: Mapping[str, str]) -> str:
    """Returns the URL by which engines name the store at `url`: for Azure with the account, which `environment` has
    where the URL leaves it out; for an access point of S3 with all of the ARN before the first slash of the path. Any
    other URL is returned as it is. Raises `ValueError` for an Azure URL that names no container, no account, or one
    that the configured credentials or endpoint do not serve, or with variables of Azure that cannot be parsed; for an
    ARN that is no access point in one Region; and for either with a query or a fragment."""
    if url.startswith("s3://arn:"):
        from storage_backends.s3.access_point import canonical_url as canonical_s3_url

        return canonical_s3_url(StoreUrl.parse(url)).text
    if url.partition(":")[0] not in _AZURE_SCHEMES:
        return url
    from storage_backends.azure.config import AzureConfig
    from storage_backends.azure.endpoint import canonical_url as canonical_azure_url

    return canonical_azure_url(StoreUrl.parse(url), AzureConfig.from_environment(environment))


def opener_in(environment: Mapping[str, str]) -> StoreOpener:
    """Returns a function that opens a store by its URL, with these environment variables as configuration."""
    return partial(open_store, environment=environment)


def _local(url: StoreUrl, _environment: Mapping[str, str]) -> ObjectStore:
    """Opens the store in the folder that a URL names; makes no folder yet."""
    from storage_backends.local.config import LocalConfig
    from storage_backends.local.open import open_url

    return open_url(url, LocalConfig())


def _memory(url: StoreUrl, _environment: Mapping[str, str]) -> ObjectStore:
    """Opens a new store in memory. Raises `ValueError` if the URL has a name."""
    from storage_backends.memory import MemoryStore

    if url.host or url.path:
        raise ValueError(f"a memory store has no name: write memory:, not {url.text!r}")
    return MemoryStore()


def _s3(url: StoreUrl, environment: Mapping[str, str]) -> ObjectStore:
    """Opens the store in the bucket of S3 that a URL names, as the environment's variables configure it."""
    from storage_backends.s3.config import S3Config
    from storage_backends.s3.open import open_url

    return open_url(url, S3Config.from_environment(environment))


def _gcs(url: StoreUrl, environment: Mapping[str, str]) -> ObjectStore:
    """Opens the store in the bucket of GCS that a URL names, as the environment's variables configure it."""
    from storage_backends.gcs.config import GcsConfig
    from storage_backends.gcs.open import open_url

    return open_url(url, GcsConfig.from_environment(environment))


def _azure(url: StoreUrl, environment: Mapping[str, str]) -> ObjectStore:
    """Opens the store in the container of Azure that a URL names, as the environment's variables configure it."""
    from storage_backends.azure.config import AzureConfig
    from storage_backends.azure.open import open_url

    return open_url(url, AzureConfig.from_environment(environment))


_AZURE = _Backend("abfss://container@account.dfs.core.windows.net/prefix", _azure, extra="azure")
_BACKENDS: Mapping[str, _Backend] = {
    "file": _Backend("file:/absolute/path", _local),
    "memory": _Backend("memory:", _memory),
    "s3": _Backend("s3://bucket/prefix", _s3, extra="s3"),
    "gs": _Backend("gs://bucket/prefix", _gcs, extra="gcs"),
    "abfss": _AZURE,
    "abfs": _AZURE,
    "az": _Backend("az://container/prefix", _azure, extra="azure"),
}
_AZURE_SCHEMES = frozenset(scheme for scheme, backend in _BACKENDS.items() if backend.extra == "azure")
_FORMS = [*dict.fromkeys(backend.form for backend in _BACKENDS.values())]
FORMS = f"{', '.join(_FORMS[:-1])}, or {_FORMS[-1]}"
