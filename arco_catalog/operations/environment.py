"""A catalog as the environment of a deployed function names it: the same variables as `arco serve` has."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from arco_catalog.operations.catalog import Catalog, Settings
from arco_catalog.operations.open import build_catalog, open_catalog
from arco_catalog.operations.variables import ALLOW_LOCATION_OVERLAP, ALLOWED_LOCATIONS, listed, switch, warehouse
from arco_catalog.state.runtime import Runtime
from storage_backends.open import open_store


def settings_in(environment: Mapping[str, str]) -> Settings:
    """What may be set. Raises `KeyError` without a warehouse, `ValueError` for what can't be one, or for a switch that
    is neither on nor off."""
    try:
        overlap = switch(environment.get(ALLOW_LOCATION_OVERLAP) or "false")
    except ValueError as error:
        raise ValueError(f"{ALLOW_LOCATION_OVERLAP}: {error}") from error
    return Settings(warehouse(environment["ARCO_WAREHOUSE"]), allow_location_overlap=overlap)


def catalog_in(environment: Mapping[str, str], runtime: Runtime) -> Catalog:
    """The catalog, unasked whether its store honours conditions: that costs round trips, which no cold start should
    pay. Whoever works beside requests asks (`opened`). Raises what `settings_in` does, and `ValueError` for a bad URL.
    """
    url = environment["ARCO_STORE"]
    return build_catalog(settings_in(environment), open_store(url), url, _allowed(environment), runtime)


@asynccontextmanager
async def opened(environment: Mapping[str, str], runtime: Runtime) -> AsyncIterator[Catalog]:
    """The catalog, for as long as the context lasts. Raises what `catalog_in` does, and `RuntimeError` for a store that
    ignores conditions: it would lose commits, so whoever runs the catalog must hear of it."""
    catalog = await open_catalog(settings_in(environment), environment["ARCO_STORE"], _allowed(environment), runtime)
    try:
        if catalog.settings.read_only_because is not None:
            raise RuntimeError(f"commits to this store would get lost: {catalog.settings.read_only_because}")
        yield catalog
    finally:
        await catalog.close()


def _allowed(environment: Mapping[str, str]) -> list[str]:
    return listed(environment.get(ALLOWED_LOCATIONS, ""))
