"""A command's session with a catalog, directly over the store, without a server."""

import asyncio
import signal
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from enum import Enum
from typing import TypeVar

from arco_catalog.cli.command import CatalogOptions
from arco_catalog.cli.errors import CliError, NotThere, Stopped
from arco_catalog.config.variables import MAX_METADATA
from arco_catalog.iceberg.errors import CatalogError, NotFound
from arco_catalog.operations.catalogs import DeployedCatalog, Inventory, realm_exists, take_inventory
from arco_catalog.operations.contents import describe_siblings, sibling_catalogs
from arco_catalog.operations.delegation_service_state import service_state
from arco_catalog.operations.environment import (
    catalogs_may_overlap,
    key_policy_from_env,
    purge_from_env,
    retention_from_env,
    tables_may_overlap,
)
from arco_catalog.operations.open import build_catalog, build_with_recorded, open_catalog
from arco_catalog.operations.realms import Realm, realm_beside
from arco_catalog.protocol.access import ALLOW_ALL
from arco_catalog.protocol.catalog import Catalog, Session, Settings
from arco_catalog.protocol.operation_request import OperationRequest
from arco_catalog.state.runtime import Runtime, SystemRuntime
from storage_backends import ObjectStore, StoreDenied, StoreError
from storage_backends.open import StoreOpener, canonical_url, opener_in

T = TypeVar("T")

TIMEOUT_MS = 10 * 60 * 1000
OPERATOR = "operator"
SILENT_SECONDS = 2.0
"""After which a store that does not answer is no longer waited for in silence."""


def carry_out(work: Callable[[], Coroutine[None, None, T]]) -> T:
    """Runs a command's work. SIGTERM stops it as an interrupt does: what it holds it gives back. Raises `CliError` for
    what its user can understand."""
    try:
        return asyncio.run(_stoppable(work))
    except BrokenPipeError:
        raise
    except asyncio.CancelledError as error:
        raise Stopped("stopped by SIGTERM") from error
    except (CatalogError, StoreError, ValueError, OSError) as error:
        raise CliError(str(error)) from error


async def _stoppable(work: Callable[[], Coroutine[None, None, T]]) -> T:
    if threading.current_thread() is not threading.main_thread():  # where no signal arrives
        return await work()
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    loop.add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        return await work()
    finally:
        loop.remove_signal_handler(signal.SIGTERM)


class Requires(Enum):
    """What must be in a catalog that a command opens: nothing, any of its state, or its HEAD."""

    NOTHING = "nothing"
    STATE = "state"
    HEAD = "head"


@asynccontextmanager
async def open_session(
    options: CatalogOptions,
    command: str,
    timeout_ms: int = TIMEOUT_MS,
    *,
    writes: bool = False,
    requires: Requires = Requires.HEAD,
) -> AsyncIterator[Session]:
    """A session with a catalog; where the store has a realm, with the realm's catalog of the name. One that `writes`
    opens a store that was probed; another writes nothing, not even the objects of a probe. Raises `NotThere` if there
    is no such store, realm or catalog, or the catalog lacks what the command `requires`, and `CliError` over a store
    that ignores conditions, if the session writes."""
    if writes:  # first without a probe, which makes the folder of a store that is not there
        async with open_session(options, command, timeout_ms, requires=requires):
            pass
    async with _store(options, probed=writes) as catalog:
        async with saying_that_it_waits(options.store):
            session = _session(await _named(catalog, options), command, timeout_ms)
            if not writes:
                await _require(session, options.store, requires)
        yield session


async def _require(session: Session, url: str, requires: Requires) -> None:
    if requires is Requires.HEAD:
        await _require_warehouse(session, url)
    if requires is Requires.STATE and not await session.state.has_any():
        raise await no_warehouse(session, url)


@asynccontextmanager
async def outside_realms(options: CatalogOptions, command: str, timeout_ms: int) -> AsyncIterator[Session]:
    """A session with the one catalog that a store without a realm has, whatever is there."""
    async with _store(options, probed=False, checks=True) as catalog:
        yield _session(catalog, command, timeout_ms)


@asynccontextmanager
async def mending_realm(
    options: CatalogOptions, command: str, timeout_ms: int, *, writes: bool
) -> AsyncIterator[Session]:
    """A session with the registry of a realm, whether its HEAD is there or not. Raises `NotThere` if nothing of a realm
    is, and `CliError` over a store that ignores conditions, if it `writes`."""
    if writes:
        async with mending_realm(options, command, timeout_ms, writes=False):
            pass  # before the store is probed, which makes its folder
    async with _store(options, probed=writes) as catalog:
        realm = realm_beside(catalog, _urls(options)[0], options.realm)
        session = _session(realm.registry, command, timeout_ms)
        page = await session.state.store.list(session.state.paths.registry_commits)
        if not page.entries:
            raise NotThere(f"there is no realm in {options.store} (check --realm)")
        yield session


@asynccontextmanager
async def whole(
    options: CatalogOptions, command: str, timeout_ms: int, *, realm: bool | None, writes: bool
) -> AsyncIterator[tuple[Session, Realm | None]]:
    """A session with the registry of the realm, and the realm; or with the one catalog of a store that has none.
    `realm` says which of the two is wanted, None to see what is there. Raises `CliError` over a store that ignores
    conditions, if it `writes`, and `NotThere` where there should be something and is nothing."""
    async with _store(options, probed=writes) as catalog:
        found = realm_beside(catalog, _urls(options)[0], options.realm)
        async with saying_that_it_waits(options.store):
            if realm if realm is not None else await realm_exists(found):
                yield _session(found.registry, command, timeout_ms), found
                return
        if realm is None and options.realm is not None:
            raise NotThere(f"there is no realm in {options.store} (check --realm)")
        session = _session(catalog, command, timeout_ms)
        if realm is None:
            await _require_warehouse(session, options.store)
        yield session, None


@asynccontextmanager
async def making(options: CatalogOptions, command: str, timeout_ms: int = TIMEOUT_MS) -> AsyncIterator[Session]:
    """A session that may write, also where nothing is yet. Raises `CliError` over a store that ignores conditions, and
    where a realm is that has no such catalog: one outside of it would be of no use."""
    async with _store(options, probed=True) as catalog:
        try:
            named = await _named(catalog, options)
        except NotThere as error:
            raise CliError(f"{options.store} has a realm: `arco catalogs create` makes catalogs in it") from error
        session = _session(named, command, timeout_ms)
        policy = key_policy_from_env(options.environment)
        yield session.catalog.session(replace(session.request, key_policy=policy), session.access)


@asynccontextmanager
async def each_catalog(options: CatalogOptions, *, writes: bool) -> AsyncIterator[Sequence[DeployedCatalog]]:
    """The catalogs of the realm, or the one of a store that has none. Raises as `open_session` does."""
    async with all_state(options, writes=writes) as inventory:
        yield inventory.catalogs


@asynccontextmanager
async def all_state(options: CatalogOptions, *, writes: bool) -> AsyncIterator[Inventory]:
    """The same catalogs, and what else has state beside them."""
    if writes:
        async with all_state(options, writes=False):
            pass
    async with _store(options, probed=writes) as catalog:
        found = await _inventory(catalog, options)
        if not found.registries:
            await _require_warehouse(_session(catalog, "", TIMEOUT_MS), options.store)
        yield found


@asynccontextmanager
async def managing(options: CatalogOptions, command: str, *, writes: bool) -> AsyncIterator[tuple[Realm, Session]]:
    """The realm of a store, and a session with its registry. Raises `NotThere` if there is none, and `CliError` over a
    store that ignores conditions, if it `writes`."""
    if writes:
        async with managing(options, command, writes=False):
            pass  # before the store is probed, which makes its folder
    async with _store(options, probed=writes) as catalog:
        realm = realm_beside(catalog, _urls(options)[0], options.realm)
        if not await realm_exists(realm):
            raise NotThere(f"there is no realm in {options.store}: `arco bootstrap` makes one (check --realm)")
        yield realm, _session(realm.registry, command, TIMEOUT_MS)


@dataclass(frozen=True, slots=True)
class Deployed:
    """A realm's registry, and its catalogs: None where there is no realm, but the one catalog. `catalogs` is to be
    asked for once the registry is known to be readable. Raises as `each_catalog` does. `service` is the delegation
    service, None where none was ever run."""

    registry: Session | None
    service: Session | None
    catalogs: Callable[[], Awaitable[Sequence[DeployedCatalog]]]


@asynccontextmanager
async def deployment(
    options: CatalogOptions, command: str, timeout_ms: int, *, writes: bool
) -> AsyncIterator[Deployed]:
    """Whatever the realm has, in whatever state, or the one catalog of a store without any."""
    async with _store(options, probed=writes) as catalog:
        realm = realm_beside(catalog, _urls(options)[0], options.realm)
        async with saying_that_it_waits(options.store):
            registry = await _if_any(_session(realm.registry, command, timeout_ms))
            service = await _if_any(_session(service_state(catalog), command, timeout_ms))
        yield Deployed(registry, service, lambda: _deployed(catalog, options))


async def _if_any(session: Session) -> Session | None:
    """A session, if there is any state for it."""
    return session if await session.state.has_any() else None


def operator_request(runtime: Runtime, command: str, timeout_ms: int = TIMEOUT_MS) -> OperationRequest:
    """What an operator asks for at the store."""
    return OperationRequest("CLI", command, "", None, OPERATOR, {"kind": "Cli"}, runtime.now_ms() + timeout_ms)


@asynccontextmanager
async def _store(options: CatalogOptions, *, probed: bool, checks: bool = False) -> AsyncIterator[Catalog]:
    """The one catalog of a store, over which its realm's are opened too. If it is `probed`, raises `CliError` over a
    store that ignores conditions. A command that `checks` the store gets a catalog of one that can't be read, too."""
    url, allowed = _urls(options)
    opener, runtime = opener_in(options.environment), SystemRuntime()
    if probed:
        async with saying_that_it_waits(options.store):
            catalog = await open_catalog(_settings(options), url, allowed, runtime, opener)
    else:
        async with saying_that_it_waits(options.store):
            catalog = await _built(_settings(options), opener(url), url, allowed, runtime, opener, checks=checks)
    try:
        if catalog.settings.read_only_because is not None:
            raise CliError(f"this catalog is read-only: {catalog.settings.read_only_because}")
        yield catalog
    finally:
        await catalog.close()


async def _built(
    settings: Settings,
    store: ObjectStore,
    url: str,
    allowed: Sequence[str],
    runtime: Runtime,
    opener: StoreOpener,
    *,
    checks: bool,
) -> Catalog:
    """A catalog over a store that was not probed. Raises `NotThere` if the store can't be read. One that denies the
    read of this HEAD may allow what a realm has."""
    try:
        return await build_with_recorded(settings, store, url, allowed, runtime, opener)
    except StoreError as error:
        if checks or isinstance(error, StoreDenied):
            return build_catalog(settings, store, url, allowed, runtime, opener)
        await store.close()
        raise NotThere(f"cannot read the store {url}: {error}") from error


async def _deployed(catalog: Catalog, options: CatalogOptions) -> Sequence[DeployedCatalog]:
    """The catalogs of the realm, or the store's one. Raises `NotThere`."""
    return (await _inventory(catalog, options)).catalogs


async def _inventory(catalog: Catalog, options: CatalogOptions) -> Inventory:
    """All that has state. Raises `NotThere`."""
    named = () if options.realm is None else (options.realm,)
    try:
        return await take_inventory(catalog, _urls(options)[0], named)
    except NotFound as error:
        raise NotThere(error.message) from error
    except StoreDenied:
        raise
    except StoreError as error:
        raise NotThere(f"cannot read the store {options.store}: {error}") from error


async def _named(catalog: Catalog, options: CatalogOptions) -> Catalog:
    """The catalog of the name that was said. Raises `NotThere`."""
    for each in await _deployed(catalog, options):
        if each.realm is None or each.name == options.warehouse:
            return each.open()
    raise NotThere(
        f"there is no catalog {options.warehouse!r} in the realm in {options.store} (check --warehouse; "
        "`arco catalogs list` lists those that there are)"
    )


def _urls(options: CatalogOptions) -> tuple[str, list[str]]:
    """The URLs of the store and of the allowed locations, by which engines know them."""
    store, *allowed = (canonical_url(url, options.environment) for url in (options.store, *options.allowed))
    return store, allowed


@asynccontextmanager
async def saying_that_it_waits(url: str) -> AsyncIterator[None]:
    """Says on stderr that a store keeps us waiting, once, if it does."""
    told = asyncio.get_running_loop().call_later(
        SILENT_SECONDS,
        lambda: print(f"arco: waiting for the store {url} to answer ...", file=sys.stderr, flush=True),
    )
    try:
        yield
    finally:
        told.cancel()


async def _require_warehouse(session: Session, url: str) -> None:
    try:
        head = await session.state.head()
    except StoreDenied:
        raise
    except StoreError as error:
        raise NotThere(f"cannot read the store {url}: {error}") from error
    if head.version is None:
        raise await no_warehouse(session, url)


async def no_warehouse(session: Session, url: str) -> NotThere:
    """The error where a command finds nothing. Raises `StoreError`."""
    siblings = describe_siblings(await sibling_catalogs(session.catalog.store, session.state.paths.root))
    return NotThere(
        f"there is no warehouse {session.settings.warehouse!r} in {url}: nothing was ever made in it, or all of its "
        "state is gone (check --store and --warehouse; `arco init` makes one, `arco restore --from` brings one back)"
        f"{siblings}"
    )


def _session(catalog: Catalog, command: str, timeout_ms: int) -> Session:
    return catalog.session(operator_request(catalog.runtime, command, timeout_ms), ALLOW_ALL)


def another(session: Session) -> Session:
    """A session for the next of many steps, with a deadline of its own and nothing remembered of the steps before."""
    deadline_ms = session.runtime.now_ms() + TIMEOUT_MS
    return session.catalog.session(replace(session.request, deadline_ms=deadline_ms), session.access)


def _settings(options: CatalogOptions) -> Settings:
    """As `arco serve` was told how large metadata may be: what it serves is read here; whether locations may overlap;
    what a drop with purge does; and how long is kept what may be collected."""
    environment = options.environment
    return Settings(
        options.warehouse,
        max_metadata_bytes=MAX_METADATA.read(environment),
        allow_location_overlap=tables_may_overlap(environment),
        allow_catalog_overlap=catalogs_may_overlap(environment),
        purge=purge_from_env(environment),
        retention=retention_from_env(environment),
    )
