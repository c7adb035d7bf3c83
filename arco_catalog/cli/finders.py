"""Functions that find in an open store what a command of `arco` works on: a catalog, a realm, the registry of a realm,
or all owners of state. A command passes one of them to `open_session`. Most raise `NotThere` if the store does not have
what the command needs."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from arco_catalog.cli.errors import CliError, NotThere
from arco_catalog.cli.session import OpenStore
from arco_catalog.operations.catalogs import DeployedCatalog, Inventory, realm_exists
from arco_catalog.operations.contents import describe_siblings, sibling_catalogs
from arco_catalog.operations.delegation_service_state import service_state
from arco_catalog.operations.environment import key_policy_from_env
from arco_catalog.operations.realms import Realm
from arco_catalog.protocol.catalog import Session
from arco_catalog.state.first_page import first_entries
from storage_backends import StoreDenied, StoreError


async def find_catalog(store: OpenStore) -> Session:
    """Returns a session with the catalog that --warehouse names. Raises `NotThere` if there is no such realm or
    catalog, or the store can't be read, `StoreDenied` if the store denies that, and `HeadLost` if HEAD is missing
    although the catalog has commits."""
    session = await find_catalog_even_empty(store)
    await _require_head(session, store)
    return session


async def find_catalog_with_state(store: OpenStore) -> Session:
    """Returns a session with the catalog that --warehouse names, if the store has any object of the catalog's state,
    even without HEAD. Raises `NotThere` if it has none, or the realm has no such catalog."""
    session = await find_catalog_even_empty(store)
    if not await session.state.has_any():
        raise await no_warehouse(session, store.options.store)
    return session


async def find_catalog_even_empty(store: OpenStore) -> Session:
    """Returns a session with the catalog that --warehouse names. In a store without a realm any name will do, whether
    there is state or not; in a realm, raises `NotThere` for a name that is not one of the realm's catalogs. Raises as
    `OpenStore.inventory` and `DeployedCatalog.open` do."""
    for each in (await store.inventory()).catalogs:
        if each.realm is None or each.name == store.options.warehouse:
            return store.session(each.open())
    raise NotThere(
        f"there is no catalog {store.options.warehouse!r} in the realm in {store.options.store} (check --warehouse; "
        "`arco catalogs list` lists those that there are)"
    )


async def find_new_catalog(store: OpenStore) -> Session:
    """Returns a session that may create the catalog that --warehouse names. If the catalog is created, it records the
    rules for idempotency keys that the environment sets. Raises `CliError` if the store has a realm without this
    catalog, since a catalog outside the realm would never be served, if --realm names no realm, and if the store can't
    be read; `StoreDenied` if the store denies that; `ValueError` for an invalid variable."""
    try:
        session = await find_catalog_even_empty(store)
    except NotThere as error:
        raise CliError(
            f"catalog {store.options.warehouse!r} was not made: {error}; in a store with a realm, "
            "`arco catalogs create` makes catalogs, and `arco init` makes none"
        ) from error
    policy = key_policy_from_env(store.options.environment)
    return session.catalog.session(replace(session.request, key_policy=policy), session.access)


async def find_root_catalog(store: OpenStore) -> Session:
    """Returns a session with the catalog that --warehouse names, as in a store without a realm. Tests neither that the
    catalog exists nor that the store has no realm."""
    return store.session(store.root)


async def find_realm(store: OpenStore) -> tuple[Realm, Session]:
    """Returns the realm that --realm names, or without it the one at the store's root, and a session with the registry
    of the realm. A realm that was dropped is returned, too. Raises `NotThere` if there was never such a realm."""
    realm = store.realm()
    if not await realm_exists(realm):
        raise NotThere(
            f"there is no realm in {store.options.store}, or not the one that --realm names: check --store and "
            "--realm, or make a realm by `arco bootstrap`"
        )
    return realm, store.session(realm.registry)


async def find_realm_registry(store: OpenStore) -> Session:
    """Returns a session with the registry of the realm that the options name, also of one that was dropped. Raises
    `NotThere` if there was never such a realm."""
    _, registry = await find_realm(store)
    return registry


async def find_new_realm(store: OpenStore) -> tuple[Realm, Session]:
    """Returns the realm that the options name, which may not exist yet, and a session with the registry of the
    realm."""
    realm = store.realm()
    return realm, store.session(realm.registry)


async def find_registry_without_head(store: OpenStore) -> Session:
    """Returns a session with the registry of the realm that the options name, whether it has HEAD or not, if the store
    has any commit object of it. Raises `NotThere` if it has none."""
    registry = store.session(store.realm().registry)
    if not await first_entries(registry.state.store, registry.state.paths.registry_commits):
        raise NotThere(
            f"there is no realm in {store.options.store} of which a commit is left, from which `arco restore "
            "--realm-registry` could take HEAD: check --store and --realm, or restore a backup by `arco restore --from`"
        )
    return registry


async def find_backup_source(store: OpenStore) -> tuple[Session, Realm | None]:
    """Returns what a backup reads: a session with the realm's registry, and the realm; or a session with the catalog of
    a store without a realm, and None. Raises `NotThere` if --realm names no realm, and as `_require_head` does if that
    catalog has no HEAD."""
    realm = store.realm()
    if await realm_exists(realm):
        return store.session(realm.registry), realm
    if store.options.realm is not None:
        raise NotThere(
            f"no backup was made: there is no realm {store.options.realm} in {store.options.store} (check --realm)"
        )
    session = store.session(store.root)
    await _require_head(session, store)
    return session, None


def find_backup_target(*, realm: bool) -> Callable[[OpenStore], Awaitable[Session]]:
    """Returns the finder of the place into which a backup is restored, and which may be empty: it returns a session
    with the registry of the realm for the backup of a `realm`, else with the catalog of a store without one."""

    async def find(store: OpenStore) -> Session:
        return store.session(store.realm().registry if realm else store.root)

    return find


async def find_inventory(store: OpenStore) -> Inventory:
    """Returns the realm's catalogs and other owners of state, or the one catalog of a store without a realm. Raises
    as `OpenStore.inventory` does, and as `_require_head` if that catalog has no HEAD."""
    inventory = await store.inventory()
    if not inventory.registries:
        await _require_head(store.session(store.root), store)
    return inventory


async def find_owners(store: OpenStore) -> Inventory:
    """Returns what `find_inventory` does, but for a store that has a delegation service and no catalog only that
    service. Raises as `find_inventory` does."""
    try:
        return await find_inventory(store)
    except NotThere:
        if not await store.session(service_state(store.root)).state.has_any():
            raise
        return replace(await store.inventory(), catalogs=())


@dataclass(frozen=True, slots=True)
class DeploymentSessions:
    """Sessions for `arco fsck --all`. `registry` is with the registry of the realm, `service` with the state of the
    delegation service; either is None if the store has no object of it. `catalogs` reads the registry and returns the
    realm's catalogs, or the one of a store without a realm; it raises `NotThere` if --realm names no realm or the store
    can't be read."""

    registry: Session | None
    service: Session | None
    catalogs: Callable[[], Awaitable[Sequence[DeployedCatalog]]]


async def find_deployment(store: OpenStore) -> DeploymentSessions:
    """Returns the sessions for `arco fsck --all`, with None for a registry or a delegation service without state, and
    the function that reads the list of catalogs. Opens no catalog, and raises nothing if state is missing: the check
    reports that."""

    async def catalogs() -> Sequence[DeployedCatalog]:
        return (await store.inventory()).catalogs

    registry, service = store.session(store.realm().registry), store.session(service_state(store.root))
    return DeploymentSessions(
        registry if await registry.state.has_any() else None,
        service if await service.state.has_any() else None,
        catalogs,
    )


async def _require_head(session: Session, store: OpenStore) -> None:
    """Raises `NotThere` if the catalog has neither HEAD nor commits or its store can't be read, `StoreDenied` if the
    store denies that, and `HeadLost` if there are commits without HEAD."""
    try:
        head = await session.state.head()
    except StoreDenied:
        raise
    except StoreError as error:
        raise NotThere(f"cannot read the store {store.options.store}: {error}") from error
    if head.version is None:
        raise await no_warehouse(session, store.options.store)


async def no_warehouse(session: Session, url: str) -> NotThere:
    """Returns the error to raise for a catalog without state. It names the warehouse, the URL of the store, and the
    other catalogs in the store. Raises `StoreError` if the store can't be listed."""
    siblings = describe_siblings(await sibling_catalogs(session.catalog.store, session.state.paths.root))
    return NotThere(
        f"there is no warehouse {session.settings.warehouse!r} in {url}: nothing was ever made in it, or all of its "
        "state is gone (check --store and --warehouse; `arco init` makes one, `arco restore --from` brings one back)"
        f"{siblings}"
    )
