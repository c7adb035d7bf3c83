"""`arco delegation-service`: one process that executes the purges which catalogs send to it, until SIGINT or
SIGTERM."""

import argparse
import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from arco_catalog.authentication.authentication import Authentication
from arco_catalog.cli.crowd import Crowd, max_connections
from arco_catalog.cli.errors import CliError
from arco_catalog.cli.listening import listen, uri_of
from arco_catalog.cli.serve import (
    Server,
    followed,
    metrics_of,
    open_served,
    parsed_each,
    run_server,
    scraped,
    server_config,
    telemetry_of,
)
from arco_catalog.cli.served_realms import authentication_setup
from arco_catalog.cli.server_options import ServerOptions
from arco_catalog.cli.tls import certificate_of
from arco_catalog.http.asgi import Asgi
from arco_catalog.http.browsers import is_loopback, parse_host
from arco_catalog.http.delegation_service.app import create_delegation_app
from arco_catalog.http.delegation_service.authentication import CertificateCallers, TaskAuthenticator
from arco_catalog.http.delegation_service.shapes import BASE
from arco_catalog.http.options import HttpOptions
from arco_catalog.http.realms import POLARIS_REALM
from arco_catalog.iceberg.errors import CatalogError
from arco_catalog.operations.catalogs import deployed_catalogs
from arco_catalog.operations.delegation_service_state import service_state
from arco_catalog.operations.open import location_of, long_lived
from arco_catalog.operations.realms import realms_beside
from arco_catalog.protocol.catalog import Catalog, Settings
from arco_catalog.state.locations import Location
from arco_catalog.state.paths import DEFAULT_REALM
from arco_catalog.state.runtime import SystemRuntime
from arco_catalog.tasks.retry import TaskPolicies
from arco_catalog.upkeep.delegation_service.places import Places
from arco_catalog.upkeep.delegation_service.service import Access, DelegationService
from storage_backends.open import canonical_url

if TYPE_CHECKING:
    from arco_catalog.cli.server_metrics import ServerMetrics

GOODBYE_SECONDS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegationOptions(ServerOptions):
    """The options of `arco delegation-service`: what every server has, the locations in which it may delete files, the
    endpoints of stores that callers may name, and the realms of other deployments for which it executes tasks."""

    delegation_locations: Sequence[str]
    delegation_endpoints: Sequence[str]
    delegation_realms: Sequence[str]

    @classmethod
    def _renamed(cls, parsed: argparse.Namespace) -> dict[str, Any]:
        """Returns the options whose names are not those of the parsed arguments."""
        return {
            **ServerOptions._renamed(parsed),
            "delegation_locations": parsed.delegation_location,
            "delegation_endpoints": parsed.delegation_endpoint,
            "delegation_realms": parsed.delegation_realm,
        }


def run(options: DelegationOptions) -> int:
    """Serves until SIGINT or SIGTERM, then returns 0. Raises `CliError` if the service can't start."""
    return run_server(options, _serve(options))


async def _serve(options: DelegationOptions) -> None:
    """Runs the delegation service until the process is stopped. Raises `CliError` if an option is invalid, the limit of
    open files is too low, or the store or the address can't be opened."""
    hosts = parsed_each("--allowed-host", parse_host, options.allowed_hosts)
    certificate = certificate_of(options.tls_cert, options.tls_key, options.tls_client_ca)
    metrics = metrics_of(options)
    telemetry = telemetry_of(options, [] if metrics is None else [metrics.requests])
    crowd = Crowd(max_connections(options.max_connections), asyncio.get_running_loop().time)
    if metrics is not None:
        metrics.watch(crowd)
    http = HttpOptions(
        base_path=options.base_path.encode(),
        dialect=options.dialect,
        health=True,
        allowed_hosts=hosts,
        max_body_bytes=options.max_body,
        request_memory_bytes=options.request_memory,
    )
    async with _opened(options) as catalog, _callers(options, catalog) as authentication, followed(certificate):
        service = build_service(options, catalog, metrics)
        app: Asgi = create_delegation_app(service, http, telemetry, authentication)
        if authentication is None and options.tls_client_ca is not None:
            app = CertificateCallers(app)
        config = server_config(app, GOODBYE_SECONDS)
        with listen(options.host, options.port) as listener:  # last: an address in use must not hide another mistake
            uri = uri_of(listener, tls=certificate is not None) + options.base_path + BASE
            async with scraped(options, metrics) as page, _swept(service):
                await Server(config, crowd, lambda: _announce(uri, page), certificate).serve([listener])


def _announce(uri: str, page: str | None) -> None:
    """Writes where the service is, and where its metrics are."""
    print(f"Arco's delegation service is at {uri} (Ctrl-C stops it)", flush=True)
    if page is not None:
        print(f"Metrics for Prometheus are at {page}", flush=True)


@asynccontextmanager
async def _opened(options: DelegationOptions) -> AsyncIterator[Catalog]:
    """Opens the store that has the state of the service, and yields the catalog at the store's root. Raises `CliError`
    if the store can't be opened, or ignores conditions of writes, since tasks could then get lost."""
    settings = Settings(options.warehouse, max_metadata_bytes=options.max_metadata, cache_bytes=options.cache_memory)
    catalog = await open_served(settings, options.store, options.allowed_locations, options.environment)
    async with long_lived(catalog):
        if catalog.settings.read_only_because is not None:
            raise CliError(
                f"the delegation service can't keep its tasks in the store {options.store}: "
                f"{catalog.settings.read_only_because}"
            )
        yield catalog


@asynccontextmanager
async def _callers(options: DelegationOptions, catalog: Catalog) -> AsyncIterator[Authentication | None]:
    """Yields the authentication of callers by token, for the realms that the options name, or the one at the root of
    the store. Yields None if the options configure no authentication: callers then have certificates, or are programs
    on this machine. Raises `CliError` if neither would hold, because other machines can reach the address, and for an
    invalid configuration."""
    runtime = SystemRuntime()
    realms = realms_beside(catalog, _url(options), options.realm)
    try:
        setup = authentication_setup(options, realms[0].name, runtime)
    except ValueError as error:
        raise CliError(str(error)) from error
    if setup is None or setup.open:
        if options.tls_client_ca is None and options.host != "localhost" and not is_loopback(options.host):
            raise CliError(
                f"the delegation service does not start: other machines can reach {options.host}, and callers can "
                "delete files; require a login by --auth, or certificates of clients by --tls-client-ca"
            )
        yield None
        return
    try:
        yield Authentication((TaskAuthenticator(setup.authentication, {realm.name: realm for realm in realms}),))
    finally:
        await setup.close()


def build_service(options: DelegationOptions, catalog: Catalog, metrics: "ServerMetrics | None") -> DelegationService:
    """Builds the service over an open store. Raises `CliError` for invalid options."""
    url = _url(options)
    try:
        allowed = [Location.parse(each) for each in options.delegation_locations]
        policies = TaskPolicies.of_pairs(options.task_properties)
    except (CatalogError, ValueError) as error:
        raise CliError(str(error)) from error
    places = Places(allowed, location_of(url), lambda: deployed_catalogs(catalog, url, options.realm))
    realms = frozenset(options.realm or (DEFAULT_REALM,))
    root_names = () if options.realm else (POLARIS_REALM,)  # open to every caller: no other realm is served then
    others = frozenset((*options.delegation_realms, *root_names))
    ways, endpoints = options.environment, options.delegation_endpoints
    access = Access(places, ways, endpoints, realms=realms, other_realms=others)
    observer = None if metrics is None else metrics.purge_counts()
    return DelegationService(service_state(catalog), access, policies, observer)


def _url(options: DelegationOptions) -> str:
    """Returns the canonical URL of the store."""
    return canonical_url(options.store, options.environment)


@asynccontextmanager
async def _swept(service: DelegationService) -> AsyncIterator[None]:
    """For as long as the context lasts, regularly marks tasks that no process works on any more as failed. At the end
    the tasks that run in this process are cancelled; a new submission resumes them."""
    sweeping = asyncio.create_task(service.sweep())
    try:
        yield
    finally:
        sweeping.cancel()
        with suppress(asyncio.CancelledError):
            await sweeping
        await service.close()
