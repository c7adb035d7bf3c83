"""Opens a catalog over a store: computes its folders and allowed locations, and tests whether the store is safe to
write."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

from arco_catalog.iceberg.errors import InternalError
from arco_catalog.protocol.advisory_locks import AdvisoryLocks
from arco_catalog.protocol.background_tasks import BackgroundTasks
from arco_catalog.protocol.catalog import Catalog, Settings
from arco_catalog.state.access import Caches, State
from arco_catalog.state.files import FileCache, Mount
from arco_catalog.state.locations import AllowedLocations, Location
from arco_catalog.state.paths import Paths
from arco_catalog.state.registry import RegistryState
from arco_catalog.state.runtime import Runtime
from storage_backends import Found, ObjectStore
from storage_backends.open import StoreOpener
from storage_backends.probe import honours_conditions
from storage_backends.url import write_interval_ms

WITHOUT_CONDITIONAL_DELETE = "conditional DELETE: objects are deleted there without a condition"


async def open_catalog(
    settings: Settings, url: str, allowed: Sequence[str], runtime: Runtime, open_store: StoreOpener
) -> Catalog:
    """Opens the store at `url`, and the stores of prefixes outside of it that `allowed` or HEAD has, and returns the
    catalog there, which need not exist. Raises `ValueError` or `BadRequest` for an invalid URL or prefix, and
    `StoreError`.

    It tests the store first. A store that ignores conditions would lose commits, so a catalog on one is read-only
    (docs/design/store.md); a store without conditional deletes is noted in the settings. After a failure all stores
    are closed.
    """
    opened: list[ObjectStore] = []

    def open_one(place: str) -> ObjectStore:
        opened.append(open_store(place))
        return opened[-1]

    store = open_one(url)
    try:
        verdict = await honours_conditions(store, runtime.ulid())
        if not verdict.honoured:
            settings = replace(settings, read_only_because=verdict.reason)
        if not verdict.conditional_delete:
            settings = replace(settings, lacks=(WITHOUT_CONDITIONAL_DELETE,))
        return await build_with_recorded(settings, store, url, allowed, runtime, open_one)
    except BaseException:  # also if cancelled: the process may go on, and the connections would stay open
        for each in opened:
            await each.close()
        raise


async def build_with_recorded(
    settings: Settings,
    store: ObjectStore,
    url: str,
    allowed: Sequence[str],
    runtime: Runtime,
    open_store: StoreOpener,
) -> Catalog:
    """Builds a catalog over an open store. Tables are allowed in the catalog's folder, in the prefixes `allowed`, and
    in the locations that HEAD records; the latter are left out if HEAD is corrupt. Raises `ValueError` or `BadRequest`
    for an invalid URL or prefix, and `StoreError`."""
    caches, recorded = Caches.of(settings.cache_bytes * 68 // 100), tuple[str, ...]()
    state = State(store, Paths(settings.warehouse), caches, runtime)
    found = await store.get(state.paths.manifest)
    if isinstance(found, Found):
        with suppress(InternalError):  # a corrupt HEAD: commands that read it report that, and `restore` must open it
            head = RegistryState.parse(found.body, found.version, state.paths.manifest)
            state.cache_head(head)
            recorded = head.allowed_locations
    return build_catalog(settings, store, url, allowed, runtime, open_store, caches, recorded)


@asynccontextmanager
async def long_lived(catalog: Catalog) -> AsyncIterator[Catalog]:
    """Yields the catalog for a process that goes on after an answer: with background tasks, and with locks among the
    process's writers of one table. At the end it waits for the background tasks, then closes the stores."""
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
    """Builds a catalog over an open store. Its root is a folder with its name, so that one store serves many catalogs.

    An allowed prefix outside of this store needs `open_store`. `recorded` are additional allowed locations. Without
    `caches` the catalog has new ones. Raises `BadRequest` for a malformed URL or prefix, and `ValueError` for one with
    the name of a folder of a catalog's own state, or a URL with a percent sign.
    """
    if "%" in url:
        raise ValueError(
            f"The URL of the catalog's store must not contain percent signs, which engines decode differently: {url}"
        )
    base, given = location_of(url), [*map(Location.parse, allowed)]
    additional = [*{each.normal: each for each in (*given, *map(Location.parse, recorded))}.values()]
    paths = Paths(settings.warehouse)
    for place in (base, *additional):
        if place.reserved:
            raise ValueError(
                f"The store or allowed location {place.uri} has a folder named like those of a catalog's own state, "
                "such as _catalog, where no tables may be: use another one"
            )
    warehouse = base.below(paths.warehouse)
    mounts = _mounts_of(base, store, additional, open_store)
    caches = caches or Caches.of(settings.cache_bytes * 68 // 100)
    caches.write_interval_ms = write_interval_ms(base.scheme)
    prefixes = [warehouse, *additional]
    return Catalog(
        settings=settings,
        store=store,
        paths=paths,
        mounts=mounts,
        locations=AllowedLocations(prefixes, forbidden=[base.below(paths.state)]),
        warehouse=warehouse,
        runtime=runtime,
        caches=caches,
        given_locations=[each.uri for each in given],
        files=FileCache(settings.cache_bytes * 32 // 100),
    )


def location_of(url: str) -> Location:
    """Returns the location that the URL of a store names; `memory:` and `file:` may omit the slashes."""
    return Location.parse(url if "//" in url else url.replace(":", "://", 1))


def _mounts_of(
    base: Location, store: ObjectStore, allowed: Sequence[Location], open_store: StoreOpener | None
) -> list[Mount]:
    """Returns the mounts of the state's store and of the allowed prefixes outside of it, for which it opens stores by
    `open_store`. Raises `ValueError` for such a prefix if `open_store` is None."""
    mounts = [Mount(base, store)]
    for prefix in allowed:
        if not prefix.inside(base):
            if open_store is None:
                raise ValueError(
                    f"Allowed location {prefix.uri} lies outside of the catalog's store {base.uri}, and this process "
                    "opens no other store"
                )
            mounts.append(Mount(prefix, open_store(prefix.uri)))
    return mounts
