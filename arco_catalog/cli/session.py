"""Opens the store of a command directly, without a server, and runs the command's work on it."""

import asyncio
import signal
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TypeVar

from arco_catalog.cli.command import CatalogOptions
from arco_catalog.cli.errors import CliError, CommandStopped, NotThere, describe_os_error
from arco_catalog.cli.urls import canonical_urls
from arco_catalog.config.variables import MAX_METADATA
from arco_catalog.iceberg.errors import CatalogError, NoSuchTable, NoSuchView, NotFound
from arco_catalog.operations.catalogs import Inventory, take_inventory
from arco_catalog.operations.environment import (
    catalogs_may_overlap,
    purge_from_env,
    retention_from_env,
    tables_may_overlap,
)
from arco_catalog.operations.open import build_catalog, build_with_recorded, open_catalog
from arco_catalog.operations.realms import Realm, realm_beside
from arco_catalog.planning.names import Identifier, dotted
from arco_catalog.protocol.access import ALLOW_ALL
from arco_catalog.protocol.catalog import Catalog, Session, Settings
from arco_catalog.protocol.lookup import relation_entry
from arco_catalog.protocol.operation_request import OperationRequest
from arco_catalog.state.runtime import Runtime, SystemRuntime
from storage_backends import StoreDenied, StoreError
from storage_backends.open import canonical_url, opener_in

T = TypeVar("T")

TIMEOUT_MS = 10 * 60 * 1000
DAY_MS = 24 * 60 * 60 * 1000
OPERATOR = "operator"
SLOW_STORE_SECONDS = 2.0
"""After this time without an answer of the store, a command prints that it is waiting."""


def carry_out(work: Callable[[], Coroutine[None, None, T]]) -> T:
    """Runs the work of a command in a new event loop and returns its result.

    SIGTERM cancels the work as Ctrl-C does, so that it releases its leases and connections; then `CommandStopped` is
    raised. Errors of the catalog, the store and invalid values are raised as `CliError` with their message, those of
    the operating system with the message of `describe_os_error`; `BrokenPipeError` and programming errors are raised
    unchanged.
    """
    try:
        return asyncio.run(_cancelled_by_sigterm(work))
    except BrokenPipeError:
        raise
    except asyncio.CancelledError as error:
        raise CommandStopped(
            "stopped by SIGTERM before the end; what the command had written until then is kept"
        ) from error
    except OSError as error:
        raise CliError(describe_os_error(error)) from error
    except (CatalogError, StoreError, ValueError) as error:
        raise CliError(str(error)) from error


async def _cancelled_by_sigterm(work: Callable[[], Coroutine[None, None, T]]) -> T:
    """Returns the result of `work`, which the signal SIGTERM cancels if this is the main thread."""
    if threading.current_thread() is not threading.main_thread():  # only the main thread may handle signals
        return await work()
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    loop.add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        return await work()
    finally:
        loop.remove_signal_handler(signal.SIGTERM)


@dataclass(frozen=True, slots=True)
class OpenStore:
    """The open store of a command. A session with it has `timeout_ms` for all calls of the store. `root` is the catalog
    that --warehouse names if the store has no realm; the catalogs of a realm use its connections."""

    options: CatalogOptions
    command: str
    timeout_ms: int
    root: Catalog

    @property
    def url(self) -> str:
        """The store's URL as engines write it, with the account of an Azure container."""
        return canonical_url(self.options.store, self.options.environment)

    def session(self, catalog: Catalog) -> Session:
        """Returns an operator's session with a catalog, or with the registry of a realm, for this command."""
        return catalog.session(operator_request(catalog.runtime, self.command, self.timeout_ms), ALLOW_ALL)

    def realm(self) -> Realm:
        """Returns the realm that --realm names, or without --realm the one at the store's root; it need not exist, and
        nothing is read."""
        return realm_beside(self.root, self.url, self.options.realm)

    async def inventory(self) -> Inventory:
        """Returns the catalogs and other owners of state in the realm; if the store has no realm, `root` and the
        delegation service. Raises `NotThere` if --realm names no realm or the store can't be read, and `StoreDenied` if
        the store denies a read."""
        names = () if self.options.realm is None else (self.options.realm,)
        try:
            return await take_inventory(self.root, self.url, names)
        except NotFound as error:
            raise NotThere(error.message) from error
        except StoreDenied:
            raise
        except StoreError as error:
            raise NotThere(f"cannot read the store {self.options.store}: {error}") from error


@asynccontextmanager
async def open_session(
    options: CatalogOptions,
    command: str,
    find: Callable[[OpenStore], Awaitable[T]],
    timeout_ms: int = TIMEOUT_MS,
    *,
    writes: bool = False,
    creates: bool = False,
    tolerates_read_errors: bool = False,
) -> AsyncIterator[T]:
    """Opens the store of a command and yields what `find` returns for it, for example a session with the catalog; at
    the end closes the store. `find` is one of the functions in finders.py, and what it raises is raised.

    Before a command that `writes`, the store is probed for conditional writes, and `CliError` is raised if it ignores
    conditions. The probe writes an object and deletes it, and makes the folder of a store of local files. So `find` is
    called once before it, on the store as it is, unless the command `creates` the state and may start with an empty
    store.

    Raises `NotThere` if the store can't be read, unless the command `tolerates_read_errors` and reports the reason
    itself; and `StoreError` if the probe fails, which is the first call of a command that `creates`."""
    if writes and not creates:
        async with open_session(options, command, find, timeout_ms):
            pass
    async with report_slow_store(options.store):
        root = await _open_root(options, probed=writes, tolerates_read_errors=tolerates_read_errors)
    try:
        if root.settings.read_only_because is not None:
            raise CliError(
                f"`arco {command}` changed nothing: the store failed the test of conditional writes, which a "
                f"command that writes makes at the start: {root.settings.read_only_because}"
            )
        async with report_slow_store(options.store):
            found = await find(OpenStore(options, command, timeout_ms, root))
        yield found
    finally:
        await root.close()


async def _open_root(options: CatalogOptions, *, probed: bool, tolerates_read_errors: bool) -> Catalog:
    """Opens the catalog at the root of the store. Raises `ValueError` for an invalid URL of the store, `CliError` for
    an invalid allowed location, `StoreError` if the store is `probed` and that fails, and `NotThere` if HEAD of a store
    that is not `probed` can't be read.

    If the store denies that read, or read errors are tolerated, the catalog is built without the locations that HEAD
    records: the credentials may still be allowed to read the state of a realm.
    """
    url, allowed = canonical_urls(options.store, options.allowed, options.environment)
    opener, runtime, settings = opener_in(options.environment), SystemRuntime(), _settings(options)
    if probed:
        return await open_catalog(settings, url, allowed, runtime, opener)
    store = opener(url)
    try:
        return await build_with_recorded(settings, store, url, allowed, runtime, opener)
    except StoreError as error:
        if tolerates_read_errors or isinstance(error, StoreDenied):
            return build_catalog(settings, store, url, allowed, runtime, opener)
        await store.close()
        raise NotThere(f"cannot read the store {url}: {error}") from error


def operator_request(runtime: Runtime, command: str, timeout_ms: int = TIMEOUT_MS) -> OperationRequest:
    """Returns the request under which a command runs: by the principal `operator`, with a deadline."""
    return OperationRequest("CLI", command, "", None, OPERATOR, {"kind": "Cli"}, runtime.now_ms() + timeout_ms)


def another(session: Session) -> Session:
    """Returns a session with the same catalog and access for the next step of a command: with a new deadline,
    `TIMEOUT_MS` from now, and without the records that the session before has read."""
    deadline_ms = session.runtime.now_ms() + TIMEOUT_MS
    return session.catalog.session(replace(session.request, deadline_ms=deadline_ms), session.access)


async def for_table_or_view(session: Session, step: Callable[[Session, str], Awaitable[T]]) -> T:
    """Calls `step` with a session and "table", and if that raises `NoSuchTable` with a new session and "view". Returns
    the result. Raises `CliError` if neither a table nor a view has the name."""
    try:
        return await step(session, "table")
    except NoSuchTable as missing:
        try:
            return await step(another(session), "view")
        except NoSuchView:
            raise CliError(missing.message) from missing


async def for_table(session: Session, identifier: Identifier, step: Callable[[Session], Awaitable[T]]) -> T:
    """Calls `step` with the session, and returns the result. If it raises `NoSuchTable` and a view has the name, raises
    `CliError` in its place; otherwise the error is raised as it is."""
    try:
        return await step(session)
    except NoSuchTable as missing:
        fresh = another(session)
        found = await relation_entry(fresh.state, (await fresh.state.head()).index, *identifier)
        if found is not None and found.kind == "view":
            raise CliError(
                f"{dotted(*identifier)} is a view: name a table, such as one that its query reads"
            ) from missing
        raise


@asynccontextmanager
async def report_slow_store(url: str) -> AsyncIterator[None]:
    """Prints once on stderr that the command waits for the store, if the context lasts over `SLOW_STORE_SECONDS`."""
    timer = asyncio.get_running_loop().call_later(
        SLOW_STORE_SECONDS,
        lambda: print(f"arco: waiting for the store {url} to answer ...", file=sys.stderr, flush=True),
    )
    try:
        yield
    finally:
        timer.cancel()


def _settings(options: CatalogOptions) -> Settings:
    """Returns the settings of `arco serve` in the environment that also matter to commands: the maximum size of
    metadata, whether locations may overlap, what a drop with purge does, and how long records are retained."""
    environment = options.environment
    return Settings(
        options.warehouse,
        max_metadata_bytes=MAX_METADATA.read(environment),
        allow_location_overlap=tables_may_overlap(environment),
        allow_catalog_overlap=catalogs_may_overlap(environment),
        purge=purge_from_env(environment),
        retention=retention_from_env(environment),
    )
