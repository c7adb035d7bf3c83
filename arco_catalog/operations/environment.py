"""A catalog as the environment of a deployed function names it: the same variables as `arco serve` has."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from arco_catalog.config.variables import (
    ALLOW_LOCATION_OVERLAP,
    ALLOWED_LOCATIONS,
    CACHE_MEMORY,
    MAX_METADATA,
    parse_bool,
    size_from_env,
    split_csv,
    warehouse,
)
from arco_catalog.operations.open import build_catalog, open_catalog
from arco_catalog.protocol.catalog import Catalog, Settings
from arco_catalog.state.memory import CACHE_MEMORY_BYTES, MAX_METADATA_BYTES
from arco_catalog.state.runtime import Runtime
from storage_backends.open import open_store

_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")


def settings_from_env(environment: Mapping[str, str]) -> Settings:
    """The settings that the variables hold. Raises `KeyError` without a warehouse, `ValueError` for an invalid name,
    size or boolean."""
    overlap = _bool_from_env(environment, ALLOW_LOCATION_OVERLAP)
    return Settings(
        warehouse(environment["ARCO_WAREHOUSE"]),
        allow_location_overlap=overlap,
        max_metadata_bytes=size_from_env(environment, MAX_METADATA, MAX_METADATA_BYTES),
        cache_bytes=size_from_env(environment, CACHE_MEMORY, CACHE_MEMORY_BYTES),
    )


def catalog_from_env(environment: Mapping[str, str], runtime: Runtime) -> Catalog:
    """The catalog, unasked whether its store honours conditions. Raises what `settings_from_env` does, and `ValueError`
    for a bad URL."""
    url = environment["ARCO_STORE"]
    return build_catalog(settings_from_env(environment), open_store(url), url, _allowed(environment), runtime)


async def catalog_to_serve(environment: Mapping[str, str], runtime: Runtime) -> Catalog:
    """The catalog as a function serves it. Amazon's S3 is known to honour conditions, and no cold start pays the round
    trips to ask it; any other store is asked, unless ARCO_SKIP_PROBE says that it was, and served read-only if it does
    not. Raises what `catalog_from_env` does, and `StoreError` if the store does not answer."""
    amazon = environment["ARCO_STORE"].startswith("s3:") and not any(environment.get(name) for name in _ENDPOINTS)
    if amazon or _bool_from_env(environment, "ARCO_SKIP_PROBE"):
        return catalog_from_env(environment, runtime)
    return await open_catalog(settings_from_env(environment), environment["ARCO_STORE"], _allowed(environment), runtime)


@asynccontextmanager
async def opened(environment: Mapping[str, str], runtime: Runtime) -> AsyncIterator[Catalog]:
    """The catalog, for as long as the context lasts. Raises what `catalog_from_env` does, and `RuntimeError` for a
    store that ignores conditions: it would lose commits, so the function must fail visibly."""
    catalog = await open_catalog(
        settings_from_env(environment), environment["ARCO_STORE"], _allowed(environment), runtime
    )
    try:
        if catalog.settings.read_only_because is not None:
            raise RuntimeError(
                f"commits to this store could get lost, so it is read-only: {catalog.settings.read_only_because}"
            )
        yield catalog
    finally:
        await catalog.close()


def _allowed(environment: Mapping[str, str]) -> list[str]:
    return split_csv(environment.get(ALLOWED_LOCATIONS, ""))


def _bool_from_env(environment: Mapping[str, str], name: str) -> bool:
    try:
        return parse_bool(environment.get(name) or "false")
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
