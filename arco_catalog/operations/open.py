"""Opening a catalog over a store: where its folders are, what tables may live where, and whether it may be written."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

from arco_catalog.iceberg.errors import InternalError
from arco_catalog.protocol.advisory_locks import AdvisoryLocks
from arco_catalog.protocol.background_tasks import BackgroundTasks
from arco_catalog.protocol.catalog import Catalog, Settings
from arco_catalog.state.access import Caches, State
from arco_catalog.state.cache import ByteCache
from arco_catalog.state.files import Mount
from arco_catalog.state.locations import AllowedLocations, Location
from arco_catalog.state.paths import Paths
from arco_catalog.state.registry import RegistryState
from arco_catalog.state.runtime import Runtime
from storage_backends import Found, ObjectStore
from storage_backends.open import StoreOpener
from storage_backends.probe import honours_conditions

WITHOUT_CONDITIONAL_DELETE = "conditional DELETE: what is deleted there is deleted without a condition"


async def open_catalog(
    settings: Settings, url: str, allowed: Sequence[str], runtime: Runtime, open_store: StoreOpener
) -> Catalog:
    """Opens the store at `url` and whatever stores the allowed prefixes lie in. Raises `ValueError` for a bad URL or
    prefix.

    A store that ignores conditions would lose commits, so a catalog on one is read-only (docs/design/store.md).
    """
    store = open_store(url)
    try:
        verdict = await honours_conditions(store, runtime.ulid())
    except BaseException:  # cancelled or failed: a process that goes on would keep its connections
        await store.close()
        raise
    if not verdict.honoured:
        settings = replace(settings, read_only_because=verdict.reason)
    if not verdict.conditional_delete:
        settings = replace(settings, lacks=(WITHOUT_CONDITIONAL_DELETE,))
    try:
        return await build_with_recorded(settings, store, url, allowed, runtime, open_store)
    except BaseException:
        await store.close()
        raise


async def build_with_recorded(
    settings: Settings,
    store: ObjectStore,
    url: str,
    allowed: Sequence[str],
    runtime: Runtime,
    open_store: StoreOpener,
) -> Catalog:
    """A catalog over an open store, whose tables may also be in the locations that HEAD records. Raises `ValueError`
    for a bad URL or prefix, and `StoreError`."""
    caches, recorded = Caches.of(settings.cache_bytes * 52 // 100), tuple[str, ...]()
    state = State(store, Paths(settings.warehouse), caches, runtime)
    found = await store.get(state.paths.manifest)
    if isinstance(found, Found):
        with suppress(InternalError):  # a damaged HEAD: what needs it reports that, what restores it goes on
            head = RegistryState.parse(found.body, found.version, state.paths.manifest)
            state.cache_head(head)
            recorded = head.allowed_locations
    return build_catalog(settings, store, url, allowed, runtime, open_store, caches, recorded)


@asynccontextmanager
async def long_lived(catalog: Catalog) -> AsyncIterator[Catalog]:
    """The catalog as a process serves it that goes on after an answer: with background tasks, which end before the
    stores are closed, and locks among its writers of one table."""
    background_tasks = BackgroundTasks()
    try:
        yield replace(catalog, background_tasks=background_tasks, table_locks=AdvisoryLocks())
    finally:
        await background_tasks.drain()
        await catalog.close()


def build_catalog(
    settings: Settings,
    store: ObjectStore,
    url: str,
    allowed: Sequence[str],
    runtime: Runtime,
    open_store: StoreOpener | None = None,
    caches: Caches | None = None,
    recorded: Sequence[str] = (),
) -> Catalog:
    """A catalog over an open store. Its root is a folder of its name, so that one store serves many.

    `open_store` is needed where an allowed prefix lies outside of this store. `recorded` are locations that are allowed
    besides. Raises `ValueError` for a bad URL or prefix.
    """
    if "%" in url:
        raise ValueError(f"A store's URL must not hold percent signs, which engines read in two ways: {url}")
    base, given = location_of(url), [*map(Location.parse, allowed)]
    further = [*{each.normal: each for each in (*given, *map(Location.parse, recorded))}.values()]
    paths = Paths(settings.warehouse)
    for place in (base, *further):
        if place.reserved:
            raise ValueError(f"{place.uri} is inside a catalog's own state, where tables are not allowed")
    warehouse = base.below(paths.warehouse)
    mounts = mounts_of(base, store, further, open_store)
    prefixes = [warehouse, *further]
    return Catalog(
        settings=settings,
        store=store,
        paths=paths,
        mounts=mounts,
        locations=AllowedLocations(prefixes, forbidden=[base.below(paths.state)]),
        warehouse=warehouse,
        runtime=runtime,
        caches=caches or Caches.of(settings.cache_bytes * 52 // 100),
        given_locations=[each.uri for each in given],
        files=ByteCache(settings.cache_bytes * 48 // 100),
    )


def location_of(url: str) -> Location:
    """Where a store's URL lies, as locations of tables do."""
    return Location.parse(url if "//" in url else url.replace(":", "://", 1))


def mounts_of(
    base: Location, store: ObjectStore, allowed: Sequence[Location], open_store: StoreOpener | None
) -> list[Mount]:
    """The store of the state, and one for each allowed prefix outside of it. Raises `ValueError`."""
    mounts = [Mount(base, store)]
    for prefix in allowed:
        if not prefix.inside(base):
            if open_store is None:
                raise ValueError(f"{prefix.uri} lies in another store, and nothing was given that opens it")
            mounts.append(Mount(prefix, open_store(prefix.uri)))
    return mounts
