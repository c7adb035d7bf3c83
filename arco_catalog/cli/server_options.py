"""The options that `arco serve` and `arco delegation-service` share, from the command line and the environment.

The supervisor of workers imports this module, and nothing of what a worker needs: that takes most of a start.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Self

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
    metrics_port: int | None = None
    metrics_host: str = "127.0.0.1"
    base_path: str = ""
    tls_cert: str | None = None
    tls_key: str | None = None
    tls_client_ca: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    """The environment variables, which configure the stores and the export of traces."""

    @classmethod
    def of(cls, parsed: argparse.Namespace) -> Self:
        """Returns the options from the parsed command line, in which the environment's values are the defaults."""
        named = {each.name for each in fields(cls)}
        same = {name: value for name, value in vars(parsed).items() if name in named}
        return cls(**{**same, **cls._renamed(parsed)})

    @classmethod
    def _renamed(cls, parsed: argparse.Namespace) -> dict[str, Any]:
        """Returns the fields of the options that have another name or another form on the command line, with their
        values."""
        return {
            "allowed_locations": parsed.allowed_location,
            "allowed_hosts": parsed.allowed_host,
            "dialect": Dialect(parsed.idempotency_dialect),
            "task_properties": parsed.task_property,
        }
