"""The options of `arco serve`, from the command line and the environment."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from arco_catalog.cli.server_options import ServerOptions
from arco_catalog.http.options import KEY_LIFETIME_MS, UNIT_SEPARATOR
from arco_catalog.planning.upkeep_settings import PurgeMode, PurgeSettings, vended_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions(ServerOptions):
    """The options of `arco serve`: what every server has, and options of this server only, such as for locations, web
    pages, the console, idempotency keys, purges, background tasks, vended credentials, rates and the audit log.
    `listener`, `audit_descriptor` and `fills_feed` are for the worker of a supervisor."""

    allow_location_overlap: bool
    """Whether locations of tables may overlap; `allow_catalog_overlap` is about locations of catalogs."""
    allowed_origins: Sequence[str]
    gzip: bool
    quiet: bool
    no_console: bool = False
    console_clients: Sequence[str] = ()
    console_origins: Sequence[str] = ()
    file_confirmed_ms: int = 60_000
    allow_catalog_overlap: bool = False
    keys_enabled: bool = True
    key_lifetime_ms: int = KEY_LIFETIME_MS
    metrics: str = "count"
    scan_planning: str | None = None
    purge: PurgeSettings = field(default_factory=PurgeSettings)
    tasks: bool = True
    events: bool = False
    fills_feed: bool = True
    """Whether the process fills the event feeds of its catalogs, if it works on tasks."""
    vending_lifetime: int = 3_600
    vending_keys_file: str | None = None
    namespace_separator: str = UNIT_SEPARATOR
    requests_per_second: int | None = None
    audit_log: str | None = None
    listener: int | None = None
    """The descriptor of the listening socket that a supervisor has opened. A process with one is a worker: it writes
    its report as JSON to the supervisor instead of a start-up message."""
    audit_descriptor: int | None = None
    """The descriptor of the supervisor's standard output, for the audit lines of a worker that has none."""

    @classmethod
    def _renamed(cls, parsed: argparse.Namespace) -> dict[str, Any]:
        """Returns the options whose names or values are not those of the parsed arguments."""
        return {
            **ServerOptions._renamed(parsed),
            "allow_location_overlap": parsed.allow_location_overlap or parsed.allow_table_location_overlap,
            "allow_catalog_overlap": parsed.allow_location_overlap or parsed.allow_catalog_location_overlap,
            "allowed_origins": parsed.allowed_origin,
            "console_clients": parsed.console_client,
            "console_origins": parsed.console_origin,
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
