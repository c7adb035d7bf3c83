"""The options of the servers, from the command line and the environment."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Self

from arco_catalog.http.options import KEY_LIFETIME_MS, UNIT_SEPARATOR
from arco_catalog.planning.purge import PurgeMode, PurgeSettings, vended_ms
from arco_catalog.state.key_settings import Dialect


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """The options that `arco serve` and `arco delegation-service` have in common."""

    store: str
    host: str
    port: int
    warehouse: str
    allowed_locations: Sequence[str]
    allowed_hosts: Sequence[str]
    dialect: Dialect
    log_format: str
    metrics_namespace: str | None
    log_level: str
    max_connections: int
    request_memory: int
    cache_memory: int
    max_body: int
    max_metadata: int
    task_properties: Sequence[str] = ()
    realm: Sequence[str] = ()
    auth: Sequence[str] = ()
    token_key_file: str | None = None
    base_path: str = ""
    tls_cert: str | None = None
    tls_key: str | None = None
    tls_client_ca: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    """The environment variables, which configure the stores and the export of traces."""

    @classmethod
    def of(cls, parsed: argparse.Namespace) -> Self:
        """Returns the options that the parser read."""
        named = {each.name for each in fields(cls)}
        same = {name: value for name, value in vars(parsed).items() if name in named}
        return cls(**{**same, **cls._renamed(parsed)})

    @classmethod
    def _renamed(cls, parsed: argparse.Namespace) -> dict[str, Any]:
        """Returns the fields that the command line has under another name or in another form."""
        return {
            "allowed_locations": parsed.allowed_location,
            "allowed_hosts": parsed.allowed_host,
            "dialect": Dialect(parsed.idempotency_dialect),
            "task_properties": parsed.task_property,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions(ServerOptions):
    """The options of `arco serve`: what every server has, and options for locations, web pages, idempotency keys,
    purges, background tasks and vended credentials."""

    allow_location_overlap: bool
    """Whether locations of tables may overlap; `allow_catalog_overlap` is about locations of catalogs."""
    allowed_origins: Sequence[str]
    gzip: bool
    quiet: bool
    file_confirmed_ms: int = 60_000
    allow_catalog_overlap: bool = False
    keys_enabled: bool = True
    key_lifetime_ms: int = KEY_LIFETIME_MS
    metrics: str = "count"
    purge: PurgeSettings = field(default_factory=PurgeSettings)
    tasks: bool = True
    vending_lifetime: int = 3_600
    vending_keys_file: str | None = None
    namespace_separator: str = UNIT_SEPARATOR
    listener: int | None = None
    """The descriptor of the listening socket that a supervisor has opened. A process with one is a worker: it writes
    its report as JSON to the supervisor instead of a start-up message."""

    @classmethod
    def _renamed(cls, parsed: argparse.Namespace) -> dict[str, Any]:
        return {
            **ServerOptions._renamed(parsed),
            "allow_location_overlap": parsed.allow_location_overlap or parsed.allow_table_location_overlap,
            "allow_catalog_overlap": parsed.allow_location_overlap or parsed.allow_catalog_location_overlap,
            "allowed_origins": parsed.allowed_origin,
            "keys_enabled": parsed.idempotency_enabled,
            "key_lifetime_ms": parsed.idempotency_lifetime,
            "file_confirmed_ms": parsed.file_confirmed,
            "purge": PurgeSettings(
                PurgeMode(parsed.purge_mode),
                parsed.purge_undrop_window,
                parsed.purge_trust_locations,
                parsed.purge_whole_location,
                vended_ms(parsed.vending_lifetime),
            ),
        }
