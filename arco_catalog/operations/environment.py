"""A catalog as the environment of a deployed function names it: the same variables as `arco serve` has."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from arco_catalog.operations.catalog import Catalog, Settings
from arco_catalog.operations.open import build_catalog, open_catalog
from arco_catalog.operations.variables import (
    ALLOW_LOCATION_OVERLAP,
    ALLOWED_LOCATIONS,
    CACHE_MEMORY,
    MAX_METADATA,
    listed,
    size_in,
    switch,
    warehouse,
)
from arco_catalog.state.memory import CACHE_MEMORY_BYTES, MAX_METADATA_BYTES
from arco_catalog.state.runtime import Runtime
from storage_backends.open import open_store

_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")


def settings_in(environment: Mapping[str, str]) -> Settings:
    """What may be set. Raises `KeyError` without a warehouse, `ValueError` for what can't be one, for a switch that is
    neither on nor off, or for what is no size."""
    overlap = _switch_in(environment, ALLOW_LOCATION_OVERLAP)
    return Settings(
        warehouse(environment["ARCO_WAREHOUSE"]),
        allow_location_overlap=overlap,
        max_metadata_bytes=size_in(environment, MAX_METADATA, MAX_METADATA_BYTES),
        cache_bytes=size_in(environment, CACHE_MEMORY, CACHE_MEMORY_BYTES),
    )


def catalog_in(environment: Mapping[str, str], runtime: Runtime) -> Catalog:
    """The catalog, unasked whether its store honours conditions. Raises what `settings_in` does, and `ValueError` for a
    bad URL."""
    url = environment["ARCO_STORE"]
    return build_catalog(settings_in(environment), open_store(url), url, _allowed(environment), runtime)


async def catalog_to_serve(environment: Mapping[str, str], runtime: Runtime) -> Catalog:
    """The catalog as a function serves it. Amazon's S3 is known to honour conditions, and no cold start pays the round
    trips to ask it; any other store is asked, unless ARCO_SKIP_PROBE says that it was, and served read-only if it does
    not. Raises what `catalog_in` does, and `StoreError` if the store does not answer."""
    amazon = environment["ARCO_STORE"].startswith("s3:") and not any(environment.get(name) for name in _ENDPOINTS)
    if amazon or _switch_in(environment, "ARCO_SKIP_PROBE"):
        return catalog_in(environment, runtime)
    return await open_catalog(settings_in(environment), environment["ARCO_STORE"], _allowed(environment), runtime)


@asynccontextmanager
async def opened(environment: Mapping[str, str], runtime: Runtime) -> AsyncIterator[Catalog]:
    """The catalog, for as long as the context lasts. Raises what `catalog_in` does, and `RuntimeError` for a store that
    ignores conditions: it would lose commits, so whoever runs the catalog must hear of it."""
    catalog = await open_catalog(settings_in(environment), environment["ARCO_STORE"], _allowed(environment), runtime)
    try:
        if catalog.settings.read_only_because is not None:
            raise RuntimeError(
                f"commits to this store could get lost, so it is read-only: {catalog.settings.read_only_because}"
            )
        yield catalog
    finally:
        await catalog.close()


def _allowed(environment: Mapping[str, str]) -> list[str]:
    return listed(environment.get(ALLOWED_LOCATIONS, ""))


def _switch_in(environment: Mapping[str, str], name: str) -> bool:
    try:
        return switch(environment.get(name) or "false")
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
