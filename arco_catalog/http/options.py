"""The options of the HTTP layer."""

from collections.abc import Mapping
from dataclasses import field
from functools import cached_property

from arco_catalog.state.key_settings import Dialect, KeyPolicy
from arco_catalog.state.memory import REQUEST_MEMORY_BYTES, TIMEOUT_SECONDS
from storage_backends.lazy_dataclass import dataclass

MAX_BODY_BYTES = 8 << 20
"""The default limit of a body. Parsing one blocks all other requests of the process for about 10 ms a megabyte."""
UNIT_SEPARATOR = "\x1f"
"""The separator of a namespace's levels in paths, unless a server advertises another one."""


KEY_LIFETIME_MS = 30 * 60 * 1000
"""How long clients may retry with one idempotency key. Markers are kept for longer
(docs/design/idempotency.md#markers)."""


@dataclass(frozen=True)
class HttpOptions:
    """The options of the HTTP layer of one app.

    `default_warehouse` is the warehouse of requests that name none; None means the app's only one. Paths may begin with
    `base_path`, which has no slash at its end. `dialect` and `keys_enabled` apply to a catalog whose HEAD has no record
    of them. `key_lifetime_ms` is advertised to clients, which send idempotency keys only if they read it. With
    `keep_reports` the engines' reports of scans and commits are saved.

    `namespace_separator` is the separator of a namespace's levels that clients are to use in paths. `max_body_bytes` is
    the limit of a body's size, `body_seconds` the time in which it must arrive, and `max_body_depth` the limit of its
    nested JSON, in levels. With `gzip` responses above 64 KB, not only above 1 MB, are compressed for clients that
    accept it. `payload_bytes` is the size of a response that the host can carry; None sets no limit. `unroutable` are
    characters that paths lose on their way to this server, so names of new objects may not contain them. `health` adds
    the route `/health`.

    `allowed_hosts` are the host names of this server besides IP addresses and names of loopback. If it is None, for an
    app behind a gateway that authenticates callers, web pages are not refused; if it is empty, every host name is
    allowed, unless the request arrived at a loopback address; otherwise only the names in it, or with `*` every one.
    Unless it is None, requests of foreign web pages are refused, except from `allowed_origins`. Pages of these can also
    read responses. `source_principals` are patterns of principals that may name the source of a change (source.py).
    `request_memory_bytes` is the memory that all running requests share, and `memory_seconds` the time for which a
    request waits for its part of it. `file_io` are properties of Iceberg, without secrets, by which engines reach the
    store's files: a region, an endpoint, a project or an account.
    """

    default_warehouse: str | None = None
    base_path: bytes = b""
    dialect: Dialect = Dialect.ICEBERG
    keys_enabled: bool = True
    key_lifetime_ms: int = KEY_LIFETIME_MS
    namespace_separator: str = UNIT_SEPARATOR
    max_body_bytes: int = MAX_BODY_BYTES
    max_body_depth: int = 200
    body_seconds: float = 60.0
    keep_reports: bool = False
    gzip: bool = False
    payload_bytes: int | None = None
    unroutable: str = ""
    health: bool = False
    allowed_hosts: tuple[str, ...] | None = None
    allowed_origins: tuple[str, ...] = ()
    source_principals: tuple[str, ...] = ()
    request_memory_bytes: int = REQUEST_MEMORY_BYTES
    memory_seconds: float = TIMEOUT_SECONDS
    file_io: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def key_policy(self) -> KeyPolicy:
        """The key policy of catalogs that this server creates, and of those whose HEAD has no record of one."""
        return KeyPolicy(self.dialect, self.keys_enabled)
