"""`arco serve`: one process that serves a catalog, or the catalogs of realms, until SIGINT or SIGTERM."""

import asyncio
import json
import logging
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, cast

import uvicorn
import uvloop

from arco_catalog.cli.accepting import Acceptor
from arco_catalog.cli.background_work import policies_of, working
from arco_catalog.cli.client_config import file_io
from arco_catalog.cli.connections import BoundedProtocol
from arco_catalog.cli.crowd import Crowd, max_connections
from arco_catalog.cli.errors import CliError
from arco_catalog.cli.listening import StoreReport, announce, listen
from arco_catalog.cli.malloc import configure_malloc
from arco_catalog.cli.serve_options import ServeOptions
from arco_catalog.cli.served_realms import served
from arco_catalog.cli.server_options import ServerOptions
from arco_catalog.cli.session import operator_request, report_slow_store
from arco_catalog.cli.tls import Certificate, certificate_of
from arco_catalog.cli.urls import canonical_urls
from arco_catalog.http.app import create_app
from arco_catalog.http.asgi import Asgi
from arco_catalog.http.browsers import parse_host, parse_origin
from arco_catalog.http.console.clients import SignIn
from arco_catalog.http.console.files import read_console
from arco_catalog.http.console.setup import load_sign_in
from arco_catalog.http.options import HttpOptions
from arco_catalog.http.rates import RequestRates
from arco_catalog.http.realms import RealmService, ServedRealms
from arco_catalog.http.routes import import_handlers
from arco_catalog.iceberg.errors import CatalogError
from arco_catalog.operations.contents import describe_contents
from arco_catalog.operations.open import long_lived, open_catalog
from arco_catalog.protocol.access import ALLOW_ALL
from arco_catalog.protocol.catalog import Catalog, Settings
from arco_catalog.protocol.key_resolution import key_warning
from arco_catalog.state.cycle_collector import CYCLE_COLLECTOR
from arco_catalog.state.key_settings import KeyPolicy
from arco_catalog.state.registry import RegistryState
from arco_catalog.state.runtime import Runtime, SystemRuntime
from arco_catalog.tasks.loop import WakeUp
from arco_catalog.tasks.retry import TaskPolicies
from arco_catalog.tasks.work_stats import WorkStats
from arco_catalog.telemetry.audit import STANDARD_OUTPUT, AuditFile, AuditLog
from arco_catalog.telemetry.lines import Write
from arco_catalog.telemetry.logs import configure_logging
from arco_catalog.telemetry.setup import server_telemetry
from arco_catalog.telemetry.tasks_line import TaskLines
from arco_catalog.telemetry.telemetry import Observer, Telemetry
from arco_catalog.upkeep.delivery.sinks import sinks_from
from arco_catalog.upkeep.purge.delegate import Delegate
from arco_catalog.upkeep.purge.worker import delegate_from_env
from storage_backends import StoreError
from storage_backends.open import opener_in

if TYPE_CHECKING:
    from arco_catalog.cli.server_metrics import ServerMetrics

KEEP_ALIVE_SECONDS = 75
"""Longer than clients keep idle connections, so that none sends a request into a closing one."""
MARGIN_SECONDS = 5

_REQUESTS = logging.getLogger("arco_catalog.http.requests")


def run(options: ServeOptions) -> int:
    """Serves until SIGINT or SIGTERM, as a worker also until the supervisor dies, then returns 0. Raises `CliError` if
    the server can't start."""
    return run_server(options, _serve(options))


def run_server(options: ServerOptions, serving: Coroutine[object, object, None]) -> int:
    """Sets up the allocator, the log and the collector of cycles, and runs a server, which is the coroutine `serving`,
    in a new event loop until it returns. Returns 0, and raises what `serving` raises."""
    configure_malloc()
    configure_logging(sys.stderr, options.log_level, json=options.log_format == "json")
    CYCLE_COLLECTOR.tune_for_server()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serving)
    return 0


def check(options: ServeOptions) -> None:
    """Checks options, certificate, telemetry, store and realms as a start does before it listens, and serves nothing.
    Raises `CliError` for the first error."""

    async def open_and_close() -> None:
        parsed = _Inputs.of(options)
        async with _served(options, WakeUp()) as (catalog, what):
            _working(options, parsed, catalog, what.realms, WakeUp())

    asyncio.run(open_and_close())


@dataclass(frozen=True, slots=True)
class _Inputs:
    """The options of a server that can be wrong and need no store, parsed. `connections` is the limit of connections.
    `certificate`, `metrics` and `telemetry` are None if the options ask for none."""

    hosts: tuple[str, ...]
    origins: tuple[str, ...]
    certificate: Certificate | None
    metrics: "ServerMetrics | None"
    telemetry: Telemetry | None
    policies: TaskPolicies
    connections: int
    sign_in: SignIn

    @classmethod
    def of(cls, options: ServeOptions) -> "_Inputs":
        """Parses the options of a server; opens the file of the audit log, and raises the limit of open files, if these
        need it. Raises `CliError` for the first wrong one."""
        metrics = metrics_of(options, options.listener)
        return cls(
            parsed_each("--allowed-host", parse_host, options.allowed_hosts),
            parsed_each("--allowed-origin", parse_origin, options.allowed_origins),
            certificate_of(options.tls_cert, options.tls_key, options.tls_client_ca),
            metrics,
            telemetry_of(options, _observers(options, metrics)),
            policies_of(options.task_properties),
            max_connections(options.max_connections),
            _sign_in(options),
        )


async def _serve(options: ServeOptions) -> None:
    """Serves the catalog or realms until the process is stopped. Raises `CliError` if an option is invalid, or if the
    store or the address can't be opened."""
    import_handlers()
    parsed = _Inputs.of(options)
    wake_up = WakeUp()
    async with _served(options, wake_up) as (catalog, what), followed(parsed.certificate):
        http = HttpOptions(
            base_path=options.base_path.encode(),
            namespace_separator=options.namespace_separator,
            dialect=options.dialect,
            keys_enabled=options.keys_enabled,
            key_lifetime_ms=options.key_lifetime_ms,
            keep_reports=options.metrics == "store",
            gzip=options.gzip,
            health=True,
            allowed_hosts=parsed.hosts,
            allowed_origins=parsed.origins,
            max_body_bytes=options.max_body,
            request_memory_bytes=options.request_memory,
            file_io=file_io(options.store, options.environment),
        )
        catalogs = {} if what.realms else {options.warehouse: catalog}
        app = create_app(
            catalogs,
            http,
            parsed.telemetry,
            what.realms,
            what.authentication,
            rates=_rates(options),
            policy=what.policy,
            console=None if options.no_console else await asyncio.to_thread(read_console, sign_in=parsed.sign_in),
        )
        config = server_config(app, catalog.settings.request_ms // 1000 + MARGIN_SECONDS)
        report = await _report(catalog, what.realms, http.key_policy)
        crowd = Crowd(parsed.connections, asyncio.get_running_loop().time)
        if parsed.metrics is not None:
            parsed.metrics.watch(crowd)
        work = _working(options, parsed, catalog, what.realms, wake_up)
        with _listener(options) as listener:  # last: an address in use must not hide another mistake
            server = Server(config, crowd, lambda: _announce(options, report, listener, uri), parsed.certificate)
            if options.listener is not None:
                asyncio.get_running_loop().add_reader(sys.stdin, server.end)
            metrics = parsed.metrics if options.listener is None else None  # a worker's supervisor answers scrapes
            async with scraped(options, metrics) as uri, work:
                await server.serve([listener])


def _sign_in(options: ServeOptions) -> SignIn:
    """Returns how people sign in to the console. Raises `CliError` for invalid options, and if a client or origin of
    the console is given also for invalid variables of issuers."""
    try:
        return load_sign_in(options.console_clients, options.console_origins, options.auth, options.environment)
    except ValueError as error:
        raise CliError(f"--console-client, --console-origin, or a variable about issuers of tokens: {error}") from error


def _rates(options: ServeOptions) -> RequestRates | None:
    """Returns the limit of requests a second for each principal; None without the option."""
    rate = options.requests_per_second
    return None if rate is None else RequestRates(rate, asyncio.get_running_loop().time)


async def _report(catalog: Catalog, realms: RealmService | None, variables: KeyPolicy) -> StoreReport:
    """Collects the facts about the store for the start-up message, with `realms` about the default realm. If HEAD can't
    be read, or the contents of the store, the facts of both are missing, and nothing is raised: requests report the
    error."""
    if realms is None:
        request = operator_request(catalog.runtime, "serve", catalog.settings.request_ms)
        state = catalog.session(request, ALLOW_ALL).state
    else:
        state = realms.realms[realms.default].lookups()
    try:
        contents = await describe_contents(state, of_realm=realms is not None)
        head = await state.head()
    except (CatalogError, StoreError):
        contents, head = None, RegistryState.empty()
    return StoreReport(
        catalog.settings.read_only_because,
        catalog.settings.lacks,
        realms is not None,
        head.copy_of,
        contents,
        key_warning(catalog.settings.warehouse, head.key_settings, variables),
    )


def _working(
    options: ServeOptions, parsed: _Inputs, catalog: Catalog, realms: RealmService | None, wake_up: WakeUp
) -> AbstractAsyncContextManager[None]:
    """Returns a context in which the process works on tasks, counts them in the metrics, and with a JSON log writes
    lines about them; it does nothing if --tasks is off or the catalog is read-only. Raises `CliError`, if it works, for
    invalid variables of the delegation of purges."""
    if not options.tasks or catalog.settings.read_only_because is not None:
        return nullcontext()
    write = _to_stderr if options.log_format == "json" else None
    lines = TaskLines(write, options.metrics_namespace, catalog.runtime.now_ms)
    delegate = _delegate(options, catalog.runtime)
    counts = None if parsed.metrics is None else parsed.metrics.task_counts()

    def report(warehouse: str, stats: WorkStats) -> None:
        lines.tell(warehouse, stats)
        if counts is not None:
            counts.count(warehouse, stats)

    of_realms = None if realms is None else realms.realms
    sinks = sinks_from(options.environment, catalog.runtime.now_ms) if options.events else None
    fills_feed = options.fills_feed
    return working(catalog, of_realms, parsed.policies, delegate, wake_up, report, sinks=sinks, fills_feed=fills_feed)


def _delegate(options: ServeOptions, runtime: Runtime) -> Delegate | None:
    """Returns what hands purges to a delegation service; None if workers purge by themselves. Raises `CliError` for
    invalid variables."""
    try:
        return delegate_from_env(options.environment, runtime)
    except ValueError as error:
        raise CliError(str(error)) from error


def server_config(app: Asgi, graceful_s: int) -> uvicorn.Config:
    """Returns uvicorn's settings for a server of `app`. When the server stops, requests under way have `graceful_s`
    seconds until they are cancelled."""
    return uvicorn.Config(
        app,
        http="httptools",
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=graceful_s,
    )


class Server(uvicorn.Server):
    """uvicorn's server, with these differences: it calls `announce` when it listens, it limits its connections by
    `crowd` and reads TLS from a `certificate` that may change, it awaits the requests that it cancels at a stop, and a
    signal ends it with exit code 0."""

    def __init__(
        self, config: uvicorn.Config, crowd: Crowd, announce: Callable[[], None], certificate: Certificate | None = None
    ) -> None:
        super().__init__(config)
        self._crowd = crowd
        self._certificate = certificate
        self._announce = announce
        self._acceptors: list[Acceptor] = []

    def end(self) -> None:
        """Stops the server as SIGTERM does. It is called when stdin of a worker ends, because the supervisor died and
        can't send a signal."""
        asyncio.get_running_loop().remove_reader(sys.stdin)
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Starts to accept connections on these sockets up to the limit, and calls `announce`. Replaces uvicorn's
        method, which accepts any number."""
        await self.lifespan.startup()
        self._acceptors = [
            Acceptor(listener, self._crowd, self._protocol, self._certificate) for listener in sockets or ()
        ]
        self.servers = cast(list[asyncio.Server], self._acceptors)
        self.started = True
        self._announce()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stops accepting, closes these sockets, and waits until the requests under way are answered, up to uvicorn's
        timeout or another SIGINT. Requests that are left then are cancelled, and awaited for at most `MARGIN_SECONDS`
        before the stores that they use are closed. Connections whose handshake is not complete are awaited first, so
        that uvicorn closes them too; those that are not ready after a second are cancelled."""
        for acceptor in self._acceptors:
            acceptor.close()
        for listener in sockets or ():
            listener.close()  # frees the address for the next server
        for acceptor in self._acceptors:
            await acceptor.wait_connected()
        await super().shutdown(sockets)
        requests = set(self.server_state.tasks)
        for request in requests:
            request.cancel()
        if requests:
            await asyncio.wait(requests, timeout=MARGIN_SECONDS)

    def _protocol(self) -> BoundedProtocol:
        """Makes the protocol of a new connection, which reports to this server's crowd."""
        return BoundedProtocol(
            self._crowd, config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handles SIGINT and SIGTERM within the context: after the first signal requests under way finish, after a
        second SIGINT they do not. Unlike uvicorn's method it does not raise the signal again at the end, so a server
        that ends on a signal exits with 0."""
        loop = asyncio.get_running_loop()
        signals = (signal.SIGINT, signal.SIGTERM)
        for signum in signals:
            loop.add_signal_handler(signum, self.handle_exit, signum, None)
        try:
            yield
        finally:
            for signum in signals:
                loop.remove_signal_handler(signum)


def _listener(options: ServeOptions) -> socket.socket:
    """Returns the listening socket that the supervisor opened for this worker (`--listener`); opens one at the address
    of the options for a server without a supervisor. Raises `AddressError`."""
    if options.listener is None:
        return listen(options.host, options.port)
    return socket.socket(fileno=options.listener)


def parsed_each(option: str, parse: Callable[[str], str], values: Sequence[str]) -> tuple[str, ...]:
    """Returns each value of an option as `parse` returns it. Raises `CliError`, which names the option, for a value for
    which `parse` raises `ValueError`."""
    try:
        return tuple(parse(value) for value in values)
    except ValueError as error:
        raise CliError(f"{option}: {error}") from error


def metrics_of(options: ServerOptions, place: int | None = None) -> "ServerMetrics | None":
    """Returns the metrics for Prometheus of this process, at this place among the workers of its supervisor; None
    without --metrics-port."""
    if options.metrics_port is None:
        return None
    from arco_catalog.cli.server_metrics import ServerMetrics

    return ServerMetrics(place, SystemRuntime().now_ms)


@asynccontextmanager
async def scraped(options: ServerOptions, metrics: "ServerMetrics | None") -> AsyncIterator[str | None]:
    """Answers scrapes at the port of metrics for as long as the context lasts, and yields the URI; yields None without
    metrics or that port. Raises `AddressError` if the port can't be opened."""
    if metrics is None or options.metrics_port is None:
        yield None
        return
    from arco_catalog.cli.metrics_server import answering_scrapes

    async with answering_scrapes(options.metrics_host, options.metrics_port, metrics.page) as uri:
        yield uri


def _announce(options: ServeOptions, report: StoreReport, listener: socket.socket, metrics: str | None) -> None:
    """Writes where the server is; a worker writes a report for the supervisor instead."""
    if options.listener is None:
        announce(options, listener, report, quiet=options.quiet, console=not options.no_console, metrics=metrics)
    else:
        print(json.dumps(asdict(report)), flush=True)


def _observers(options: ServeOptions, metrics: "ServerMetrics | None") -> Sequence[Observer]:
    """Returns the audit log, if the options name its file, and the metrics of requests, if there are some. Raises
    `CliError` if the file can't be opened."""
    observers: list[Observer] = []
    if options.audit_log is not None:
        observers.append(AuditLog(_audit_file(options, options.audit_log).write, SystemRuntime().now_ms))
    if metrics is not None:
        observers.append(metrics.requests)
    return observers


def _audit_file(options: ServeOptions, path: str) -> AuditFile:
    """Opens the file for audit lines; for `STANDARD_OUTPUT` uses standard output, in a worker that of the supervisor.
    Raises `CliError` if the file can't be opened."""
    if path == STANDARD_OUTPUT:
        return AuditFile(1 if options.audit_descriptor is None else options.audit_descriptor)
    try:
        return AuditFile.open(path)
    except (OSError, ValueError) as error:
        raise CliError(f"--audit-log: {error}") from error


def telemetry_of(options: ServerOptions, observers: Sequence[Observer] = ()) -> Telemetry | None:
    """Returns a server's telemetry: a line of JSON for each request if the log's format is JSON, a line of text if its
    level is `debug`, else no lines; metrics in the JSON lines if the options name their namespace; traces if the
    environment configures them; and the `observers`. Returns None without any of these. Raises `CliError` for invalid
    settings, and for a metrics namespace without JSON."""
    if options.log_format == "json":
        lines: dict[str, Write] = {"json": _to_stderr}
    elif options.log_level == "debug":
        lines = {"text": _REQUESTS.debug}
    else:
        lines = {}
    if options.metrics_namespace is not None and options.log_format != "json":
        raise CliError("--metrics-namespace requires --log-format json: metrics are part of JSON log lines")
    try:
        return server_telemetry(
            options.environment, SystemRuntime(), namespace=options.metrics_namespace, observers=observers, **lines
        )
    except ValueError as error:
        raise CliError(str(error)) from error


def _to_stderr(line: str) -> None:
    """Writes a line and the end of it to stderr in one call, so that lines of other threads can't be mixed into it."""
    sys.stderr.write(f"{line}\n")


@asynccontextmanager
async def _served(options: ServeOptions, wake_up: WakeUp) -> AsyncIterator[tuple[Catalog, ServedRealms]]:
    """Opens the store for as long as the context lasts. Yields the catalog at the root of the store, and the realms
    that are served with their authentication; if the store has no realm, there are none, and that catalog is served.
    Raises `CliError` if the store can't be opened or a realm can't be served."""
    async with long_lived(await _open(options)) as opened:
        catalog = replace(opened, notify_workers=wake_up.task_due) if options.tasks else opened
        async with AsyncExitStack() as stack:
            try:
                what = await stack.enter_async_context(served(catalog, options, SystemRuntime()))
            except (CatalogError, StoreError, ValueError, OSError) as error:
                raise CliError(f"cannot serve the catalogs in {options.store}: {error}") from error
            yield catalog, what


@asynccontextmanager
async def followed(certificate: Certificate | None) -> AsyncIterator[None]:
    """Reads the files of a certificate anew when they have changed, about every minute, for as long as the context
    lasts; does nothing without a certificate."""
    following = None if certificate is None else asyncio.create_task(certificate.follow(SystemRuntime().sleep))
    try:
        yield
    finally:
        if following is not None:
            following.cancel()


async def _open(options: ServeOptions) -> Catalog:
    """Opens the store that the options name, and returns the catalog at the root of it, with the settings in the
    options. Raises `CliError` as `open_served` does."""
    settings = Settings(
        options.warehouse,
        allow_location_overlap=options.allow_location_overlap,
        allow_catalog_overlap=options.allow_catalog_overlap,
        max_metadata_bytes=options.max_metadata,
        file_confirmed_ms=options.file_confirmed_ms,
        scan_planning=options.scan_planning,
        cache_bytes=options.cache_memory,
        purge=options.purge,
    )
    return await open_served(settings, options.store, options.allowed_locations, options.environment)


async def open_served(
    settings: Settings, store: str, allowed: Sequence[str], environment: Mapping[str, str]
) -> Catalog:
    """Opens a server's store and the allowed locations, and returns the catalog with these settings at the root of the
    store. Prints that it waits if the store is slow. Raises `CliError` if one of them can't be opened or a URL is
    invalid."""
    try:
        async with report_slow_store(store):
            url, locations = canonical_urls(store, allowed, environment)
            return await open_catalog(settings, url, locations, SystemRuntime(), opener_in(environment))
    except (CatalogError, StoreError, ValueError, OSError) as error:
        raise CliError(
            f"the server cannot open the store {store}{' or an allowed location' if allowed else ''}: {error}"
        ) from error
