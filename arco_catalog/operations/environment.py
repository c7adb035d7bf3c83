"""A catalog as the environment of a deployed function names it: the same variables as `arco serve` has."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from arco_catalog.config.variables import (
    ALLOW_LOCATION_OVERLAP,
    ALLOWED_LOCATIONS,
    CACHE_MEMORY,
    MAX_METADATA,
    REALM,
    SKIP_PROBE,
    STORE,
    WAREHOUSE,
)
from arco_catalog.operations.open import build_catalog, open_catalog
from arco_catalog.protocol.catalog import Catalog, Settings
from arco_catalog.state.runtime import Runtime
from storage_backends.open import canonical_url, opener_in

if TYPE_CHECKING:
    from arco_catalog.operations.catalogs import DeployedCatalog


def settings_from_env(environment: Mapping[str, str]) -> Settings:
    """The settings that the variables hold. Raises `KeyError` without a warehouse, `ValueError` for an invalid name,
    size or boolean."""
    return Settings(
        WAREHOUSE.require(environment),
        allow_location_overlap=ALLOW_LOCATION_OVERLAP.read(environment),
        max_metadata_bytes=MAX_METADATA.read(environment),
        cache_bytes=CACHE_MEMORY.read(environment),
    )


def catalog_from_env(environment: Mapping[str, str], runtime: Runtime) -> Catalog:
    """The catalog, without a test whether its store honours conditions. Raises what `settings_from_env` does, and
    `ValueError` for a bad URL."""
    (url, *allowed), opener = _urls(environment), opener_in(environment)
    return build_catalog(settings_from_env(environment), opener(url), url, allowed, runtime, opener)


async def catalog_to_serve(environment: Mapping[str, str], runtime: Runtime) -> Catalog:
    """The catalog as a function serves it. Amazon S3 is known to honour conditions, so no cold start pays for a test.
    Any other store is tested, unless ARCO_SKIP_PROBE is set, and served read-only if it does not honour them. Raises
    what `catalog_from_env` does, and `StoreError` if the store does not answer."""
    if _is_amazons_s3(environment) or SKIP_PROBE.read(environment):
        return catalog_from_env(environment, runtime)
    return await _open_tested(environment, runtime)


@asynccontextmanager
async def opened(environment: Mapping[str, str], runtime: Runtime) -> AsyncIterator["Sequence[DeployedCatalog]"]:
    """Every catalog of the deployment, for as long as the context lasts. Raises what `catalog_from_env` does,
    `NotFound` for a realm that does not exist, and `RuntimeError` for a store that ignores conditions: it would lose
    commits, so the function must fail visibly."""
    catalog = await _open_tested(environment, runtime)
    try:
        if catalog.settings.read_only_because is not None:
            raise RuntimeError(
                f"commits to this store could get lost, so it is read-only: {catalog.settings.read_only_because}"
            )
        from arco_catalog.operations.catalogs import deployed_catalogs  # a cold start of the API does not pay for it

        url = canonical_url(STORE.require(environment), environment)
        yield await deployed_catalogs(catalog, url, REALM.read(environment))
    finally:
        await catalog.close()


async def _open_tested(environment: Mapping[str, str], runtime: Runtime) -> Catalog:
    url, *allowed = _urls(environment)
    return await open_catalog(settings_from_env(environment), url, allowed, runtime, opener_in(environment))


def _urls(environment: Mapping[str, str]) -> list[str]:
    """The URL of the store, and those of the allowed locations, by which engines know them."""
    named = (STORE.require(environment), *ALLOWED_LOCATIONS.read(environment))
    return [canonical_url(url, environment) for url in named]


def _is_amazons_s3(environment: Mapping[str, str]) -> bool:
    if not STORE.require(environment).startswith("s3:"):
        return False
    from storage_backends.s3.config import S3Config  # not for functions over other stores

    return S3Config.from_environment(environment).endpoint_url is None
