"""Reads the settings of a deployed function from environment variables, of the same names as for `arco serve`, and
opens the catalog."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from arco_catalog.config.variables import (
    ALLOW_CATALOG_LOCATION_OVERLAP,
    ALLOW_LOCATION_OVERLAP,
    ALLOW_TABLE_LOCATION_OVERLAP,
    ALLOWED_LOCATIONS,
    CACHE_MEMORY,
    FILE_CONFIRMED,
    IDEMPOTENCY_CLEANUP_ENABLED,
    IDEMPOTENCY_DIALECT,
    IDEMPOTENCY_ENABLED,
    MAX_METADATA,
    PURGE_MODE,
    PURGE_TRUST_LOCATIONS,
    PURGE_UNDROP_WINDOW,
    PURGE_WHOLE_LOCATION,
    REALM,
    RECEIPT_RETENTION,
    SCAN_PLANNING,
    SKIP_PROBE,
    STORE,
    TASK_PROPERTIES,
    UNDROP_RETENTION,
    VENDING_LIFETIME,
    WAREHOUSE,
)
from arco_catalog.operations.open import build_catalog, build_with_recorded, open_catalog
from arco_catalog.operations.work_queue import WorkQueue
from arco_catalog.planning.upkeep_settings import PurgeMode, PurgeSettings, Retention, vended_ms
from arco_catalog.protocol.catalog import Catalog, Settings
from arco_catalog.state.key_settings import Dialect, KeyPolicy
from arco_catalog.state.runtime import Runtime
from storage_backends.open import canonical_url, opener_in

if TYPE_CHECKING:  # only scheduled work needs them; see `opened`
    from arco_catalog.operations.catalogs import Inventory
    from arco_catalog.tasks.retry import TaskPolicies


def settings_from_env(environment: Mapping[str, str]) -> Settings:
    """Reads the settings of the catalog that a function serves from the environment variables. Raises `KeyError`
    without a warehouse, and `ValueError` for a variable with an invalid value."""
    return Settings(
        WAREHOUSE.require(environment),
        allow_location_overlap=tables_may_overlap(environment),
        allow_catalog_overlap=catalogs_may_overlap(environment),
        max_metadata_bytes=MAX_METADATA.read(environment),
        file_confirmed_ms=FILE_CONFIRMED.read(environment),
        scan_planning=scan_planning_from(environment),
        cache_bytes=CACHE_MEMORY.read(environment),
        purge=purge_from_env(environment),
        retention=retention_from_env(environment),
    )


def scan_planning_from(environment: Mapping[str, str]) -> str | None:
    """Returns who should plan scans of tables by the environment variable; None if that is not set, or empty. Raises
    `ValueError` for an invalid value."""
    return SCAN_PLANNING.read(environment) if environment.get(SCAN_PLANNING.name) else None


def tables_may_overlap(environment: Mapping[str, str]) -> bool:
    """Whether one of the environment variables allows tables in each other's locations. Raises `ValueError` for an
    invalid boolean."""
    return ALLOW_LOCATION_OVERLAP.read(environment) or ALLOW_TABLE_LOCATION_OVERLAP.read(environment)


def catalogs_may_overlap(environment: Mapping[str, str]) -> bool:
    """Whether one of the environment variables allows catalogs of a realm in each other's locations. Raises
    `ValueError` for an invalid boolean."""
    return ALLOW_LOCATION_OVERLAP.read(environment) or ALLOW_CATALOG_LOCATION_OVERLAP.read(environment)


def key_policy_from_env(environment: Mapping[str, str]) -> KeyPolicy:
    """Reads from the environment variables how a new catalog treats idempotency keys. Raises `ValueError` for an
    unknown dialect or an invalid boolean."""
    return KeyPolicy(Dialect(IDEMPOTENCY_DIALECT.read(environment)), IDEMPOTENCY_ENABLED.read(environment))


def purge_from_env(environment: Mapping[str, str]) -> PurgeSettings:
    """Reads the settings of purges from the environment variables. Raises `ValueError` for an invalid one."""
    return PurgeSettings(
        PurgeMode(PURGE_MODE.read(environment)),
        PURGE_UNDROP_WINDOW.read(environment),
        PURGE_TRUST_LOCATIONS.read(environment),
        PURGE_WHOLE_LOCATION.read(environment),
        vended_ms(VENDING_LIFETIME.read(environment)),
    )


def retention_from_env(environment: Mapping[str, str]) -> Retention:
    """Reads how long receipts and tombstones stay, and whether markers are collected. Raises `ValueError`, also if
    receipts or tombstones would stay less than a week."""
    retention = Retention(
        receipts_ms=RECEIPT_RETENTION.read(environment),
        undrop_ms=UNDROP_RETENTION.read(environment),
        markers=IDEMPOTENCY_CLEANUP_ENABLED.read(environment),
    )
    if min(retention.receipts_ms, retention.undrop_ms) < retention.orphans_ms:
        raise ValueError(f"{RECEIPT_RETENTION.name} and {UNDROP_RETENTION.name} must both be at least a week")
    return retention


def task_policies_from_env(environment: Mapping[str, str]) -> "TaskPolicies":
    """Reads the settings of leases and retries of tasks from the environment variables. Raises `ValueError` for an
    invalid one."""
    # Imported here so that a cold start of the API does not pay for it.
    from arco_catalog.tasks.retry import TaskPolicies

    return TaskPolicies.of_pairs(TASK_PROPERTIES.read(environment))


async def catalog_from_env(environment: Mapping[str, str], runtime: Runtime) -> Catalog:
    """Opens the catalog that the variables name, with the allowed locations of the variables and the ones that HEAD
    records, without a test of whether the store honours conditions. Raises the errors of `settings_from_env`,
    `ValueError` or `BadRequest` for an invalid URL or location, and `StoreError`."""
    (url, *allowed), opener = _urls(environment), opener_in(environment)
    settings = settings_from_env(environment)
    return await build_with_recorded(settings, opener(url), url, allowed, runtime, opener)


def unread_catalog_from_env(environment: Mapping[str, str], runtime: Runtime) -> Catalog:
    """Builds the catalog that the variables name, and sends nothing to the store. Raises the errors of
    `settings_from_env`, and `ValueError` or `BadRequest` for an invalid URL or location."""
    (url, *allowed), opener = _urls(environment), opener_in(environment)
    return build_catalog(settings_from_env(environment), opener(url), url, allowed, runtime, opener)


async def catalog_to_serve(environment: Mapping[str, str], runtime: Runtime) -> Catalog:
    """Opens the catalog for a function that serves requests. The catalog notifies the workers of tasks, if the
    variables name a queue for them.

    Amazon S3 honours conditions, so a cold start tests nothing there, nor reads the locations that HEAD records: the
    function's variables have the allowed ones. Any other store is tested, and served read-only if it ignores
    conditions, unless ARCO_SKIP_PROBE is set: then it is opened like Amazon's. Raises the errors of `catalog_from_env`,
    and `StoreError` if the store does not answer.
    """
    if _is_amazons_s3(environment) or SKIP_PROBE.read(environment):
        catalog = unread_catalog_from_env(environment, runtime)
    else:
        catalog = await _open_tested(environment, runtime)
    return _notifying(catalog, environment, runtime)


@asynccontextmanager
async def opened(environment: Mapping[str, str], runtime: Runtime) -> AsyncIterator["Inventory"]:
    """Opens the deployment's store, yields the owners of state in it, which are opened on demand, and closes all stores
    at the end of the context. Raises the errors of `catalog_from_env`, `NotFound` for a realm that does not exist, and
    `RuntimeError` for a store that ignores conditions: it would lose commits, so the function must fail visibly."""
    catalog = _notifying(await _open_tested(environment, runtime), environment, runtime)
    try:
        if catalog.settings.read_only_because is not None:
            raise RuntimeError(
                "This function or job did nothing, because commits to the store could be lost: "
                f"{catalog.settings.read_only_because}"
            )
        # Imported here so that a cold start of the API, which serves one catalog, does not pay for it.
        from arco_catalog.operations.catalogs import take_inventory

        url = canonical_url(STORE.require(environment), environment)
        yield await take_inventory(catalog, url, REALM.read(environment))
    finally:
        await catalog.close()


def _notifying(catalog: Catalog, environment: Mapping[str, str], runtime: Runtime) -> Catalog:
    """Returns the catalog; if the variables name a queue for the workers of tasks, with a function that sends a message
    to the queue, which arrives when a new task is due. For a task that is due after more than 899 seconds it sends
    none."""
    queue = WorkQueue.from_env(environment, runtime)
    return catalog if queue is None else replace(catalog, notify_workers=queue.task_due)


async def _open_tested(environment: Mapping[str, str], runtime: Runtime) -> Catalog:
    """Opens the catalog of the environment after a test of whether the store honours conditional writes: over a store
    that ignores them the catalog is read-only. Raises the errors of `catalog_from_env`."""
    url, *allowed = _urls(environment)
    return await open_catalog(settings_from_env(environment), url, allowed, runtime, opener_in(environment))


def _urls(environment: Mapping[str, str]) -> list[str]:
    """Returns the URL of the store, and after it those of the allowed locations, in the form that engines use."""
    named = (STORE.require(environment), *ALLOWED_LOCATIONS.read(environment))
    return [canonical_url(url, environment) for url in named]


def _is_amazons_s3(environment: Mapping[str, str]) -> bool:
    """Whether the store is S3 itself, with no other endpoint configured."""
    if not STORE.require(environment).startswith("s3:"):
        return False
    from storage_backends.s3.config import S3Config  # here, as functions over other stores have no package for S3

    return S3Config.from_environment(environment).endpoint_url is None
