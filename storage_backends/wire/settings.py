"""The settings of connections to a store, for all vendors alike: trusted authorities, time limits, the number of
connections and the largest answer."""

from storage_backends.lazy_dataclass import dataclass

MAX_ANSWER_BYTES = 256 * 1024 * 1024
"""The default limit of a response's body: a multiple of the largest metadata file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionSettings:
    """The settings of the connections to a store.

    `ca_bundle`, a file or a folder, is trusted in place of the system's authorities. `idle_timeout_s` is how long the
    server may send and take nothing, `exchange_timeout_s` how long a request and its response may take, however
    steadily they trickle.
    """

    ca_bundle: str | None = None
    connect_timeout_s: float = 3.0
    idle_timeout_s: float = 10.0
    exchange_timeout_s: float = 300.0
    max_connections: int = 64
    max_answer_bytes: int = MAX_ANSWER_BYTES
