"""What an operator may set about the HTTP side."""

from dataclasses import dataclass
from functools import cached_property

from arco_catalog.state.key_settings import Dialect, KeyPolicy
from arco_catalog.state.memory import REQUEST_MEMORY_BYTES, TIMEOUT_SECONDS

MAX_BODY_BYTES = 8 << 20
"""Parsing holds the interpreter, and so all other requests, for some 10 ms a megabyte."""
UNIT_SEPARATOR = "\x1f"
"""What joins the levels of a namespace in paths, unless a server advertises something else."""


KEY_LIFETIME_MS = 30 * 60 * 1000
"""How long clients may go on retrying with one Idempotency-Key. Markers are kept longer
(docs/design/idempotency.md#markers)."""


@dataclass(frozen=True)
class HttpOptions:
    """`default_warehouse` answers `/v1/config` without a `warehouse`; None takes the only one. `base_path` is what goes
    before `/v1` in paths, too: without a slash at its end. `dialect` and `keys_enabled` are for catalogs with a HEAD
    that has no record of them. `key_lifetime_ms` is advertised to clients, which send the header by it.
    `keep_reports` stores what engines report of scans and commits.

    `body_seconds` is how long a body may take to arrive, `max_body_depth` how deep its JSON may nest. `gzip` compresses
    large answers for clients that accept it. `payload_bytes` is what the host carries of an answer; None sets no limit.
    `unroutable` are characters that paths lose on their way here: nothing new may have them in its name. `health` adds
    `/health`, for health checks. `allowed_hosts` are names under which a server is reached besides those of
    its machine, and has foreign web pages refused; None if a gateway, which authenticates, is in front.
    `allowed_origins` are those whose web pages may use it all the same.
    `source_principals` are patterns of principals that may say for whom they act. `request_memory_bytes` is what
    requests under way may take together, `memory_seconds` how long one waits for its part.
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

    @cached_property
    def key_policy(self) -> KeyPolicy:
        """How a catalog reads idempotency keys that this server makes, or that has no record of it."""
        return KeyPolicy(self.dialect, self.keys_enabled)
