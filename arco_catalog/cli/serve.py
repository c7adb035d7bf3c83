"""`arco serve`: one process that serves one catalog until it is told to stop."""

import argparse
import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import uvicorn
import uvloop

from arco_catalog.cli.failure import Failure
from arco_catalog.cli.settings_to_paste import settings_to_paste
from arco_catalog.http.app import create_app
from arco_catalog.http.options import HttpOptions
from arco_catalog.iceberg.errors import CatalogError
from arco_catalog.operations.call import Dialect
from arco_catalog.operations.catalog import Catalog, Settings
from arco_catalog.operations.open import open_catalog
from arco_catalog.state.runtime import SystemRuntime
from storage_backends import StoreError

KEEP_ALIVE_SECONDS = 75
"""Longer than clients keep idle connections, so that none sends a request into a closing one."""
MARGIN_SECONDS = 5


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """What the command line and the environment said."""

    store: str
    host: str
    port: int
    warehouse: str
    allowed_locations: Sequence[str]
    allow_location_overlap: bool
    dialect: Dialect
    log_level: str
    quiet: bool

    @classmethod
    def of(cls, parsed: argparse.Namespace) -> "ServeOptions":
        """Takes the parser's result over."""
        return cls(
            store=parsed.store,
            host=parsed.host,
            port=parsed.port,
            warehouse=parsed.warehouse,
            allowed_locations=parsed.allowed_location,
            allow_location_overlap=parsed.allow_location_overlap,
            dialect=parsed.idempotency_dialect,
            log_level=parsed.log_level,
            quiet=parsed.quiet,
        )


def run(options: ServeOptions) -> int:
    """Serves until a signal says stop. Returns the exit code. Raises `Failure` if it can't start."""
    logging.basicConfig(
        level=options.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr
    )
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(options))
    return 0


async def _serve(options: ServeOptions) -> None:
    with _listen(options.host, options.port) as listener:
        catalog = await _open(options)
        try:
            config = uvicorn.Config(
                create_app({options.warehouse: catalog}, HttpOptions(dialect=options.dialect)),
                http="httptools",
                ws="none",
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=catalog.settings.request_ms // 1000 + MARGIN_SECONDS,
            )
            await Server(config, lambda: _announce(options, catalog, listener)).serve([listener])
        finally:
            for space in catalog.spaces:
                await space.store.close()


class Server(uvicorn.Server):
    """uvicorn that says when it listens, and takes a signal as a wish to end well rather than as a death."""

    def __init__(self, config: uvicorn.Config, announce: Callable[[], None]) -> None:
        super().__init__(config)
        self._announce = announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._announce()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """The first signal lets requests under way finish, a second interrupt does not. None is raised again
        afterwards, as uvicorn would: a server that was asked to end and did has not failed."""
        loop = asyncio.get_running_loop()
        signals = (signal.SIGINT, signal.SIGTERM)
        for wish in signals:
            loop.add_signal_handler(wish, self.handle_exit, wish, None)
        try:
            yield
        finally:
            for wish in signals:
                loop.remove_signal_handler(wish)


def _listen(host: str, port: int) -> socket.socket:
    """A listening socket; IPv4 where a name has both. Raises `Failure`."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, address = min(found, key=lambda info: info[0] != socket.AF_INET)
        return socket.create_server(address[:2], family=family, backlog=1024)
    except OSError as error:
        why = (error.strerror or str(error)).partition(" (while attempting")[0]
        raise Failure(f"can't listen on {host} port {port}: {why}") from error


async def _open(options: ServeOptions) -> Catalog:
    settings = Settings(options.warehouse, allow_location_overlap=options.allow_location_overlap)
    try:
        return await open_catalog(settings, options.store, options.allowed_locations, SystemRuntime())
    except (CatalogError, StoreError, ValueError, OSError) as error:
        raise Failure(f"can't open the store {options.store}: {error}") from error


def _announce(options: ServeOptions, catalog: Catalog, listener: socket.socket) -> None:
    uri = _uri(listener)
    if catalog.settings.read_only_because is not None:
        print(f"arco: this catalog is READ-ONLY: {catalog.settings.read_only_because}", file=sys.stderr)
    print(f"Arco serves the warehouse {options.warehouse!r} of {options.store} at {uri} (Ctrl-C ends it)")
    if not options.quiet:
        print(f"\n{settings_to_paste(uri, options.warehouse, options.store, os.environ)}\n")
    sys.stdout.flush()


def _uri(listener: socket.socket) -> str:
    """Where a client on this machine finds the server."""
    host, port = listener.getsockname()[:2]
    if host in ("0.0.0.0", "::"):
        host = "127.0.0.1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
