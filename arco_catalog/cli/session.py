"""A command's session with a catalog, directly over the store, without a server."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TypeVar

from arco_catalog.cli.command import CatalogOptions
from arco_catalog.cli.errors import CliError, NotThere
from arco_catalog.config.variables import MAX_METADATA
from arco_catalog.iceberg.errors import CatalogError
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.open import build_catalog, open_catalog
from arco_catalog.protocol.catalog import Catalog, Session, Settings
from arco_catalog.protocol.operation_request import OperationRequest
from arco_catalog.state.runtime import SystemRuntime
from storage_backends import StoreDenied, StoreError
from storage_backends.open import canonical_url, opener_in

T = TypeVar("T")

TIMEOUT_MS = 10 * 60 * 1000
OPERATOR = "operator"
SILENT_SECONDS = 2.0
"""After which a store that does not answer is no longer waited for in silence."""


def carry_out(work: Callable[[], Coroutine[None, None, T]]) -> T:
    """Runs a command's work. Raises `CliError` for what its user can understand."""
    try:
        return asyncio.run(work())
    except BrokenPipeError:
        raise
    except (CatalogError, StoreError, ValueError, OSError) as error:
        raise CliError(str(error)) from error


@asynccontextmanager
async def reading(options: CatalogOptions, command: str, timeout_ms: int = TIMEOUT_MS) -> AsyncIterator[Session]:
    """A session that must write nothing: not even the store's conditions are probed. Raises `NotThere` if there is
    no such store or warehouse."""
    async with looking(options, command, timeout_ms) as session:
        async with saying_that_it_waits(options.store):
            await _require_warehouse(session, options.store)
        yield session


@asynccontextmanager
async def looking(options: CatalogOptions, command: str, timeout_ms: int = TIMEOUT_MS) -> AsyncIterator[Session]:
    """The same, without a look whether there is such a store or warehouse."""
    url, allowed = _urls(options)
    opener = opener_in(options.environment)
    catalog = build_catalog(_settings(options), opener(url), url, allowed, SystemRuntime(), opener)
    async with _session(catalog, command, timeout_ms) as session:
        yield session


@asynccontextmanager
async def writing(options: CatalogOptions, command: str, timeout_ms: int = TIMEOUT_MS) -> AsyncIterator[Session]:
    """A session that may write. Raises `CliError` over a store that ignores conditions, and `NotThere` where there is
    no such store or warehouse: only `arco serve` and `arco init` make one."""
    async with reading(options, command):
        pass
    async with making(options, command, timeout_ms) as session:
        yield session


@asynccontextmanager
async def making(options: CatalogOptions, command: str, timeout_ms: int = TIMEOUT_MS) -> AsyncIterator[Session]:
    """A session that may write, also where nothing is yet. Raises `CliError` over a store that ignores conditions."""
    async with saying_that_it_waits(options.store):
        url, allowed = _urls(options)
        opener = opener_in(options.environment)
        catalog = await open_catalog(_settings(options), url, allowed, SystemRuntime(), opener)
    async with _session(catalog, command, timeout_ms) as session:
        if catalog.settings.read_only_because is not None:
            raise CliError(f"this catalog is read-only: {catalog.settings.read_only_because}")
        yield session


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
        raise no_warehouse(session, url)


def no_warehouse(session: Session, url: str) -> NotThere:
    """What is said where a command finds nothing."""
    return NotThere(
        f"there is no warehouse {session.settings.warehouse!r} in {url}: nothing was ever made in it "
        "(check --store and --warehouse; `arco init` makes one)"
    )


@asynccontextmanager
async def _session(catalog: Catalog, command: str, timeout_ms: int) -> AsyncIterator[Session]:
    source: JsonObject = {"kind": "Cli"}
    deadline_ms = catalog.runtime.now_ms() + timeout_ms
    try:
        yield catalog.session(OperationRequest("CLI", command, "", None, OPERATOR, source, deadline_ms))
    finally:
        await catalog.close()


def another(session: Session) -> Session:
    """A session for the next of many steps, with a deadline of its own and nothing remembered of the steps before."""
    deadline_ms = session.runtime.now_ms() + TIMEOUT_MS
    return session.catalog.session(replace(session.request, deadline_ms=deadline_ms))


def _settings(options: CatalogOptions) -> Settings:
    """As `arco serve` was told how large metadata may be: what it serves is read here."""
    return Settings(options.warehouse, max_metadata_bytes=MAX_METADATA.read(options.environment))
